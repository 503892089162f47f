package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"parley"
)

// notebook is a parley.Changes: every call that was noted has changed a file of
// its own name. What is asked for may wait, fail or panic.
type notebook struct {
	noting  func() // is called when files are noted
	asked   chan struct{}
	answers chan error // one for each question, if there is one

	mu    sync.Mutex
	notes []string
	since []string
}

func (n *notebook) Note(_ context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.noting != nil {
		n.noting()
	}
	n.notes = append(n.notes, name)
	return nil
}

var errPanic = errors.New("panic")

func (n *notebook) Since(ctx context.Context, name string) (parley.FilesChanged, error) {
	n.mu.Lock()
	n.since = append(n.since, name)
	found := parley.FilesChanged{Files: []parley.FileChange{{Path: "x", Summary: "Modified", Diff: "-x\n+y\n"}}, Truncated: len(n.since)}
	n.mu.Unlock()
	if n.answers == nil {
		return found, nil
	}
	n.asked <- struct{}{}
	select {
	case err := <-n.answers:
		if err == errPanic {
			panic(err)
		}
		return found, err
	case <-ctx.Done():
		return parley.FilesChanged{}, ctx.Err()
	}
}

func (n *notebook) count() (notes, since int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.notes), len(n.since)
}

func noting(t *testing.T, n *notebook) *rig {
	return newRig(t, func(c *Config) { c.Changes = n })
}

// ending is how a log ends.
func ending(log []parley.Event, n int) (types []string) {
	for _, e := range log[len(log)-n:] {
		types = append(types, parley.TypeOf(e.Body))
	}
	return types
}

func TestFilesAreNotedBeforeAnythingIsDone(t *testing.T) {
	n := &notebook{}
	r := noting(t, n)
	n.noting = func() {
		if r.hands.count("do") > 0 && len(n.notes) == 0 {
			t.Error("noted too late")
		}
	}
	id := r.open()
	r.say(id, "call read x | call do x; call read x | call put x | say done")
	log := r.finished(id, 1)
	if got := ending(log, 2); !slices.Equal(got, []string{"FilesChanged", "RunFinished"}) {
		t.Errorf("%v\n%s", got, story(log))
	}
	if notes, since := n.count(); notes != 2 || since != 1 || n.notes[0] != n.notes[1] || n.notes[0] != n.since[0] {
		t.Errorf("noted %q, asked for %q", n.notes, n.since)
	}
	// What only reads leaves nothing to tell.
	r.say(id, "call read x | say done")
	if log := r.finished(id, 2); len(all[parley.FilesChanged](log)) != 1 {
		t.Error(story(log))
	}
	if notes, since := n.count(); notes != 2 || since != 1 {
		t.Errorf("noted %q, asked for %q", n.notes, n.since)
	}
	// However it ends by itself.
	r.do(id, parley.SubmitInput{Content: "call do x | call do x | call do x", Agent: parley.AgentRef{Name: "hasty"}})
	log = r.finished(id, 3)
	if end := all[parley.RunFinished](log)[2]; end.Code != parley.CodeTurnLimit || len(all[parley.FilesChanged](log)) != 2 {
		t.Error(story(log))
	}
	r.check(id)
}

// TestARunIsNotLostForItsReport: whatever becomes of the report, the run ends.
func TestARunIsNotLostForItsReport(t *testing.T) {
	for name, err := range map[string]error{"it fails": errors.New("no"), "it panics": errPanic} {
		t.Run(name, func(t *testing.T) {
			n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
			r := noting(t, n)
			id := r.open()
			n.answers <- err
			r.say(id, "call do x | say done")
			log := r.finished(id, 1)
			if got := all[parley.RunFinished](log)[0].Outcome; got != parley.Completed || len(all[parley.FilesChanged](log)) != 0 {
				t.Error(story(log))
			}
			r.check(id)
		})
	}
}

func TestACrashWhileReporting(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | say done")
	<-n.asked
	r.restart(true)
	<-n.asked
	n.answers <- nil
	log := r.finished(id, 1)
	if got := ending(log, 2); !slices.Equal(got, []string{"FilesChanged", "RunFinished"}) || r.hands.count("do") != 0 {
		t.Errorf("%v\n%s", got, story(log))
	}
	r.check(id)
}

// TestToldMoreWhileReporting: a run that goes on is reported when it has ended,
// and what was found out before is of no use.
func TestToldMoreWhileReporting(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | say done")
	<-n.asked
	r.do(id, input("call do y | say done too", parley.Steer))
	<-n.asked
	n.answers <- nil
	log := r.finished(id, 1)
	changed := all[parley.FilesChanged](log)
	if len(changed) != 1 || changed[0].Truncated != 2 || len(all[parley.RunStarted](log)) != 1 {
		t.Error(story(log))
	}
	r.check(id)
}

func TestCancelWhileReporting(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | say done")
	<-n.asked
	r.do(id, parley.CancelRun{})
	r.say(id, "say more")
	log := r.finished(id, 2)
	if all[parley.RunFinished](log)[0].Outcome != parley.Cancelled || len(all[parley.FilesChanged](log)) != 0 {
		t.Error(story(log))
	}
	r.check(id)
}

// TestAServerWithoutChanges: a run that was to be reported ends on a server that
// cannot.
func TestAServerWithoutChanges(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | say done")
	<-n.asked
	r.config.Changes = nil
	r.restart(true)
	if log := r.finished(id, 1); len(all[parley.FilesChanged](log)) != 0 {
		t.Error(story(log))
	}
	r.check(id)
}
