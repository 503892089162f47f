package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
)

// ask is a decoded request for a completion or a response.
type ask struct {
	model   string
	field   string // name of the field with the entries
	entries []entry
	stream  bool
	usage   bool   // Chat Completions: send the usage at the end of the stream
	session string // session that the client names; empty: none
	tools   []parley.ClientTool
	given
}

// entry is one item of the conversation in a request.
type entry struct {
	kind   entryKind
	text   string
	images []string // of a user: data URLs
	id     string   // id of a call or an approval
	name   string   // name of a called function
	yes    bool     // the approval was given
	at     string   // the field that contains the entry
}

type entryKind string

const (
	system    entryKind = "system"
	user      entryKind = "user"
	assistant entryKind = "assistant"
	called    entryKind = "call"     // a function call of the assistant; text has the arguments
	result    entryKind = "result"   // the result of a function call
	approval  entryKind = "approval" // the answer to an approval; text has the reason
	aside     entryKind = "aside"    // any other output of the assistant
)

// byAssistant reports whether an entry is from the server.
func (e entry) byAssistant() bool { return e.kind == assistant || e.kind == called || e.kind == aside }

// decodeChat decodes a request for a completion. header is the session that the request's header names.
func decodeChat(o dialect.Object, header string) (a ask, err error) {
	a.field = "messages"
	if err := a.common(o, header); err != nil {
		return a, err
	}
	if o.Has("stream_options") {
		var with struct {
			Usage bool `json:"include_usage"`
		}
		if err := o.Into("stream_options", &with, "an object"); err != nil {
			return a, invalid("stream_options", "%s", err)
		}
		a.usage = with.Usage
	}
	n := 1
	if err := o.Into("n", &n, "a number"); err != nil || n != 1 {
		return a, invalid("n", "n must be 1: an agent gives one answer")
	}
	var messages []json.RawMessage
	if err := o.Into("messages", &messages, "a list of messages"); err != nil || len(messages) == 0 {
		return a, invalid("messages", "messages must be a list with at least one message")
	}
	if len(messages) > parley.MaxEarlier {
		return a, invalid("messages", "messages has more than %d messages", parley.MaxEarlier)
	}
	for i, raw := range messages {
		if err := a.message(fmt.Sprintf("messages[%d]", i), raw); err != nil {
			return a, err
		}
	}
	if err := a.functions(o, func(o dialect.Object) (dialect.Object, error) {
		var inner json.RawMessage
		if err := o.Into("function", &inner, "an object"); err != nil || inner == nil {
			return nil, fmt.Errorf("function must be an object")
		}
		return dialect.ParseObject(inner)
	}); err != nil {
		return a, err
	}
	return a, nil
}

// common decodes the fields that both APIs have.
func (a *ask) common(o dialect.Object, header string) error {
	for _, field := range []struct {
		key, what string
		to        any
	}{{"model", "a string", &a.model}, {"stream", "true or false", &a.stream},
		{"metadata", "an object with strings", &a.metadata}} {
		if err := o.Into(field.key, field.to, field.what); err != nil {
			return invalid(field.key, "%s", err)
		}
	}
	if a.model = strings.TrimSpace(a.model); a.model == "" {
		return invalid("model", "model is missing: it is the name of an agent")
	}
	a.session = strings.TrimSpace(header)
	if named := strings.TrimSpace(a.metadata["session_id"]); named != "" {
		if a.session != "" && a.session != named {
			return invalid("metadata.session_id", "the header X-Session-Id names another session")
		}
		a.session = named
	}
	return nil
}

