package parley

import (
	"slices"
	"strings"
)

// A Stop is the reason why a turn ended.
type Stop string

const (
	StopEnd       Stop = "end"       // the model has finished its answer
	StopTools     Stop = "tools"     // the model waits for its tool calls
	StopLength    Stop = "length"    // the model reached a limit of its own
	StopRefusal   Stop = "refusal"   // the model refused to answer
	StopCut       Stop = "cut"       // the call was lost after output was shown
	StopFailed    Stop = "failed"    // the call failed, and is not repeated in this turn
	StopCancelled Stop = "cancelled" // the run was ended from outside
)

type OutputKind string

const (
	Text     OutputKind = "text"
	Thinking OutputKind = "thinking"
)

// TurnStarted begins a turn: one call of the model. The turn is finished when
// the model has answered; its tool calls are carried out before the next turn
// starts.
type TurnStarted struct {
	Number int    `json:"number"`
	Model  string `json:"model,omitempty"`
}

func (TurnStarted) fold(s State, e Event) State {
	return s.inRun(e, func(r *openRun) {
		r.Turns++
		r.Turn, r.Calls, r.Stop, r.Reported = &openTurn{ID: TurnID(e.Seq)}, nil, "", false
		r.Stranded = false
	})
}

type TurnFinished struct {
	Turn    TurnID `json:"turn"`
	Stop    Stop   `json:"stop"`
	Usage   Usage  `json:"usage"`
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Memo    *Memo  `json:"memo,omitempty"` // only for the provider that created it
	// Vendor: the vendor of the model refused the request.
	Vendor *VendorError `json:"vendor,omitempty"`
	// Handed: the server stopped in good order, and another takes over. This cut
	// does not count.
	Handed bool `json:"handed,omitempty"`
}

func (b TurnFinished) fold(s State, e Event) State {
	return s.inRun(e, func(r *openRun) {
		r.Turn, r.Stop, r.Code, r.Message, r.Vendor = nil, b.Stop, b.Code, b.Message, b.Vendor
		r.Usage = r.Usage.Plus(b.Usage)
		switch {
		case b.Stop != StopCut:
			r.Announced = 0
		case !b.Handed:
			r.Cuts++
		}
	})
}

// Failed reports whether the model did not finish the turn.
func (b TurnFinished) Failed() bool {
	return b.Stop == StopCut || b.Stop == StopFailed || b.Stop == StopCancelled
}

// Output of the model. The joined chunks of an output are a prefix of the Text
// of the event that finishes it.
type (
	OutputStarted struct {
		Turn TurnID     `json:"turn"`
		Kind OutputKind `json:"kind"`
	}
	OutputAppended struct {
		Output OutputID   `json:"output"`
		Kind   OutputKind `json:"kind"`
		Offset int        `json:"offset"` // in bytes
		Text   string     `json:"text"`
	}
	OutputFinished struct {
		Output     OutputID   `json:"output"`
		Kind       OutputKind `json:"kind"`
		Text       string     `json:"text"`
		First      Seq        `json:"first,omitempty"` // its first chunk
		Incomplete bool       `json:"incomplete,omitempty"`
	}
)

func (b OutputStarted) fold(s State, e Event) State {
	return s.inRun(e, func(r *openRun) {
		r.Turn = &openTurn{ID: b.Turn, Shown: true, Output: &openOutput{ID: OutputID(e.Seq), Kind: b.Kind}}
		r.Announced = 0
	})
}

func (b OutputAppended) fold(s State, e Event) State {
	return s.inRun(e, func(r *openRun) {
		if r.Turn == nil || r.Turn.Output == nil || r.Turn.Output.ID != b.Output {
			return
		}
		o := *r.Turn.Output
		if o.First == 0 {
			o.First = e.Seq
		}
		o.text = o.text.plus(b.Text)
		r.Turn = &openTurn{ID: r.Turn.ID, Shown: true, Output: &o}
	})
}

func (OutputFinished) fold(s State, e Event) State {
	return s.inRun(e, func(r *openRun) {
		if r.Turn != nil {
			r.Turn = &openTurn{ID: r.Turn.ID, Shown: true}
		}
	})
}

// ModelFellBack: a fallback model answers in this turn.
type ModelFellBack struct {
	Turn      TurnID `json:"turn"`
	Preferred string `json:"preferred"`
	Actual    string `json:"actual"`
	Reason    string `json:"reason"`
}

func (ModelFellBack) fold(s State, e Event) State {
	return s.inRun(e, func(r *openRun) { r.Announced = 0 }) // attempts with the new model are counted anew
}

// An openTurn is a turn that has not finished.
type openTurn struct {
	ID     TurnID
	Output *openOutput // the open output
	Shown  bool        // some output of the turn was shown
}

// An openOutput is a text that has not finished.
type openOutput struct {
	ID    OutputID
	Kind  OutputKind
	First Seq
	text  *pieces
}

// pieces is the text of an open output. Appending shares the earlier text, so
// that folding a long output does not copy it for every chunk.
type pieces struct {
	before *pieces
	text   string
	size   int
}

func (p *pieces) len() int {
	if p == nil {
		return 0
	}
	return p.size
}

func (p *pieces) plus(text string) *pieces { return &pieces{p, text, p.len() + len(text)} }

func (p *pieces) String() string {
	var all []string
	for ; p != nil; p = p.before {
		all = append(all, p.text)
	}
	slices.Reverse(all)
	return strings.Join(all, "")
}

