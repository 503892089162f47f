package parley

// A ContextSize is how much of its context window the model was given.
type ContextSize struct {
	Tokens    int
	Limit     int // the context window of the model
	Messages  int
	Estimated bool // the vendor did not count the tokens
}

// compaction is a compaction that was started and has not ended.
type compaction struct {
	Since Seq // Seq of its CompactionStarted
	Auto  bool
}

// compacted is the result of the last compaction.
type compacted struct {
	From  Seq // events up to here are no longer needed
	Upto  Seq // the summary covers the log up to here
	Tried int // tokens after the last attempt
}

// The context of the model, and how it was compacted. A compaction ends exactly
// once, and changes nothing if it fails.
type (
	ContextMeasured struct {
		Turn     TurnID `json:"turn"`
		Tokens   int    `json:"tokens"`
		Limit    int    `json:"limit"`
		Messages int    `json:"messages"`
		// Estimated: the vendor did not count the tokens.
		Estimated bool `json:"estimated,omitempty"`
		// Prompt identifies the part of the request that is not in the log.
		Prompt PromptDigest `json:"prompt,omitzero"`
	}
	CompactionStarted struct {
		Auto bool `json:"auto,omitempty"` // started by the server because the context is full
	}
	// ContextCompacted: a summary replaces the conversation up to a seq.
	ContextCompacted struct {
		From     Seq    `json:"from,omitempty"` // events up to here are no longer needed
		Upto     Seq    `json:"upto"`
		Summary  string `json:"summary"`
		Before   int    `json:"before"` // tokens
		After    int    `json:"after"`
		Limit    int    `json:"limit"`
		Messages int    `json:"messages"` // after the compaction
		Auto     bool   `json:"auto,omitempty"`
		Usage    Usage  `json:"usage"`
	}
	CompactionFailed struct {
		Code    Code   `json:"code"`
		Message string `json:"message"` // safe to show
		Auto    bool   `json:"auto,omitempty"`
		// Vendor: the vendor of the model refused the request.
		Vendor *VendorError `json:"vendor,omitempty"`
	}
)

// A PromptDigest identifies the instructions and the tools of a request. They are not in the log; the messages are. The
// digests show whether a request that is built again later equals the request that was sent.
type PromptDigest struct {
	Instructions string `json:"instructions"`
	Tools        string `json:"tools"`
}

func (b ContextMeasured) fold(s State, _ Event) State {
	s.Context = ContextSize{b.Tokens, b.Limit, b.Messages, b.Estimated}
	return s
}

func (b CompactionStarted) fold(s State, e Event) State {
	s.Compact = &compaction{e.Seq, b.Auto}
	return s
}

func (CompactionFailed) fold(s State, _ Event) State {
	s.Compact, s.Compacted.Tried = nil, s.Context.Tokens
	return s
}

func (b ContextCompacted) fold(s State, _ Event) State {
	s.Compact = nil
	s.Compacted = compacted{From: b.From, Upto: b.Upto, Tried: b.After}
	s.Context = ContextSize{b.After, b.Limit, b.Messages, true}
	return s
}

// CompactContext compacts the conversation between the next two turns.
type CompactContext struct{}

func (CompactContext) Rules() Rules { return Rules{Action: ActMessage} }

func (CompactContext) decide(d *decision, _ Command) error {
	switch {
	case d.s.Last.Name == "":
		return Errorf(CodeEmpty, "There is nothing to compact yet.")
	case d.s.Compact == nil:
		d.emit(0, CompactionStarted{})
	}
	return nil
}

// CompactionEnded reports the summary of a conversation or, with a Code, why
// there is none.
type CompactionEnded struct {
	Since         Seq
	From, Upto    Seq
	Summary       string
	Before, After int
	Limit         int
	Messages      int
	Usage         Usage
	Code          Code
	Message       string // safe to show
	Vendor        *VendorError
}

func (b CompactionEnded) decide(d *decision, _ Report) {
	c := d.s.Compact
	switch {
	case c == nil || c.Since != b.Since:
	case b.Code != "":
		d.emit(0, CompactionFailed{Code: b.Code, Message: b.Message, Auto: c.Auto, Vendor: b.Vendor})
	case b.After >= b.Before || b.Upto <= d.s.Compacted.Upto || b.Upto > d.s.Head:
		d.emit(0, CompactionFailed{Code: CodeEmpty, Message: "The conversation cannot be made shorter than it is.",
			Auto: c.Auto})
	default:
		d.emit(0, ContextCompacted{From: b.From, Upto: b.Upto, Summary: b.Summary, Before: b.Before, After: b.After,
			Limit: b.Limit, Messages: b.Messages, Auto: c.Auto, Usage: b.Usage})
	}
}

// Compact is a step: summarize the conversation.
type Compact struct {
	Since Seq
	Agent AgentRef
	From  Seq
}

func (Compact) step() {}

// stopCompacting ends the open compaction, because the session is closed.
func (d *decision) stopCompacting() {
	if c := d.s.Compact; c != nil {
		d.emit(0, CompactionFailed{Code: CodeClosed, Message: "The session was closed.", Auto: c.Auto})
	}
}

// full reports whether the context must be compacted before the next turn.
// After an attempt, it waits until the context has grown by a tenth. Otherwise
// a compaction that gains nothing would be repeated forever.
func (d *decision) full() bool {
	at := d.s.Run.Agent.Compact
	if at == 0 {
		at = compactAt
	}
	c := d.s.Context
	return c.Limit > 0 && c.Tokens*100 > c.Limit*at && c.Tokens*10 > d.s.Compacted.Tried*11
}

// compactable reports whether a compaction is wanted and no turn or call is
// open.
func (s State) compactable() bool {
	if s.Compact == nil || s.Deleted || s.Halted != "" {
		return false
	}
	if s.Run == nil {
		return true
	}
	for _, c := range s.Run.Calls {
		if c.Status != callEnded {
			return false
		}
	}
	return s.Run.Turn == nil
}
