package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestDiskTrouble: while the disk accepts no writes, the server refuses them at
// once, in the words of the dialect. Sockets stay open and nothing piles up.
// When the disk works again, everything goes on without a restart. Refused
// input never appears.
func TestDiskTrouble(t *testing.T) {
	t.Parallel()
	for _, b := range []trouble{
		{"no room", noRoom, atOnce, atOnce, healed},
		{"sync fails", func(x *trial) func() { return x.inject("fsync", "error=EIO") }, atOnce, atOnce, healed},
		{"read-only", func(x *trial) func() { return x.inject("pwrite64,ftruncate", "error=EROFS") }, atOnce, atOnce,
			healed},
		{"moved away", movedAway, atOnce, atOnce, healed},
		{"hangs", func(x *trial) func() { return x.inject("fsync", "delay_enter=60000000") }, 5*time.Second + atOnce,
			atOnce, healed},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			o := options{data: t.TempDir()}
			if b.name == "no room" {
				o = smallDisk(t)
			}
			newTrial(t, startServer(t, o)).during(b)
		})
	}
}

// smallDisk gives a server a disk of its own, which ends with it.
func smallDisk(t *testing.T) options {
	t.Helper()
	o := options{data: t.TempDir()}
	o.within = onSmallDisk(t, o.data, "24m")
	return o
}

