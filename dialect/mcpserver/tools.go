package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/dialect"
	"parley/port"
)

const (
	listAgents = "list_agents"
	askAgent   = "ask_agent"
	getSession = "get_session"
)

// tool implements a tool of the server on behalf of a principal.
type tool func(context.Context, port.Principal, *sdk.CallToolRequest) (*sdk.CallToolResult, error)

func (h *Handler) addTools(s *sdk.Server, who port.Principal) {
	add := func(t *sdk.Tool, do tool) {
		s.AddTool(t, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			result, err := do(ctx, who, r)
			if err != nil {
				if !errors.Is(err, errLeft) {
					dialect.LogFailure(h.Log, err)
				}
				return nil, errorOf(err)
			}
			return result, nil
		})
	}
	closed, open := false, true
	add(&sdk.Tool{Name: listAgents, Title: "List agents", Description: "Lists the agents that can be asked.",
		Annotations:  &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed},
		InputSchema:  json.RawMessage(`{"type":"object","properties":{}}`),
		OutputSchema: json.RawMessage(agentsSchema)}, h.list)
	add(&sdk.Tool{Name: askAgent, Title: "Ask an agent", Description: "Sends a message to an agent and returns its " +
		"answer. The answer may take long: progress notifications tell what happens. The agent may wait for a person. " +
		"With a session and no message, it returns the answer of the run that is under way, and has a person asked " +
		"what the run waits for.",
		Annotations:  &sdk.ToolAnnotations{OpenWorldHint: &open},
		InputSchema:  json.RawMessage(askSchema),
		OutputSchema: json.RawMessage(answerSchema)}, h.ask)
	add(&sdk.Tool{Name: getSession, Title: "Read a session", Description: "Returns the state of a session and what " +
		"was said in it.",
		Annotations:  &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed},
		InputSchema:  json.RawMessage(sessionSchema),
		OutputSchema: json.RawMessage(conversationSchema)}, h.session)
}

const (
	agentsSchema = `{"type":"object","properties":{"agents":{"type":"array","items":{"type":"object","properties":{` +
		`"name":{"type":"string"},"description":{"type":"string"}},"required":["name"]}}},"required":["agents"]}`
	askSchema = `{"type":"object","properties":{"agent":{"type":"string","description":"The name of the agent. ` +
		`Needed with a message."},"message":{"type":"string","description":"Absent: attends to the run that is under ` +
		`way in the session."},"session":{"type":"string","description":"The session to go on with: the id that ` +
		`an earlier answer names, or a name of your own. Absent: a new session."}}}`
	answerSchema = `{"type":"object","properties":{"session":{"type":"string"},"usage":{"type":"object","properties":{` +
		`"input":{"type":"integer"},"output":{"type":"integer"},"cached":{"type":"integer"},` +
		`"written":{"type":"integer"},"cost_micros":{"type":"integer"}}}},"required":["session","usage"]}`
	sessionSchema = `{"type":"object","properties":{"session":{"type":"string","description":"The id of the session, ` +
		`or your name for it."}},"required":["session"]}`
	conversationSchema = `{"type":"object","properties":{"session":{"type":"string"},"agent":{"type":"string"},` +
		`"title":{"type":"string"},"status":{"type":"string"},"messages":{"type":"array","items":{"type":"object",` +
		`"properties":{"role":{"type":"string"},"text":{"type":"string"}},"required":["role","text"]}},` +
		`"waiting":{"type":"array","items":{"type":"string"}},"earlier":{"type":"boolean"}},` +
		`"required":["session","status","messages","waiting"]}`
)

// agentInfo describes an agent to clients.
type agentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// list lists the agents of the principal's tenant.
func (h *Handler) list(_ context.Context, who port.Principal, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if err := decodeArguments(r.Params.Arguments, nil); err != nil {
		return nil, err
	}
	agents, lines := []agentInfo{}, []string{}
	for _, a := range h.Agents.List(who.Tenant) {
		agents = append(agents, agentInfo{a.Name, a.Description})
		lines = append(lines, strings.TrimSuffix(a.Name+": "+a.Description, ": "))
	}
	return result(strings.Join(lines, "\n"), map[string]any{"agents": agents}), nil
}

func result(text string, structured any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: structured}
}

// answered is the structured part of an answer.
type answered struct {
	Session string       `json:"session"`
	Usage   parley.Usage `json:"usage"`
}

