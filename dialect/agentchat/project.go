package agentchat

import (
	"slices"
	"strings"

	"parley"
	"parley/dialect"
)

// A View is a connection's state of one session: the open run. It must follow the session from the start of that run,
// or from a point without an open run.
type View struct {
	dialect.Notices
	run     parley.RunID
	seq     parley.Seq // last seq of the run that was processed
	pending []string   // text that was not shown yet
	whole   bool       // the last text was not cut off
	cards   []card     // open cards
	agent   string     // name of the sub-agent; empty at the top

	partial bool // the start of the run could not be read
}

// card is the frame of an open card.
type card struct {
	id     string
	body   any
	notice *agentThinking // nil: the client shows cards
}

// Ignored are the event types that this dialect does not show.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, dialect.ContextEvents, dialect.FileEvents,
	map[string]string{
		"SessionOpened":        "the message that opened it is shown",
		"SessionRenamed":       "sessions have no titles here",
		"SessionHalted":        "the end of its run is shown",
		"SessionReopened":      "its next message is shown",
		"SessionDeleted":       "the end of its run is shown; a connection is not of one session",
		"InputAdopted":         "it was shown when it was received",
		"RunStarted":           "its input was shown",
		"OutputStarted":        "messages are whole here",
		"OutputAppended":       "messages are whole here",
		"ToolCallStarted":      "it was shown when it was asked for",
		"ToolOutputAppended":   "results are whole here",
		"TimerSet":             "the follow-up is shown when it is due",
		"TimerFired":           "its input is shown",
		"PlanChanged":          "plans are not visible here",
		"ChildSpawned":         "sub-agents are not visible here",
		"ChildReturned":        "sub-agents are not visible here",
		"ModelFellBack":        "models are not visible here",
		"ExplanationRequested": "the explanation is shown",
	})

// Project returns the frames that show an event to a client. Of sub-agents it shows only cards: the result of the tool
// call tells what they did.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	if e.Root != e.Session {
		return v.projectSubAgent(e)
	}
	var frames []dialect.Frame
	show := func(body any) { frames = append(frames, dialect.Frame{Body: body}) }
	switch b := e.Body.(type) {
	case parley.InputReceived:
		switch { // tells autonomous messages from answers
		case strings.HasPrefix(b.Request, parley.FollowUpNamed):
			show(userMessage{"follow_up", "A follow-up is due."})
		case !b.Synthetic:
			show(userMessage{"user_message", strings.TrimSpace(b.Content)})
		}
	case parley.InputWithdrawn:
		if b.Reason == parley.WithdrawnByMessage {
			break // the session withdrew it; no client waits for it
		}
		if b.Reason == parley.WithdrawnByRequest {
			show(failure{"error", "A message was cancelled before it was answered."})
		} else {
			show(failure{"error", "A message was not answered: the session was " + string(b.Reason) + "."})
		}
	case parley.RunStarted:
		v = View{Notices: v.Notices, run: e.Run}
	case parley.RunFinished:
		_, frames = v.projectCard(e)
		return View{Notices: v.Notices}, append(frames, dialect.Frame{Body: v.endFrame(b), PerClient: v.partial})
	case parley.TurnStarted:
		if v.whole { // else the model continues the text that was cut off
			v, frames = v.showText()
		}
	case parley.TurnFinished:
		if b.Stop == parley.StopTools { // else this may have been the last turn
			v, frames = v.showText()
		}
	case parley.OutputFinished:
		switch text := strings.TrimSpace(b.Text); {
		case b.Kind == parley.Text:
			v = v.addText(b)
		case text != "":
			show(agentThinking{Type: "agent_thinking", Reasoning: text})
		}
	case parley.ProblemReported: // the document has agent_thinking for reasoning and debugging
		show(agentThinking{Type: "agent_thinking", Reasoning: b.Message})
	case parley.ToolCallRequested:
		v, frames = v.showText()
		show(toolCall{"tool_call", b.Name, string(dialect.Arguments(b.Arguments))})
	case parley.ToolCallBlocked:
		show(toolResult{"tool_result", b.Name, b.Reason, false})
	case parley.ToolCallFinished:
		show(toolResult{"tool_result", b.Name, dialect.Result(b), b.Outcome == parley.CallSucceeded})
		var asks []dialect.Frame
		v, asks = v.projectCard(e)
		frames = append(frames, asks...)
	default:
		v, frames = v.projectCard(e)
	}
	if v.run != 0 {
		v.seq = e.Seq
	}
	for i := range frames {
		// If text is missing in the view, other clients may get other frames.
		frames[i].PerClient = frames[i].PerClient || v.partial
	}
	return v, frames
}

