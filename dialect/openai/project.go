package openai

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"parley"
	"parley/dialect"
)

// A Shape is which of the two APIs a client speaks.
type Shape string

const (
	Responses Shape = "responses"
	Chat      Shape = "chat"
)

// A View is what has to be remembered of a log: the open run, and the response that is being shown of it. A log must
// be followed from the start of a run or from outside any, with what is below its session.
//
// A run is shown as one response or, if it waits for somebody who answers by a request of their own, as one after the
// other: each ends when everything of the run that is open waits for a person or for the client, and something of it
// was not shown before.
type View struct {
	dialect.Notices
	Shape   Shape
	Session parley.SessionID // empty: the root of what it sees
	Only    responseID       // the one that is shown; zero: every one
	Usage   bool             // Chat Completions: a chunk at the end says it
	Given   given

	run run
	out answer
}

// given is what a request said, as it is repeated in its response.
type given struct {
	background bool
	unstored   bool
	previous   string // id of a response
	metadata   map[string]string
}

// A run that is open.
type run struct {
	id     parley.RunID // zero: none
	input  parley.InputID
	agent  string
	remote bool
	turn   bool // the model speaks
	calls  []call
	cards  []dialect.Card // own ones that are open
	below  dialect.Below
	used   parley.Usage
	stop   parley.Stop // of the last turn
	shown  int         // bytes of the output that is being said

	part int      // of the response that is shown, or else of the next
	told []string // what a response has ended for and still waits
}

// A call that has not ended.
type call struct {
	id        parley.CallID
	asked     parley.ToolCallRequested
	delegated bool
	card      string // by which it was allowed
}

// A wait is something that a person or the client has to do before the run goes on.
type wait struct {
	id   string
	card *dialect.Card
	call *call // of a tool that the client has
}

// Ignored are the types of events no client of this dialect is shown.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, map[string]string{
	"SessionOpened":        "the request itself opened the session",
	"SessionRenamed":       "sessions have no titles here",
	"SessionHalted":        "the run it ended says so",
	"SessionReopened":      "nothing to show until somebody asks something",
	"SessionDeleted":       "the runs it ended say so",
	"InputReceived":        "its run is shown",
	"InputAdopted":         "its run is shown",
	"TurnStarted":          "turns are not visible here",
	"OutputStarted":        "its pieces are shown",
	"ToolCallRequested":    "a call is shown when it starts, or when somebody is waited for",
	"ToolOutputAppended":   "the result is shown whole",
	"TimerSet":             "what comes unasked is shown when it comes",
	"TimerFired":           "the run it starts is shown",
	"PlanChanged":          "plans are not visible here",
	"FilesChanged":         "files are not visible here",
	"ChangesUndone":        "files are not visible here",
	"ChildSpawned":         "sub-agents are not visible here, only what needs a person",
	"ChildReturned":        "sub-agents are not visible here, only what needs a person",
	"ContextMeasured":      "contexts are not visible here",
	"CompactionStarted":    "contexts are not visible here",
	"ContextCompacted":     "contexts are not visible here",
	"CompactionFailed":     "contexts are not visible here",
	"ModelFellBack":        "models are not visible here: the model of a response is an agent",
	"ProblemReported":      "a call that is made again is not visible here, and a failure ends the response",
	"ExplanationRequested": "explanations are shown where they are asked for",
	"ApprovalExplained":    "explanations are shown where they are asked for",
})

// Project says what a client is shown of an event.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	p := projector{View: v, e: e, top: cmp.Or(v.Session, e.Root, e.Session)}
	p.project()
	return p.View, p.frames
}

// A projector makes the next view and the frames of one event.
type projector struct {
	View
	e      parley.Event
	top    parley.SessionID
	frames []dialect.Frame
	ended  call // the call that the event ends
}

func (p *projector) project() {
	own := p.e.Session == p.top
	if own {
		p.track()
	}
	if p.run.id != 0 {
		p.run.below, _ = p.run.below.After(p.top, p.e)
		p.begin(own)
	}
	if own {
		p.show()
	}
	if p.run.id != 0 && p.out.live && p.waits() {
		p.pause()
	}
}

