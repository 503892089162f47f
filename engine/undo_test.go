package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// changedBy returns a session with a run that has changed a file.
func changedBy(t *testing.T, n *notebook) (*rig, parley.SessionID, parley.RunID) {
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | say done")
	return r, id, parley.RunID(seqOf[parley.RunStarted](r.finished(id, 1), 1))
}

func (r *rig) refused(id parley.SessionID, do parley.CommandBody, code parley.Code) string {
	r.t.Helper()
	before := len(r.log(id))
	_, err := r.try(id, do)
	if parley.CodeOf(err) != code || err == nil {
		r.t.Errorf("%T: %v, wanted %s", do, err, code)
	}
	if after := len(r.log(id)); after != before {
		r.t.Errorf("a refusal left %d events", after-before)
	}
	return parley.MessageOf(err)
}

// TestUndo checks that the request and its result are in the log and in the
// audit, and that the model learns of them.
func TestUndo(t *testing.T) {
	r, id, run := changedBy(t, &notebook{})
	command := parley.Command{ID: "once", Session: id, Do: parley.UndoChanges{Run: run}}
	for range 2 {
		if _, err := r.Submit(context.Background(), ann, command); err != nil {
			t.Fatal(err)
		}
	}
	log := r.until(id, "the undo", seen[parley.ChangesUndone](1))
	undone := all[parley.ChangesUndone](log)[0]
	if got := ending(log, 2); !slices.Equal(got, []string{"UndoRequested", "ChangesUndone"}) || undone.Run != run ||
		undone.Problem != "" || len(undone.Files) != 1 {
		t.Errorf("%v %+v", got, undone)
	}
	if why := r.refused(id, parley.UndoChanges{Run: run}, parley.CodeClosed); !strings.Contains(why, "undone already") {
		t.Error(why)
	}
	messages := parley.Conversation(log)
	if told := messages[len(messages)-1]; told.Role != parley.RoleUser || !strings.Contains(told.Text, `"x" was restored`) {
		t.Errorf("%+v", told)
	}
	rows, err := r.Store.Tenant(acme).Audited(context.Background(), port.AuditQuery{Limit: 100})
	if err != nil || !slices.ContainsFunc(rows, func(a port.AuditRow) bool {
		return a.Action == "changes.undone" && a.By == ann.ID && a.ID == parley.Ref(id, parley.Seq(run))
	}) {
		t.Errorf("%v, %v", rows, err)
	}
	r.check(id)
}

// TestUndoIsRefused checks that a refused undo leaves nothing in the log.
func TestUndoIsRefused(t *testing.T) {
	n := &notebook{}
	r, id, run := changedBy(t, n)
	r.refused(id, parley.UndoChanges{Run: run + 1}, parley.CodeNotFound)
	r.refused(id, parley.UndoChanges{}, parley.CodeNotFound)
	n.mayUndo = parley.Errorf(parley.CodeConflict, `"x" has changed.`)
	if why := r.refused(id, parley.UndoChanges{Run: run}, parley.CodeConflict); why != `"x" has changed.` {
		t.Error(why)
	}
	n.mayUndo = nil
	r.say(id, "hang")
	r.until(id, "the next run works", seen[parley.TurnStarted](3))
	if why := r.refused(id, parley.UndoChanges{Run: run}, parley.CodeConflict); !strings.Contains(why, "is working") {
		t.Error(why)
	}
}

// TestAnUndoThatFails checks that a failed undo says why, and can be tried
// again.
func TestAnUndoThatFails(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), undo: make(chan error, 9)}
	r, id, run := changedBy(t, n)
	for i, test := range []struct {
		err  error
		want string
	}{{parley.Errorf(parley.CodeInternal, `"x" could not be put back.`), `"x" could not be put back.`},
		{errors.New("details"), "Internal error."}, {errPanic, "its log says what."}, {nil, ""}} {
		n.undo <- test.err
		r.do(id, parley.UndoChanges{Run: run})
		undone := all[parley.ChangesUndone](r.until(id, "the undo", seen[parley.ChangesUndone](i+1)))
		if got := undone[i].Problem; !strings.HasSuffix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%q, wanted %q", got, test.want)
		}
	}
	r.check(id)
}

// TestACrashWhileUndoing checks that the next process restores the files, and
// that the next run waits for that.
func TestACrashWhileUndoing(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), undo: make(chan error, 9)}
	r, id, run := changedBy(t, n)
	r.do(id, parley.UndoChanges{Run: run})
	<-n.asked
	r.say(id, "say more")
	r.refused(id, parley.UndoChanges{Run: run}, parley.CodeConflict)
	r.restart(true)
	<-n.asked
	if log := r.log(id); len(all[parley.RunStarted](log)) != 1 {
		t.Error("a run started while files are restored")
	}
	n.undo <- nil
	log := r.finished(id, 2)
	if at, next := seqOf[parley.ChangesUndone](log, 1), seqOf[parley.RunStarted](log, 2); at == 0 || at > next {
		t.Errorf("undone at %d, the next run started at %d", at, next)
	}
	r.check(id)
}