// result returns the answer of a run. If it is not complete, it adds the reason.
func (e ending) result(session string) *sdk.CallToolResult {
	out := &sdk.CallToolResult{StructuredContent: answered{session, e.Usage}, IsError: e.Problem != ""}
	if e.Text != "" || !out.IsError {
		out.Content = append(out.Content, &sdk.TextContent{Text: e.Text})
	}
	if out.IsError {
		out.Content = append(out.Content, &sdk.TextContent{Text: e.Problem})
	}
	return out
}

// asking is a call of ask_agent. It returns the answer of one run. During the call, the client's user is asked about
// every open card of the session, whichever message led to the card.
type asking struct {
	h       *Handler
	who     port.Principal
	request *sdk.CallToolRequest
	view    View
	input   parley.InputID // input of the run
	own     bool           // the input is this call's own, so the call may cancel it
	told    int            // number of progress notifications
	wg      sync.WaitGroup
	open    []dialect.Card                // open cards, as far as the log was read
	forms   map[string]context.CancelFunc // elicitations in progress, by card
}

// ask sends a message to an agent, or finds the open run, and waits for the end of the run.
func (h *Handler) ask(ctx context.Context, who port.Principal, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	q, err := decodeAsk(r.Params.Arguments)
	if err != nil {
		return nil, err
	}
	cmd, err := q.input(who, parley.SessionID(uuid.NewString()))
	if err != nil {
		return nil, err
	}
	if q.agent != "" {
		if _, err := h.Agents.Agent(who.Tenant, q.agent); err != nil {
			return nil, err
		}
	}
	ctx, done, err := h.begin(ctx, r.Session.ID())
	if err != nil {
		return nil, err
	}
	defer done()
	a := &asking{h: h, who: who, request: r, forms: map[string]context.CancelFunc{}, own: q.message != "",
		view: View{Session: cmd.Session, Notices: dialect.Notices{Console: h.Console}}}
	// A client may cancel the call during these steps. They must complete, so that its run can be cancelled.
	sure := context.WithoutCancel(ctx)
	var first parley.Seq
	if a.own {
		first, err = a.submit(sure, cmd)
	} else {
		first, err = a.attend(sure, q)
	}
	if err != nil {
		return nil, err
	}
	end, err := a.wait(ctx, first)
	if err != nil {
		if context.Cause(ctx) == context.Canceled { // the client has cancelled the call
			err = a.cancel(sure)
		}
		return nil, err
	}
	return end.result(cmp.Or(q.session, string(cmd.Session))), nil
}

// submit submits the message. It returns the seq to follow from: that of the message, or of the run that it waits for.
func (a *asking) submit(ctx context.Context, cmd parley.Command) (first parley.Seq, err error) {
	receipt, err := a.h.Door.Submit(ctx, a.who, cmd)
	if err != nil {
		return 0, err
	}
	err = dialect.ReadLog(ctx, a.h.Door, a.who, cmd.Session, receipt.First, receipt.Last, func(e parley.Event) {
		if _, ok := e.Body.(parley.InputReceived); ok && a.input == 0 {
			a.input = parley.InputID(e.Seq)
		}
	})
	if err != nil {
		return 0, err
	}
	m, err := a.h.Door.Session(ctx, a.who, cmd.Session)
	if m.Run == 0 {
		return receipt.First, err
	}
	return min(receipt.First, parley.Seq(m.Run)), err
}

// attend finds the open run, and returns its start.
func (a *asking) attend(ctx context.Context, q question) (first parley.Seq, err error) {
	id := a.view.Session
	m, err := a.h.Door.Session(ctx, a.who, id)
	if err == nil { // a principal that may read the session and send messages may answer its cards
		err = a.h.Door.May(ctx, a.who, parley.ActMessage,
			port.Resource{Kind: port.OwnSessions, Tenant: a.who.Tenant, Session: id})
	}
	if err != nil {
		return 0, err
	}
	if m.Run == 0 {
		return 0, parley.Errorf(parley.CodeConflict, "No run is under way in the session %q. Send a message, or read "+
			"the session with %s.", q.session, getSession)
	}
	first = parley.Seq(m.Run)
	var agent string
	err = dialect.ReadLog(ctx, a.h.Door, a.who, id, first, first, func(e parley.Event) {
		if b, ok := e.Body.(parley.RunStarted); ok {
			a.input, agent = b.Input, b.Agent.Name
		}
	})
	if err == nil && q.agent != "" && q.agent != agent {
		err = parley.Errorf(parley.CodeConflict, "The run in the session %q is of the agent %q, not %q.", q.session,
			agent, q.agent)
	}
	return first, err
}

