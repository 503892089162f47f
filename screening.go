package parley

import "slices"

// A ScreenVerdict is what is to become of a text that was screened.
type ScreenVerdict string

const (
	ScreenAllow ScreenVerdict = "allow"
	ScreenFlag  ScreenVerdict = "flag"  // let it pass, and trust what follows from it less
	ScreenBlock ScreenVerdict = "block" // refuse it
)

// A Finding is what screening a text came to.
type Finding struct {
	Verdict ScreenVerdict `json:"verdict"`
	Score   float64       `json:"score,omitempty"`  // 0 to 1
	Reason  string        `json:"reason,omitempty"` // like pattern:ignore_instructions
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

// ScreenEnded is what a classifier said of an input.
type ScreenEnded struct {
	Input   InputID
	Finding Finding
}

func (b ScreenEnded) decide(d *decision, rep Report) {
	if r := d.s.Run; r != nil && r.ID == rep.Run && slices.Contains(r.Screen, b.Input) {
		d.emit(r.ID, InputScreened{b.Input, b.Finding})
	}
}

// Classify: have a classifier look at an input.
type Classify struct {
	Run   RunID
	Input InputID
	Agent AgentRef
}

func (Classify) step() {}

// CanaryLeak is the reason of a halt that the model itself caused.
const CanaryLeak = "canary_leak"

// CanaryLeaked: the model said what it must not say. None of it was let out.
type CanaryLeaked struct{}

func (CanaryLeaked) decide(d *decision, rep Report) {
	if d.speaking(rep) || d.explaining(rep) != nil {
		d.halt(CanaryLeak)
	}
}
