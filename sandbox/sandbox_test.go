//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	Main()
	if len(os.Args) > 2 && os.Args[1] == "probe" {
		probe(os.Args[2], os.Args[3:])
	}
	goleak.VerifyTestMain(m)
}

// A bench is a workspace, with a folder beside it that commands must not touch.
// The workspace contains this program, so that commands can run probes.
type bench struct {
	t                        *testing.T
	box                      *Sandbox
	workspace, outside, data string
}

// each runs a test on every rung that works here.
func each(t *testing.T, test func(b *bench)) {
	for _, r := range rungs {
		t.Run(string(r), func(t *testing.T) {
			if why := unusable(r); why != "" {
				t.Skip(why)
			}
			test(newBench(t, r))
		})
	}
}

// unusable returns why this machine does not support a rung, independently of
// this package. If it is empty, the rung must work.
func unusable(r rung) string {
	if err := available(r); err != nil {
		return err.Error()
	}
	try := []string{"bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"}
	switch r {
	case landlock:
		return ""
	case namespaces:
		try = []string{"unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "true"}
	}
	if out, err := exec.Command(try[0], try[1:]...).CombinedOutput(); err != nil {
		return fmt.Sprintf("%s does not work here: %v, %s", try[0], err, out)
	}
	return ""
}

// TestRungs logs which rungs the tests of this package run on.
func TestRungs(t *testing.T) {
	for _, r := range rungs {
		if why := unusable(r); why != "" {
			t.Logf("as user %d, NOT on %s: %s", os.Getuid(), r, why)
		} else {
			t.Logf("as user %d, on %s", os.Getuid(), describe(r))
		}
	}
}

// isEnv is the rule for secret files in these tests.
func isEnv(name string) bool { return name == ".env" || strings.HasPrefix(name, ".env.") }

func newBench(t *testing.T, r rung) *bench {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, workspace: filepath.Join(top, "workspace"), outside: filepath.Join(top, "outside")}
	b.data = filepath.Join(b.workspace, "var")
	for _, dir := range []string{b.workspace, b.outside, b.data, b.workspace + "/src", b.workspace + "/lib",
		b.workspace + "/agents"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{b.outside + "/secret", b.data + "/key", b.workspace + "/.env",
		b.workspace + "/src/.env.local",
		b.workspace + "/agents/a.md", b.workspace + "/src/file", b.workspace + "/lib/file"} {
		if err := os.WriteFile(name, []byte("secret of "+filepath.Base(name)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.box = &Sandbox{workspace: b.workspace, secret: isEnv, protected: []Protected{{"var", true}, {"agents", true}},
		memory: testMemory}
	if r == bare {
		b.box.rung = bare
	} else if err := b.box.try(r, nil); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(b.workspace+"/src/probe", self, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) run(c Command) (string, Ended) {
	b.t.Helper()
	return b.until(b.t.Context(), c)
}

func (b *bench) until(ctx context.Context, c Command) (string, Ended) {
	b.t.Helper()
	var out strings.Builder
	if c.Output == nil {
		c.Output = &out
	}
	if c.Dir == "" {
		c.Dir = b.workspace
	}
	ended, err := b.box.Run(ctx, c)
	if err != nil {
		b.t.Fatalf("%q: %v (%s)", c.Argv, err, out.String())
	}
	return out.String(), ended
}

// shell runs a script, which must end with this exit code.
func (b *bench) shell(exit int, script string) string {
	b.t.Helper()
	out, ended := b.run(Command{Argv: []string{"bash", "-c", script}})
	if ended.Exit != exit || ended.Killed {
		b.t.Errorf("%s: %+v, %s", script, ended, out)
	}
	return out
}

// fail runs attempts inside the sandbox, all of which must fail.
func (b *bench) fail(tries ...[]string) {
	b.t.Helper()
	list, err := json.Marshal(tries)
	if err != nil {
		b.t.Fatal(err)
	}
	out, ended := b.run(Command{Argv: []string{b.workspace + "/src/probe", "probe", "each", string(list)}})
	if ended.Exit != refused || out != "" {
		b.t.Errorf("%+v\n%s", ended, out)
	}
}

func (b *bench) content(name string) string {
	b.t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(raw)
}

func TestACommandDoesItsWork(t *testing.T) {
	each(t, func(b *bench) {
		if out := b.shell(3, "echo one; echo two >&2; echo three; pwd; exit 3"); out != "one\ntwo\nthree\n"+b.workspace+
			"\n" {
			b.t.Errorf("%q", out)
		}
		b.shell(0, "cd lib && echo new > made && cat made file && mkdir d && mv made d/ && rm file && ln -s d l && "+
			"cat /etc/passwd > /dev/null && ls /usr")
		if got := b.content(b.workspace + "/lib/d/made"); got != "new\n" {
			b.t.Errorf("%q", got)
		}
		b.shell(0, "echo x > $TMPDIR/t && cat $TMPDIR/t && echo y > ~/h && head -c 5 /dev/zero | wc -c")
		out, _ := b.run(Command{Argv: []string{"pwd"}, Dir: b.workspace + "/src"})
		if out != b.workspace+"/src\n" {
			b.t.Errorf("%q", out)
		}
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "parley-*", "home", "h")); len(left) > 0 {
			b.t.Errorf("left behind: %q", left)
		}
	})
}

func TestReadOnly(t *testing.T) {
	each(t, func(b *bench) {
		for _, script := range []string{"echo x > lib/new", "echo x >> lib/file", "rm lib/file", "mkdir lib/d",
			"mv lib/file lib/g", "truncate -s 0 lib/file"} {
			out, ended := b.run(Command{Argv: []string{"bash", "-c", script}, ReadOnly: true})
			if ended.Exit == 0 {
				b.t.Errorf("%s: %s", script, out)
			}
		}
		if out, ended := b.run(Command{Argv: []string{"cat", "lib/file"}, ReadOnly: true}); ended.Exit != 0 ||
			out != "secret of file" {
			b.t.Errorf("%+v %s", ended, out)
		}
		if got := b.content(b.workspace + "/lib/file"); got != "secret of file" {
			b.t.Errorf("%q", got)
		}
	})
}

// TestNothingOutsideIsWritten covers the writing part of T08 to T10 and T14.
func TestNothingOutsideIsWritten(t *testing.T) {
	each(t, func(b *bench) {
		if err := os.Symlink(b.outside, b.workspace+"/lib/link"); err != nil {
			b.t.Fatal(err)
		}
		up := "../../../../../../../../../../" + b.outside
		var tries [][]string
		for _, path := range []string{
			b.outside + "/new", b.outside + "/secret", b.workspace + "/lib/link/new", b.workspace + "/lib/link/secret",
			b.workspace + "/" + up + "/new",
			"/proc/self/root" + b.outside + "/new", "/proc/1/root" + b.outside + "/new",
			"/proc/self/cwd/" + up + "/new",
			"/proc/" + strconv.Itoa(os.Getpid()) + "/root" + b.outside + "/new", "/proc/" + strconv.Itoa(os.Getpid()) +
				"/cwd/new",
			"/etc/parley-test", "/usr/parley-test", "/parley-test", "/root/parley-test", "/home/parley-test",
			"/var/parley-test", "/dev/parley-test",
			b.data + "/new", b.data + "/key", b.workspace + "/agents/new.md", b.workspace + "/agents/a.md",
			b.workspace + "/.env",
		} {
			tries = append(tries, []string{"write", path}, []string{"append", path})
		}
		for _, path := range []string{ // only opened: if that works, it must not damage the machine
			"/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger",
			"/proc/self/oom_score_adj", "/proc/1/oom_score_adj", "/proc/self/uid_map",
			"/dev/sda", "/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/sys/power/state",
		} {
			tries = append(tries, []string{"open", path})
		}
		b.fail(append(tries,
			[]string{"link", b.outside + "/secret", b.workspace + "/lib/hard"},
			[]string{"link", b.data + "/key", b.workspace + "/lib/hard"},
			[]string{"rename", b.outside + "/secret", b.workspace + "/lib/moved"},
			[]string{"rename", b.workspace + "/lib/file", b.outside + "/moved"},
			[]string{"rename", b.data, b.workspace + "/lib/moved"},
			[]string{"rename", b.workspace + "/agents", b.workspace + "/lib/moved"},
			[]string{"rename", b.workspace + "/lib", b.workspace + "/agents"},
			[]string{"rename", b.workspace, b.outside + "/moved"},
			[]string{"remove", b.data},
			[]string{"remove", b.workspace + "/agents/a.md"},
			[]string{"mknod", b.workspace + "/lib/node"},
		)...)
		entries, _ := os.ReadDir(b.outside)
		if len(entries) != 1 || b.content(b.outside+"/secret") != "secret of secret" ||
			b.content(b.data+"/key") != "secret of key" || b.content(b.workspace+"/agents/a.md") != "secret of a.md" {
			b.t.Errorf("%v", entries)
		}
	})
}

// TestNothingSecretIsRead is T09.
func TestNothingSecretIsRead(t *testing.T) {
	t.Setenv("PARLEY_TEST_SECRET", "very secret")
	t.Setenv("OPENAI_API_KEY", "very secret")
	each(t, func(b *bench) {
		pid := strconv.Itoa(os.Getpid())
		home, _ := os.UserHomeDir()
		var tries [][]string
		for _, path := range []string{
			b.outside + "/secret", b.data + "/key", b.workspace + "/.env", b.workspace + "/src/.env.local",
			b.workspace + "/agents/a.md",
			b.workspace + "/src/../var/key", "/proc/self/root" + b.outside + "/secret", "/proc/self/cwd/var/key",
			"/etc/shadow", "/etc/sudoers", "/root/.bashrc", home + "/.ssh", home + "/.profile",
			"/proc/" + pid + "/environ", "/proc/" + pid + "/mem", "/proc/" + pid + "/maps",
			"/proc/" + pid + "/root/etc/passwd", "/proc/" + pid + "/fd/0", "/proc/kcore", "/run/docker.sock",
			"/var/run/docker.sock", "/dev/mem", "/dev/sda", "/dev/kmsg",
		} {
			tries = append(tries, []string{"read", path})
		}
		b.fail(tries...)
		out := b.shell(0, "env; set; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; true")
		if strings.Contains(out, "very secret") || strings.Contains(out, "PARLEY_TEST_SECRET") {
			b.t.Errorf("the environment: %s", out)
		}
		out = b.shell(0, "grep -rs secret . | cat; ls -a var agents 2>&1; true")
		for _, secret := range []string{"secret of key", "secret of .env", "secret of a.md"} {
			if strings.Contains(out, secret) {
				b.t.Errorf("found %q: %s", secret, out)
			}
		}
	})
}

// TestNothingIsInherited checks that commands do not inherit the server's open
// files.
func TestNothingIsInherited(t *testing.T) {
	fd, err := unix.Open(os.Args[0], unix.O_RDONLY, 0) // as if inherited from the process that started the server
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	each(t, func(b *bench) {
		b.fail([]string{"inherit"})
	})
}

// TestNoNetwork is T10: a command cannot reach even the server that started it.
func TestNoNetwork(t *testing.T) {
	each(t, func(b *bench) {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.t.Fatal(err)
		}
		defer tcp.Close()
		path, err := net.Listen("unix", b.outside+"/s")
		if err != nil {
			b.t.Fatal(err)
		}
		defer path.Close()
		name := "@parley-test-" + strconv.Itoa(os.Getpid())
		abstract, err := net.Listen("unix", name)
		if err != nil {
			b.t.Fatal(err)
		}
		defer abstract.Close()
		b.fail(
			[]string{"dial", "tcp", tcp.Addr().String()},
			[]string{"dial", "tcp", "192.0.2.1:80"},
			[]string{"dial", "tcp6", "[2001:db8::1]:80"},
			[]string{"dial", "udp", "192.0.2.1:53"},
			[]string{"dial", "unix", b.outside + "/s"},
			[]string{"dial", "unix", name},
			[]string{"dial", "ip4:icmp", "127.0.0.1"},
			[]string{"socket", strconv.Itoa(syscall.AF_PACKET)},
			[]string{"socket", "40"}, // vsock, to the host of this machine
			[]string{"socket", "38"}, // the kernel's crypto API
		)
		_, port, _ := net.SplitHostPort(tcp.Addr().String())
		b.shell(1, "exec 2>/dev/null; echo x > /dev/tcp/127.0.0.1/"+port)
	})
}

// TestNoPrivileges is T11.
func TestNoPrivileges(t *testing.T) {
	each(t, func(b *bench) {
		var tries [][]string
		for _, call := range []string{"ptrace", "mount", "umount", "unshare", "setns", "chroot", "bpf", "keyctl",
			"userfaultfd", "io_uring_setup", "perf_event_open", "reboot", "newuser"} {
			tries = append(tries, []string{"call", call})
		}
		b.fail(tries...)
		for _, pid := range []string{strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getppid())} {
			b.fail([]string{"kill", pid}, []string{"limit", pid}, []string{"priority", pid})
		}
		if b.box.rung == landlock { // with bubblewrap, shared memory has a namespace of its own
			b.fail([]string{"shared"})
		}
		b.shell(0, "ulimit -n 100 && nice -n 5 true && ls -l /dev/null") // allowed for the command itself
		out, ended := b.run(Command{Argv: []string{b.workspace + "/src/probe", "probe", "rights"}})
		if want := fmt.Sprintf("new privileges ruled out, capabilities 0, core 0, data %d, file %d, files %d",
			uint64(testMemory), maxFile, maxFiles); ended.Exit != 0 || !strings.HasPrefix(out, want) {
			b.t.Errorf("%s, want %s", out, want)
		}
	})
}

// TestMissingHiddenPlacesCannotBeMade: if a hidden folder does not exist yet, a
// command cannot make it.
func TestMissingHiddenPlacesCannotBeMade(t *testing.T) {
	each(t, func(b *bench) {
		later := b.workspace + "/later/agents"
		file := b.workspace + "/src/sub/.env"
		if err := os.MkdirAll(b.workspace+"/src/sub", 0o755); err != nil {
			b.t.Fatal(err)
		}
		b.box.protected = append(b.box.protected, Protected{"later/agents", true}, Protected{"src/sub/.env", true})
		b.run(Command{Argv: []string{"true"}, ReadOnly: true})
		if _, err := os.Stat(later); err == nil {
			b.t.Error("looking has made a folder")
		}
		b.shell(1, "mkdir -p later/agents; echo x > later/agents/evil.md")
		b.shell(1, "echo PARLEY_AUTH=none > src/sub/.env")
		for _, name := range []string{b.workspace + "/later", file} {
			if _, err := os.Lstat(name); err == nil {
				b.t.Errorf("%s was left behind", name)
			}
		}
	})
}

// TestCoversStayForRunningCommands: when a command ends, its covers stay for
// commands that are still running.
func TestCoversStayForRunningCommands(t *testing.T) {
	each(t, func(b *bench) {
		file := b.workspace + "/lib/.env"
		b.box.protected = append(b.box.protected, Protected{"lib/.env", true})
		slow := b.waiting(b.box, "slow", "echo PARLEY_AUTH=none > lib/.env || echo refused")
		b.shell(0, "true")
		if out := slow(); !strings.Contains(out, "refused") {
			b.t.Errorf("%s", out)
		}
		if _, err := os.Lstat(file); err == nil {
			b.t.Error("it was left behind")
		}
	})
}

// TestGitWorks checks that git works, whatever its settings on this machine.
func TestGitWorks(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	each(t, func(b *bench) {
		b.shell(0, "cd lib && git init -q && git add file && git -c user.name=a -c user.email=a@example.invalid "+
			"commit -q -m x && git log --oneline")
		if out, ended := b.run(Command{Argv: []string{"git", "log", "--format=%s"}, Dir: b.workspace + "/lib",
			ReadOnly: true}); ended.Exit != 0 || out != "x\n" {
			b.t.Errorf("%+v %s", ended, out)
		}
	})
}

func TestHowACommandEnds(t *testing.T) {
	each(t, func(b *bench) {
		if _, ended := b.run(Command{Argv: []string{"bash", "-c", "kill -9 $$"}}); ended.Exit != 137 {
			b.t.Errorf("%+v", ended)
		}
		for _, argv := range [][]string{{"no-such-program"}, {b.outside + "/secret"}, {b.workspace + "/src/file"},
			{"./src"}} {
			_, err := b.box.Run(b.t.Context(), Command{Argv: argv, Dir: b.workspace, Output: io.Discard})
			if err == nil || !strings.Contains(err.Error(), "cannot be started") {
				b.t.Errorf("%q: %v", argv, err)
			}
		}
		_, err := b.box.Run(b.t.Context(), Command{Argv: []string{"ls"}, Dir: b.outside, Output: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "cannot be entered") {
			if b.box.rung == bubblewrap {
				b.t.Errorf("outside: %v", err)
			}
		}
		long := strings.Repeat("x", 100_000)
		if out, _ := b.run(Command{Argv: []string{"echo", long, long}}); len(out) != 200_002 {
			b.t.Errorf("%d bytes", len(out))
		}
	})
}

// alive counts the processes with a mark in their arguments.
func alive(mark string) (n int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if raw, err := os.ReadFile(name); err == nil && strings.Contains(string(raw), mark) {
			n++
		}
	}
	return n
}

var marks int

func mark() string {
	marks++
	return fmt.Sprintf("parley-mark-%d-%d", os.Getpid(), marks)
}

// TestNoProcessIsLeftBehind is T08: every process that a command leaves running
// ends with it.
func TestNoProcessIsLeftBehind(t *testing.T) {
	each(t, func(b *bench) {
		for _, how := range []string{"background", "daemon"} {
			m := mark()
			out, ended := b.run(Command{Argv: []string{b.workspace + "/src/probe", "probe", how, m}})
			if ended.Exit != 0 || !strings.Contains(out, "left") {
				b.t.Fatalf("%s: %+v %s", how, ended, out)
			}
			if n := alive(m); n > 0 {
				b.t.Errorf("%s: %d are alive", how, n)
			}
		}
	})
}

// A trigger calls a function once the output contains a word.
type trigger struct {
	word string
	seen strings.Builder
	call func()
}

func (w *trigger) Write(p []byte) (int, error) {
	w.seen.Write(p)
	if strings.Contains(w.seen.String(), w.word) {
		w.call()
	}
	return len(p), nil
}

func TestCancelEndsAll(t *testing.T) {
	each(t, func(b *bench) {
		for _, how := range []string{"background", "daemon"} {
			m := mark()
			ctx, cancel := context.WithCancel(b.t.Context())
			_, ended := b.until(ctx, Command{Argv: []string{b.workspace + "/src/probe", "probe", how, m, "stay"},
				Output: &trigger{word: "left", call: cancel}})
			if !ended.Killed || ended.Flood {
				b.t.Errorf("%s: %+v", how, ended)
			}
			if n := alive(m); n > 0 {
				b.t.Errorf("%s: %d are alive", how, n)
			}
		}
		ctx, cancel := context.WithCancel(b.t.Context())
		cancel()
		if _, ended := b.until(ctx, Command{Argv: []string{"sleep", "1000"}}); !ended.Killed {
			b.t.Errorf("%+v", ended)
		}
	})
}

func TestAFloodIsEnded(t *testing.T) {
	each(t, func(b *bench) {
		_, ended := b.run(Command{Argv: []string{"yes"}, Output: io.Discard})
		if !ended.Flood || !ended.Killed {
			b.t.Errorf("%+v", ended)
		}
	})
}

func TestLimitsHold(t *testing.T) {
	each(t, func(b *bench) {
		if testMemory == maxMemory {
			b.fail([]string{"memory"})
		}
		b.fail([]string{"large", b.workspace + "/lib/large"})
	})
}

// TestAForkBombIsEnded checks that the number of its processes is limited, and
// that all of them are ended.
func TestAForkBombIsEnded(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("the limit on processes does not bind root; TestAsUnprivilegedUser runs this")
	}
	if testMemory != maxMemory {
		t.Skip("hundreds of programs with the race detector are too much for any machine")
	}
	each(t, func(b *bench) {
		m := mark()
		ctx, cancel := context.WithCancel(b.t.Context())
		_, ended := b.until(ctx, Command{Argv: []string{b.workspace + "/src/probe", "probe", "bomb", m},
			Output: &trigger{word: "full", call: cancel}})
		if !ended.Killed {
			b.t.Errorf("%+v", ended)
		}
		if n := alive(m); n > 0 {
			b.t.Errorf("%d are alive", n)
		}
	})
}

