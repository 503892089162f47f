package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/dialect"
)

const (
	listAgents = "list_agents"
	askAgent   = "ask_agent"
	getSession = "get_session"
)

// A tool of the server acts for a principal.
type tool func(context.Context, parley.Principal, *sdk.CallToolRequest) (*sdk.CallToolResult, error)

func (h *Handler) addTools(s *sdk.Server, who parley.Principal) {
	add := func(t *sdk.Tool, do tool) {
		s.AddTool(t, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			result, err := do(ctx, who, r)
			if err != nil {
				dialect.LogFailure(h.Log, err)
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
		"answer. The answer may take long: progress notifications tell what happens. The agent may wait for a person.",
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
	askSchema = `{"type":"object","properties":{"agent":{"type":"string","description":"The name of the agent."},` +
		`"message":{"type":"string"},"session":{"type":"string","description":"The session to go on with: the id that ` +
		`an earlier answer names, or a name of your own. Absent: a new session."}},"required":["agent","message"]}`
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

// An agentInfo is what a client is told of an agent.
type agentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// list lists the agents of the principal's tenant.
func (h *Handler) list(_ context.Context, who parley.Principal, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
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

// An answered is the structured part of an answer.
type answered struct {
	Session string       `json:"session"`
	Usage   parley.Usage `json:"usage"`
}

// result is the answer of a run, or as much of it as there is and why there is no more.
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

// An asking is a call of ask_agent.
type asking struct {
	h       *Handler
	who     parley.Principal
	request *sdk.CallToolRequest
	view    View
	input   parley.InputID
	told    int // progress notifications
	wg      sync.WaitGroup
	forms   map[string]context.CancelFunc // of open elicitations, by card
}

// ask asks an agent, and waits for the end of the run.
func (h *Handler) ask(ctx context.Context, who parley.Principal, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	q, err := decodeAsk(r.Params.Arguments)
	if err != nil {
		return nil, err
	}
	cmd, err := q.input(who, parley.SessionID(uuid.NewString()))
	if err != nil {
		return nil, err
	}
	if _, err := h.Agents.Agent(who.Tenant, q.agent); err != nil {
		return nil, err
	}
	ctx, done, err := h.begin(ctx, r.Session.ID())
	if err != nil {
		return nil, err
	}
	defer done()
	// A client that cancels now still cancels the run: what the log says of it is known.
	sure := context.WithoutCancel(ctx)
	receipt, err := h.Door.Submit(sure, who, cmd)
	if err != nil {
		return nil, err
	}
	a := &asking{h: h, who: who, request: r, forms: map[string]context.CancelFunc{},
		view: View{Session: cmd.Session, Notices: dialect.Notices{Console: h.Console}}}
	if err := dialect.ReadLog(sure, h.Door, who, cmd.Session, receipt.First, receipt.Last, func(e parley.Event) {
		if _, ok := e.Body.(parley.InputReceived); ok && a.input == 0 {
			a.input = parley.InputID(e.Seq)
		}
	}); err != nil {
		return nil, err
	}
	end, err := a.wait(ctx, receipt.First)
	if err != nil {
		if context.Cause(ctx) == context.Canceled { // the client has cancelled the call
			if _, err := h.Door.Submit(sure, who, parley.Command{Session: cmd.Session, Via: parley.ViaHTTP,
				Do: parley.CancelRun{Input: a.input}}); err != nil && parley.CodeOf(err) != parley.CodeNotFound {
				return nil, err
			}
			err = parley.Errorf(parley.CodeClosed, "The call was cancelled.")
		}
		return nil, err
	}
	return end.result(cmp.Or(q.session, string(cmd.Session))), nil
}

// wait follows the run to its end.
func (a *asking) wait(ctx context.Context, first parley.Seq) (end ending, err error) {
	f, err := a.h.Door.Follow(ctx, a.who, parley.Scope{Session: a.view.Session, Below: true},
		parley.Cursor{After: int64(first) - 1})
	if err != nil {
		return end, err
	}
	defer f.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer a.wg.Wait()
	defer cancel() // elicitations
	for {
		items, err := f.Next(ctx)
		if err != nil {
			if cause, ok := errors.AsType[*parley.Error](context.Cause(ctx)); ok {
				err = cause
			}
			return end, err
		}
		for _, i := range items {
			var shown []dialect.Frame
			a.view, shown = Project(a.view, i.Event)
			for _, f := range shown {
				switch body := f.Body.(type) {
				case ending:
					if body.of == a.input {
						return body, nil
					}
				case progress:
					if body.of == a.input {
						a.tell(ctx, body)
					}
				}
			}
		}
	}
}

// tell notifies the client of progress, if it wants to know, and has a person asked.
func (a *asking) tell(ctx context.Context, p progress) {
	if token := a.request.Params.GetProgressToken(); token != nil {
		a.told++
		meta := sdk.Meta{"parley/kind": p.Kind}
		if p.Card != "" {
			meta["parley/card"] = p.Card
		}
		// It fails if the client has gone. The call goes on: the client may come back for its end.
		_ = a.request.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{Meta: meta, ProgressToken: token,
			Progress: float64(a.told), Message: p.Message})
	}
	if cancel := a.forms[p.Card]; cancel != nil && p.asks == nil {
		cancel() // the card was settled
		delete(a.forms, p.Card)
	}
	if p.asks != nil && a.elicits() {
		ctx, cancel := context.WithCancel(ctx)
		a.forms[p.Card] = cancel
		a.wg.Go(func() {
			defer cancel()
			a.elicit(ctx, *p.asks)
		})
	}
}

// elicits reports whether the client can ask a person.
func (a *asking) elicits() bool {
	p := a.request.Session.InitializeParams()
	return p != nil && p.Capabilities != nil && p.Capabilities.Elicitation != nil
}

// elicit has the client ask a person about a card. If that fails, the card waits for an answer from elsewhere.
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