// message decodes a message of Chat Completions.
func (a *ask) message(at string, raw json.RawMessage) error {
	o, err := dialect.ParseObject(raw)
	if err != nil {
		return invalid(at, "%s: %s", at, err)
	}
	role, err := o.String("role")
	if err != nil {
		return invalid(at+".role", "%s: %s", at, err)
	}
	text, images, err := contentOf(at+".content", o["content"])
	if err != nil {
		return err
	}
	e := entry{kind: entryKind(role), text: text, images: images, at: at}
	switch role {
	case "developer":
		e.kind = system
	case "system", "user":
	case "assistant":
		if strings.TrimSpace(text) != "" {
			a.entries = append(a.entries, e)
		}
		return a.toolCalls(at, o)
	case "tool":
		e.kind = result
		if e.id, err = o.String("tool_call_id"); err != nil || e.id == "" {
			return invalid(at+".tool_call_id", "%s: tool_call_id must be a string", at)
		}
		if !o.Has("content") {
			return invalid(at+".content", "%s: content is missing; a result without a text is an empty string", at)
		}
	default:
		return invalid(at+".role", "%s: role must be system, developer, user, assistant or tool", at)
	}
	if len(images) > 0 && e.kind != user {
		return invalid(at+".content", "%s: only a user shows images", at)
	}
	a.entries = append(a.entries, e)
	return nil
}

func (a *ask) toolCalls(at string, o dialect.Object) error {
	var calls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	}
	if err := o.Into("tool_calls", &calls, "a list of calls"); err != nil {
		return invalid(at+".tool_calls", "%s: %s", at, err)
	}
	for i, c := range calls {
		in := fmt.Sprintf("%s.tool_calls[%d]", at, i)
		if c.ID == "" || c.Function.Name == "" {
			return invalid(in, "%s must have an id and a function with a name", in)
		}
		a.entries = append(a.entries, entry{kind: called, id: c.ID, name: c.Function.Name, text: c.Function.Arguments,
			at: in})
	}
	return nil
}

// file is a PDF document.
type file struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

// contentOf decodes a content: a string, or parts with text, images and PDF documents.
func contentOf(at string, raw json.RawMessage) (text string, images []string, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil, nil
	}
	if json.Unmarshal(raw, &text) == nil {
		return text, nil, nil
	}
	var parts []struct {
		Type    string
		Text    string
		Refusal string
		Image   json.RawMessage `json:"image_url"`
		File    *file           // Chat Completions
		file                    // Responses
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", nil, invalid(at, "%s must be a string or a list of parts", at)
	}
	var texts []string
	for i, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text", "summary_text":
			texts = append(texts, p.Text)
		case "refusal":
			texts = append(texts, p.Refusal)
		case "image_url", "input_image":
			url, err := imageURL(p.Image)
			if err != nil {
				return "", nil, invalid(at, "%s[%d]: %s", at, i, err)
			}
			images = append(images, url)
		case "file", "input_file":
			f := p.file
			if p.Type == "file" && p.File != nil {
				f = *p.File
			}
			if f.Data == "" || strings.HasPrefix(f.Data, "data:") && !dialect.IsPDF(f.Data[len("data:"):]) {
				return "", nil, invalid(at, "%s[%d]: file_data must be a PDF as a data URL; the server fetches nothing", at, i)
			}
			images = append(images, dialect.Document(f.Name, f.Data))
		default:
			return "", nil, invalid(at, "%s[%d]: type must be text, an image or a file, not %.40q", at, i, p.Type)
		}
	}
	return strings.Join(texts, "\n"), images, nil
}

// imageURL decodes the URL of an image: a string in Responses, an object in Chat Completions.
func imageURL(raw json.RawMessage) (url string, err error) {
	if json.Unmarshal(raw, &url) != nil {
		var inner struct{ URL string }
		if json.Unmarshal(raw, &inner) != nil {
			return "", fmt.Errorf("image_url is missing")
		}
		url = inner.URL
	}
	if !strings.HasPrefix(url, "data:") {
		return "", fmt.Errorf("an image must be a data URL: the server fetches nothing")
	}
	return url, nil
}

