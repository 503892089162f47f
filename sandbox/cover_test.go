//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCoversOfTwoServers: when the last command of a server ends, the server
// does not uncover places that a command of another server, on the same
// workspace, must not make.
func TestCoversOfTwoServers(t *testing.T) {
	each(t, func(b *bench) {
		b.box.protected = append(b.box.protected, Protected{"lib/.env", true}, Protected{"lib/skills", false})
		other := &Sandbox{workspace: b.workspace, secret: isEnv, protected: b.box.protected, rung: b.box.rung,
			memory: testMemory}
		first := b.waiting(other, "first", "true")
		second := b.waiting(b.box, "second", "echo x > lib/.env || echo refused; mkdir lib/skills/x || echo refused")
		if out := first(); out != "<nil>" {
			b.t.Error(out)
		}
		if out := second(); strings.Count(out, "refused") != 2 {
			b.t.Error(out)
		}
		b.box = other // after its next command, the other server removes its covers
		b.shell(0, "true")
		for _, name := range []string{"lib/.env", "lib/skills"} {
			if _, err := os.Lstat(b.workspace + "/" + name); err == nil {
				b.t.Errorf("%s was left behind", name)
			}
		}
	})
}

// waiting starts a command that waits, and returns when it is running. The
// returned function lets the command continue, and returns its output.
func (b *bench) waiting(box *Sandbox, name, then string) (goOn func() string) {
	begun, on := "src/"+name+"-begun", "src/"+name+"-on"
	for _, fifo := range []string{begun, on} {
		if err := unix.Mkfifo(b.workspace+"/"+fifo, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	done := make(chan string)
	go func() {
		var out strings.Builder
		script := fmt.Sprintf("echo > %s; read x < %s; %s", begun, on, then)
		_, err := box.Run(context.Background(), Command{Argv: []string{"bash", "-c", script}, Dir: b.workspace,
			Output: &out})
		done <- fmt.Sprint(out.String(), err)
	}()
	b.content(b.workspace + "/" + begun)
	return func() string {
		if err := os.WriteFile(b.workspace+"/"+on, []byte("\n"), 0); err != nil {
			b.t.Error(err)
		}
		return <-done
	}
}

// TestACommandMayLockTheWorkspace: the servers lock another file.
func TestACommandMayLockTheWorkspace(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("needs the program flock")
	}
	each(t, func(b *bench) { b.shell(0, "flock -n . true") })
}
