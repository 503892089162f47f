package acp

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
	"parley/transport"
)

// A View is the state of an editor that follows a log from its beginning: the
// inputs that wait for a run, and the open run with its calls.
type View struct {
	dialect.Notices
	Session parley.SessionID // empty: the root of the first event
	// Own is the prefix of the request names of inputs that the editor has shown itself.
	Own string

	waiting  []input
	run      parley.RunID
	requests []string // requests that the run answers
	stop     parley.Stop
	micros   int64    // cost of the session so far
	shown    int      // bytes of the open output that were shown
	calls    []call   // calls of the run
	lost     []string // calls of unknown outcome that are not resolved
	below    dialect.Below
}

type input struct {
	id      parley.InputID
	text    string
	request string
	hidden  bool
}

type call struct {
	id          parley.CallID
	title, name string
	input       json.RawMessage
}

// Ignored are the event types that editors are not shown.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, map[string]string{
	"SessionHalted":        "the end of its run is shown",
	"SessionReopened":      "its next message is shown",
	"InputReceived":        "it is shown when it is adopted",
	"RunStarted":           "its output is shown",
	"TurnStarted":          "turns are not visible here",
	"TurnFinished":         "turns are not visible here",
	"OutputStarted":        "its chunks are shown",
	"ToolOutputAppended":   "the whole output is shown when the call ends",
	"TimerSet":             "the follow-up is shown when it is due",
	"TimerFired":           "the run that it starts is shown",
	"FilesChanged":         "an editor sees the files themselves",
	"ChangesUndone":        "an editor sees the files themselves",
	"ChildSpawned":         "sub-agents are not visible here, only what needs a person",
	"ChildReturned":        "sub-agents are not visible here, only what needs a person",
	"CompactionStarted":    "the protocol shows it to editors that ask for it, which Parley does not read",
	"ContextCompacted":     "the protocol shows it to editors that ask for it, which Parley does not read",
	"CompactionFailed":     "the protocol shows it to editors that ask for it, which Parley does not read",
	"ModelFellBack":        "models are not visible here",
	"ExplanationRequested": "the explanation is shown",
})

// Project returns the frames that show an event to an editor.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	var frames []dialect.Frame
	show := func(body any) { frames = append(frames, dialect.Frame{Body: body}) }
	session := cmp.Or(v.Session, e.Root, e.Session)
	if v.run != 0 {
		var change dialect.Change
		if v.below, change = v.below.After(session, e); change.Opened != nil {
			frames = append(frames, v.asking(*change.Opened, session)...)
		}
		for _, c := range change.Closed {
			show(Closed{c.Frame(), c.ID, c.How})
		}
		if change.Explained != nil {
			show(explained{dialect.Explained, change.Explained.ID, thought(change.Explained.Text)})
		}
	}
	if e.Session != session {
		return v, frames
	}
	switch b := e.Body.(type) {
	case parley.SessionOpened:
		if b.Title != "" {
			show(Update{Update: sessionInfo{Kind: "session_info_update", Title: b.Title}})
		}
	case parley.SessionRenamed:
		show(Update{Update: sessionInfo{Kind: "session_info_update", Title: b.Title}})
	case parley.InputReceived:
		v.waiting = append(slices.Clip(v.waiting), input{parley.InputID(e.Seq), b.Content, b.Request,
			b.Synthetic || b.Mission != 0})
	case parley.InputWithdrawn:
		v.waiting = without(v.waiting, b.Input)
		show(Ended{Request: b.Request, Result: &Result{StopReason: "cancelled"}})
	case parley.RunStarted:
		v.run, v.requests, v.calls, v.lost, v.stop, v.below = e.Run, []string{b.Request}, nil, nil, "", dialect.Below{}
	case parley.InputAdopted:
		if said := v.adopt(&v, b); said != nil {
			show(said)
		}
	case parley.RunFinished:
		for _, id := range v.lost {
			c := dialect.ClosesCall(id, b.Outcome)
			show(Closed{c.Frame(), c.ID, c.How})
		}
		for _, c := range v.below.End(b.Outcome) {
			show(Closed{c.Frame(), c.ID, c.How})
		}
		// Editors that did not send the prompt learn here that the run is over.
		show(Update{Update: sessionInfo{Kind: "session_info_update", Updated: &e.At,
			Meta: &meta{runEnded{e.Run, b.Outcome}}}})
		for _, request := range v.requests {
			show(v.ended(request, b))
		}
		v.run, v.requests, v.calls, v.lost, v.below = 0, nil, nil, nil, dialect.Below{}
	case parley.SessionDeleted:
		frames = append(frames,
			dialect.Frame{Close: &dialect.Goodbye{Code: transport.Normal, Reason: "the session was deleted"}})
	default:
		return v.inRun(e, session, frames)
	}
	return v, frames
}

// explained is an explanation of an approval.
type explained struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Update any    `json:"update"`
}