// functions decodes the tools of the client. It skips other kinds of tools: they are OpenAI's own, and agents have
// their own tools.
func (a *ask) functions(o dialect.Object, inside func(dialect.Object) (dialect.Object, error)) error {
	var tools []json.RawMessage
	if err := o.Into("tools", &tools, "a list of tools"); err != nil {
		return invalid("tools", "%s", err)
	}
	for i, raw := range tools {
		at := fmt.Sprintf("tools[%d]", i)
		t, err := dialect.ParseObject(raw)
		if err != nil {
			return invalid(at, "%s: %s", at, err)
		}
		if kind, err := t.String("type"); err != nil || kind != "function" {
			continue
		}
		var f parley.ClientTool
		if t, err = inside(t); err == nil {
			err = t.Strings(dialect.Fields{{Key: "name", To: &f.Name}, {Key: "description", To: &f.Description}})
		}
		switch {
		case err != nil:
			return invalid(at, "%s: %s", at, err)
		case f.Name == "":
			return invalid(at, "%s: the function has no name", at)
		case t.Has("parameters"):
			f.Parameters = string(t["parameters"])
		}
		a.tools = append(a.tools, f)
	}
	return nil
}

// decodeResponse decodes a request for a response.
func decodeResponse(o dialect.Object, header string) (a ask, err error) {
	a.field = "input"
	if err := a.common(o, header); err != nil {
		return a, err
	}
	stored, instructions := true, ""
	for _, field := range []struct {
		key, what string
		to        any
	}{{"background", "true or false", &a.background}, {"store", "true or false", &stored},
		{"previous_response_id", "a string", &a.previous}, {"instructions", "a string", &instructions}} {
		if err := o.Into(field.key, field.to, field.what); err != nil {
			return a, invalid(field.key, "%s", err)
		}
	}
	a.unstored = !stored
	switch {
	case a.background && a.unstored:
		return a, invalid("background", "background needs store: nobody could read the response otherwise")
	case o.Has("conversation"):
		return a, invalid("conversation", "there are no conversations here: send previous_response_id, or name a "+
			"session in the header X-Session-Id or in metadata.session_id")
	case instructions != "":
		a.entries = append(a.entries, entry{kind: system, text: instructions, at: "instructions"})
	}
	if err := a.items(o["input"]); err != nil {
		return a, err
	}
	return a, a.functions(o, func(o dialect.Object) (dialect.Object, error) { return o, nil })
}

// items decodes the input of a response: a text or a list of items.
func (a *ask) items(raw json.RawMessage) error {
	var text string
	if len(raw) > 0 && json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		a.entries = append(a.entries, entry{kind: user, text: text, at: "input"})
		return nil
	}
	var items []json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &items) != nil {
		return invalid("input", "input must be a string or a list of items")
	}
	if len(items) > parley.MaxEarlier {
		return invalid("input", "input has more than %d items", parley.MaxEarlier)
	}
	for i, raw := range items {
		at := fmt.Sprintf("input[%d]", i)
		o, err := dialect.ParseObject(raw)
		if err != nil {
			return invalid(at, "%s: %s", at, err)
		}
		if err := a.item(at, o); err != nil {
			return err
		}
	}
	return nil
}

func (a *ask) item(at string, o dialect.Object) error {
	var kind string
	e := entry{at: at}
	approve := (*bool)(nil)
	if err := o.Strings(dialect.Fields{{Key: "type", To: &kind}, {Key: "call_id", To: &e.id},
		{Key: "name", To: &e.name}, {Key: "arguments", To: &e.text}}); err != nil {
		return invalid(at, "%s: %s", at, err)
	}
	switch {
	case kind == "message" || kind == "" && o.Has("role"):
		return a.messageItem(at, o)
	case kind == "":
		return invalid(at+".type", "%s must have a type, or a role", at)
	case kind == "function_call" && e.id != "" && e.name != "":
		e.kind = called
	case kind == "function_call_output" && e.id != "":
		text, images, err := contentOf(at+".output", o["output"])
		if err != nil {
			return err
		}
		if !o.Has("output") {
			return invalid(at+".output", "%s: output is missing; a result without a text is an empty string", at)
		}
		if len(images) > 0 {
			return invalid(at+".output", "%s: a result is a text", at)
		}
		e.kind, e.text = result, text
	case kind == "mcp_approval_response":
		err := o.Strings(dialect.Fields{{Key: "approval_request_id", To: &e.id}, {Key: "reason", To: &e.text}})
		if err == nil {
			err = o.Into("approve", &approve, "true or false")
		}
		if err != nil || approve == nil || e.id == "" {
			return invalid(at, "%s must have an approval_request_id, and approve, which is true or false", at)
		}
		e.kind, e.yes = approval, *approve
	case kind == "function_call" || kind == "function_call_output":
		return invalid(at, "%s: call_id is missing, or the name of the function", at)
	default: // reasoning, calls of the server's own tools, and items of OpenAI's own servers
		e.kind = aside
	}
	a.entries = append(a.entries, e)
	return nil
}