// track keeps the open run up to date.
func (p *projector) track() {
	if c, ok := dialect.Opens(p.e); ok {
		p.run.cards = append(slices.Clip(p.run.cards), c)
	} else if c, ok := dialect.Closes(p.e); ok {
		p.run.cards = slices.DeleteFunc(slices.Clone(p.run.cards), func(o dialect.Card) bool { return o.ID == c.ID })
	}
	switch b := p.e.Body.(type) {
	case parley.RunStarted:
		p.run = run{id: p.e.Run, input: b.Input, agent: b.Agent.Name, remote: b.Agent.Remote}
		p.out = answer{}
	case parley.TurnStarted:
		p.run.turn, p.run.calls = true, nil
	case parley.TurnFinished:
		p.run.turn, p.run.stop, p.run.used = false, b.Stop, p.run.used.Plus(b.Usage)
	case parley.OutputStarted:
		p.run.shown = 0
	case parley.ToolCallRequested:
		p.run.calls = append(slices.Clip(p.run.calls), call{id: parley.CallID(p.e.Seq), asked: b})
	case parley.ToolCallBlocked:
		p.endCall(b.Call)
	case parley.ToolCallFinished:
		p.endCall(b.Call)
	case parley.ApprovalDecided:
		p.withCall(b.Call, func(c *call) { c.card = cardID(parley.Ref(p.e.Session, parley.Seq(b.Card))) })
	case parley.ChildSpawned:
		p.withCall(b.Call, func(c *call) { c.delegated = true })
	case parley.ChildReturned:
		p.run.used = p.run.used.Plus(b.Usage)
	}
}

func (p *projector) withCall(id parley.CallID, change func(*call)) {
	p.run.calls = slices.Clone(p.run.calls)
	for i := range p.run.calls {
		if p.run.calls[i].id == id {
			change(&p.run.calls[i])
		}
	}
}

func (p *projector) endCall(id parley.CallID) {
	if i := slices.IndexFunc(p.run.calls, func(c call) bool { return c.id == id }); i >= 0 {
		p.ended = p.run.calls[i]
		p.run.calls = slices.Delete(slices.Clone(p.run.calls), i, i+1)
	}
}

// waiting lists what the run waits for.
func (r run) waiting() (list []wait) {
	for _, c := range slices.Concat(r.cards, r.below.Open()) {
		list = append(list, wait{id: c.ID, card: &c})
	}
	for _, c := range r.calls {
		if c.asked.Client {
			list = append(list, wait{id: strconv.FormatInt(int64(c.id), 10), call: &c})
		}
	}
	return list
}

// paused reports whether a response has ended because the run waits.
func (v View) paused() bool { return v.run.id != 0 && !v.out.live && v.run.part > 0 }

// waits reports whether all that is open waits for somebody, who was not told so before.
func (p *projector) waits() bool {
	if p.run.turn && !p.run.remote {
		return false
	}
	list := p.run.waiting()
	for _, c := range p.run.calls {
		waits := c.asked.Client || c.delegated && len(p.run.below.Open()) > 0 ||
			slices.ContainsFunc(p.run.cards, func(o dialect.Card) bool { return callOf(o) == c.id })
		if !waits {
			return false
		}
	}
	return slices.ContainsFunc(list, func(w wait) bool { return !slices.Contains(p.run.told, w.id) })
}

// callOf is the call that a card of its own session is about.
func callOf(c dialect.Card) parley.CallID {
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		return b.Call
	case parley.QuestionAsked:
		return b.Call
	}
	return 0
}

// begin begins a response: when the run starts, and when something is settled that the one before has ended for.
func (p *projector) begin(own bool) {
	_, starts := p.e.Body.(parley.RunStarted)
	_, ends := p.e.Body.(parley.RunFinished)
	waiting := p.run.waiting()
	gone := func(id string) bool { return !slices.ContainsFunc(waiting, func(w wait) bool { return w.id == id }) }
	if p.out.live || !(own && (starts || ends)) && !slices.ContainsFunc(p.run.told, gone) {
		return
	}
	p.run.told = slices.DeleteFunc(slices.Clone(p.run.told), gone)
	p.start(responseID{p.top, p.run.input, p.run.part})
}

