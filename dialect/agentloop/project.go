package agentloop

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/dialect"
	"parley/transport"
)

// A View is a connection's state of the log that it follows: the open run. It must follow the log from the start of
// that run, or from a point without an open run. Of the sessions below it shows only cards.
type View struct {
	LocalShell bool             // show commands as local_shell_call
	Session    parley.SessionID // empty: the root of the first event

	run     parley.RunID
	names   []string      // names of all calls of the run
	calls   []call        // open calls
	fresh   parley.CallID // the last requested call; not shown yet, because it may need an approval
	began   time.Time     // start of the open output
	shown   int           // bytes of it that were shown
	context Context       // last measurement in the run

	below   dialect.Below
	cards   []card    // open approvals; the first is shown
	asking  bool      // the first approval is shown
	request message   // the last frame that showed it
	others  []other   // other open cards
	decided []decided // approvals that the last event closed
}

// call is a tool call as clients see it.
type call struct {
	id        parley.CallID
	name      string // id of the call for clients
	tool      string
	arguments string
	shown     bool
	began     time.Time
	note      string // note of the person who denied it
}

// card is an open approval.
type card struct {
	cardRef
	payload approvalRequest
}

// cardRef identifies an approval of the session or of one below it.
type cardRef struct {
	session parley.SessionID
	id      parley.CardID
}

type decided struct {
	cardRef
	how string
}

// other is a question or a call of unknown outcome, with the frame that shows it.
type other struct {
	dialect.Card
	frame message
}

// Ignored are the event types that this dialect does not show.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, map[string]string{
	"SessionOpened":        "the connection's first input opened it",
	"SessionRenamed":       "sessions have no titles here",
	"SessionHalted":        "the end of its run and the answer to the next input say so",
	"SessionReopened":      "its next message is shown",
	"InputReceived":        "loading_state says when it is being answered; the document does not echo",
	"InputAdopted":         "loading_state says when it is being answered",
	"TurnStarted":          "turns are not visible here",
	"OutputStarted":        "its chunks are shown",
	"ToolOutputAppended":   "outputs of tools are whole here",
	"ExplanationRequested": "the explanation is shown",
	"PlanChanged":          "the call that changed it is shown",
	"FilesChanged":         "the calls that changed them are shown",
	"ChangesUndone":        "files are not visible here",
	"ChildReturned":        "it is the output of the call that delegates",
	"ContextMeasured":      "context_info says it at the end of the run",
	"CompactionStarted":    "its end is shown",
})

// Project returns the frames that show an event to a client.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	p := &projection{View: v, e: e}
	p.View.decided = nil
	session := cmp.Or(v.Session, e.Root, e.Session)
	if p.run != 0 {
		p.subAgents(session)
	}
	if e.Session == session {
		p.showFresh()
		p.event()
	}
	return p.View, p.frames
}

// projection builds the next view and the frames of one event.
type projection struct {
	View
	e      parley.Event
	frames []dialect.Frame
}

func (p *projection) show(kind string, payload any) message {
	m := message{frameID(p.e, len(p.frames)), kind, payload}
	p.frames = append(p.frames, dialect.Frame{Body: m})
	return m
}

func (p *projection) item(item any) { p.show("response_item", item) }

func (p *projection) say(id, role, words string) {
	p.item(textItem{id, "message", role, []text{{"input_text", words}}})
}

// warn shows a problem that does not end the run.
func (p *projection) warn(words string) {
	const sign = "⚠️ "
	p.say(named("sys", p.e.Seq), "system", sign+strings.TrimPrefix(words, sign))
}

func named(kind string, seq parley.Seq) string { return kind + "_" + strconv.FormatInt(int64(seq), 10) }

