package e2e

import (
	"fmt"
	"strings"
)

// openAI is npm openai with Responses. A response ends when a person must answer. A request without a message reads the
// rest after the answer, from whichever client it came.
func (g *gathering) openAI(p *party) {
	p.deaf, p.shows = true, []string{"thinking", "calls", "results", "text"}
	digits := func() string { return strings.ReplaceAll(g.session, "-", "") }
	create := func(body object) *openAICall {
		return g.n.openAI(g.s, g.session, "responses.create", merged(body, object{"stream": true}))
	}
	var c *openAICall
	p.say = func(text string) { c = create(asking(text)) }
	p.decide = func(card, decision string) {
		create(asking("", object{"input": []object{{"type": "mcp_approval_response", "approve": decision == allow,
			"approval_request_id": "mcpr_" + digits() + strings.Replace(card, g.session+".", "_", 1)}}}))
	}
	p.choose = func(_, label string) { create(asking(label)) }
	p.cancel = func(*party) { // the id of a response is derived from the input that it answers
		received := of("InputReceived", g.s.events(g.session))
		id := fmt.Sprintf("resp_%s_%d", digits(), received[len(received)-1].Seq)
		g.n.openAI(g.s, "", "responses.cancel", id).answer()
	}
	response, waits, notice := "", false, ""
	p.hear = func(r *told) moment {
		e, h := c.event()
		if e == nil {
			if h.Event != "answer" || !waits {
				p.t.Fatalf("%s: %s %s", p.dialect, h.Event, h.Data)
			}
			c = create(asking("", object{"input": []object{}, "previous_response_id": response}))
			return moment{}
		}
		switch {
		case e.Type == "response.created":
			response = e.Response.ID
			if waits {
				waits = false
				return moment{what: cleared}
			}
			return moment{what: started}
		case e.Type == "response.reasoning_summary_text.delta":
			r.thinking += e.Delta
		case e.Type == "response.output_text.delta" && e.ItemID != notice:
			return r.speak(e.ItemID, e.Delta)
		case e.Type == "response.output_item.added" && e.Item.Card != "":
			waits, notice = true, e.Item.ID
			return moment{card, e.Item.Card}
		case e.Type == "response.output_item.done" && e.Item.Type == "mcp_approval_request":
			waits = true
			return moment{card, g.session + strings.Replace(e.Item.ID, "mcpr_"+digits()+"_", ".", 1)}
		case e.Type == "response.output_item.done" && e.Item.Type == "mcp_call":
			r.calls = append(r.calls, e.Item.Name+" "+e.Item.Arguments)
			r.results = append(r.results, fmt.Sprint(e.Item.Name, " ", e.Item.Status == "completed"))
		case e.Type == "response.completed" && !waits,
			e.Type == "response.failed", e.Type == "response.incomplete":
			return r.end(e.Response.Status)
		}
		return moment{}
	}
}