// Words returns the update in a frame, whether or not it is about a card.
func Words(body any) (update any, ok bool) {
	switch b := body.(type) {
	case Update:
		return b.Update, true
	case explained:
		return b.Update, true
	}
	return nil, false
}

// adopt notes that a run answers an input, and returns the frame that shows the input, or nil.
func (v View) adopt(next *View, b parley.InputAdopted) any {
	i := slices.IndexFunc(v.waiting, func(w input) bool { return w.id == b.Input })
	if !slices.Contains(v.requests, b.Request) {
		next.requests = append(slices.Clip(v.requests), b.Request)
	}
	if i < 0 {
		return nil
	}
	w := v.waiting[i]
	next.waiting = without(v.waiting, b.Input)
	if w.hidden || v.Own != "" && strings.HasPrefix(w.request, v.Own) {
		return nil
	}
	return Update{Update: chunk{Kind: "user_message_chunk", Content: textBlock(w.text)}}
}

func without(list []input, id parley.InputID) []input {
	return slices.DeleteFunc(slices.Clone(list), func(w input) bool { return w.id == id })
}

// inRun shows an event of a run.
func (v View) inRun(e parley.Event, session parley.SessionID, frames []dialect.Frame) (View, []dialect.Frame) {
	show := func(update any) { frames = append(frames, dialect.Frame{Body: Update{Update: update}}) }
	id := func(call parley.CallID) string { return parley.Ref(e.Session, parley.Seq(call)) }
	switch b := e.Body.(type) {
	case parley.TurnFinished:
		v.stop, v.micros = b.Stop, v.micros+b.Usage.CostMicros
	case parley.OutputStarted:
		v.shown = 0
	case parley.OutputAppended:
		v.shown = b.Offset + len(b.Text)
		show(said(e.Session, b.Output, b.Kind, b.Text))
	case parley.OutputFinished:
		if rest := b.Text[min(v.shown, len(b.Text)):]; rest != "" {
			frames = append(frames, dialect.Frame{Body: Update{Update: said(e.Session, b.Output, b.Kind, rest)},
				PerClient: true})
		}
		v.shown = 0
	case parley.ToolCallRequested:
		c := call{parley.CallID(e.Seq), titleOf(b.Name, b.Arguments), b.Name, dialect.Arguments(b.Arguments)}
		v.calls = append(slices.Clip(v.calls), c)
		t := v.tool(c.id, e.Session)
		t.Kind, t.Status = "tool_call", "pending"
		show(t)
	case parley.ToolCallStarted:
		show(toolCall{Kind: "tool_call_update", ID: id(b.Call), Status: "in_progress"})
	case parley.ToolCallBlocked:
		show(toolCall{Kind: "tool_call_update", ID: id(b.Call), Status: "failed",
			Content: shows("Blocked: " + b.Reason)})
	case parley.ToolCallFinished:
		t := toolCall{Kind: "tool_call_update", ID: id(b.Call), Status: "failed", Content: shows(dialect.Result(b)),
			Output: &toolOutput{b.Outcome, b.Exit}}
		if b.Outcome == parley.CallSucceeded {
			t.Status = "completed"
		}
		show(t)
	case parley.PlanChanged:
		show(planOf(b.Plan))
	case parley.ContextMeasured:
		u := usage{Kind: "usage_update", Used: b.Tokens, Size: b.Limit}
		if v.micros > 0 {
			u.Cost = &cost{float64(v.micros) / 1e6, "USD"}
		}
		show(u)
	case parley.ProblemReported:
		show(thought(b.Message + "\n"))
	}
	return v.card(e, session, frames)
}

// card shows an open card, or that a card is closed.
func (v View) card(e parley.Event, session parley.SessionID, frames []dialect.Frame) (View, []dialect.Frame) {
	if c, ok := dialect.Opens(e); ok {
		if c.Kind == parley.CardCall {
			v.lost = append(slices.Clip(v.lost), c.ID)
		}
		return v, append(frames, v.asking(c, session)...)
	}
	if c, ok := dialect.Closes(e); ok {
		v.lost = slices.DeleteFunc(slices.Clone(v.lost), func(id string) bool { return id == c.ID })
		return v, append(frames, dialect.Frame{Body: Closed{c.Frame(), c.ID, c.How}})
	}
	if x, ok := dialect.Explains(e); ok {
		return v, append(frames, dialect.Frame{Body: explained{dialect.Explained, x.ID, thought(x.Text)}})
	}
	return v, frames
}

