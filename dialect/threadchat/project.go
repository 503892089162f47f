package threadchat

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/dialect"
	"parley/transport"
)

// A Shape is one of the two spellings of the protocol.
type Shape string

const (
	Document Shape = "threadchat"
	Original Shape = "threadchat-original"
)

// A View is a connection's state of the log that it follows: the open run. It must follow the log from the start of
// that run, or from a point without an open run. Of the sessions below its thread it shows only cards.
type View struct {
	dialect.Notices
	Shape    Shape
	Thread   parley.SessionID // empty: the root of the first event
	run      parley.RunID
	requests []string // requests that the run answers
	agent    string
	began    time.Time
	said     string // answer so far, for the shape that repeats it whole
	text     dialect.Text

	lost  []string // calls of unknown outcome that are not resolved
	below dialect.Below
}

// Ignored are the event types that this dialect does not show.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, dialect.ContextEvents, dialect.FileEvents,
	map[string]string{
		"SessionOpened":        "the connection itself opened the thread",
		"SessionRenamed":       "threads have no names here",
		"SessionHalted":        "the end of its run is shown",
		"SessionReopened":      "its next message is shown",
		"InputReceived":        "chat.started says when it is being answered",
		"TurnStarted":          "turns are not visible here",
		"TurnFinished":         "turns are not visible here",
		"OutputStarted":        "its chunks are shown",
		"ToolCallRequested":    "tools are not visible here, only what needs a person",
		"ToolCallBlocked":      "the model gets the reason and answers it",
		"ToolCallStarted":      "tools are not visible here",
		"ToolOutputAppended":   "tools are not visible here",
		"TimerSet":             "the follow-up is shown when it is due",
		"TimerFired":           "the run it starts is shown",
		"PlanChanged":          "plans are not visible here",
		"ChildSpawned":         "sub-agents are not visible here, only what needs a person",
		"ChildReturned":        "sub-agents are not visible here, only what needs a person",
		"ModelFellBack":        "models are not visible here",
		"ProblemReported":      "the document has no frame for it: content is the answer, and an error ends it",
		"ExplanationRequested": "the explanation is shown",
	})

// Project returns the frames that show an event to a client.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	var frames []dialect.Frame
	show := func(body any) { frames = append(frames, dialect.Frame{Body: body}) }
	thread := cmp.Or(v.Thread, e.Root, e.Session)
	if v.run != 0 {
		var change dialect.Change
		if v.below, change = v.below.After(thread, e); change.Opened != nil {
			show(v.asking(*change.Opened))
			frames = append(frames, v.notice(*change.Opened, thread)...)
		}
		for _, c := range change.Closed {
			show(v.closing(c))
		}
		if change.Explained != nil {
			show(v.explaining(*change.Explained))
		}
	}
	if e.Session != thread {
		return v, frames
	}
	switch b := e.Body.(type) {
	case parley.RunStarted:
		v = View{Notices: v.Notices, Shape: v.Shape, Thread: v.Thread, run: e.Run,
			requests: []string{requestID(b.Request, e.Session, b.Input)}, agent: b.Agent.Name, began: e.At}
		if v.Shape != Original {
			show(started{"chat.started", v.requests[0], e.Session, v.agent})
		}
	case parley.InputAdopted:
		// An input that steers the run starts when it is adopted.
		if id := requestID(b.Request, e.Session, b.Input); v.run != 0 && !slices.Contains(v.requests, id) {
			v.requests = append(slices.Clip(v.requests), id)
			if v.Shape != Original {
				show(started{"chat.started", id, e.Session, v.agent})
			}
		}
	case parley.OutputStarted:
		v.text = v.text.Start()
	case parley.OutputAppended:
		if v.run != 0 && b.Kind == parley.Text {
			var text string
			v.text, text = v.text.Piece(b)
			show(v.piece(text, ""))
		}
	case parley.OutputFinished:
		if b.Kind == parley.Text {
			v.said += v.text.Gap() + b.Text
			var rest string
			if v.text, rest = v.text.End(b); rest != "" && v.run != 0 {
				frames = append(frames, dialect.Frame{Body: v.piece(rest, ""), PerClient: true})
			}
		}
	case parley.RunFinished:
		for _, id := range v.lost {
			show(v.closing(dialect.ClosesCall(id, b.Outcome)))
		}
		for _, c := range v.below.End(b.Outcome) {
			show(v.closing(c))
		}
		for _, id := range v.requests {
			show(v.ending(e, b, v.wire(id)))
		}
		v = View{Notices: v.Notices, Shape: v.Shape, Thread: v.Thread}
	case parley.InputWithdrawn:
		id := v.wire(requestID(b.Request, e.Session, b.Input))
		if b.Reason == parley.WithdrawnByRequest || b.Reason == parley.WithdrawnByMessage {
			show(cancelled{"cancelled", id})
		} else {
			show(v.failure(id, parley.Errorf(parley.CodeClosed, "The thread was %s before this was answered.",
				b.Reason)))
		}
	case parley.SessionDeleted:
		frames = append(frames,
			dialect.Frame{Close: &dialect.Goodbye{Code: transport.Normal, Reason: "the thread was deleted"}})
	default:
		var cards []dialect.Frame
		v, cards = v.card(e, thread)
		frames = append(frames, cards...)
	}
	return v, frames
}