// TestTheServerDies checks that commands end when the server dies.
func TestTheServerDies(t *testing.T) {
	each(t, func(b *bench) {
		m := mark()
		server := exec.Command("/proc/self/exe", "probe", "serve", string(b.box.rung), b.workspace, m)
		server.Env = append(os.Environ(), "TMPDIR="+b.outside) // to see whether anything stays there
		out, err := server.StdoutPipe()
		if err == nil {
			err = server.Start()
		}
		if err != nil {
			b.t.Fatal(err)
		}
		left := make([]byte, 4)
		if _, err := io.ReadFull(out, left); err != nil || alive(m) == 0 {
			b.t.Fatalf("%q %v", left, err)
		}
		if _, err := os.Lstat(b.workspace + "/lib/.env"); err != nil {
			b.t.Errorf("what is to be hidden is not covered: %v", err)
		}
		supervisor := -1
		names, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, name := range names {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if p, ok := look(pid); ok && p.parent == server.Process.Pid {
				supervisor, _ = unix.PidfdOpen(pid, 0)
			}
		}
		if supervisor < 0 {
			b.t.Fatal("there is no supervisor")
		}
		defer unix.Close(supervisor)
		server.Process.Kill()
		server.Wait()
		for { // wait until the supervisor has ended
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(supervisor), Events: unix.POLLIN}},
				60_000); err != unix.EINTR {
				break
			}
		}
		if n := alive(m); n > 0 {
			b.t.Errorf("%d are alive", n)
		}
		if left, _ := filepath.Glob(b.outside + "/parley-*"); len(left) > 0 {
			b.t.Errorf("left behind: %q", left)
		}
		if _, err := os.Lstat(b.workspace + "/lib/.env"); err == nil {
			b.t.Error("what was to be hidden was left behind")
		}
	})
}

