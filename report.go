package parley

import "time"

// A Report is what one of a session's own workers has to say. One that names a
// run, turn or call that is no longer open is dropped; what a tool did is noted
// as late evidence.
type Report struct {
	At   time.Time
	Run  RunID
	Turn TurnID
	Call CallID
	Body ReportBody
}

func (Report) in() {}

// A ReportBody is one of a closed set. Each type stands in the file of its
// subject.
type ReportBody interface {
	// decide records what the report comes to.
	decide(*decision, Report)
}

// Advance says that nothing of an ended run is alive any more, so the log may go
// on by itself: start a run, a turn or a call, expire a card, finish.
type Advance struct{}

func (Advance) decide(d *decision, _ Report) { d.advance() }

// Recover says that everything open was left by a process that is gone. A model
// call was cut; a call that may have had its effect is unknown. What waits for a
// person waits.
type Recover struct{}

func (Recover) decide(d *decision, _ Report) {
	d.leftOpen("The server stopped in the middle of the answer.", false)
}

// HandOver says that this server stops everything that is open, and that another
// goes on with it.
type HandOver struct{}

func (HandOver) decide(d *decision, _ Report) {
	d.leftOpen("Another server goes on with the answer.", true)
}

// leftOpen ends what nobody is at any more.
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