func (a *ask) messageItem(at string, o dialect.Object) error {
	role, err := o.String("role")
	if err != nil {
		return invalid(at+".role", "%s: %s", at, err)
	}
	text, images, err := contentOf(at+".content", o["content"])
	if err != nil {
		return err
	}
	kind, ok := map[string]entryKind{"system": system, "developer": system, "user": user, "assistant": assistant}[role]
	if !ok {
		return invalid(at+".role", "%s: role must be system, developer, user or assistant", at)
	}
	if len(images) > 0 && kind != user {
		return invalid(at+".content", "%s: only a user shows images", at)
	}
	a.entries = append(a.entries, entry{kind: kind, text: text, images: images, at: at})
	return nil
}

// fresh returns the index of the first entry after all output of the assistant.
func fresh(entries []entry) int {
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].byAssistant() {
			return i + 1
		}
	}
	return 0
}

// input returns the input for a conversation: the new message, with the earlier messages.
func (a ask) input(entries []entry) (in parley.SubmitInput, err error) {
	n := fresh(entries)
	if in, err = input(entries[:n], entries[n:]); err != nil {
		return in, err
	}
	if in.Content == "" {
		return in, &paramError{a.field, parley.Errorf(parley.CodeEmpty, "There is no new message.")}
	}
	in.Tools = a.tools
	return in, nil
}

// input returns an input with the user's entries as the message, and all other entries as earlier messages.
func input(earlier, entries []entry) (in parley.SubmitInput, err error) {
	var texts, images []string
	at := "input"
	for _, e := range entries {
		if e.kind != user {
			earlier = append(slices.Clip(earlier), e)
			continue
		}
		texts, images, at = append(texts, e.text), append(images, e.images...), e.at
	}
	in.Content = dialect.MessageText(strings.TrimSpace(strings.Join(texts, "\n\n")), images)
	in.Earlier = earlierOf(earlier)
	in.Images, err = dialect.Images(images)
	return in, ofParam(at, err)
}

// earlierOf converts entries to earlier messages. A call belongs to the message before it.
func earlierOf(entries []entry) (list []parley.EarlierMessage) {
	for _, e := range entries {
		switch e.kind {
		case system:
			list = append(list, parley.EarlierMessage{Role: parley.EarlierSystem, Text: e.text})
		case user:
			list = append(list, parley.EarlierMessage{Role: parley.EarlierUser, Text: e.text})
		case assistant:
			list = append(list, parley.EarlierMessage{Role: parley.EarlierAssistant, Text: e.text})
		case result:
			list = append(list, parley.EarlierMessage{Role: parley.EarlierTool, Text: e.text, Call: e.id})
		case called:
			if n := len(list); n == 0 || list[n-1].Role != parley.EarlierAssistant {
				list = append(list, parley.EarlierMessage{Role: parley.EarlierAssistant})
			}
			last := &list[len(list)-1]
			last.Calls = append(last.Calls, parley.EarlierCall{ID: e.id, Name: e.name, Arguments: e.text})
		}
	}
	return list
}