func (p *projection) event() {
	switch b := p.e.Body.(type) {
	case parley.InputWithdrawn:
		p.show("error", withdrawn(b))
	case parley.TimerFired:
		p.say(named("sys", p.e.Seq), "system", "A follow-up is due.")
	case parley.RunStarted:
		p.View = View{LocalShell: p.LocalShell, Session: p.Session, run: p.e.Run}
		p.show("loading_state", loadingState{true})
	case parley.RunFinished:
		p.finish(b)
	case parley.TurnFinished:
		if b.Stop == parley.StopCut {
			p.warn(cmp.Or(b.Message, "The answer was cut off."))
		}
	case parley.OutputStarted:
		p.began, p.shown = p.e.At, 0
	case parley.OutputAppended:
		if b.Kind == parley.Text && p.run != 0 {
			p.say(named("resp", parley.Seq(b.Output)), "assistant", b.Text)
			p.shown = b.Offset + len(b.Text)
		}
	case parley.OutputFinished:
		p.outputFinished(b)
	case parley.ModelFellBack:
		p.warn(b.Preferred + " cannot answer (" + b.Reason + "); " + b.Actual + " does instead.")
	case parley.ProblemReported:
		p.warn(b.Message)
	case parley.ContextMeasured:
		p.context, _ = p.context.after(b)
	case parley.ContextCompacted:
		p.context, _ = p.context.after(b)
		p.show("context_compacted", contextCompacted{b.Before, b.After, reduction(b.Before, b.After), strategy})
	case parley.CompactionFailed:
		p.show("error", compactionFailed(b))
	case parley.SessionDeleted:
		p.frames = append(p.frames,
			dialect.Frame{Close: &dialect.Goodbye{Code: transport.Normal, Reason: "the session was deleted"}})
	default:
		p.call()
	}
}

func (p *projection) outputFinished(b parley.OutputFinished) {
	switch {
	case p.run == 0:
	case b.Kind == parley.Text:
		// In a trimmed log, the chunks are missing; the whole text is shown
		// here.
		if rest := b.Text[min(p.shown, len(b.Text)):]; rest != "" {
			p.say(named("resp", parley.Seq(b.Output)), "assistant", rest)
			p.frames[len(p.frames)-1].PerClient = true
		}
	case !parley.IsBlank(b.Text):
		p.item(reasoningItem{named("reasoning", parley.Seq(b.Output)), "reasoning", []text{{"input_text", b.Text}},
			p.e.At.Sub(p.began).Milliseconds()})
	}
}

// finish shows the one ending of a run.
func (p *projection) finish(b parley.RunFinished) {
	for _, o := range p.others { // unresolved calls and cards of sub-agents
		p.showClosed(dialect.Closed{Card: o.Card, How: string(b.Outcome)})
	}
	var open []decided
	for _, c := range p.cards { // approvals of sub-agents
		open = append(open, decided{c.cardRef, string(b.Outcome)})
	}
	if b.Outcome == parley.Completed {
		p.show("loading_state", loadingState{false})
		p.show("agent_finished", agentFinished{named("resp", parley.Seq(p.e.Run))})
		p.show("context_info", p.context.info())
	} else {
		p.show("error", ending(b))
		p.show("loading_state", loadingState{false})
	}
	p.View = View{LocalShell: p.LocalShell, Session: p.Session, decided: open}
}

// call shows changes of calls and cards.
func (p *projection) call() {
	switch b := p.e.Body.(type) {
	case parley.ToolCallRequested:
		c := call{id: parley.CallID(p.e.Seq), name: b.Provider, tool: b.Name, arguments: b.Arguments}
		if c.name == "" || slices.Contains(p.names, c.name) {
			c.name = named("call", p.e.Seq)
		}
		for slices.Contains(p.names, c.name) { // a vendor may use the same names
			c.name += "_"
		}
		p.names = append(slices.Clip(p.names), c.name)
		p.calls, p.fresh = append(slices.Clip(p.calls), c), c.id
	case parley.ToolCallBlocked:
		p.ended(b.Call, toolOutput{"aborted", rejected{"command rejected", b.Reason}})
	case parley.ToolCallStarted:
		p.withCall(b.Call, func(c *call) { c.began = p.e.At })
	case parley.ToolCallFinished:
		p.finished(b)
	case parley.ToolCallResolved, parley.QuestionAnswered:
		c, _ := dialect.Closes(p.e)
		p.closesOther(c)
	case parley.ApprovalRequested:
		if c := p.find(b.Call); c != nil {
			p.opens(card{cardRef{p.e.Session, parley.CardID(p.e.Seq)}, approval(*c, b)})
		}
	case parley.ApprovalExplained:
		p.explained(named("resp", p.e.Seq), b)
	case parley.ApprovalDecided:
		p.withCall(b.Call, func(c *call) { c.note = b.Note })
		p.closes(cardRef{p.e.Session, b.Card}, string(b.Decision))
		p.showCall(b.Call)
		// If the decision ends the run, no further approval is requested.
		if b.Decision != parley.DenyAndStop && b.Decision != parley.CardCancelled {
			p.askNext()
		}
	case parley.QuestionAsked:
		c, _ := dialect.Opens(p.e)
		p.opensOther(c)
	}
}

