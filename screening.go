package parley

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