// CallModel is a step: have the model answer in this turn.
type CallModel struct {
	Run   RunID
	Turn  TurnID
	Agent AgentRef
	From  Seq // a summary after this seq replaces the earlier conversation
	Mode  RunMode
}

func (CallModel) step() {}

// speaking reports whether the report belongs to the open turn.
func (d *decision) speaking(rep Report) bool {
	r := d.s.Run
	return r != nil && r.ID == rep.Run && r.Turn != nil && r.Turn.ID == rep.Turn
}

// ModelPiece is a chunk of output of the model.
type ModelPiece struct {
	Kind OutputKind
	Text string
}

func (b ModelPiece) decide(d *decision, rep Report) {
	if !d.speaking(rep) || b.Text == "" {
		return
	}
	r := d.s.Run
	if o := r.Turn.Output; o == nil || o.Kind != b.Kind {
		d.finishOutput(false)
		d.emit(r.ID, OutputStarted{Turn: r.Turn.ID, Kind: b.Kind})
	}
	o := d.s.Run.Turn.Output
	d.emit(r.ID, OutputAppended{Output: o.ID, Kind: o.Kind, Offset: o.text.len(), Text: b.Text})
}

// ModelEnded reports that the model has finished its turn.
type ModelEnded struct {
	Stop  Stop
	Usage Usage
	Calls []CallAsked
	// Context is the size of the request plus the answer.
	Context ContextSize
	Prompt  PromptDigest // zero for a remote agent
	Memo    *Memo
}

// decide opens the calls that the model asked for and closes the turn.
// TurnFinished comes last: without it, the calls were not completely requested
// and end with a cut.
func (b ModelEnded) decide(d *decision, rep Report) {
	if !d.speaking(rep) {
		return
	}
	run, turn := d.s.Run.ID, d.s.Run.Turn.ID
	d.finishOutput(false)
	d.endRemoteCalls(CallFailed, "The agent ended its answer without saying what came of this.")
	children := 0
	for _, c := range b.Calls {
		if c.Verdict.Kind == VerdictChild {
			children++
		}
	}
	for _, c := range b.Calls {
		d.request(turn, c, b.Usage, children)
	}
	stop := b.Stop
	if len(b.Calls) > 0 {
		stop = StopTools
	}
	d.emit(run, TurnFinished{Turn: turn, Stop: stop, Usage: b.Usage, Memo: b.Memo})
	if c := b.Context; c.Limit > 0 {
		d.emit(run, ContextMeasured{Turn: turn, Tokens: c.Tokens, Limit: c.Limit, Messages: c.Messages,
			Estimated: c.Estimated, Prompt: b.Prompt})
	}
}

// FellBack reports that a fallback model is called from now until the end of
// the turn.
type FellBack struct {
	Preferred string
	Actual    string
	Reason    string // safe to show
}

func (b FellBack) decide(d *decision, rep Report) {
	if d.speaking(rep) && d.s.Run.Turn.Output == nil {
		d.emit(rep.Run, ModelFellBack{Turn: rep.Turn, Preferred: b.Preferred, Actual: b.Actual, Reason: b.Reason})
	}
}

// ModelFailed reports that the call of the model failed or was interrupted.
type ModelFailed struct {
	Code    Code   // empty: the call was cancelled with its run
	Message string // safe to show
	Vendor  *VendorError
	Usage   Usage // estimated, if quotas have to count it: the vendor may charge for the call
}

// decide: shown text cannot be taken back. So a call that failed after output
// counts as cut; a call without output fails the run.
func (b ModelFailed) decide(d *decision, rep Report) {
	speaking := d.speaking(rep)
	if !speaking && b.Usage != (Usage{}) {
		d.emit(0, LateResultNoted{Run: rep.Run, Usage: b.Usage})
	}
	if !speaking || b.Code == "" {
		return
	}
	r := d.s.Run
	switch {
	case r.Agent.Remote && b.Code != CodeInterrupted: // it reported the failure itself, or was never reached
		d.finishOutput(true)
		d.endRemoteCalls(CallUnknown, "The agent failed while it did this. Nobody knows whether it happened.")
	case r.Turn.Shown && b.Code == CodeTooLarge: // it would be too large again
		d.finishOutput(true)
	case r.Agent.Remote, r.Turn.Shown:
		d.cut(b, false)
		return
	}
	d.emit(r.ID, TurnFinished{Turn: r.Turn.ID, Stop: StopFailed, Code: b.Code, Message: b.Message, Vendor: b.Vendor,
		Usage: b.Usage})
}

func (d *decision) cut(why ModelFailed, handed bool) {
	r := d.s.Run
	d.finishOutput(true)
	d.endRemoteCalls(CallUnknown, "The agent was lost while it did this. Nobody knows whether it happened.")
	for _, c := range d.s.Run.Calls {
		d.cancelCall(c)
	}
	d.emit(r.ID, TurnFinished{Turn: r.Turn.ID, Stop: StopCut, Code: why.Code, Message: why.Message,
		Vendor: why.Vendor, Handed: handed, Usage: why.Usage})
}

// finishOutput finishes the open output with the text so far.
func (d *decision) finishOutput(incomplete bool) {
	if o := d.s.Run.Turn.Output; o != nil {
		d.emit(d.s.Run.ID, OutputFinished{Output: o.ID, Kind: o.Kind, Text: o.text.String(), First: o.First,
			Incomplete: incomplete})
	}
}