// ask shows the first open approval.
func (p *projection) ask() {
	p.request, p.asking = p.show("approval_request", p.cards[0].payload), true
}

// askNext shows the next approval, unless one is shown.
func (p *projection) askNext() {
	if len(p.cards) > 0 && !p.asking {
		p.ask()
	}
}

func (p *projection) opens(c card) {
	p.cards = append(slices.Clip(p.cards), c)
	p.askNext()
}

func (p *projection) closes(ref cardRef, how string) {
	i := slices.IndexFunc(p.cards, func(c card) bool { return c.cardRef == ref })
	if i < 0 {
		return
	}
	p.cards = slices.Delete(slices.Clone(p.cards), i, i+1)
	p.asking = p.asking && i > 0
	p.View.decided = append(slices.Clip(p.View.decided), decided{ref, how})
}

// explained shows the explanation of an approval, and then the approval again.
func (p *projection) explained(id string, b parley.ApprovalExplained) {
	p.say(id, "assistant", b.Text)
	if len(p.cards) > 0 && p.cards[0].cardRef == (cardRef{p.e.Session, b.Card}) {
		p.ask()
	}
}

// showFresh shows the last requested call, unless it needs an approval: then
// the approval is shown first.
func (p *projection) showFresh() {
	id := p.fresh
	p.fresh = 0
	if b, ok := p.e.Body.(parley.ApprovalRequested); !ok || b.Call != id {
		p.showCall(id)
	}
}

func (p *projection) showCall(id parley.CallID) {
	c := p.find(id)
	if c == nil || c.shown {
		return
	}
	p.withCall(id, func(c *call) { c.shown = true })
	if argv, ok := p.local(*c); ok {
		p.item(shellItem{"shell_" + bare(c.name), "local_shell_call", shellAction{argv}, "completed"})
		return
	}
	p.item(callItem{c.name, "function_call", c.name, c.tool, string(dialect.Arguments(c.arguments))})
}

// ended shows the output of a call, which ends it.
func (p *projection) ended(id parley.CallID, out toolOutput) {
	c := p.find(id)
	if c == nil {
		return
	}
	p.showCall(id)
	output := string(dialect.Encode(out))
	if _, ok := p.local(*c); ok {
		p.item(shellOutputItem{"shell_output_" + bare(c.name), "local_shell_call_output", output})
	} else {
		p.item(outputItem{"output_" + bare(c.name), "function_call_output", c.name, output})
	}
	p.calls = slices.DeleteFunc(slices.Clone(p.calls), func(c call) bool { return c.id == id })
}

func (p *projection) finished(b parley.ToolCallFinished) {
	c := p.find(b.Call)
	if c == nil {
		return
	}
	took := ran{ExitCode: 1}
	switch {
	case b.Exit != nil:
		took.ExitCode = *b.Exit
	case b.Outcome == parley.CallSucceeded:
		took.ExitCode = 0
	}
	if !c.began.IsZero() {
		took.DurationSeconds = math.Round(p.e.At.Sub(c.began).Seconds()*10) / 10
	}
	switch b.Outcome {
	case parley.CallDenied:
		words := "aborted"
		if c.note != "" {
			words += ": " + c.note
		}
		p.ended(b.Call, toolOutput{words, nothing{}})
	case parley.CallCancelled:
		p.ended(b.Call, toolOutput{"aborted", took})
	case parley.CallUnknown: // only a person can resolve it
		p.ended(b.Call, toolOutput{b.Result, took})
		lost, _ := dialect.Opens(p.e)
		p.opensOther(lost)
	default:
		p.ended(b.Call, toolOutput{b.Printed(), took})
	}
}

