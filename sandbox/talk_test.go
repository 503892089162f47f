//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A talk is a running command with an open stdin and stdout.
type talk struct {
	in    *os.File
	out   *bufio.Reader
	ended chan Ended
	said  strings.Builder // to stderr; to be read after ended
	stop  context.CancelFunc
}

func (b *bench) talk(c Command) *talk {
	b.t.Helper()
	input, in, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, reply, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	t := &talk{in: in, out: bufio.NewReader(out), ended: make(chan Ended, 1)}
	ctx, stop := context.WithCancel(b.t.Context())
	t.stop = stop
	c.Dir, c.Input, c.Reply, c.Output = b.workspace, input, reply, &t.said
	go func() {
		ended, err := b.box.Run(ctx, c)
		if err != nil {
			b.t.Errorf("%q: %v", c.Argv, err)
		}
		input.Close()
		reply.Close()
		t.ended <- ended
	}()
	b.t.Cleanup(func() { stop(); in.Close(); out.Close() })
	return t
}

// TestACommandIsTalkedTo: the caller can talk to a command for as long as it
// lives. Its stderr is separate. When it ends, its stdout ends; when its input
// ends, it ends.
func TestACommandIsTalkedTo(t *testing.T) {
	each(t, func(b *bench) {
		c := b.talk(
			Command{Argv: []string{"bash", "-c",
				`echo begun >&2; while read -r line; do echo "$line, $WHO"; done; echo over >&2; exit 7`},
				Env: []string{"WHO=ann", "LANG=C"}})
		for _, word := range []string{"one", "two"} {
			if _, err := c.in.WriteString(word + "\n"); err != nil {
				b.t.Fatal(err)
			}
			if line, err := c.out.ReadString('\n'); err != nil || line != word+", ann\n" {
				b.t.Fatalf("%q, %v", line, err)
			}
		}
		c.in.Close()
		if ended := <-c.ended; ended.Exit != 7 || ended.Killed || c.said.String() != "begun\nover\n" {
			b.t.Errorf("%+v %q", ended, c.said.String())
		}
		if rest, err := c.out.ReadString('\n'); err == nil {
			b.t.Errorf("it still says %q", rest)
		}

		stays := b.talk(
			Command{Argv: []string{"bash", "-c", "sleep 1000 & echo there; while true; do sleep 1000; done"}})
		if line, err := stays.out.ReadString('\n'); err != nil || line != "there\n" {
			b.t.Fatalf("%q, %v", line, err)
		}
		stays.stop()
		if ended := <-stays.ended; !ended.Killed {
			b.t.Errorf("%+v", ended)
		}
	})
}

// TestTalkingIsNoFlood: the stderr of such a command has no limit.
func TestTalkingIsNoFlood(t *testing.T) {
	each(t, func(b *bench) {
		c := b.talk(Command{Argv: []string{"bash", "-c", "head -c 17000000 /dev/zero >&2; read -r line; echo $line"}})
		if _, err := c.in.WriteString("still here\n"); err != nil {
			b.t.Fatal(err)
		}
		if line, err := c.out.ReadString('\n'); err != nil || line != "still here\n" {
			b.t.Errorf("%q, %v", line, err)
		}
		if ended := <-c.ended; ended.Flood || c.said.Len() != 17000000 {
			b.t.Errorf("%+v, %d bytes", ended, c.said.Len())
		}
	})
}

func TestMoreFolders(t *testing.T) {
	each(t, func(b *bench) {
		more := filepath.Join(filepath.Dir(b.outside), "more")
		if err := os.MkdirAll(more, 0o755); err != nil {
			b.t.Fatal(err)
		}
		script := "cat " + b.outside + "/secret && echo made > " + more + "/file && ! echo evil 2>/dev/null > " +
			b.outside + "/new && ! cat var/key 2>/dev/null"
		out, ended := b.run(Command{Argv: []string{"bash", "-c", script}, Read: []string{b.outside},
			Write: []string{more}})
		if ended.Exit != 0 || out != "secret of secret" || b.content(more+"/file") != "made\n" {
			b.t.Errorf("%+v %s", ended, out)
		}
		if _, err := os.Stat(b.outside + "/new"); err == nil {
			b.t.Error("what was to be read was written")
		}
		// Access to a folder above a hidden one does not reveal it.
		out, ended = b.run(Command{Argv: []string{"cat", b.data + "/key"}, Read: []string{filepath.Dir(b.workspace)},
			ReadOnly: true})
		if ended.Exit == 0 {
			b.t.Errorf("%s", out)
		}
		// Nor does it make the workspace read-only.
		out, ended = b.run(Command{Argv: []string{"bash", "-c", "echo x > lib/over && cat " + b.outside + "/secret"},
			Read: []string{filepath.Dir(b.workspace)}})
		if ended.Exit != 0 || b.content(b.workspace+"/lib/over") != "x\n" {
			b.t.Errorf("%+v %s", ended, out)
		}
	})
}

// TestANetworkWithoutOurPort: a command with a network can reach everything
// except the barred ports and Unix sockets.
func TestANetworkWithoutOurPort(t *testing.T) {
	each(t, func(b *bench) {
		open, ours := listen(b, "tcp", "127.0.0.1:0"), listen(b, "tcp", "127.0.0.1:0")
		path := listen(b, "unix", b.workspace+"/lib/socket")
		name := listen(b, "unix", "@parley-test-"+strconv.Itoa(os.Getpid()))
		_, port, _ := net.SplitHostPort(ours)
		barred, _ := strconv.ParseUint(port, 10, 16)
		try := func(network bool, what ...string) int {
			_, ended := b.run(Command{Argv: append([]string{b.workspace + "/src/probe", "probe"}, what...),
				Network: network, Barred: []uint16{uint16(barred)}})
			return ended.Exit
		}
		if got := try(true, "dial", "tcp", open); got != 0 {
			b.t.Errorf("it cannot reach what it may: %d", got)
		}
		for _, what := range [][]string{{"dial", "tcp", ours}, {"mptcp", port}, {"fastopen", port},
			{"dial", "unix", path}, {"dial", "unix", name}, {"socket", strconv.Itoa(unix.AF_PACKET)}} {
			if got := try(true, what...); got != refused {
				b.t.Errorf("%q worked: %d", what, got)
			}
		}
		if got := try(false, "dial", "tcp", open); got != refused {
			b.t.Errorf("without a network it reaches one: %d", got)
		}
	})
}

func listen(b *bench, network, address string) string {
	b.t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// TestBare: without a sandbox, a command has the server's rights, and still
// leaves no process behind.
func TestBare(t *testing.T) {
	each(t, func(b *bench) {
		out, ended := b.run(Command{Argv: []string{"bash", "-c", "cat " + b.outside + "/secret; sleep 1000 & exit 0"},
			Bare: true})
		if ended.Exit != 0 || out != "secret of secret" {
			b.t.Errorf("%+v %s", ended, out)
		}
	})
}
