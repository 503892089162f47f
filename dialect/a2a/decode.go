package a2a

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
)

// request is a JSON-RPC call.
type request struct {
	id     any // a string, a number or nil
	method string
	params dialect.Object
}

// decode reads a request.
func decode(data []byte) (q request, err error) {
	if !json.Valid(data) {
		return q, refusal(codeParse, "The body is not valid JSON.")
	}
	o, err := dialect.ParseObject(data)
	if err != nil {
		return q, refusal(codeRequest, "%s.", err)
	}
	if id := o["id"]; o.Has("id") {
		var name string
		var number json.Number
		switch {
		case json.Unmarshal(id, &name) == nil:
			q.id = name
		case json.Unmarshal(id, &number) == nil:
			q.id = number
		default:
			return q, refusal(codeRequest, "id must be a string or a number.")
		}
	}
	var version string
	err = o.Strings(dialect.Fields{{Key: "jsonrpc", To: &version}, {Key: "method", To: &q.method}})
	switch {
	case err != nil:
		return q, refusal(codeRequest, "%s.", err)
	case version != "2.0":
		return q, refusal(codeRequest, "jsonrpc must be \"2.0\".")
	case q.method == "":
		return q, refusal(codeRequest, "method is missing.")
	}
	q.params = dialect.Object{}
	if o.Has("params") {
		if q.params, err = dialect.ParseObject(o["params"]); err != nil {
			return q, invalid("params must be an object without repeated keys")
		}
	}
	return q, nil
}

// versionOf parses the protocol version that a client names.
func versionOf(header string) (shape, error) {
	major, minor, _ := strings.Cut(strings.TrimSpace(header), ".")
	switch {
	case major == "":
		return v03, nil
	case major == "1":
		return v1, nil
	case major == "0" && (minor == "3" || strings.HasPrefix(minor, "3.")):
		return v03, nil
	}
	return v1, refusal(codeVersion, "Version %.20q of A2A is not supported. Use 1.0 or 0.3.", header)
}

// methods maps the methods of both versions to one short name.
var methods = map[shape]map[string]string{
	v1: {"SendMessage": "send", "SendStreamingMessage": "stream", "GetTask": "get", "ListTasks": "list",
		"CancelTask": "cancel", "SubscribeToTask": "subscribe", "GetExtendedAgentCard": "card",
		"CreateTaskPushNotificationConfig": "push", "GetTaskPushNotificationConfig": "push",
		"ListTaskPushNotificationConfigs": "push", "DeleteTaskPushNotificationConfig": "push"},
	v03: {"message/send": "send", "message/stream": "stream", "tasks/get": "get", "tasks/list": "list",
		"tasks/cancel": "cancel", "tasks/resubscribe": "subscribe", "agent/getAuthenticatedExtendedCard": "card",
		"tasks/pushNotificationConfig/set": "push", "tasks/pushNotificationConfig/get": "push",
		"tasks/pushNotificationConfig/list": "push", "tasks/pushNotificationConfig/delete": "push"},
}

// said is a message of a client.
type said struct {
	id, context, task string
	text              string
	images            []string       // base64 or data URLs
	data              dialect.Object // data of a message without text
	immediately       bool           // the client does not wait for the end of the task
	history           *int
}

// decodeSaid decodes the parameters of a message.
func (s shape) decodeSaid(params dialect.Object) (m said, err error) {
	if !params.Has("message") {
		return m, invalid("message is missing")
	}
	o, err := dialect.ParseObject(params["message"])
	if err != nil {
		return m, invalid("message: %s", err)
	}
	var role string
	if err = o.Strings(dialect.Fields{{Key: "messageId", To: &m.id}, {Key: "contextId", To: &m.context},
		{Key: "taskId", To: &m.task}, {Key: "role", To: &role}}); err != nil {
		return m, invalid("message: %s", err)
	}
	switch {
	case m.id == "":
		return m, invalid("message.messageId is missing")
	case role != s.role("user"):
		return m, invalid("message.role must be %q", s.role("user"))
	}
	var parts []json.RawMessage
	if err = o.Into("parts", &parts, "a list of parts"); err != nil || len(parts) == 0 {
		return m, invalid("message.parts must be a list with at least one part")
	}
	for i, raw := range parts {
		p, err := dialect.ParseObject(raw)
		if err != nil {
			return m, invalid("message.parts[%d]: %s", i, err)
		}
		if err := s.decodePart(p, &m); err != nil {
			return m, err
		}
	}
	return m, s.decodeConfiguration(params, &m)
}

// decodePart adds a part to a message.
func (s shape) decodePart(p dialect.Object, m *said) error {
	switch {
	case p.Has("text"):
		text, err := p.String("text")
		if err != nil {
			return invalid("message.parts: %s", err)
		}
		if m.text != "" {
			m.text += "\n"
		}
		m.text += text
		return nil
	case p.Has("data"):
		o, err := dialect.ParseObject(p["data"])
		if err != nil {
			return invalid("message.parts: data: %s", err)
		}
		if m.data != nil {
			return invalid("A message has one part of data at most")
		}
		m.data = o
		return nil
	case s == v03 && p.Has("file"):
		file, err := dialect.ParseObject(p["file"])
		if err != nil {
			return invalid("message.parts: file: %s", err)
		}
		return decodeFile(file, "bytes", "mimeType", m)
	}
	return decodeFile(p, "raw", "mediaType", m)
}