// projectSubAgent is Project for the session of a sub-agent.
func (v View) projectSubAgent(e parley.Event) (View, []dialect.Frame) {
	if b, ok := e.Body.(parley.RunStarted); ok {
		return View{Notices: v.Notices, run: e.Run, seq: e.Seq, agent: b.Agent.Name}, nil
	}
	v, frames := v.projectCard(e)
	if _, ends := e.Body.(parley.RunFinished); ends {
		return View{Notices: v.Notices}, frames
	}
	if v.run != 0 {
		v.seq = e.Seq
	}
	for i := range frames {
		frames[i].PerClient = frames[i].PerClient || v.partial // the name of the sub-agent is not known then
	}
	return v, frames
}

// projectCard shows an open card, or that a card is closed.
func (v View) projectCard(e parley.Event) (View, []dialect.Frame) {
	if c, ok := dialect.Opens(e); ok {
		c.Agent = v.agent
		return v.openCard(c, e.Root)
	}
	if c, ok := dialect.Closes(e); ok {
		return v.closeCard(closedFrame(c))
	}
	if x, ok := dialect.Explains(e); ok {
		return v, []dialect.Frame{{Body: cardExplained{dialect.Explained, x}}}
	}
	var frames []dialect.Frame
	if b, ends := e.Body.(parley.RunFinished); ends {
		for _, c := range v.cards { // calls of unknown outcome that were not resolved
			frames = append(frames, dialect.Frame{Body: closedFrame(dialect.ClosesCall(c.id, b.Outcome))})
		}
		v.cards = nil
	}
	return v, frames
}

// addText adds a text. Several texts of one turn are separated by empty lines.
// If a text was cut off, the next one continues it.
func (v View) addText(b parley.OutputFinished) View {
	v.pending = slices.Clip(v.pending)
	if v.whole {
		v.pending = append(v.pending, "\n\n")
	}
	v.pending, v.whole = append(v.pending, b.Text), !b.Incomplete
	return v
}

// showText shows the text that was not shown yet, while the run continues.
func (v View) showText() (View, []dialect.Frame) {
	text := v.text()
	if v.pending, v.whole = nil, false; text == "" {
		return v, nil
	}
	return v, []dialect.Frame{{Body: agentMessage{"agent_message", text, true}}}
}

func (v View) text() string { return strings.TrimSpace(strings.Join(v.pending, "")) }

// endFrame returns the one frame that ends a run. If the run was not completed, it leaves out text that was not shown
// yet: half an answer would look like a whole one.
func (v View) endFrame(b parley.RunFinished) any {
	switch {
	case b.Outcome == parley.Completed:
		return agentMessage{"agent_message", v.text(), false}
	case b.Outcome == parley.Cancelled:
		return failure{"error", "The answer was cancelled."}
	case strings.TrimSpace(b.Message) == "":
		return failure{"error", "The agent failed."}
	}
	return failure{"error", b.Message}
}

// openCard shows a card. A client that may not show cards also gets a notice in words. The notice is the last frame of
// the event: those before it are shared with all clients.
func (v View) openCard(c dialect.Card, session parley.SessionID) (View, []dialect.Frame) {
	opened := card{id: c.ID, body: cardFrame(c)}
	frames := []dialect.Frame{{Body: opened.body}}
	if !v.Off {
		opened.notice = &agentThinking{"agent_thinking", v.Text(c, session), c.ID}
		frames = append(frames, dialect.Frame{Body: *opened.notice, PerClient: true})
	}
	v.cards = append(slices.Clip(v.cards), opened)
	return v, frames
}

func (v View) closeCard(body cardClosed) (View, []dialect.Frame) {
	v.cards = slices.DeleteFunc(slices.Clone(v.cards), func(c card) bool { return c.id == body.ID })
	return v, []dialect.Frame{{Body: body}}
}
