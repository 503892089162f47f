package parley

import "slices"

// A ScreenVerdict says how to treat a screened text.
type ScreenVerdict string

const (
	ScreenAllow ScreenVerdict = "allow"
	ScreenFlag  ScreenVerdict = "flag"  // accept the text, but distrust what follows from it
	ScreenBlock ScreenVerdict = "block" // refuse it
)

// A Finding is the result of screening a text.
type Finding struct {
	Verdict ScreenVerdict `json:"verdict"`
	Score   float64       `json:"score,omitempty"`  // 0 to 1
	Reason  string        `json:"reason,omitempty"` // for example pattern:ignore_instructions
}

// InputScreened is the verdict of a classifier.
type InputScreened struct {
	Input   InputID `json:"input"`
	Finding Finding `json:"finding"`
}

func (b InputScreened) fold(s State, e Event) State {
	return s.inRun(e, func(r *openRun) {
		r.Screen = without(r.Screen, func(id InputID) bool { return id == b.Input })
		switch b.Finding.Verdict {
		case ScreenFlag:
			r.Flagged = true
		case ScreenBlock:
			r.Blocked = b.Finding.Reason
		}
	})
}

// ScreenEnded is the verdict of a classifier about an input.
type ScreenEnded struct {
	Input   InputID
	Finding Finding
}

func (b ScreenEnded) decide(d *decision, rep Report) {
	if r := d.s.Run; r != nil && r.ID == rep.Run && slices.Contains(r.Screen, b.Input) {
		d.emit(r.ID, InputScreened{b.Input, b.Finding})
	}
}

// Classify is a step: have a classifier check an input.
type Classify struct {
	Run   RunID
	Input InputID
	Agent AgentRef
}

func (Classify) step() {}

// CanaryLeak is the reason of a halt after the model leaked the canary.
const CanaryLeak = "canary_leak"

// CanaryLeaked reports that the model leaked the canary. The server has
// withheld that text.
type CanaryLeaked struct{}

func (CanaryLeaked) decide(d *decision, rep Report) {
	if d.speaking(rep) || d.explaining(rep) != nil {
		d.halt(CanaryLeak)
	}
}
