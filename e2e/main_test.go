// Package e2e tests the promises of the server from outside: it starts the real
// binary as a process with data of its own. It speaks to it through sockets,
// mostly with npm ws, a client that shares no code with it.
//
// main_test.go, server_test.go, client_test.go and log_test.go are the tools;
// the other files are the tests. Nothing here sleeps. An order of messages
// proves that a message does not come: a late one would have to come before the
// answer to a later question.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/store/postgres/pgtest"
)

// patience limits any single wait. It is long enough for a busy machine; a test
// that passes does not wait for it.
const patience = time.Minute

func TestMain(m *testing.M) {
	// The tests wait far more than they compute: for the demo model, which has
	// the pace of a real one, and for deadlines of the server. An explicit flag
	// wins.
	_ = flag.Set("test.parallel", "8") // every test binary has this flag
	goleak.VerifyTestMain(suite{m}, goleak.Cleanup(func(code int) {
		pgtest.Stop()
		if built.dir != "" {
			_ = os.RemoveAll(built.dir) // it is a temporary folder
		}
		os.Exit(code)
	}))
}

// A suite runs all tests, and then ends the process that they share.
type suite struct{ *testing.M }

func (s suite) Run() int {
	code := s.M.Run()
	if err := stopNode(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

var built struct {
	sync.Once
	dir, binary string
	err         error
}

// binary returns the program under test: $PARLEY_BIN, or the result of go
// build, which runs once for all tests.
func binary(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("PARLEY_BIN"); given != "" {
		return given
	}
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "parley-e2e-"); built.err != nil {
			return
		}
		built.binary = filepath.Join(built.dir, "parley")
		if out, err := exec.Command("go", "build", "-o", built.binary,
			"parley/cmd/parley").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.binary
}

// within returns the context for one wait of a test.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, fmt.Errorf("nothing within %v", d))
	t.Cleanup(cancel)
	return ctx
}

// A list grows on one goroutine while others wait for its items.
type list[T any] struct {
	mu      sync.Mutex
	items   []T
	ended   bool
	changed chan struct{} // closed and replaced on every change
}

var errEnded = errors.New("there is no more")

func newList[T any]() *list[T] { return &list[T]{changed: make(chan struct{})} }

func (l *list[T]) add(item T) { l.change(func() { l.items = append(l.items, item) }) }
func (l *list[T]) end()       { l.change(func() { l.ended = true }) }

func (l *list[T]) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// all returns the present items.
func (l *list[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items[:len(l.items):len(l.items)]
}

// at waits for the item with this index.
func (l *list[T]) at(ctx context.Context, i int) (item T, err error) {
	for {
		l.mu.Lock()
		items, ended, changed := l.items, l.ended, l.changed
		l.mu.Unlock()
		switch {
		case i < len(items):
			return items[i], nil
		case ended:
			return item, errEnded
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return item, context.Cause(ctx)
		}
	}
}

// find waits for an item.
func (l *list[T]) find(ctx context.Context, wanted func(T) bool) (T, error) {
	for i := 0; ; i++ {
		item, err := l.at(ctx, i)
		if err != nil || wanted(item) {
			return item, err
		}
	}
}
