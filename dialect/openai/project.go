package openai

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"parley"
	"parley/dialect"
)

// A Shape is one of the two APIs.
type Shape string

const (
	Responses Shape = "responses"
	Chat      Shape = "chat"
)

// A View is the state of a log: the open run, and its current response. It must follow the log, including the sessions
// below, from the start of a run or from a point without an open run.
//
// A run is shown as one response, or as several if it waits for answers, which come with requests of their own. A
// response ends when everything that is open in the run waits for a person or the client, and at least one of these was
// not in an earlier response.
type View struct {
	dialect.Notices
	Shape   Shape
	Session parley.SessionID // empty: the root of the first event
	Only    responseID       // the response to show; zero: all responses
	Usage   bool             // Chat Completions: add a chunk with the usage at the end
	Given   given

	run run
	out answer
}

// given has the fields of a request that its response repeats.
type given struct {
	background bool
	unstored   bool
	previous   string // id of the previous response
	metadata   map[string]string
}

// run is an open run.
type run struct {
	id     parley.RunID // zero: no run is open
	input  parley.InputID
	agent  string
	remote bool
	turn   bool // a turn is in progress
	calls  []call
	cards  []dialect.Card // open cards of the session itself
	below  dialect.Below
	used   parley.Usage
	stop   parley.Stop // stop reason of the last turn
	shown  int         // bytes of the open output that were shown

	part int      // part of the current response, or else of the next
	told []string // ids of open waits that a response has ended for
}

// call is an open call.
type call struct {
	id        parley.CallID
	asked     parley.ToolCallRequested
	delegated bool
	card      string // id of the card that allowed it
}

// wait is something that a person or the client must do before the run continues.
type wait struct {
	id   string
	card *dialect.Card
	call *call // a call of the client's tools
}

// Ignored are the event types that this dialect does not show.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, dialect.ContextEvents, dialect.FileEvents,
	map[string]string{
		"SessionOpened":        "the request itself opened the session",
		"SessionRenamed":       "sessions have no titles here",
		"SessionHalted":        "the end of its run is shown",
		"SessionReopened":      "its next message is shown",
		"SessionDeleted":       "the ends of its runs are shown",
		"InputReceived":        "its run is shown",
		"InputAdopted":         "its run is shown",
		"TurnStarted":          "turns are not visible here",
		"OutputStarted":        "its chunks are shown",
		"ToolCallRequested":    "a call is shown when it starts, or when it waits for a person",
		"ToolOutputAppended":   "the result is shown whole",
		"TimerSet":             "the follow-up is shown when it is due",
		"TimerFired":           "the run it starts is shown",
		"PlanChanged":          "plans are not visible here",
		"ChildSpawned":         "sub-agents are not visible here, only what needs a person",
		"ChildReturned":        "sub-agents are not visible here, only what needs a person",
		"ModelFellBack":        "models are not visible here: the model of a response is an agent",
		"ProblemReported":      "a call that is made again is not visible here, and a failure ends the response",
		"ExplanationRequested": "explanations are shown where they are asked for",
		"ApprovalExplained":    "explanations are shown where they are asked for",
	})

// Project returns the frames that show an event to a client.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	p := projector{View: v, e: e, top: cmp.Or(v.Session, e.Root, e.Session)}
	p.project()
	return p.View, p.frames
}

// projector makes the next view and the frames of one event.
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

// track updates the open run.
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

// waiting returns everything that the run waits for.
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

// waits reports whether everything that is open waits, and at least one wait is not known to the client.
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

// callOf returns the call that a card of the same session is about.
func callOf(c dialect.Card) parley.CallID {
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		return b.Call
	case parley.QuestionAsked:
		return b.Call
	}
	return 0
}

// begin starts a response when the run starts, or when a wait that ended the previous response is over.
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

// show emits the frames for an event of the session at the top.
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

// withdrawn shows an input that was withdrawn before its run as a response of its own.
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

// finish ends the response when the run ends.
func (p *projector) finish(b parley.RunFinished) {
	used := minus(b.Usage, p.out.base)
	if p.Shape == Chat {
		p.finishChat(b, used)
		return
	}
	p.finishResponse(b, used)
}

// pause ends the response because the run waits.
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

// emit adds a frame, if it belongs to the response to show.
func (p *projector) emit(body any) {
	if p.Only.input == 0 || p.Only == p.out.id {
		p.frames = append(p.frames, dialect.Frame{Body: body})
	}
}

func minus(a, b parley.Usage) parley.Usage {
	return parley.Usage{Input: a.Input - b.Input, Output: a.Output - b.Output, Cached: a.Cached - b.Cached,
		Written: a.Written - b.Written, CostMicros: a.CostMicros - b.CostMicros}
}

// cardID returns the id of a card in this dialect.
func cardID(ref string) string {
	session, seq, _ := parley.ParseRef(ref)
	return idOf("mcpr", session, seq)
}

// answer is the response in progress.
type answer struct {
	live   bool
	id     responseID
	at     time.Time
	agent  string
	base   parley.Usage // usage of the run before this response
	text   dialect.Text // for Chat Completions
	output []item
	open   []openItem
	number int64 // number of the last event
}
