package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"parley"
)

var own = regexp.MustCompile(`"(position|epoch|tenant)":("[^"]*"|\d+)`)

// without blanks the values that belong to a store.
func without(export string) string { return own.ReplaceAllString(export, `"$1":0`) }

// waiting creates a session with two runs: one that has ended, with a bookmark,
// and one that waits for an approval. It is exported while the server runs.
func waiting(t *testing.T, store []string) (id, export string) {
	id = uuid.NewString()
	served(t, store, func(addr, _ string) {
		l := dial(t, addr, id)
		for i, content := range []string{"say <one> & two", "write some text to note.txt"} {
			l.send(`{"type":"chat.request","threadId":%q,"requestId":"r%d","content":%q}`, id, i, content)
			if i == 0 {
				l.ended("r0")
			}
		}
		c := &conversation{t, addr, id}
		c.until("ApprovalRequested", 1)
		_ = l.conn.Close(websocket.StatusNormalClosure, "")
		export = mustRun(t, "", with(store, "export", id)...)
	})
	return id, export
}

// TestSessionMovesBetweenStores moves a session from each kind of store to the other.
// It must be the same to the byte, still wait for its approval, and continue after
// the approval.
func TestSessionMovesBetweenStores(t *testing.T) {
	t.Parallel()
	for from, other := range map[string]string{"sqlite": "postgres", "postgres": "sqlite"} {
		t.Run("from "+from, func(t *testing.T) {
			id, export := waiting(t, kinds[from](t))
			store := kinds[other](t)
			if out := mustRun(t, export, with(store, "import")...); !strings.Contains(out, id) ||
				!strings.Contains(out, "waiting") {
				t.Errorf("import said %q", out)
			}
			again := mustRun(t, "", with(store, "export", id)...)
			if without(again) != without(export) {
				t.Errorf("exported:\n%s\nimported and exported again:\n%s", export, again)
			}
			if again == export {
				t.Error("positions or epoch are those of the other store")
			}
			served(t, store, func(addr, workspace string) {
				document := mustRun(t, "", with(store, "export", id, "--format", "html")...)
				if page := get(t, addr+"/api/v1/sessions/"+id+"/export?format=html"); page != document ||
					!strings.Contains(page, "write_file") {
					t.Errorf("the page of the server:\n%s\nof the command:\n%s", page, document)
				}
				c := &conversation{t, addr, id}
				if open := get(t, addr+"/api/v1/approvals?session="+id); !strings.Contains(open,
					`"tool":"write_file"`) {
					t.Errorf("what waits: %s", open)
				}
				if runs := get(t, addr+"/api/v1/runs?session="+id); strings.Count(runs, `"id":`) != 2 ||
					!strings.Contains(runs, `"waiting":true`) {
					t.Errorf("the runs: %s", runs)
				}
				c.approve(1)
				if end := c.until("RunFinished", 2).Body.(parley.RunFinished); end.Outcome != parley.Completed {
					t.Errorf("the run ended as %+v", end)
				}
				if text, err := os.ReadFile(filepath.Join(workspace, "note.txt")); err != nil ||
					string(text) != "some text" {
					t.Errorf("the file that was approved: %q, %v", text, err)
				}
			})
		})
	}
}