// onSmallDisk returns a command that runs another one with a small disk mounted
// on a folder. The disk has so many bytes.
func onSmallDisk(t *testing.T, folder, size string) []string {
	t.Helper()
	command := []string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs -o size=` + size + ` none "$0" && exec "$@"`,
		folder}
	if out, err := exec.Command(command[0], append(command[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no disk can be mounted: %v %s", err, out)
	}
	return command
}

// conversing starts a server and connects a socket to a thread with a finished
// run.
func conversing(t *testing.T) (*server, *socket) {
	t.Helper()
	s := startServer(t, options{data: t.TempDir()})
	c := startNode(t).dial(s, newThread())
	c.ask("repeat before")
	c.completed()
	return s, c
}

// noRoom fills the disk, as the server sees it, to the last byte, and takes
// every byte that the server frees.
func noRoom(x *trial) (heal func()) {
	name := fmt.Sprintf("/proc/%d/root%s/ballast", x.cmd.Process.Pid, x.o.data)
	f, err := os.Create(name)
	if err != nil {
		x.t.Fatal(err)
	}
	fill := func() {
		for chunk := make([]byte, 1<<20); len(chunk) > 0; {
			if _, err := f.Write(chunk); err != nil {
				chunk = chunk[:len(chunk)/2]
			}
		}
	}
	fill()
	stop, filled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(filled)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				fill()
			}
		}
	}()
	heal = sync.OnceFunc(func() {
		close(stop)
		<-filled
		f.Close()
		if err := os.Remove(name); err != nil {
			x.t.Error(err)
		}
	})
	x.t.Cleanup(heal)
	return heal
}

// movedAway moves the folder's files. The server can still write to them.
func movedAway(x *trial) (heal func()) {
	away := x.t.TempDir()
	move := func(from, to string) {
		for _, name := range []string{"parley.db", "parley.db-wal", "parley.db-shm"} {
			if err := os.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
				x.t.Fatal(err)
			}
		}
	}
	move(x.o.data, away)
	return func() { move(away, x.o.data) }
}

// TestADeletedDatabaseAcceptsNothing: writes to a deleted file are lost. The
// server must accept none, even if another file has its name.
func TestADeletedDatabaseAcceptsNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"parley.db", "parley.db-wal"} {
		for how, harm := range map[string]func(string) error{
			"deleted":  os.Remove,
			"replaced": replace,
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				s, c := conversing(t)
				if err := harm(filepath.Join(s.o.data, name)); err != nil {
					t.Fatal(err)
				}
				x := &trial{server: s, refused: map[string]bool{}}
				x.refusal(atOnce)
				x.ask(c, healed)
				s.kill() // the file cannot be restored
			})
		}
	}
}

// replace puts a copy in the place of a file.
func replace(name string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(name + ".copy")
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	return os.Rename(to.Name(), name)
}

// TestRefusedInputStaysRefused: a commit whose sync failed is complete in
// the file. The process dies before the next write. The next process must not
// treat that commit as stored.
func TestRefusedInputStaysRefused(t *testing.T) {
	t.Parallel()
	s, c := conversing(t)
	before := len(s.events(c.thread))
	heal := s.inject("fsync", "error=EIO")
	x := &trial{server: s, refused: map[string]bool{}}
	x.ask(c, healed)
	s.kill()
	heal()
	s = s.again()
	for _, e := range s.events(c.thread)[before:] {
		t.Errorf("was refused, and is there: %v", e)
	}
	c = c.node.dial(s, c.thread)
	c.ask("repeat after")
	if a := c.completed(); a.text != "after" {
		t.Errorf("after the trouble: %+v", a)
	}
}

// TestATruncatedDatabaseIsNotReady: with the pages in memory the server could
// go on for a while, and lose everything it accepted.
func TestATruncatedDatabaseIsNotReady(t *testing.T) {
	t.Parallel()
	s, _ := conversing(t)
	s.stop() // everything is in one file
	s = s.again()
	if err := os.Truncate(filepath.Join(s.o.data, "parley.db"), 0); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if status, body := s.get("/readyz", nil); status != http.StatusServiceUnavailable ||
			!strings.Contains(body, "backup") {
			t.Fatalf("/readyz: %d %s", status, body)
		}
		response := s.request(within(t, patience), http.MethodPost, "/api/v1/sessions",
			http.Header{"Content-Type": {"application/json"}}, "{}")
		response.Body.Close()
		if response.StatusCode != http.StatusInternalServerError {
			t.Fatalf("a session is opened with %d", response.StatusCode)
		}
	}
	s.kill()
	_, stderr, code := run(t, "serve", "--listen", "127.0.0.1:0", "--data", s.o.data, "--workspace", s.o.workspace)
	if code == 0 || !strings.Contains(stderr, "parley migrate --restored") {
		t.Errorf("the next start ended with %d and said %s", code, stderr)
	}
}

// TestABackupToAFullDisk: the error names the file that cannot be written, and
// not the data folder, which is fine.
func TestABackupToAFullDisk(t *testing.T) {
	t.Parallel()
	s, _ := conversing(t)
	target := t.TempDir()
	file := filepath.Join(target, "copy.db")
	small := append(onSmallDisk(t, target, "64k"), binary(t), "backup", file, "--data", s.o.data)
	backup := exec.Command(small[0], small[1:]...)
	backup.Env = []string{}
	out, err := backup.CombinedOutput()
	said := string(out)
	if err == nil || !strings.Contains(said, "The backup cannot be written to "+target) ||
		strings.Contains(said, "data folder") {
		t.Errorf("%v: %s", err, said)
	}
}

// keptDisk is a small disk that outlives the servers that use it. inside is its
// folder as this process sees it.
func keptDisk(t *testing.T) (o options, inside string) {
	t.Helper()
	o.data = t.TempDir()
	holder := exec.Command("unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o size=32m none "$0" && echo mounted && exec cat`, o.data)
	end, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Skip("no disk can be mounted:", err)
	}
	t.Cleanup(func() {
		end.Close()
		_ = holder.Wait() // the mount may have failed
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "mounted\n" {
		t.Skip("no disk can be mounted")
	}
	pid := fmt.Sprint(holder.Process.Pid)
	o.within = []string{"nsenter", "--target", pid, "--mount", "--"}
	if out, err := exec.Command(o.within[0], append(o.within[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("the disk cannot be entered: %v %s", err, out)
	}
	return o, filepath.Join("/proc", pid, "root", o.data)
}

// TestASmallDiskThatIsFull fills the disk with accepted input. The write-ahead
// log takes a small part of it, a server can be started again, and with free
// space everything goes on.
func TestASmallDiskThatIsFull(t *testing.T) {
	t.Parallel()
	o, inside := keptDisk(t)
	s := startServer(t, o)
	ballast := filepath.Join(inside, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	post := func(path, body string) int {
		response := s.request(within(t, patience), http.MethodPost, "/api/v1/sessions"+path,
			http.Header{"Content-Type": {"application/json"}}, body)
		response.Body.Close()
		return response.StatusCode
	}
	ready := func() bool { status, _ := s.get("/readyz", nil); return status == http.StatusOK }
	accepted, large := 0, fmt.Sprintf(`{"content":"repeat %s"}`, strings.Repeat("x", 200_000))
	for ; accepted < 400; accepted++ {
		thread := newThread()
		if post("", fmt.Sprintf(`{"id":%q}`, thread)) >= 300 || post("/"+thread+"/inputs", large) >= 300 {
			break
		}
	}
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(inside, name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	t.Logf("%d inputs; the database has %d KiB, its log %d KiB and the reserve %d KiB",
		accepted, size("parley.db")>>10, size("parley.db-wal")>>10, size("parley.reserve")>>10)
	if accepted == 400 || size("parley.db-wal") > 2<<20 || size("parley.db") < 8<<20 {
		t.Errorf("the log takes up room that sessions need")
	}
	await(t, patience, "/readyz to say so", func() bool { return !ready() })
	s.kill()
	s = s.again() // this needs no space
	if _, body := s.get("/api/v1/sessions", nil); !strings.Contains(body, `"sessions":[{`) {
		t.Errorf("after a crash: %.200s", body)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	await(t, patience, "/readyz with room", ready)
	c := startNode(t).dial(s, newThread())
	c.ask("repeat after")
	if a := c.completed(); a.text != "after" {
		t.Errorf("with room: %+v", a)
	}
}
