package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const openAIModel = "helpful-assistant"

// An openAICall is a call of npm openai.
type openAICall struct {
	*socket
	events []openAIEvent // received so far
}

// An openAIEvent is an event of a stream of either API.
type openAIEvent struct {
	Type     string
	Number   int64 `json:"sequence_number"`
	Delta    string
	ItemID   string `json:"item_id"`
	Item     openAIItem
	Response openAIAnswer
	Choices  []struct {
		Delta struct {
			Content   string
			ToolCalls []openAITool `json:"tool_calls"`
		}
		Finish string `json:"finish_reason"`
	}
	raw string
}

type openAIItem struct {
	ID, Type, Status, Name, Arguments, Output, Error string

	CallID   string `json:"call_id"`
	Approves string `json:"approval_request_id"`
	Card     string // the card that the message is about
}

type openAITool struct {
	ID       string
	Function struct{ Name, Arguments string }
}

// An openAIAnswer is the result of a call.
type openAIAnswer struct {
	ID, Status, Object string
	Text               string `json:"output_text"`
	Output             []openAIItem
	Metadata           map[string]string
	Usage              struct {
		Input  int `json:"input_tokens"`
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
	Choices []struct {
		Message struct {
			Content   string
			ToolCalls []openAITool `json:"tool_calls"`
		}
		Finish string `json:"finish_reason"`
	}
	Data []openAIItem
	raw  string
}

func (a openAIAnswer) item(kind string) (i openAIItem) {
	for _, i = range a.Output {
		if i.Type == kind {
			return i
		}
	}
	return openAIItem{}
}

// said is the text of a completion.
func (a openAIAnswer) said() string {
	if len(a.Choices) == 0 {
		return a.Text
	}
	return a.Choices[0].Message.Content
}

// openAI begins a call in a session; empty: without one.
func (n *node) openAI(s *server, session, call string, args ...any) *openAICall {
	n.t.Helper()
	return n.openAILeaving(s, 0, session, call, args...)
}

// openAILeaving is openAI with a client that hangs up after so many events.
func (n *node) openAILeaving(s *server, leave int, session, call string, args ...any) *openAICall {
	n.t.Helper()
	command := openAICommand(s, call, args)
	if session != "" {
		command["headers"] = map[string]string{"X-Session-Id": session}
	}
	if leave > 0 {
		command["leave"] = leave
	}
	return &openAICall{socket: n.begin(command)}
}

func openAICommand(s *server, call string, args []any) map[string]any {
	return map[string]any{"do": "openai", "url": "http://" + s.address + "/v1", "call": call, "args": args}
}

// openAI is a call of a user with a token.
func (v *visitor) openAI(n *node, call string, args ...any) *openAICall {
	v.t.Helper()
	command := openAICommand(v.server, call, args)
	command["key"] = v.token
	return &openAICall{socket: n.begin(command)}
}

// event returns the next event. At the end of the call e is nil, and h is the end.
func (c *openAICall) event() (e *openAIEvent, h happened) {
	c.t.Helper()
	if h = c.next(); h.Event != "message" {
		return nil, h
	}
	e = &openAIEvent{raw: h.Data}
	if err := json.Unmarshal([]byte(h.Data), e); err != nil {
		c.t.Fatalf("%v in %s", err, h.Data)
	}
	c.events = append(c.events, *e)
	return e, h
}

// answer waits for the end of the call, which must succeed.
func (c *openAICall) answer() (a openAIAnswer) {
	c.t.Helper()
	for {
		e, h := c.event()
		if e != nil {
			continue
		}
		if h.Event != "answer" {
			c.t.Fatalf("npm openai: %s %d %s", h.Event, h.Code, h.Data)
		}
		a.raw = h.Data
		if err := json.Unmarshal([]byte(h.Data), &a); err != nil {
			c.t.Fatalf("%v in %s", err, h.Data)
		}
		return a
	}
}

// refused waits for the error that the call throws.
func (c *openAICall) refused() (class string, status int, about string) {
	c.t.Helper()
	for {
		e, h := c.event()
		if e != nil {
			continue
		}
		if h.Event != "error" {
			c.t.Fatalf("npm openai: want an error, got %s %s", h.Event, h.Data)
		}
		var thrown struct{ Class string }
		if err := json.Unmarshal([]byte(h.Data), &thrown); err != nil {
			c.t.Fatal(err)
		}
		return thrown.Class, h.Code, h.Data
	}
}

// text returns the text of the events so far.
func (c *openAICall) text() string {
	var b strings.Builder
	for _, e := range c.events {
		if e.Type == "response.output_text.delta" {
			b.WriteString(e.Delta)
		}
		for _, choice := range e.Choices {
			b.WriteString(choice.Delta.Content)
		}
	}
	return b.String()
}

type object = map[string]any

func asking(text string, more ...object) object {
	o := object{"model": openAIModel, "input": text}
	for _, m := range more {
		for key, value := range m {
			o[key] = value
		}
	}
	return o
}

func messages(list ...object) object { return object{"model": openAIModel, "messages": list} }

func by(role, text string) object { return object{"role": role, "content": text} }

// npm openai streams a turn through both APIs, goes on after a crash of the
// server, and reads its events again under the same numbers.
func TestOpenAI(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	if a := n.openAI(s, "", "models.list").answer(); len(a.Data) != 1 || a.Data[0].ID != openAIModel {
		t.Errorf("the models are %s", a.raw)
	}
	if a := n.openAI(s, "", "models.retrieve", openAIModel).answer(); a.ID != openAIModel || a.Object != "model" {
		t.Errorf("the model is %s", a.raw)
	}
	want := "I thought about tea, as far as a script can."
	streamed := n.openAI(s, "", "responses.stream", asking("think about tea"))
	a := streamed.answer()
	if a.Status != "completed" || a.Usage.Input == 0 || a.Text != streamed.text() || !strings.HasPrefix(a.Text, want) {
		t.Errorf("%q was streamed, and the response is %s", streamed.text(), a.raw)
	}
	completed := n.openAI(s, "tea", "chat.completions.stream",
		merged(messages(by("user", "think about tea")), object{"stream_options": object{"include_usage": true}}))
	if c := completed.answer(); c.said() != a.Text || completed.text() != a.Text || c.Usage.Prompt == 0 ||
		c.Choices[0].Finish != "stop" {
		t.Errorf("%q was streamed, and the completion is %s", completed.text(), c.raw)
	}

	s.kill()
	s = s.again()
	again := n.openAI(s, "", "responses.retrieve", a.ID, object{"stream": true})
	again.answer()
	if len(again.events) != len(streamed.events) {
		t.Fatalf("%d events were replayed of %d", len(again.events), len(streamed.events))
	}
	for i, e := range again.events {
		if e.Type != streamed.events[i].Type || e.Number != streamed.events[i].Number {
			t.Errorf("event %d is replayed as %s %d, and was %s %d", i, e.Type, e.Number, streamed.events[i].Type,
				streamed.events[i].Number)
		}
	}
	next := n.openAI(s, "", "responses.create", asking("what did I say", object{"previous_response_id": a.ID})).answer()
	if !strings.Contains(next.Text, "1. think about tea") {
		t.Errorf("after a crash: %q", next.Text)
	}
	// A client with a session sends the whole conversation, as a client without one does. The model gets it only once.
	c := n.openAI(s, "tea", "chat.completions.create", messages(by("user", "think about tea"), by("assistant", a.Text),
		by("user", "what did I say"))).answer()
	if c.said() != "In this session you said:\n\n1. think about tea" {
		t.Errorf("after a crash: %q", c.said())
	}
	// A client without a session has only the messages that it sends. Settings of the model are ignored here.
	c = n.openAI(s, "", "chat.completions.create", merged(messages(by("system", "Be brief."), by("user", "say tea"),
		by("assistant", "tea"), by("user", "what did I say")), object{"temperature": 0.2, "max_tokens": 1000,
		"user": "x"})).answer()
	if !strings.Contains(c.said(), ". say tea") {
		t.Errorf("without a session: %q", c.said())
	}
	if a := n.openAI(s, "", "responses.delete", a.ID).answer(); !strings.Contains(a.raw, `"deleted":true`) {
		t.Errorf("%s", a.raw)
	}
	if class, _, about := n.openAI(s, "", "responses.retrieve", a.ID).refused(); class != "NotFoundError" {
		t.Errorf("a deleted response: %s", about)
	}
}

func merged(list ...object) object {
	all := object{}
	for _, o := range list {
		for key, value := range o {
			all[key] = value
		}
	}
	return all
}

// A response is read from the middle, repeatedly, without a lost or repeated character, and cancelled.
func TestOpenAIResumes(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	a := n.openAI(s, "", "responses.create", asking("count slowly to 12", object{"background": true})).answer()
	text, after := "", int64(-1)
	for leave := 4; ; leave++ {
		query := object{"stream": true}
		if after >= 0 {
			query["starting_after"] = after
		}
		c := n.openAILeaving(s, leave, "", "responses.retrieve", a.ID, query)
		c.answer()
		text += c.text()
		for _, e := range c.events {
			if e.Number <= after {
				t.Fatalf("%s came after %d", e.raw, after)
			}
			after = e.Number
		}
		if last := c.events[len(c.events)-1]; last.Type == "response.completed" {
			break
		}
	}
	whole := n.openAI(s, "", "responses.retrieve", a.ID).answer()
	if text != "1 2 3 4 5 6 7 8 9 10 11 12" || whole.Text != text || whole.Status != "completed" {
		t.Errorf("%q was read, and the response is %s", text, whole.raw)
	}
	if _, status, about := n.openAI(s, "", "responses.retrieve", a.ID,
		object{"stream": true, "starting_after": after + 1}).refused(); status != http.StatusBadRequest {
		t.Errorf("from behind the end: %s", about)
	}

	a = n.openAI(s, "", "responses.create", asking("count slowly to 400", object{"background": true})).answer()
	if c := n.openAI(s, "", "responses.cancel", a.ID).answer(); c.Status != "cancelled" {
		t.Errorf("%s", c.raw)
	}
	if c := n.openAI(s, "", "responses.cancel", a.ID).answer(); c.Status != "cancelled" { // a second time
		t.Errorf("%s", c.raw)
	}
	if class, _, about := n.openAI(s, "", "responses.cancel", whole.ID).refused(); class != "BadRequestError" {
		t.Errorf("a complete response: %s", about)
	}

	// A crash in the middle: the text so far stays, and the rest follows.
	a = n.openAI(s, "", "responses.create", asking("count slowly to 15", object{"background": true})).answer()
	seen := n.openAILeaving(s, 8, "", "responses.retrieve", a.ID, object{"stream": true})
	seen.answer()
	s.kill()
	s = s.again()
	rest := n.openAI(s, "", "responses.retrieve", a.ID,
		object{"stream": true, "starting_after": seen.events[len(seen.events)-1].Number})
	rest.answer()
	whole = n.openAI(s, "", "responses.retrieve", a.ID).answer()
	if whole.Status != "completed" || seen.text()+rest.text() != whole.Text || whole.Text != counted(15) {
		t.Errorf("%q and %q were read, and the response is %s", seen.text(), rest.text(), whole.raw)
	}

	// A client that leaves a completion without a session cannot return to it.
	n.openAILeaving(s, 3, "", "chat.completions.create",
		merged(messages(by("user", "count slowly to 401")), object{"stream": true})).answer()
	n.heard(s, "count slowly to 401", `"RunFinished"`)
	// A client that leaves one with a session can.
	n.openAILeaving(s, 3, "left", "chat.completions.create",
		merged(messages(by("user", "count slowly to 3")), object{"stream": true})).answer()
	if c := n.openAI(s, "left", "chat.completions.create",
		messages(by("user", "count slowly to 3"), by("assistant", "1"),
			by("user", "what did I say"))).answer(); !strings.Contains(
		c.said(), "1. count slowly to 3") {
		t.Errorf("%s", c.raw)
	}
	if _, runs := n.fetch(s, "GET", "/api/v1/runs", ""); strings.Count(runs, `"outcome":"cancelled"`) != 2 {
		t.Errorf("the runs are %s", runs)
	}
}

// An approval leads to its effect; a denial has none.
func TestOpenAIApprovals(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	for name, yes := range map[string]bool{"yes.txt": true, "no.txt": false} {
		asked := n.openAI(s, "", "responses.create", asking("write it to "+name)).answer()
		request := asked.item("mcp_approval_request")
		if asked.Status != "completed" || !strings.Contains(request.Arguments, name) {
			t.Fatalf("%s", asked.raw)
		}
		if _, err := os.Stat(filepath.Join(s.o.workspace, name)); err == nil {
			t.Errorf("%s is written before anybody was asked", name)
		}
		decide := asking("",
			object{"previous_response_id": asked.ID, "input": []object{{"type": "mcp_approval_response",
				"approval_request_id": request.ID, "approve": yes}}})
		// A message that is not an answer is refused, and nothing is appended.
		if class, _, about := n.openAI(s, "", "responses.create",
			asking("say it", object{"previous_response_id": asked.ID})).refused(); class != "ConflictError" {
			t.Errorf("a message meanwhile: %s", about)
		}
		answered := n.openAI(s, "", "responses.stream", decide)
		a := answered.answer()
		done := a.item("mcp_call")
		if a.Status != "completed" || done.Approves != request.ID || (done.Status == "completed") != yes {
			t.Errorf("%s", a.raw)
		}
		if yes {
			wantFile(t, s, name, "it")
		} else if _, err := os.Stat(filepath.Join(s.o.workspace, name)); err == nil {
			t.Errorf("%s was not allowed, and is there", name)
		}
		if class, _, about := n.openAI(s, "", "responses.create", decide).refused(); class != "ConflictError" {
			t.Errorf("a second answer: %s", about)
		}
		if items := n.openAI(s, "", "responses.inputItems.list", a.ID).answer(); len(items.Data) != 1 ||
			items.Data[0].Approves != request.ID {
			t.Errorf("the input was %s", items.raw)
		}
	}
	// A completion shows the open card. After the answer, the run goes on.
	c := n.openAI(s, "chat", "chat.completions.create", messages(by("user", "write it to chat.txt"))).answer()
	if !strings.Contains(c.said(), "Waiting for approval of write_file") || c.Choices[0].Finish != "stop" {
		t.Errorf("%s", c.raw)
	}
	var list struct{ Approvals []struct{ ID string } }
	_, body := n.fetch(s, "GET", "/api/v1/approvals", "")
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Approvals) != 1 {
		t.Fatalf("%s", body)
	}
	n.fetch(s, "POST", "/api/v1/approvals/"+list.Approvals[0].ID, `{"decision":"allow"}`)
	n.heard(s, "chat.txt", `"RunFinished"`)
	wantFile(t, s, "chat.txt", "it")
	n.openAI(s, "chat", "chat.completions.create", messages(by("user", "write it to not.txt"))).answer()
	_, body = n.fetch(s, "GET", "/api/v1/approvals", "")
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Approvals) != 1 {
		t.Fatalf("%s", body)
	}
	n.fetch(s, "POST", "/api/v1/approvals/"+list.Approvals[0].ID, `{"decision":"deny"}`)
	n.heard(s, "not.txt", `"RunFinished"`)
	wantNoFile(t, s, "not.txt")
	// A message answers a question.
	q := n.openAI(s, "", "responses.create", asking("ask me")).answer()
	if a := n.openAI(s, "", "responses.create",
		asking("Coffee", object{"previous_response_id": q.ID})).answer(); !strings.Contains(
		a.Text, "Your answer: Coffee.") {
		t.Errorf("%s", a.raw)
	}
}

// heard waits for events of the whole server that contain these words, in this order.
func (n *node) heard(s *server, words ...string) {
	n.t.Helper()
	c := n.begin(map[string]any{"do": "listen", "url": "http://" + s.address + "/api/v1/log?after=0"})
	for len(words) > 0 {
		if h := c.next(); h.Event == "message" && strings.Contains(h.Data, words[0]) {
			words = words[1:]
		}
	}
}