// cancel ends a call that the client has cancelled, and cancels the run if it answers the call's own message.
func (a *asking) cancel(ctx context.Context) error {
	if a.own {
		_, err := a.h.Door.Submit(ctx, a.who, parley.Command{Session: a.view.Session, Via: parley.ViaHTTP,
			Do: parley.CancelRun{Input: a.input}})
		if err != nil && parley.CodeOf(err) != parley.CodeNotFound {
			return err
		}
	}
	return parley.Errorf(parley.CodeClosed, "The call was cancelled.")
}

// wait follows the run to its end. Cards that were settled before the call are not elicited.
func (a *asking) wait(ctx context.Context, first parley.Seq) (end ending, err error) {
	f, err := a.h.Door.Follow(ctx, a.who, port.Scope{Session: a.view.Session, Below: true},
		port.Cursor{After: int64(first) - 1})
	if err != nil {
		return end, err
	}
	defer f.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer a.wg.Wait()
	defer cancel() // ends the elicitations
	over := false
	err = dialect.CatchUp(ctx, f, func(i *port.Item) bool {
		end, over = a.take(ctx, i.Event)
		return !over
	})
	for err == nil && !over {
		a.elicitOpen(ctx)
		var items []*port.Item
		items, err = f.Next(ctx)
		for n := 0; n < len(items) && !over; n++ {
			end, over = a.take(ctx, items[n].Event)
		}
	}
	if cause, ok := errors.AsType[*parley.Error](context.Cause(ctx)); ok && err != nil {
		err = cause
	}
	return end, err
}

// take sends an event to the client. over is true if the run has ended.
func (a *asking) take(ctx context.Context, e parley.Event) (end ending, over bool) {
	var shown []dialect.Frame
	a.view, shown = Project(a.view, e)
	for _, f := range shown {
		switch body := f.Body.(type) {
		case ending:
			if body.of == a.input {
				return body, true
			}
		case progress:
			switch {
			case body.asks != nil:
				a.open = append(a.open, *body.asks)
			case body.Card != "":
				a.open = slices.DeleteFunc(a.open, func(c dialect.Card) bool { return c.ID == body.Card })
			case body.of != a.input:
				continue // another run: only its cards concern this call
			}
			a.notify(ctx, body)
		}
	}
	return end, false
}

// notify sends a progress notification, if the client wants them.
func (a *asking) notify(ctx context.Context, p progress) {
	token := a.request.Params.GetProgressToken()
	if token == nil {
		return
	}
	a.told++
	meta := sdk.Meta{"parley/kind": p.Kind}
	if p.Card != "" {
		meta["parley/card"] = p.Card
	}
	// An error means that the client has gone. The call continues: the client may return for the result.
	_ = a.request.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{Meta: meta, ProgressToken: token,
		Progress: float64(a.told), Message: p.Message})
}

// elicitOpen starts an elicitation for every open card, and cancels the elicitations of settled cards.
func (a *asking) elicitOpen(ctx context.Context) {
	if !a.elicits() {
		return
	}
	waits := map[string]bool{}
	for _, c := range a.open {
		waits[c.ID] = true
		if a.forms[c.ID] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		a.forms[c.ID] = cancel
		a.wg.Go(func() {
			defer cancel()
			a.elicit(ctx, c)
		})
	}
	for id, cancel := range a.forms {
		if !waits[id] {
			cancel()
			delete(a.forms, id)
		}
	}
}

// elicits reports whether the client can ask its user.
func (a *asking) elicits() bool {
	p := a.request.Session.InitializeParams()
	return p != nil && p.Capabilities != nil && p.Capabilities.Elicitation != nil
}

// elicit asks the client's user about a card. If that fails, the card stays open for other clients.
func (a *asking) elicit(ctx context.Context, c dialect.Card) {
	message, schema := form(c)
	answer, err := a.request.Session.Elicit(ctx, &sdk.ElicitParams{Message: message, RequestedSchema: schema})
	if err != nil {
		a.h.Log.Debug("elicitation failed", "error", err)
		return
	}
	cmd, ok := reply(c, answer.Action, answer.Content)
	if !ok {
		return
	}
	if _, err := a.h.Door.Submit(context.WithoutCancel(ctx), a.who, cmd); err != nil {
		a.h.Log.Debug("the answer to an elicitation was refused", "error", err)
	}
}
