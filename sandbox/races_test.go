//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// raceRounds returns whether to run another round: a few rounds in CI, or
// rounds for the duration in PARLEY_RACE_TIME.
func raceRounds(t *testing.T) func() bool {
	limit := 6
	if long, err := time.ParseDuration(os.Getenv("PARLEY_RACE_TIME")); err == nil {
		end, n := time.Now().Add(long), 0
		t.Cleanup(func() { t.Logf("%d rounds in %v", n, long) })
		return func() bool { n++; return time.Now().Before(end) }
	}
	return func() bool { limit--; return limit >= 0 }
}

// spreadSecrets makes folders that the test moves around, with secrets in them.
func (b *bench) spreadSecrets() {
	for i := range 8 {
		for _, dir := range []string{fmt.Sprintf("lib/t/d%d/sub", i), fmt.Sprintf("lib/u/e%d", i)} {
			if err := os.MkdirAll(filepath.Join(b.workspace, dir), 0o755); err != nil {
				b.t.Fatal(err)
			}
		}
		if err := os.WriteFile(fmt.Sprintf("%s/lib/t/d%d/sub/.env", b.workspace, i), []byte("KEY=hidden-secret"),
			0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestSecretsStayHiddenWhileFoldersMove: one command moves folders as fast as
// it can, while other commands start and look for a secret in them.
// PARLEY_RACE_TIME=10m runs the test for that long.
func TestSecretsStayHiddenWhileFoldersMove(t *testing.T) {
	each(t, func(b *bench) {
		b.spreadSecrets()
		ctx, cancel := context.WithCancel(b.t.Context())
		begun := make(chan struct{})
		mover := make(chan string)
		go func() {
			out := &trigger{word: "moving", call: onceClosed(begun)}
			_, err := b.box.Run(ctx,
				Command{Argv: []string{b.workspace + "/src/probe", "probe", "shuffle", b.workspace + "/lib"},
					Dir: b.workspace, Output: out})
			mover <- fmt.Sprint(err, " ", out.seen.String())
		}()
		<-begun
		shown := 0
		for again := raceRounds(b.t); again(); {
			out, _ := b.run(
				Command{Argv: []string{"bash", "-c", "cat lib/*/.env lib/*/*/.env lib/*/*/*/.env lib/*/*/*/*/.env " +
					"2>/dev/null; true"}, ReadOnly: true})
			if strings.Contains(out, "hidden-secret") {
				shown++
			}
		}
		cancel()
		said := <-mover
		if shown > 0 {
			b.t.Errorf("shown %d times (%s)", shown, said)
		}
	})
}

// While a command swaps a folder and a link to the outside as fast as it can,
// other commands start and try to write through it.
func TestNothingOutsideIsReachedWhileLinksAreSwapped(t *testing.T) {
	each(t, func(b *bench) {
		for _, dir := range []string{"lib/real", "lib/real/in"} {
			if err := os.MkdirAll(filepath.Join(b.workspace, dir), 0o755); err != nil {
				b.t.Fatal(err)
			}
		}
		if err := os.Symlink(b.outside, b.workspace+"/lib/link"); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(b.workspace+"/lib/.env", []byte("x"), 0o644); err != nil {
			// so that Landlock lists the folder
			b.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.t.Context())
		begun := make(chan struct{})
		done := make(chan error)
		go func() {
			// The swapper runs outside the sandbox, so that it is not paused. A
			// person's own program could be as fast.
			done <- swap(ctx, b.workspace+"/lib/real", b.workspace+"/lib/link", begun)
		}()
		<-begun
		written := 0
		for again := raceRounds(b.t); again(); {
			b.box.Run(b.t.Context(),
				Command{Argv: []string{"bash", "-c",
					"echo evil > lib/real/new; echo evil > lib/link/new; echo evil > " + b.outside + "/new"},
					Dir: b.workspace, Output: io.Discard})
			if _, err := os.Lstat(b.outside + "/new"); err == nil {
				written++
				os.Remove(b.outside + "/new")
			}
		}
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
		if written > 0 {
			b.t.Errorf("written outside %d times", written)
		}
	})
}

func swap(ctx context.Context, a, b string, begun chan<- struct{}) error {
	close(begun)
	for ctx.Err() == nil {
		if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
			return err
		}
	}
	return nil
}

func onceClosed(c chan struct{}) func() { return sync.OnceFunc(func() { close(c) }) }

// TestWakingUpGainsNothing: a command that arranges to be woken while it is
// paused gains nothing, and a command that cannot be stopped delays no other.
func TestWakingUpGainsNothing(t *testing.T) {
	for _, how := range []string{"wake", "hop"} {
		t.Run(how, func(t *testing.T) {
			each(t, func(b *bench) {
				b.spreadSecrets()
				begun := make(chan struct{})
				done := make(chan Ended)
				ctx, cancel := context.WithCancel(b.t.Context())
				defer cancel()
				go func() {
					out := &trigger{word: "moving", call: onceClosed(begun)}
					ended, _ := b.box.Run(ctx,
						Command{Argv: []string{b.workspace + "/src/probe", "probe", how, b.workspace + "/lib"},
							Dir: b.workspace, Output: out})
					done <- ended
				}()
				<-begun
				shown := 0
				for again := raceRounds(b.t); again(); {
					out, ended := b.run(
						Command{Argv: []string{"bash", "-c", "cat lib/*/*/.env lib/*/*/*/.env lib/*/*/*/*/.env " +
							"2>/dev/null; true"}, ReadOnly: true})
					if strings.Contains(out, "hidden-secret") || ended.Killed {
						shown++
					}
				}
				cancel()
				if ended := <-done; shown > 0 {
					b.t.Errorf("shown %d times; %+v", shown, ended)
				}
			})
		})
	}
}

// TestACancelledStartHarmsNoOtherCommand: cancelling a command while it waits for
// others to be paused does not harm those others.
func TestACancelledStartHarmsNoOtherCommand(t *testing.T) {
	each(t, func(b *bench) {
		begun := make(chan struct{})
		done := make(chan Ended)
		go func() {
			out := &trigger{word: "begun", call: onceClosed(begun)}
			ended, err := b.box.Run(b.t.Context(),
				Command{Argv: []string{"bash", "-c",
					"echo begun; until [ -e lib/enough ]; do sleep 0.01; done; exit 7"}, Dir: b.workspace, Output: out})
			if err != nil {
				b.t.Error(err)
			}
			done <- ended
		}()
		<-begun
		for i := range 20 {
			ctx, cancel := context.WithTimeout(b.t.Context(), time.Duration(i)*time.Millisecond)
			if _, err := b.box.Run(ctx, Command{Argv: []string{"sleep", "60"}, Dir: b.workspace,
				Output: io.Discard}); err != nil {
				b.t.Error(err)
			}
			cancel()
		}
		if err := os.WriteFile(b.workspace+"/lib/enough", nil, 0o644); err != nil {
			b.t.Fatal(err)
		}
		if ended := <-done; ended.Exit != 7 || ended.Killed {
			b.t.Errorf("%+v", ended)
		}
	})
}