func (p *projection) opensOther(c dialect.Card) {
	var payload any
	switch b := c.Asks.(type) {
	case parley.QuestionAsked:
		payload = question{c.ID, b.Questions, b.Expires, c.Agent}
	case parley.ToolCallFinished:
		payload = callUnknown{c.ID, b.Name, b.Result, c.Agent}
	}
	p.others = append(slices.Clip(p.others), other{c, p.show(c.Frame(), payload)})
}

func (p *projection) closesOther(c dialect.Closed) {
	p.others = slices.DeleteFunc(slices.Clone(p.others), func(o other) bool { return o.ID == c.ID })
	p.showClosed(c)
}

func (p *projection) showClosed(c dialect.Closed) {
	if c.Kind == parley.CardQuestion {
		p.show(c.Frame(), questionClosed{c.ID, c.How})
	} else {
		p.show(c.Frame(), callResolved{c.ID, c.How})
	}
}

func (v View) find(id parley.CallID) *call {
	for i := range v.calls {
		if v.calls[i].id == id {
			c := v.calls[i]
			return &c
		}
	}
	return nil
}

func (p *projection) withCall(id parley.CallID, change func(*call)) {
	if i := slices.IndexFunc(p.calls, func(c call) bool { return c.id == id }); i >= 0 {
		p.calls = slices.Clone(p.calls)
		change(&p.calls[i])
	}
}

// local returns the command of a call that is shown as a local_shell_call.
func (v View) local(c call) ([]string, bool) {
	if !v.LocalShell || c.tool != "shell" {
		return nil, false
	}
	argv, _, _ := command(c.tool, c.arguments)
	return argv, true
}

// bare returns the name of a call without the usual prefix of vendors. The
// document uses another prefix for the id of its output.
func bare(name string) string { return strings.TrimPrefix(name, "call_") }

func approval(c call, b parley.ApprovalRequested) approvalRequest {
	argv, patch, whole := command(c.tool, c.arguments)
	r := approvalRequest{Command: argv, ApplyPatch: patch, Why: b.Why, Similar: b.Similar.Text}
	if !whole {
		r.Arguments = c.arguments
	}
	return r
}

// notProcessed returns an error in the document's shape.
func notProcessed(message string, code parley.Code, reason string) failure {
	status := dialect.Status(parley.Errorf(code, "%s", reason), http.Header{})
	return failure{message, &details{Error: reason, Code: status}}
}

// vendorFailed is notProcessed with the message and status of the model's vendor, if the vendor refused a request.
func vendorFailed(message string, code parley.Code, reason string, v *parley.VendorError) failure {
	f := notProcessed(message, code, reason)
	if v != nil {
		f.Details = &details{Error: cmp.Or(v.Message, reason), Code: v.Status, Hint: reason}
	}
	return f
}

// ending returns the error of a run that was not completed.
func ending(b parley.RunFinished) failure {
	switch b.Outcome {
	case parley.Cancelled:
		return failure{"The run was cancelled.", nil}
	case parley.Denied, parley.Halted:
		return failure{b.Message, nil}
	}
	reason := b.Message
	if parley.IsBlank(reason) {
		reason = "The agent failed."
	}
	return vendorFailed(inputFailed, b.Code, reason, b.Vendor)
}

func withdrawn(b parley.InputWithdrawn) failure {
	switch b.Reason {
	case parley.WithdrawnByMessage:
		return failure{"A follow-up was dropped: somebody wrote.", nil}
	case parley.WithdrawnByRequest:
		return failure{"An input was cancelled before it was answered.", nil}
	}
	return failure{"An input was not answered: the session was " + string(b.Reason) + ".", nil}
}

func compactionFailed(b parley.CompactionFailed) failure {
	title := compactFailed
	if b.Auto {
		title = "Automatic context compaction failed"
	}
	return vendorFailed(title, b.Code, b.Message, b.Vendor)
}
