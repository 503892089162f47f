package openai

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
)

// respond serves POST /v1/responses.
func (h *Handler) respond(w http.ResponseWriter, r *http.Request) {
	x, ctx, a, leave, err := h.begin(w, r, Responses, decodeResponse)
	if err != nil {
		h.fail(w, err)
		return
	}
	defer leave()
	w.Header().Set(sessionHeader, string(x.view.Session))
	switch {
	case a.stream:
		x.stream(ctx, w, r, 0)
	case a.background:
		answer, err := x.look(ctx)
		if err != nil {
			x.lost(ctx, w, err)
			return
		}
		dialect.WriteJSON(w, http.StatusOK, answer)
	default:
		var answer response
		err := x.follow(ctx, func(body any) bool {
			if l, ok := body.(lifecycle); ok {
				answer = l.Response
			}
			return x.isLast(body)
		})
		if err != nil {
			x.lost(ctx, w, err)
		} else {
			dialect.WriteJSON(w, http.StatusOK, answer)
		}
	}
	if a.unstored && x.own {
		h.Conns.Go(x.forget)
	}
}

// forget deletes the session of a response with store: false, once its run has ended.
func (x *exchange) forget(ctx context.Context) {
	m, err := x.h.Door.Session(ctx, x.who, x.view.Session)
	if err != nil || !m.Transient {
		return
	}
	view := View{Shape: Responses, Session: x.view.Session}
	f, err := x.open(ctx)
	if err != nil {
		return
	}
	defer f.Close()
	for ended := false; !ended; {
		items, err := f.Next(ctx)
		if err != nil {
			return // the server stops; retention will delete the session later
		}
		for _, i := range items {
			view, _ = Project(view, i.Event)
			if view.paused() && view.run.part > x.view.Only.part {
				return // the run waits for an answer of the client
			}
			if i.Session != x.view.Session {
				continue
			}
			switch b := i.Body.(type) {
			case parley.RunFinished:
				ended = true
			case parley.InputWithdrawn:
				ended = ended || b.Input == x.view.Only.input
			}
		}
	}
	if err := x.submit(ctx, parley.DeleteSession{}); err != nil && parley.CodeOf(err) != parley.CodeNotFound {
		x.h.Log.Warn("a response that was not to be stored cannot be deleted", "session", x.view.Session, "error", err)
	}
}

// change admits a request that changes a response.
func (h *Handler) change(r *http.Request) (x *exchange, answer response, err error) {
	q, err := h.enter(r)
	if err == nil {
		err = h.mayMessage(r.Context(), q.who)
	}
	if err != nil {
		return nil, answer, err
	}
	return h.find(q)
}

func (h *Handler) mayMessage(ctx context.Context, who port.Principal) error {
	return h.Door.May(ctx, who, parley.ActMessage, port.Resource{Kind: port.OwnSessions, Tenant: who.Tenant})
}

// find returns the response that the address names.
func (h *Handler) find(q request) (*exchange, response, error) {
	id, ok := parseResponseID(q.PathValue("id"))
	if !ok {
		return nil, response{}, noResponse("", q.PathValue("id"))
	}
	x := &exchange{h: h, who: q.who, view: View{Notices: h.notices(), Shape: Responses, Session: id.session, Only: id}}
	r, err := x.look(q.Context())
	if parley.CodeOf(err) == parley.CodeNotFound && err != nil {
		err = noResponse("", q.PathValue("id"))
	}
	return x, r, err
}

// getResponse serves GET /v1/responses/{id}, also as a stream from the beginning or after an event.
func (h *Handler) getResponse(w http.ResponseWriter, r *http.Request) {
	q, err := h.enter(r)
	if err != nil {
		h.fail(w, err)
		return
	}
	x, answer, err := h.find(q)
	if err != nil {
		h.fail(w, err)
		return
	}
	if r.URL.Query().Get("stream") != "true" {
		dialect.WriteJSON(w, http.StatusOK, answer)
		return
	}
	after := int64(0)
	if given := r.URL.Query().Get("starting_after"); given != "" {
		after, err = strconv.ParseInt(given, 10, 64)
		if err != nil || after < 0 || after > x.last {
			h.fail(w, invalid("starting_after", "starting_after is not the number of an event that this response "+
				"has had"))
			return
		}
		after++
	}
	visit, err := q.stay()
	if err != nil {
		h.fail(w, err)
		return
	}
	ctx, leave := dialect.Attend(r.Context(), visit)
	defer leave()
	x.again().stream(ctx, w, r, after)
}

