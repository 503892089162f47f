package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// agui uses HttpAgents to send messages and answers, and an EventSource to
// follow the thread. If it opens the session, it reads the first run from its
// own stream: the thread does not exist before.
func (g *gathering) agui(p *party) {
	p.shows = []string{"thinking", "calls", "results", "text"}
	var first *aguiAgent
	var thread *socket
	follow := func() {
		thread = g.n.threadStream(g.s, g.session, map[string]any{"query": ""})
		thread.opened()
	}
	if g.opener != p.dialect {
		follow()
	}
	p.say = func(text string) {
		a := g.n.agui(g.s, g.session)
		if a.start(says1(text)); thread == nil {
			first = a
		}
	}
	answers := func(card string, payload any) { g.n.agui(g.s, g.session).start(resolves(card, payload)) }
	p.decide = func(card, decision string) { answers(card, map[string]any{"approved": decision == allow}) }
	p.choose = func(card, label string) { answers(card, map[string]any{"answers": [][]string{{label}}}) }
	p.cancel = func(*party) { g.stops(p, "/api/agui/threads/") }
	waits := ""
	p.hear = func(r *told) moment {
		p.t.Helper()
		if thread != nil {
			return hearsAGUI(p, r, thread.next().Data, &waits)
		}
		m := hearsAGUI(p, r, first.next().Data, &waits)
		if m.what == ended {
			first.ready()
			follow()
		}
		return m
	}
}

// hearsAGUI adds an event of AG-UI to the record. waits is the open card.
func hearsAGUI(p *party, r *told, raw string, waits *string) moment {
	p.t.Helper()
	var e struct {
		Type, ParentRunID, MessageID, Role, Delta, ToolCallID, ToolCallName string
		Metadata                                                            struct{ Outcome string }
		Outcome                                                             struct {
			Type       string
			Interrupts []struct{ ID string }
		}
	}
	p.parse(raw, &e)
	switch e.Type {
	case "RUN_STARTED":
		if e.ParentRunID != "" {
			return moment{cleared, *waits}
		}
		return moment{what: started}
	case "TEXT_MESSAGE_START":
		r.call(e.MessageID, e.Role)
	case "TEXT_MESSAGE_CONTENT":
		if r.names[e.MessageID] == "assistant" {
			return r.speak(e.MessageID, e.Delta)
		}
	case "REASONING_MESSAGE_CONTENT":
		r.thinking += e.Delta
	case "TOOL_CALL_START":
		r.call(e.ToolCallID, e.ToolCallName)
	case "TOOL_CALL_ARGS":
		r.calls = append(r.calls, r.names[e.ToolCallID]+" "+e.Delta)
	case "TOOL_CALL_RESULT":
		r.results = append(r.results, fmt.Sprint(r.names[e.ToolCallID], " ", e.Metadata.Outcome == ""))
	case "RUN_ERROR":
		return r.end("failed")
	case "RUN_FINISHED":
		switch e.Outcome.Type {
		case "interrupt":
			*waits = e.Outcome.Interrupts[0].ID
			return moment{card, *waits}
		case "cancelled":
			return r.end("cancelled")
		}
		return r.end("completed")
	}
	return moment{}
}

// stops cancels the active run of the session.
func (g *gathering) stops(p *party, path string) {
	p.t.Helper()
	status, body := g.n.fetch(g.s, "POST", path+g.session+"/stop", "")
	if status != http.StatusOK || strings.TrimSpace(body) != `{"stopped":true}` {
		p.t.Errorf("%s: %d %s", p.dialect, status, body)
	}
}

// aisdk is npm ai, which gets the answers to its own messages. If its stream
// ended at a card, it sends the message again, and gets the same chunks and the
// following ones.
func (g *gathering) aisdk(p *party) {
	p.deaf, p.shows = true, []string{"thinking", "calls", "results", "text"}
	var stream *socket
	var ask map[string]any
	var heard []string // the chunks
	again, said := 0, 0
	send := func(messages map[string]any) *socket {
		return g.n.begin(map[string]any{"do": "use", "module": "aisdk", "act": "send", "api": g.s.aisdk(),
			"chat": g.session, "messages": messages["messages"]})
	}
	p.say = func(text string) {
		said++
		ask, heard, again = userSays(fmt.Sprintf("%s-%d", g.session, said), text), nil, 0
		stream = send(ask)
	}
	answers := func(part map[string]any) {
		part["type"], part["toolName"] = "dynamic-tool", "any"
		send(map[string]any{"messages": []any{map[string]any{"id": "a", "role": "assistant", "parts": []any{part}}}})
	}
	p.decide = func(card, decision string) {
		answers(map[string]any{"toolCallId": card, "state": "approval-responded",
			"approval": map[string]any{"id": card, "approved": decision == allow}})
	}
	p.choose = func(card, label string) {
		answers(map[string]any{"toolCallId": card, "state": "output-available",
			"output": map[string]any{"answers": [][]string{{label}}}})
	}
	p.cancel = func(*party) { g.stops(p, "/api/aisdk/chats/") }
	p.hear = func(r *told) moment {
		p.t.Helper()
		for {
			h := stream.next()
			switch {
			case h.Event == "close":
				stream, again = send(ask), 0
			case h.Event == "message":
			case h.Event != "chunk":
				p.t.Fatalf("%s: %+v", p.dialect, h)
			case again < len(heard):
				if h.Data != heard[again] {
					p.t.Errorf("%s was shown %s and then %s", p.dialect, heard[again], h.Data)
				}
				again++
			default:
				heard, again = append(heard, h.Data), again+1
				return hearsAISDK(p, r, h.Data)
			}
		}
	}
}

// hearsAISDK adds a chunk of the AI SDK to the record.
func hearsAISDK(p *party, r *told, raw string) moment {
	p.t.Helper()
	var c struct {
		Type, ID, Delta, ToolCallID, ToolName, ApprovalID, FinishReason string
		Input                                                           json.RawMessage
		ProviderExecuted                                                bool
	}
	p.parse(raw, &c)
	switch c.Type {
	case "start":
		return moment{what: started}
	case "text-delta":
		return r.speak(c.ID, c.Delta)
	case "reasoning-delta":
		r.thinking += c.Delta
	case "tool-input-available":
		if r.names[c.ToolCallID] == "" {
			r.calls = append(r.calls, c.ToolName+" "+string(c.Input))
			r.call(c.ToolCallID, c.ToolName)
		}
		if !c.ProviderExecuted {
			return moment{what: card}
		}
	case "tool-approval-request":
		return moment{card, c.ApprovalID}
	case "tool-approval-response":
		return moment{cleared, c.ApprovalID}
	case "tool-output-available", "tool-output-error", "tool-output-denied":
		r.results = append(r.results, fmt.Sprint(r.names[c.ToolCallID], " ", c.Type == "tool-output-available"))
		if r.names[c.ToolCallID] == "ask_user" {
			return moment{what: cleared}
		}
	case "abort":
		return r.end("cancelled")
	case "error":
		return r.end("failed")
	case "finish":
		if c.FinishReason == "stop" {
			return r.end("completed")
		}
	}
	return moment{}
}
