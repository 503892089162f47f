package e2e

import (
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledWhileErasing kills the server before and after every write of an erasure. The next server reports the
// erasure that has not ended. After it is repeated, no file in the data folder holds the user's word: not the database,
// its write-ahead log, the search index, nor the artifacts. Saved contents of files, which are encoded or compressed,
// are gone too.
func TestKilledWhileErasing(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"ErasureBegun", "Erased", "Rewritten", "ErasureEnded"} {
		for _, when := range []string{"before", "after"} {
			t.Run(step+" "+when, func(t *testing.T) {
				t.Parallel()
				o := options{binary: mortalServer(t), workspace: t.TempDir(),
					env: []string{"PARLEY_FAILPOINT=" + step + " 0 " + when, "PATH=" + gitAlone(t)}}
				word := "zq" + strings.ToLower(rand.Text())
				long := strings.Repeat(word+" is a word of the user\n", 4000)
				if err := os.WriteFile(filepath.Join(o.workspace, "long.txt"), []byte(long), 0o600); err != nil {
					t.Fatal(err)
				}
				s := startServer(t, o)
				said := s.says("helpful-assistant", "remember that I like "+word)
				s.ends(said)
				s.tells(said, "run cat long.txt") // its output becomes an artifact
				s.awaitEvent(said, func(e event) bool { return e.Type == "ToolCallFinished" })
				wrote := s.says("helpful-assistant", "write "+word+" to note.txt")
				s.send("/approvals/"+s.waiting("approvals", wrote), `{"decision":"allow"}`)
				s.ends(wrote)
				s.tells(wrote, "write more to note.txt") // the earlier content of the file is kept for an undo
				s.send("/approvals/"+s.waiting("approvals", wrote), `{"decision":"allow"}`)
				runs := 0
				s.awaitEvent(wrote, func(e event) bool {
					if e.Type == "RunFinished" {
						runs++
					}
					return runs == 2
				})
				if kept := keptOf(t, s.o.data, wrote); !strings.Contains(strings.Join(kept, "\n"), "/undo/") || len(kept) < 2 {
					t.Fatalf("of the session that wrote files, only %q are kept", kept)
				}
				if len(filesWith(t, s.o.data, word)) < 2 {
					t.Fatal("the word is not in the data folder")
				}
				erase := func() (*http.Response, error) {
					r, err := http.NewRequest(http.MethodPost, "http://"+s.address+"/api/v1/users/local/erase",
						strings.NewReader(`{}`))
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Content-Type", "application/json")
					return browser.Do(r)
				}
				if response, err := erase(); err == nil {
					response.Body.Close()
					t.Fatalf("nothing killed the server: %s", response.Status)
				}
				s.dies()

				s.o.env = nil
				s = s.again()
				begun := step+when != "ErasureBegunbefore" && step+when != "ErasureEndedafter"
				if warned := strings.Contains(strings.Join(s.log.all(), "\n"), "erasure"); warned != begun {
					t.Errorf("the log of the next server names an erasure: %t, want %t", warned, begun)
				}
				response, err := erase()
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if response.StatusCode != http.StatusOK {
					t.Fatalf("repeated: %s", response.Status)
				}
				if found := filesWith(t, s.o.data, word); len(found) > 0 {
					t.Errorf("while the server runs, the word is in %v", found)
				}
				if kept := keptOf(t, s.o.data, wrote); len(kept) > 0 {
					t.Errorf("contents of files are kept in %q", kept)
				}
				s.stop()
				if found := filesWith(t, s.o.data, word); len(found) > 0 {
					t.Errorf("the word is in %v", found)
				}
			})
		}
	}
}

// keptOf lists the files in a data folder that save changes by the runs of a session.
func keptOf(t *testing.T, data, session string) (found []string) {
	t.Helper()
	for _, pattern := range []string{"changes*/*", "changes*/undo/*"} {
		names, err := filepath.Glob(filepath.Join(data, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.Contains(filepath.Base(name), session) {
				found = append(found, name)
			}
		}
	}
	return found
}

// filesWith lists the files below a folder that hold the end of a word. A search index omits the beginning that a word
// shares with the previous word.
func filesWith(t *testing.T, folder, word string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), word[8:]) {
			found = append(found, path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}