func (p *projector) start(id responseID) {
	p.out = answer{live: true, id: id, at: p.e.At, agent: p.run.agent, number: -1, base: p.run.used}
	if p.Shape == Chat {
		p.chunk(delta{Role: "assistant", Content: new(string)}, "")
		return
	}
	p.lifecycle("response.created", "in_progress")
	p.lifecycle("response.in_progress", "in_progress")
}

// show shows an event of the session at the top.
func (p *projector) show() {
	switch b := p.e.Body.(type) {
	case parley.InputWithdrawn:
		p.withdrawn(b)
	case parley.OutputStarted:
		p.out.text = p.out.text.Start()
	case parley.OutputAppended:
		if p.out.live {
			p.piece(b.Output, b.Kind, b.Text, b)
		}
		p.run.shown = b.Offset + len(b.Text)
	case parley.OutputFinished:
		p.finishOutput(b)
	case parley.ToolCallStarted:
		i := slices.IndexFunc(p.run.calls, func(c call) bool { return c.id == b.Call })
		if p.out.live && i >= 0 && b.Attempt == 1 {
			p.callStarted(p.run.calls[i])
		}
	case parley.ToolCallBlocked:
		p.callEnded(parley.ToolCallFinished{Call: b.Call, Name: b.Name, Outcome: parley.CallFailed,
			Result: "Blocked: " + b.Reason})
	case parley.ToolCallFinished:
		p.callEnded(b)
	case parley.RunFinished:
		if p.run.id == p.e.Run && p.run.id != 0 {
			p.finish(b)
		}
		p.run, p.out = run{}, answer{}
	}
}

// withdrawn is about an input that no run has answered.
func (p *projector) withdrawn(b parley.InputWithdrawn) {
	other := *p
	other.run = run{input: b.Input}
	other.start(responseID{p.top, b.Input, 0})
	how := parley.RunFinished{Outcome: parley.Cancelled}
	if b.Reason == parley.WithdrawnByHalt {
		how = parley.RunFinished{Outcome: parley.Halted, Code: parley.CodeClosed,
			Message: "The session was halted before this was answered."}
	}
	other.finish(how)
	p.frames = other.frames
}

// finish ends the response with the run.
func (p *projector) finish(b parley.RunFinished) {
	used := minus(b.Usage, p.out.base)
	if p.Shape == Chat {
		p.finishChat(b, used)
		return
	}
	p.finishResponse(b, used)
}

// pause ends the response before the run does.
func (p *projector) pause() {
	waiting := p.run.waiting()
	used := minus(p.run.used, p.out.base)
	if p.Shape == Chat {
		p.pauseChat(waiting, used)
	} else {
		p.pauseResponse(waiting, used)
	}
	p.run.told = nil
	for _, w := range waiting {
		p.run.told = append(p.run.told, w.id)
	}
	p.run.part++
	p.out = answer{}
}

// emit shows a frame, if it is of the response that is shown.
func (p *projector) emit(body any) {
	if p.Only.input == 0 || p.Only == p.out.id {
		p.frames = append(p.frames, dialect.Frame{Body: body})
	}
}

func minus(a, b parley.Usage) parley.Usage {
	return parley.Usage{Input: a.Input - b.Input, Output: a.Output - b.Output, Cached: a.Cached - b.Cached,
		Written: a.Written - b.Written, CostMicros: a.CostMicros - b.CostMicros}
}

// cardID is the id of a card on this wire.
func cardID(ref string) string {
	session, seq, _ := parley.ParseRef(ref)
	return idOf("mcpr", session, seq)
}

// An answer is a response that is being shown.
type answer struct {
	live   bool
	id     responseID
	at     time.Time
	agent  string
	base   parley.Usage // of the run, before the response
	text   dialect.Text // Chat Completions
	output []item
	open   []openItem
	number int64 // of the last event
}