// card shows an open card, or that a card is closed.
func (v View) card(e parley.Event, thread parley.SessionID) (View, []dialect.Frame) {
	if c, ok := dialect.Opens(e); ok {
		if c.Kind == parley.CardCall {
			v.lost = append(slices.Clip(v.lost), c.ID)
		}
		return v, append([]dialect.Frame{{Body: v.asking(c)}}, v.notice(c, thread)...)
	}
	if c, ok := dialect.Closes(e); ok {
		v.lost = slices.DeleteFunc(slices.Clone(v.lost), func(id string) bool { return id == c.ID })
		return v, []dialect.Frame{{Body: v.closing(c)}}
	}
	if x, ok := dialect.Explains(e); ok {
		return v, []dialect.Frame{{Body: v.explaining(x)}}
	}
	return v, nil
}

// notice describes a card in words, for clients that may not show cards. It is separated from the answer and not a part
// of it. It is the last frame of its event: those before it are shared with all clients.
func (v View) notice(c dialect.Card, thread parley.SessionID) []dialect.Frame {
	if v.Off {
		return nil
	}
	return []dialect.Frame{{Body: v.piece(v.text.Aside(v.Text(c, thread)), c.ID), PerClient: true}}
}

// asking returns the frame that shows a card.
func (v View) asking(c dialect.Card) any {
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		return approvalRequest{c.Frame(), c.ID, v.request(), b.Name, b.Show, b.Expires, b.Why, c.Agent,
			b.Similar.Text}
	case parley.QuestionAsked:
		return question{c.Frame(), c.ID, v.request(), b.Questions, b.Expires, c.Agent}
	case parley.ToolCallFinished:
		return callUnknown{c.Frame(), c.ID, v.request(), b.Name, b.Result, c.Agent}
	}
	return nil
}

func (v View) explaining(x dialect.ExplainedFields) any {
	return cardExplained{dialect.Explained, x.ID, v.request(), x.Text}
}

func (v View) closing(c dialect.Closed) any { return cardClosed{c.Frame(), c.ID, v.request(), c.How} }

// requestID returns the request id of an input. If another dialect gave it
// none, the id is derived from the log.
func requestID(request string, session parley.SessionID, input parley.InputID) string {
	if request != "" {
		return request
	}
	return unnamed + parley.Ref(session, parley.Seq(input)) // client ids cannot contain a dot
}

// unnamed is the prefix of request ids for inputs without one.
const unnamed = "req-"

func (v View) request() string {
	if len(v.requests) == 0 {
		return ""
	}
	return v.wire(v.requests[0])
}

// wire returns the request id that a client gets. Autonomous messages have
// another id in the original shape: followup_ and milliseconds.
func (v View) wire(id string) string {
	if seconds, ok := strings.CutPrefix(id, parley.FollowUpNamed); ok && v.Shape == Original {
		return originalFollowUp + seconds + "000"
	}
	return id
}

const originalFollowUp = "followup_"

// unwire is the inverse of wire, for both shapes.
func unwire(id string) string {
	if ms, ok := strings.CutPrefix(id, originalFollowUp); ok {
		return parley.FollowUpNamed + strings.TrimSuffix(ms, "000")
	}
	return id
}

// piece returns the frame for a chunk of the answer or a notice.
func (v View) piece(text, card string) any {
	if v.Shape == Original {
		return token{"token", v.request(), text, card}
	}
	return content{"content", v.request(), text, card}
}

func (v View) ending(e parley.Event, b parley.RunFinished, id string) any {
	switch {
	case b.Outcome == parley.Cancelled:
		return cancelled{"cancelled", id}
	case b.Outcome != parley.Completed:
		return v.failure(id, &parley.Error{Code: b.Code, Message: b.Message})
	case v.Shape == Original:
		return final{"final", id, v.said, e.At.Sub(v.began).Milliseconds()}
	}
	return completed{"chat.completed", id, e.Session, v.agent}
}

// failure returns an error in the view's shape.
func (v View) failure(id string, err error) any {
	message := parley.MessageOf(err)
	if message = strings.TrimSpace(message); message == "" {
		message = "Failed to process message"
	}
	if v.Shape == Original {
		return failedOriginal{"error", id, message, retryable(parley.CodeOf(err))}
	}
	return failed{"error", id, message}
}

func retryable(code parley.Code) bool {
	switch code {
	case parley.CodeUnavailable, parley.CodeOverloaded, parley.CodeQueueFull, parley.CodeModel, parley.CodeInterrupted,
		parley.CodeInternal:
		return true
	}
	return false
}
