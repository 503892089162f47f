package e2e

import "fmt"

// editor is a client of the Agent Client Protocol, which connects through `parley acp`.
func (g *gathering) editor(p *party) {
	e := startEditor(g.t, nil, "--server", "http://"+g.s.address)
	e.initialize()
	if g.opener == p.dialect {
		g.session = e.newSession(g.s.o.workspace)
	} else {
		var loaded struct{}
		e.must("session/load", map[string]any{"sessionId": g.session, "cwd": g.s.o.workspace, "mcpServers": []any{}},
			&loaded)
	}
	session, shown, answered := g.session, acpEvent{}, false
	p.shows = []string{"thinking", "calls", "results", "text"}
	p.say = func(text string) { e.begin("session/prompt", prompting(session, text)) }
	p.cancel = func(*party) {
		e.send(map[string]any{"notify": "session/cancel", "params": map[string]any{"sessionId": session}})
	}
	answer := func(option string) {
		answered = true // the protocol does not report it
		e.send(map[string]any{"choose": option, "of": shown.Of})
	}
	p.decide = func(_, decision string) { answer(decision) }
	p.choose = func(_, label string) {
		for _, o := range shown.Permission.Options {
			if o.Name == label {
				answer(o.ID)
			}
		}
	}
	p.hear = func(r *told) moment {
		e.t = p.t
		if answered {
			answered = false
			return moment{what: cleared}
		}
		event := e.next()
		u := event.Update
		switch {
		case event.Permission != nil:
			shown = event
			return moment{what: card}
		case event.Withdrawn != "":
			return moment{what: cleared}
		case u.Kind == "agent_message_chunk":
			return r.speak(u.Message, event.text())
		case u.Kind == "agent_thought_chunk" && u.Message != "": // without a message id it is a notice of the server
			r.thinking += event.text()
		case u.Kind == "tool_call":
			r.calls = append(r.calls, u.Name+" "+string(u.Input))
			r.call(u.ID, u.Name)
		case u.Kind == "tool_call_update" && u.Status != "in_progress":
			r.results = append(r.results, fmt.Sprint(r.names[u.ID], " ", u.Status == "completed"))
		case u.Kind == "session_info_update" && u.Meta.Parley.Outcome != "":
			return r.end(u.Meta.Parley.Outcome)
		}
		return moment{}
	}
}
