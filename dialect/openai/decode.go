package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley"
	"parley/dialect"
)

// An ask is what a request for a completion or a response says.
type ask struct {
	model    string
	entries  []entry
	stream   bool
	usage    bool   // Chat Completions: with the usage at the end of the stream
	session  string // that the client names; empty: none
	previous string // id of a response
	tools    []function
	given
}

// A function is a tool that the client has.
type function struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// An entry is one thing of what a client says was said.
type entry struct {
	kind   entryKind
	text   string
	images []string // of a user: data URLs
	id     string   // of a call, or of an approval
	name   string   // of a called function
	yes    bool     // of an approval
	at     string   // the field that it stands in
}

type entryKind string

const (
	system    entryKind = "system"
	user      entryKind = "user"
	assistant entryKind = "assistant"
	called    entryKind = "call"     // a function call of the assistant; text has the arguments
	result    entryKind = "result"   // of a function call
	approval  entryKind = "approval" // the answer to one; text has the reason
	aside     entryKind = "aside"    // something else that the assistant put out
)

// byAssistant reports whether an entry comes from the server.
func (e entry) byAssistant() bool { return e.kind == assistant || e.kind == called || e.kind == aside }

// maxEntries is how much of a conversation a request may repeat.
const maxEntries = 10_000

// decodeChat reads the body of a request for a completion. header is the session that the request's header names.
func decodeChat(o dialect.Object, header string) (a ask, err error) {
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
	if len(messages) > maxEntries {
		return a, invalid("messages", "messages has more than %d messages", maxEntries)
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

// common reads what both APIs have.
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

// message reads a message of Chat Completions.
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

// contentOf reads a content: a string, or parts of text and images.
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
		default:
			return "", nil, invalid(at, "%s[%d]: type must be text or an image, not %.40q", at, i, p.Type)
		}
	}
	return strings.Join(texts, "\n"), images, nil
}

// imageURL reads where an image is: Responses have a string, Chat Completions an object with it.
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

// functions reads the tools that the client has. Tools of other kinds are OpenAI's own; agents have tools of theirs.
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
		f := function{}
		if t, err = inside(t); err == nil {
			err = t.Strings(dialect.Fields{{Key: "name", To: &f.Name}, {Key: "description", To: &f.Description}})
		}
		if err == nil {
			err = t.Into("parameters", &f.Parameters, "an object")
		}
		if err != nil || f.Name == "" {
			return invalid(at, "%s must be a function with a name: %v", at, err)
		}
		a.tools = append(a.tools, f)
	}
	return nil
}

// input is what a user says in some entries.
func input(entries []entry) (in parley.SubmitInput, err error) {
	var texts, images []string
	for _, e := range entries {
		if e.kind == user {
			texts, images = append(texts, e.text), append(images, e.images...)
		}
	}
	in.Content = strings.TrimSpace(strings.Join(texts, "\n\n"))
	in.Images, err = dialect.Images(images)
	return in, err
}