// asking returns the frames that show a card. A question that does not fit into the protocol is shown as text.
func (v View) asking(c dialect.Card, session parley.SessionID) []dialect.Frame {
	ask := Ask{Type: c.Frame(), ID: c.ID, Agent: c.Agent}
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		t := v.toolOf(c, b.Call, b.Name)
		words := b.Show
		if b.Why != "" {
			words += "\n\n" + b.Why
		}
		t.Content, ask.Digest = shows(words), b.Digest
		ask.Ask = &Permission{t, approvalOptions(b)}
	case parley.QuestionAsked:
		if options := answerOptions(b.Questions); options != nil {
			t := v.toolOf(c, b.Call, "ask_user")
			t.Title, t.Content = b.Questions[0].Question, shows(b.Questions[0].Question)
			ask.Ask = &Permission{t, options}
		}
	case parley.ToolCallFinished:
		t := v.toolOf(c, b.Call, b.Name)
		t.Content = shows(b.Result)
		ask.Ask = &Permission{t, resolutionOptions}
	}
	frames := []dialect.Frame{{Body: ask}}
	if ask.Ask == nil {
		frames = append(frames, dialect.Frame{Body: Update{Update: thought(v.Text(c, session) + "\n"), Card: c.ID},
			PerClient: true})
	}
	return frames
}

// toolOf returns the tool call of a card. A sub-agent's call gets the id of the card, since the editor does not know
// the call.
func (v View) toolOf(c dialect.Card, id parley.CallID, name string) toolCall {
	if c.Agent == "" {
		t := v.tool(id, c.Session)
		if t.Title == "" {
			t.Title, t.Name, t.Tool = name, name, kindOf(name)
		}
		return t
	}
	return toolCall{ID: c.ID, Title: c.Agent + ": " + titleOf(name, c.Call.Arguments), Name: name, Tool: kindOf(name),
		Status: "pending"}
}

func (v View) tool(id parley.CallID, session parley.SessionID) toolCall {
	t := toolCall{ID: parley.Ref(session, parley.Seq(id))}
	for _, c := range v.calls {
		if c.id == id {
			t.Title, t.Name, t.Tool, t.Input = c.title, c.name, kindOf(c.name), c.input
		}
	}
	return t
}

// said returns a chunk of an output. Each output is a message of its own.
func said(session parley.SessionID, output parley.OutputID, kind parley.OutputKind, text string) chunk {
	c := chunk{Kind: "agent_message_chunk", Content: textBlock(text), Message: parley.Ref(session, parley.Seq(output))}
	if kind == parley.Thinking {
		c.Kind = "agent_thought_chunk"
	}
	return c
}

func thought(text string) chunk { return chunk{Kind: "agent_thought_chunk", Content: textBlock(text)} }

// kinds maps tools to the kinds that editors have icons for.
var kinds = map[string]string{"read_file": "read", "list_files": "read", "find_files": "search",
	"search_files": "search",
	"write_file":   "edit", "edit_file": "edit", "apply_patch": "edit", "shell": "execute", "update_plan": "think",
	"skill": "read"}

var knownKinds = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch"}

func kindOf(name string) string {
	if kind := kinds[name]; kind != "" {
		return kind
	}
	if slices.Contains(knownKinds, name) {
		return name
	}
	return "other"
}

// titleOf returns a title of one line for a call.
func titleOf(name, arguments string) string {
	var a struct {
		Title   string
		Path    string
		Pattern string
		Command []string
		Agent   string `json:"agent_id"`
	}
	_ = json.Unmarshal([]byte(arguments), &a) // missing fields stay empty
	about := cmp.Or(a.Title, strings.Join(a.Command, " "), a.Path, a.Pattern, a.Agent)
	if about == "" {
		return name
	}
	if runes := []rune(about); len(runes) > 120 {
		about = string(runes[:120]) + "…"
	}
	if a.Path != "" && a.Title == "" {
		about = path.Clean(about)
	}
	return name + ": " + strings.ReplaceAll(about, "\n", " ")
}

var itemStatuses = map[parley.ItemStatus]string{parley.ItemInProgress: "in_progress", parley.ItemDone: "completed",
	parley.ItemSkipped: "completed"}

func planOf(p parley.Plan) plan {
	shown := plan{"plan", []entry{}}
	for _, item := range p.Items {
		shown.Entries = append(shown.Entries, entry{item.Title, "medium", cmp.Or(itemStatuses[item.Status], "pending")})
	}
	return shown
}

// ended returns the answer to a prompt.
func (v View) ended(request string, b parley.RunFinished) Ended {
	u := b.Usage
	r := &Result{StopReason: "end_turn"}
	if u != (parley.Usage{}) {
		r.Usage = &Usage{u.Input + u.Output, u.Input, u.Output, u.Cached}
	}
	switch {
	case b.Outcome == parley.Cancelled:
		r.StopReason = "cancelled"
	case b.Outcome == parley.Completed && v.stop == parley.StopLength:
		r.StopReason = "max_tokens"
	case b.Outcome == parley.Completed && v.stop == parley.StopRefusal:
		r.StopReason = "refusal"
	case b.Outcome == parley.Completed, b.Outcome == parley.Denied:
	case b.Code == parley.CodeTurnLimit:
		r.StopReason = "max_turn_requests"
	default:
		return Ended{Request: request, Error: &Error{CodeInternal, cmp.Or(b.Message, "The run "+string(b.Outcome)+"."),
			&ErrorData{b.Code}}}
	}
	return Ended{Request: request, Result: r}
}
