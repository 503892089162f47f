package parley

import "time"

// A Report is a message of a session's own worker. A report about a run, turn
// or call that is no longer open is dropped; the result of a tool is recorded
// as LateResultNoted.
type Report struct {
	At   time.Time
	Run  RunID
	Turn TurnID
	Call CallID
	Body ReportBody
}

func (Report) in() {}

// A ReportBody is one of a closed set. Each type is in the file of its subject.
type ReportBody interface {
	// decide emits the events of the report.
	decide(*decision, Report)
}

// Advance reports that nothing of an ended run is alive any more. So the log may
// go on by itself: start a run, a turn or a call, expire a card, finish.
type Advance struct{}

func (Advance) decide(d *decision, _ Report) { d.advance() }

// Recover reports that the process behind all open work is gone. A model call was
// cut, and the outcome of a call that may have had its effect is unknown. Cards
// stay open.
type Recover struct{}

func (Recover) decide(d *decision, _ Report) {
	d.leftOpen("The server stopped in the middle of the answer.", false)
}

// HandOver reports that this server stops everything that is open, and that
// another server takes over.
type HandOver struct{}

func (HandOver) decide(d *decision, _ Report) {
	d.leftOpen("Another server goes on with the answer.", true)
}

// leftOpen ends the work that has no worker any more.
func (d *decision) leftOpen(why string, handed bool) {
	switch r := d.s.Run; {
	case r == nil:
	case r.Turn != nil:
		d.cut(ModelFailed{Code: CodeInterrupted, Message: why}, handed)
	default:
		for _, c := range r.Calls {
			if c.Status == callStarted {
				d.recoverCall(c)
			}
		}
	}
}