// decodeFile adds an image or a PDF document to a message. Other files are refused, because models would not see them.
func decodeFile(o dialect.Object, bytes, media string, m *said) error {
	var data, kind, name, filename string
	if err := o.Strings(dialect.Fields{{Key: bytes, To: &data}, {Key: media, To: &kind}, {Key: "name", To: &name},
		{Key: "filename", To: &filename}}); err != nil {
		return invalid("message.parts: %s", err)
	}
	if data == "" || kind != "" && !strings.HasPrefix(kind, "image/") && !dialect.IsPDF(kind) {
		return refusal(codeContentType, "A part must be a text, or an image or a PDF with its bytes.")
	}
	if dialect.IsPDF(kind) {
		data = dialect.Document(cmp.Or(filename, name), data) // version 1.0 has filename, version 0.3 has name
	}
	m.images = append(m.images, data)
	return nil
}

// decodeConfiguration decodes how the client wants its answer.
func (s shape) decodeConfiguration(params dialect.Object, m *said) error {
	if !params.Has("configuration") {
		return nil
	}
	c, err := dialect.ParseObject(params["configuration"])
	if err != nil {
		return invalid("configuration: %s", err)
	}
	blocking, modes := true, []string(nil)
	err = c.Into("blocking", &blocking, "true or false")
	if err == nil {
		err = c.Into("returnImmediately", &m.immediately, "true or false")
	}
	if err == nil {
		err = c.Into("historyLength", &m.history, "a number")
	}
	if err == nil {
		err = c.Into("acceptedOutputModes", &modes, "a list of media types")
	}
	if err != nil {
		return invalid("configuration: %s", err)
	}
	if s == v03 {
		m.immediately = !blocking
	}
	if c.Has("pushNotificationConfig") || c.Has("taskPushNotificationConfig") {
		return errNoPush
	}
	if len(modes) > 0 && !slices.ContainsFunc(modes, takesText) {
		return refusal(codeContentType, "The agent answers with text/plain, which acceptedOutputModes does not list.")
	}
	return nil
}

var errNoPush = refusal(codePush, "This server sends no push notifications. Stream the task, or use a webhook of "+
	"the session.")

func takesText(mode string) bool {
	return slices.Contains([]string{"text/plain", "text/*", "*/*", "text"}, mode)
}

// input returns the command that starts a task. fresh is the session for a message without a context.
func (m said) input(who port.Principal, agent string, fresh parley.SessionID) (c parley.Command, err error) {
	if m.data != nil {
		return c, refusal(codeContentType, "A new task takes text, images and PDFs. Data answers a task that waits.")
	}
	do := parley.SubmitInput{Content: dialect.MessageText(m.text, m.images), Request: m.id,
		Agent: parley.AgentRef{Name: agent}, Busy: parley.Queue, Open: true}
	if do.Images, err = dialect.Images(m.images); err != nil {
		return c, err
	}
	if m.context != "" {
		if fresh, do.Name, err = dialect.SessionNamed(who, m.context); err != nil {
			return c, err
		}
	}
	return parley.Command{Session: fresh, Via: parley.ViaHTTP, Do: do}, nil
}

// taskOf parses the id of a task.
func taskOf(params dialect.Object) (session parley.SessionID, input parley.InputID, err error) {
	id, err := params.String("id")
	switch {
	case err != nil:
		return "", 0, invalid("%s", err)
	case id == "":
		return "", 0, invalid("id is missing")
	}
	return parseTask(id)
}

func parseTask(id string) (parley.SessionID, parley.InputID, error) {
	session, seq, ok := parley.ParseRef(id)
	if !ok {
		return "", 0, errNoTask
	}
	return session, parley.InputID(seq), nil
}

func historyOf(params dialect.Object) (n *int, err error) {
	if err = params.Into("historyLength", &n, "a number"); err != nil {
		err = invalid("%s", err)
	}
	return n, err
}

// wanted is a filter for the list of tasks.
type wanted struct {
	context   string
	state     state // empty: any
	size      int
	before    time.Time // only tasks that started before this time
	since     time.Time
	history   *int
	artifacts bool
}

const (
	defaultPage = 50
	maxPage     = 100
)

func (s shape) decodeWanted(params dialect.Object) (q wanted, err error) {
	var st, page, since string
	q.size = defaultPage
	err = params.Strings(dialect.Fields{{Key: "contextId", To: &q.context}, {Key: "status", To: &st},
		{Key: "pageToken", To: &page}, {Key: "statusTimestampAfter", To: &since}})
	if err == nil {
		err = params.Into("pageSize", &q.size, "a number")
	}
	if err == nil {
		err = params.Into("includeArtifacts", &q.artifacts, "true or false")
	}
	if err != nil {
		return q, invalid("%s", err)
	}
	if q.size < 1 || q.size > maxPage {
		return q, invalid("pageSize must be 1 to %d", maxPage)
	}
	if st != "" && st != s.state("unspecified") {
		i := slices.IndexFunc(states, func(known state) bool { return s.state(known) == st })
		if i < 0 {
			return q, invalid("status: there is no state %.40q", st)
		}
		q.state = states[i]
	}
	for text, at := range map[string]*time.Time{page: &q.before, since: &q.since} {
		if text == "" {
			continue
		}
		if *at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return q, invalid("%.40q is no time and no page token of this server", text)
		}
	}
	q.history, err = historyOf(params)
	return q, err
}