// TestWithoutASandbox: an approved command runs without a sandbox, and its
// processes still end with it.
func TestWithoutASandbox(t *testing.T) {
	b := newBenchBare(t)
	if b.box.Missing() == nil || !strings.Contains(b.box.String(), "none") {
		t.Fatalf("%s", b.box)
	}
	t.Setenv("PARLEY_TEST_SECRET", "very secret")
	if out := b.shell(0, "env"); strings.Contains(out, "very secret") {
		t.Errorf("%s", out)
	}
	m := mark()
	b.run(Command{Argv: []string{b.workspace + "/src/probe", "probe", "daemon", m}})
	if n := alive(m); n > 0 {
		t.Errorf("%d are alive", n)
	}
}

func newBenchBare(t *testing.T) *bench {
	b := newBench(t, bare)
	box, err := New(Options{Workspace: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if box.Missing() == nil {
		t.Fatal("there is a sandbox for the whole machine")
	}
	box.workspace, box.memory = b.workspace, testMemory
	b.box = box
	return b
}

func TestNew(t *testing.T) {
	dir := t.TempDir()
	box, err := New(Options{Workspace: dir, Protected: []Protected{{"var", true}, {"agents", true}, {"skills", false}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("here: %s", box)
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("looking has made %v", entries)
	}
	if _, err := New(Options{Workspace: dir + "/absent"}); err == nil {
		t.Error("there is no workspace")
	}
}

// TestAsUnprivilegedUser runs all tests of this package again as a user that is not root.
func TestAsUnprivilegedUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is somebody")
	}
	if testMemory != maxMemory {
		t.Skip("it ran without the race detector")
	}
	top, err := os.MkdirTemp("", "parley-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(top+"/tests", self, 0o755)
	}
	for _, do := range []error{err, os.Chmod(top, 0o755), os.Mkdir(top+"/tmp", 0o700),
		os.Chown(top+"/tmp", 65534, 65534)} {
		if do != nil {
			t.Fatal(do)
		}
	}
	cmd := exec.Command(top+"/tests", "-test.v", "-test.timeout=8m")
	cmd.Dir, cmd.Env = top+"/tmp", []string{"TMPDIR=" + top + "/tmp", "PATH=" + os.Getenv("PATH"),
		"HOME=" + top + "/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--- ") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A marked writer records each write with the name of its stream.
type marked struct {
	name string
	all  *strings.Builder
}

func (m marked) Write(p []byte) (int, error) {
	fmt.Fprintf(m.all, "%s %q\n", m.name, p)
	return len(p), nil
}

// TestTwoStreams: stdout and stderr arrive separately, in the order they are
// read.
func TestTwoStreams(t *testing.T) {
	each(t, func(b *bench) {
		var all strings.Builder
		c := Command{Argv: []string{"bash", "-c", "echo one; sleep 0.2; echo two >&2; sleep 0.2; echo three; exit 4"},
			Output: marked{"stdout", &all}, Stderr: marked{"stderr", &all}}
		if _, ended := b.run(c); ended.Exit != 4 {
			b.t.Errorf("%+v", ended)
		}
		if want := "stdout \"one\\n\"\nstderr \"two\\n\"\nstdout \"three\\n\"\n"; all.String() != want {
			b.t.Errorf("got\n%s", all.String())
		}
		// The limit applies to both streams together.
		var out, err strings.Builder
		c = Command{Argv: []string{"bash", "-c", "yes >&2 & yes"}, Output: &out, Stderr: &err}
		if _, ended := b.run(c); !ended.Flood || out.Len()+err.Len() != MaxOutput {
			b.t.Errorf("%+v after %d and %d bytes", ended, out.Len(), err.Len())
		}
	})
}