// bookmarksOfOpenRunsStay checks that only the open run has a bookmark: those of
// ended runs belong to clients of the exporting server.
func bookmarksOfOpenRunsStay(t *testing.T, store []string, id parley.SessionID) {
	t.Helper()
	logs := reading(t, store).Tenant("default")
	st, err := logs.Session(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	owed, err := logs.Undelivered(context.Background(), id, time.Time{})
	if err != nil || len(owed) != 1 || owed[0].Run != st.Summary.Run {
		t.Errorf("runs %v are owed to somebody (%v), open is %d", owed, err, st.Summary.Run)
	}
	if snapshot, ok, err := logs.Snapshot(context.Background(), id); err != nil || !ok ||
		snapshot.Seq != st.Summary.Head {
		t.Errorf("snapshot at %d, %v, %v", snapshot.Seq, ok, err)
	}
}

// TestExportDoesNotDisturb exports while a server writes. Every export is a
// valid log and a prefix of the next one. Imported elsewhere, the open run
// continues as after a crash.
func TestExportDoesNotDisturb(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store []string) {
		var id, first, last string
		served(t, store, func(addr, _ string) {
			c := open(t, addr)
			id = c.session
			began := time.Now()
			mustRun(t, "", with(store, "export", id)...)
			c.say(fmt.Sprint("count to ", countFor(time.Since(began))))
			for i := range 6 {
				c.until("OutputAppended", 2+i) // a busy server writes few of them, with more text
				export := mustRun(t, "", with(store, "export", id)...)
				if _, err := readSession(strings.NewReader(export)); err != nil {
					t.Errorf("export %d: %v", i, err)
				}
				if _, log, _ := strings.Cut(last, "\n"); !strings.Contains(export, log) || len(export) < len(last) {
					t.Errorf("export %d does not go on from the one before:\n%s\n%s", i, last, export)
				}
				last = export
				if i == 0 {
					first = export
				}
			}
		})
		elsewhere := kinds["sqlite"](t)
		mustRun(t, first, with(elsewhere, "import")...)
		served(t, elsewhere, func(addr, _ string) {
			c := &conversation{t, addr, id}
			if cut := c.until("TurnFinished", 1).Body.(parley.TurnFinished); cut.Stop != parley.StopCut {
				t.Errorf("the turn that was open ended as %+v", cut)
			}
			if end := c.until("RunFinished", 1).Body.(parley.RunFinished); end.Outcome != parley.Completed {
				t.Errorf("the run ended as %+v", end)
			}
		})
	})
}

// TestImportRejectsInvalidFiles checks that a file that is not a complete exported
// session is refused and leaves nothing behind.
func TestImportRejectsInvalidFiles(t *testing.T) {
	t.Parallel()
	_, export := waiting(t, kinds["sqlite"](t))
	lines := strings.SplitAfter(strings.TrimSuffix(export, "\n"), "\n")
	at := func(kind string) int {
		return slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"type":"`+kind+`"`) })
	}
	edit := func(change func([]string) []string) string { return strings.Join(change(slices.Clone(lines)), "") }
	replace := func(i int, old, new string) string {
		if !strings.Contains(lines[i], old) {
			t.Fatalf("there is no %s in %s", old, lines[i])
		}
		return edit(func(l []string) []string { l[i] = strings.Replace(l[i], old, new, 1); return l })
	}
	last := len(lines) - 1
	for name, test := range map[string]struct{ file, words string }{
		"nothing":              {"", "nothing in it"},
		"something else":       {"hello\n", "line 1: this is not the header"},
		"a log alone":          {strings.Join(lines[2:], ""), "line 1: this is not the header"},
		"a later kind of file": {replace(0, `"version":1`, `"version":2`), "line 1: the file has version 2"},
		"cut between lines":    {edit(func(l []string) []string { return l[:last] }), "not complete"},
		"cut within a line":    {export[:len(export)-20], fmt.Sprintf("line %d: ", last+1)},
		"swapped lines": {edit(func(l []string) []string { l[5], l[6] = l[6], l[5]; return l }),
			"line 7: seq 4 comes after seq 5"},
		"a doubled line": {edit(func(l []string) []string { return slices.Insert(l, 6, l[5]) }),
			"line 7: seq 4 comes after seq 4"},
		"a missing line": {edit(func(l []string) []string { return slices.Delete(l, 5, 6) }),
			"the log in the file is not valid"},
		"another session":       {replace(5, `"session":"`, `"session":"0`), "line 6: it is of session 0"},
		"another root":          {replace(5, `"root":"`, `"root":"0`), "line 6: it is of session"},
		"no definition":         {edit(func(l []string) []string { return slices.Delete(l, 1, 2) }), "definition"},
		"another definition":    {replace(1, `"name":"helpful-assistant"`, `"name":"harmful-assistant"`), "definition"},
		"an unknown event":      {replace(5, `"type":"`, `"type":"New`), `line 6: unknown event type "New`},
		"a newer event":         {replace(5, `"type":`, `"version":9,"type":`), "line 6: "},
		"a field too many":      {replace(5, `"body":{`, `"body":{"new":1,`), "line 6: body.new of this"},
		"a changed piece":       {replace(at("OutputAppended"), `"text":"`, `"text":"x`), "the log in the file is not valid"},
		"a time that goes back": {replace(7, `"at":"20`, `"at":"19`), "is before"},
		"a finer time":          {replace(7, `Z"`, `0001Z"`), "line 8: at of this"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			refused(t, test.words, test.file, "import", "--data", dir)
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Error("the store was touched")
			}
		})
	}
}

