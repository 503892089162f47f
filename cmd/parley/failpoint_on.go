//go:build failpoint

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"parley"
	"parley/port"
)

// withFailpoints kills the process at a write to the store, as if its machine had
// lost power. PARLEY_FAILPOINT selects the write: "TimerFired 2 before" is the
// first write with a TimerFired in the second stage, before (or after) it is
// durable. The first stage begins with the write that sets a timer; the end of a
// run ends a stage. Writes without events are Due, Delivered and Attempted, and
// those of an erasure: ErasureBegun, Erased, Rewritten and ErasureEnded.
func withFailpoints(s store) store {
	f := &failpoint{}
	if _, err := fmt.Sscanf(os.Getenv("PARLEY_FAILPOINT"), "%s %d %s", &f.what, &f.stage, &f.when); err != nil {
		return s
	}
	return failing{s, f}
}

type failpoint struct {
	what  string
	stage int64
	when  string

	at atomic.Int64 // the current stage; 0 before the first
}

// around runs write, and kills the process before or after it if the failpoint
// selects it.
func (f *failpoint) around(what []string, write func()) {
	if slices.Contains(what, "TimerSet") {
		f.at.CompareAndSwap(0, 1)
	}
	here := f.at.Load() == f.stage && slices.Contains(what, f.what)
	f.die(here && f.when == "before")
	write()
	f.die(here && f.when == "after")
	if f.at.Load() > 0 && slices.Contains(what, "RunFinished") {
		f.at.Add(1)
	}
}

func (f *failpoint) die(now bool) {
	if now {
		fmt.Fprintln(os.Stderr, "killed at", os.Getenv("PARLEY_FAILPOINT"))
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // wait for the signal
	}
}

// beneath returns the store without failpoints.
func beneath(s store) store {
	if f, ok := s.(failing); ok {
		return f.store
	}
	return s
}

type failing struct {
	store
	f *failpoint
}

func (s failing) Append(ctx context.Context, b port.Batch) (res port.Appended, err error) {
	what := []string{"Due"}
	if len(b.Events) > 0 {
		what = nil
	}
	for _, e := range b.Events {
		what = append(what, parley.TypeOf(e.Body))
	}
	s.f.around(what, func() { res, err = s.store.Append(ctx, b) })
	return res, err
}

func (s failing) Erase(ctx context.Context, tenant parley.TenantID, x port.Erasure) (err error) {
	var what []string
	switch {
	case x.User != "":
		what = []string{"Erased"}
	case x.Ended != "":
		what = []string{"ErasureEnded"}
	case x.Begun != nil:
		what = []string{"ErasureBegun"}
	}
	s.f.around(what, func() { err = s.store.Erase(ctx, tenant, x) })
	return err
}

func (s failing) Rewrite(ctx context.Context, force bool) (done bool, err error) {
	s.f.around([]string{"Rewritten"}, func() { done, err = s.store.Rewrite(ctx, force) })
	return done, err
}

func (s failing) Tenant(id parley.TenantID) port.TenantStore {
	return failingTenant{s.store.Tenant(id), s.f}
}

type failingTenant struct {
	port.TenantStore
	f *failpoint
}

func (t failingTenant) Delivered(ctx context.Context, id parley.SessionID, at time.Time, runs ...parley.RunID) (
	err error) {
	t.f.around([]string{"Delivered"}, func() { err = t.TenantStore.Delivered(ctx, id, at, runs...) })
	return err
}

func (t failingTenant) Attempted(ctx context.Context, id parley.SessionID, effect parley.Seq, at, until time.Time) (
	err error) {
	t.f.around([]string{"Attempted"}, func() { err = t.TenantStore.Attempted(ctx, id, effect, at, until) })
	return err
}

// now is the clock of the engine. It is ahead of the machine's by PARLEY_CLOCK,
// such as -3s.
func now() time.Time { return time.Now().Add(ahead) }

var ahead, _ = time.ParseDuration(os.Getenv("PARLEY_CLOCK")) // zero unless a test sets PARLEY_CLOCK
