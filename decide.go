package parley

import (
	"time"
)

// Decide returns the events that follow from in. It returns no events if there
// is nothing to record, and an *Error if a command is refused. A refusal leaves
// no trace in the log.
func Decide(s State, in In) ([]Event, error) {
	var err error
	d := decision{s: s}
	switch in := in.(type) {
	case Command:
		d.at, d.by = in.At, in.By
		err = d.command(in)
	case Report:
		d.at = in.At
		in.Body.decide(&d, in)
	}
	if err != nil {
		return nil, err
	}
	return d.events, nil
}

// A decision collects the events so far and the state after them.
type decision struct {
	s      State
	at     time.Time
	by     PrincipalID
	events []Event

	reporting bool // the run would end, once its changes of files are known
	reported  bool // its changes of files are known
}

func (d *decision) emit(run RunID, body EventBody) Seq {
	at := d.at.UTC().Truncate(time.Microsecond)
	if at.Before(d.s.LastAt) {
		at = d.s.LastAt // clocks can go back, logs cannot
	}
	e := Event{Session: d.s.ID, Seq: d.s.Head + 1, Root: d.s.Root, At: at, Run: run, By: d.by, Body: body}
	d.events = append(d.events, e)
	before := d.s
	d.s = Fold(d.s, e)
	d.enqueueWebhooks(e, before)
	return e.Seq
}

// command applies the rules common to all commands, then those of the command.
func (d *decision) command(c Command) error {
	rules := c.Do.Rules()
	switch {
	case rules.Tenant != (d.s.ID == TenantSession):
		return errNoSession
	case rules.Tenant && c.By == "":
		return Errorf(CodeForbidden, "This request names no user.")
	case !rules.Tenant && !rules.Opens:
		if err := d.isOpen(rules.Halted); err != nil {
			return err
		}
	}
	return c.Do.decide(d, c)
}

// advance takes the log one step on without new input. Each step leaves a state
// from which the next one follows, so a crash between any two events loses
// nothing.
func (d *decision) advance() {
	r := d.s.Run
	switch {
	case d.s.Owner == "" || d.s.Deleted || d.s.Halted != "":
		return
	case d.s.orphans():
		return // children of an ended run are still being stopped
	case d.s.Unreported != 0:
		return // the changes of the next run would be attributed to the last run
	case d.s.Undoing != 0:
		return // the next run would change files that are being restored
	case r == nil:
		if len(d.s.Queue) > 0 {
			w := d.s.Queue[0]
			d.emit(RunID(d.s.Head+1), RunStarted{Input: w.ID, Request: w.Request, Agent: w.Agent, Mode: w.Mode})
		} else if at, does := d.s.expires(); does && !d.at.Before(at) {
			d.delete()
		}
		return
	case r.Turn != nil && !r.Agent.Remote:
		return // the model call is open
	case r.Turn == nil && r.Agent.Remote:
		d.boundary() // the calls of a remote agent end with its turn
		return
	}
	open := false
	for _, c := range r.Calls {
		if !d.advanceCall(c) {
			return // the run is over
		}
		open = open || c.Status != callEnded
	}
	if !open && r.Turn == nil {
		d.boundary()
	}
}