// TestImportWithoutChunks: all chunks of a finished output may be
// missing together, and no other line. A session without chunks can be
// imported, used and exported again.
func TestImportWithoutChunks(t *testing.T) {
	t.Parallel()
	id, export := waiting(t, kinds["sqlite"](t))
	lines := strings.SplitAfter(strings.TrimSuffix(export, "\n"), "\n")
	pieces := map[parley.OutputID]int{}
	event := func(i int) (e parley.Event) {
		if i > 1 {
			if err := json.Unmarshal([]byte(lines[i]), &e); err != nil {
				t.Fatal(err)
			}
		}
		return e
	}
	var rest []string // lines without chunks
	for i, line := range lines {
		if piece, ok := event(i).Body.(parley.OutputAppended); ok {
			pieces[piece.Output]++
		} else {
			rest = append(rest, line)
		}
	}
	if len(pieces) == 0 {
		t.Fatal("there are no pieces")
	}
	for i := 2; i < len(lines); i++ {
		piece, _ := event(i).Body.(parley.OutputAppended)
		_, err := readSession(strings.NewReader(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")))
		if (pieces[piece.Output] == 1) != (err == nil) {
			t.Errorf("without line %d, %T: %v", i+1, event(i).Body, err)
		}
	}
	trimmed := strings.Join(rest, "") + "\n"
	onBoth(t, func(t *testing.T, store []string) {
		mustRun(t, trimmed, with(store, "import")...)
		if again := mustRun(t, "", with(store, "export", id)...); without(again) != without(trimmed) {
			t.Errorf("it came back as\n%s\nnot\n%s", again, trimmed)
		}
		served(t, store, func(addr, _ string) {
			c := &conversation{t, addr, id}
			c.approve(1)
			c.until("RunFinished", 2)
		})
	})
}

// TestImportRefusesExistingID checks that an existing session id is refused, and
// that --as gives another id.
func TestImportRefusesExistingID(t *testing.T) {
	t.Parallel()
	id, export := waiting(t, kinds["sqlite"](t))
	onBoth(t, func(t *testing.T, store []string) {
		mustRun(t, export, with(store, "import")...)
		refused(t, "--as", export, with(store, "import")...)
		as := uuid.NewString()
		mustRun(t, export, with(store, "import", "--as", as)...)
		bookmarksOfOpenRunsStay(t, store, parley.SessionID(as))
		mustRun(t, export, with(store, "import", "--tenant", "acme")...)
		refused(t, "UUID", export, with(store, "import", "--as", "me")...)
		refused(t, "--tenant", export, with(store, "import", "--tenant", "-")...)
		renamed := mustRun(t, "", with(store, "export", as)...)
		if strings.Contains(renamed, id) || without(strings.ReplaceAll(renamed, as, id)) != without(export) {
			t.Errorf("under another id:\n%s\n%s", export, renamed)
		}
		if other := mustRun(t, "", with(store, "export", id, "--tenant", "acme")...); without(other) != without(
			export) {
			t.Errorf("of another tenant:\n%s\n%s", export, other)
		}
		served(t, store, func(addr, _ string) {
			c := &conversation{t, addr, as}
			c.approve(1)
			c.until("RunFinished", 2)
			(&conversation{t, addr, id}).until("ApprovalRequested", 1)
		})
	})
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	refused(t, "no database", "", "export", uuid.NewString(), "--data", t.TempDir())
	refused(t, "UUID", "", "export", "3f0c", "--data", t.TempDir())
	onBoth(t, func(t *testing.T, store []string) {
		id := uuid.NewString()
		mustRun(t, "", with(store, "migrate")...)
		refused(t, "There is no session "+id+" of tenant default", "", with(store, "export", id)...)
		file := filepath.Join(t.TempDir(), "out")
		refused(t, "There is no session", "", with(store, "export", id, "--output", file)...)
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Error("a file without a session was left")
		}
	})
}

// TestImportNeedsTheFolder checks that import fails while a server uses the data
// folder.
func TestImportNeedsTheFolder(t *testing.T) {
	t.Parallel()
	store := kinds["sqlite"](t)
	id, export := waiting(t, kinds["sqlite"](t))
	served(t, store, func(addr, _ string) {
		refused(t, "serving on "+strings.TrimPrefix(addr, "http://"), export, with(store, "import")...)
	})
	refused(t, "There is no session "+id, "", with(store, "export", id)...)
}

// get returns the body of a page.
func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", url, res.StatusCode, raw, err)
	}
	return string(raw)
}