// cancelResponse serves POST /v1/responses/{id}/cancel.
func (h *Handler) cancelResponse(w http.ResponseWriter, r *http.Request) {
	x, answer, err := h.change(r)
	if err == nil && answer.Status != "cancelled" {
		err = x.submit(r.Context(), parley.CancelRun{Input: x.view.Only.input})
		switch {
		case err == nil:
			answer, err = x.again().look(r.Context())
		case parley.CodeOf(err) == parley.CodeNotFound && answer.Usage != nil:
			err = invalid("", "This response is %s, and cannot be cancelled", answer.Status)
		}
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	dialect.WriteJSON(w, http.StatusOK, answer)
}

func (x *exchange) submit(ctx context.Context, do parley.CommandBody) error {
	_, err := x.h.Door.Submit(ctx, x.who, parley.Command{Session: x.view.Session, Via: parley.ViaHTTP, Do: do})
	return err
}

// again returns a copy of the exchange that has not seen any event.
func (x *exchange) again() *exchange {
	v := x.view
	return &exchange{h: x.h, who: x.who, own: x.own, view: View{Notices: v.Notices, Shape: v.Shape, Session: v.Session,
		Only: v.Only, Usage: v.Usage, Given: v.Given}}
}

// deleteResponse serves DELETE /v1/responses/{id}. It deletes the session, unless that has a name.
func (h *Handler) deleteResponse(w http.ResponseWriter, r *http.Request) {
	x, _, err := h.change(r)
	var m port.Summary
	if err == nil {
		m, err = h.Door.Session(r.Context(), x.who, x.view.Session)
	}
	if err == nil && !m.Transient {
		err = parley.Errorf(parley.CodeConflict, "This response is part of the session %s, which has a name. "+
			"Delete the "+
			"session instead: DELETE /api/v1/sessions/%s", m.ID, m.ID)
	}
	if err == nil {
		err = x.submit(r.Context(), parley.DeleteSession{})
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	dialect.WriteJSON(w, http.StatusOK, deleted{r.PathValue("id"), "response", true})
}

// The items in the input of a response.
type (
	inputMessage struct {
		ID      string      `json:"id"`
		Type    string      `json:"type"` // message
		Status  string      `json:"status"`
		Role    string      `json:"role"`
		Content []inputText `json:"content"`
	}
	inputText struct {
		Type string `json:"type"` // input_text, or output_text for an assistant
		Text string `json:"text"`
	}
	functionOutput struct {
		ID     string `json:"id"`
		Type   string `json:"type"` // function_call_output
		CallID string `json:"call_id"`
		Output string `json:"output"`
		Status string `json:"status"`
	}
	approvalResponse struct {
		ID      string `json:"id"`
		Type    string `json:"type"` // mcp_approval_response
		Request string `json:"approval_request_id"`
		Approve bool   `json:"approve"`
		Reason  string `json:"reason,omitempty"`
	}
)

func (i inputMessage) itemID() string     { return i.ID }
func (i functionOutput) itemID() string   { return i.ID }
func (i approvalResponse) itemID() string { return i.ID }

// listInput serves GET /v1/responses/{id}/input_items.
func (h *Handler) listInput(w http.ResponseWriter, r *http.Request) {
	q, err := h.enter(r)
	var x *exchange
	if err == nil {
		x, _, err = h.find(q)
	}
	var items []item
	if err == nil {
		items, err = x.input(r.Context())
	}
	if err == nil {
		var page list[item]
		if page, err = pageOf(items, r.URL.Query().Get); err == nil {
			dialect.WriteJSON(w, http.StatusOK, page)
			return
		}
	}
	h.fail(w, err)
}

// pageOf returns the requested page of a list.
func pageOf(items []item, query func(string) string) (page list[item], err error) {
	limit := 20
	if given := query("limit"); given != "" {
		if limit, err = strconv.Atoi(given); err != nil || limit < 1 || limit > 100 {
			return page, invalid("limit", "limit must be a number from 1 to 100")
		}
	}
	switch query("order") {
	case "asc":
	case "", "desc":
		slices.Reverse(items)
	default:
		return page, invalid("order", "order must be asc or desc")
	}
	if after := query("after"); after != "" {
		i := slices.IndexFunc(items, func(i item) bool { return i.itemID() == after })
		if i < 0 {
			return page, invalid("after", "after is no item of this list")
		}
		items = items[i+1:]
	}
	more := len(items) > limit
	items = items[:min(limit, len(items))]
	page = list[item]{Object: "list", Data: append([]item{}, items...), HasMore: &more}
	if len(items) > 0 {
		page.FirstID, page.LastID = new(items[0].itemID()), new(items[len(items)-1].itemID())
	}
	return page, nil
}

// input returns the input of the response: the message, or the answers that the run was waiting for.
func (x *exchange) input(ctx context.Context) (items []item, err error) {
	id := x.view.Only
	v, begun := View{Shape: Responses, Session: id.session}, false
	err = x.h.read(ctx, x.who, id.session, parley.Seq(id.input)-1, func(e parley.Event) (enough bool) {
		if b, ok := e.Body.(parley.InputReceived); ok && e.Seq == parley.Seq(id.input) && id.part == 0 {
			items = inputOf(id, b)
			return true
		}
		calls := v.run.calls
		v, _ = Project(v, e)
		mine := v.run.input == id.input
		if mine && v.run.part == id.part {
			items = append(items, settled(e, calls)...)
		}
		begun = begun || mine
		return begun && !mine || v.run.part > id.part
	})
	return items, err
}

// inputOf returns a message with its earlier messages.
func inputOf(id responseID, b parley.InputReceived) (items []item) {
	for n, m := range b.Earlier {
		name := idOf("msg", id.session, parley.Seq(id.input)) + "_" + strconv.Itoa(n)
		if m.Role == parley.EarlierTool {
			items = append(items, functionOutput{name, "function_call_output", m.Call, m.Text, "completed"})
			continue
		}
		kind := "input_text"
		if m.Role == parley.EarlierAssistant {
			kind = "output_text"
		}
		if m.Text != "" {
			items = append(items, inputMessage{name, "message", "completed", string(m.Role),
				[]inputText{{kind, m.Text}}})
		}
		for _, c := range m.Calls {
			items = append(items, functionCall{name + "_" + c.ID, "function_call", "completed", c.ID, c.Name,
				c.Arguments})
		}
	}
	return append(items, inputMessage{idOf("msg", id.session, parley.Seq(id.input)), "message", "completed", "user",
		[]inputText{{"input_text", b.Content}}})
}

// settled returns the answer in an event, if the previous response waited for it.
func settled(e parley.Event, calls []call) (items []item) {
	switch b := e.Body.(type) {
	case parley.ToolCallFinished:
		for _, c := range calls {
			if c.id == b.Call && c.asked.Client {
				items = append(items, functionOutput{idOf("fco", e.Session, e.Seq), "function_call_output",
					idOf("call", e.Session, parley.Seq(c.id)), b.Result, "completed"})
			}
		}
	case parley.ApprovalDecided:
		switch b.Decision {
		case parley.AllowOnce, parley.AllowAlways, parley.Deny, parley.DenyAndStop:
			yes := b.Decision == parley.AllowOnce || b.Decision == parley.AllowAlways
			items = append(items, approvalResponse{idOf("mcpa", e.Session, e.Seq), "mcp_approval_response",
				idOf("mcpr", e.Session, parley.Seq(b.Card)), yes, b.Note})
		}
	case parley.QuestionAnswered:
		if b.Ending == "answered" {
			for n, chosen := range b.Answers {
				items = append(items, inputMessage{idOf("msg", e.Session, e.Seq) + "_" + strconv.Itoa(n), "message",
					"completed", "user", []inputText{{"input_text", strings.Join(chosen, ", ")}}})
			}
		}
	}
	return items
}
