package agui

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
)

// ask is the part of a RunAgentInput that may be new to the session. Clients send the whole conversation; the session
// knows the messages up to the last one of the agent.
type ask struct {
	thread  string
	said    []dialect.ClientMessage
	results []toolResult
	resume  []entry
}

// toolResult is a message with the result of a tool call.
type toolResult struct {
	call, content string
	failed        bool
}

// entry is the answer to an interrupt.
type entry struct {
	id        string
	cancelled bool
	payload   dialect.Object // nil: no payload, or not an object
	text      string         // payload that is a string
}

// decode decodes the body of a request.
func decode(o dialect.Object) (a ask, err error) {
	var run string
	var messages []dialect.Object
	err = o.Strings(dialect.Fields{{Key: "threadId", To: &a.thread}, {Key: "runId", To: &run}})
	if err == nil {
		err = o.Into("messages", &messages, "a list of messages")
	}
	if err != nil {
		return ask{}, dialect.Invalid("%s", err)
	}
	if a.said, a.results, err = read(messages); err != nil {
		return ask{}, err
	}
	if a.resume, err = readResume(o); err != nil {
		return ask{}, err
	}
	tools, err := dialect.ReadTools(o)
	if err != nil {
		return ask{}, dialect.Invalid("%s", err)
	}
	earlier, err := readContext(o)
	if err != nil {
		return ask{}, err
	}
	for i := range a.said {
		a.said[i].Do.Tools, a.said[i].Do.Earlier, a.said[i].Do.Request = tools, earlier, run
		if id := a.said[i].ID; run != "" && id != "" {
			digest, message, _ := strings.Cut(strings.TrimPrefix(string(id), commandPrefix), ":")
			a.said[i].Again = commandID(message, digest+run)
		}
	}
	if len(a.said) == 0 && len(a.results) == 0 && len(a.resume) == 0 {
		return ask{}, parley.Errorf(parley.CodeEmpty, "There is nothing new in messages: the last one must be the "+
			"user's or the result of a tool, or resume must answer an interrupt.")
	}
	return a, nil
}

// read reads the list of messages. It skips the user's messages before the agent's last message: the session knows
// them.
func read(messages []dialect.Object) (said []dialect.ClientMessage, results []toolResult, err error) {
	roles, known, err := dialect.ReadRoles(messages, "assistant", "reasoning", "tool")
	if err != nil {
		return nil, nil, err
	}
	for n, m := range messages {
		switch roles[n] {
		case "user":
			if n < known {
				continue
			}
			var s dialect.ClientMessage
			s, err = readMessage(m)
			said = append(said, s)
		case "tool":
			var r toolResult
			r, err = readResult(m)
			results = append(results, r)
		case "assistant", "reasoning", "activity", "system", "developer": // the server has the instructions of agents
		default:
			err = dialect.Invalid("role must be user, assistant, tool, reasoning, activity, system or developer, "+
				"not %.40q",
				roles[n])
		}
		if err != nil {
			return nil, nil, dialect.Invalid("messages[%d]: %s", n, strings.TrimSuffix(parley.MessageOf(err), "."))
		}
	}
	return said, results, nil
}

// readMessage reads a message of the user. The command id is derived from the message: the same message is submitted
// only once, and an edited one counts as another.
func readMessage(m dialect.Object) (s dialect.ClientMessage, err error) {
	id, err := m.String("id")
	if err != nil {
		return s, dialect.Invalid("%s", err)
	}
	content, images, err := readContent(m)
	if err != nil {
		return s, err
	}
	s.Do = parley.SubmitInput{Content: dialect.MessageText(content, images), Busy: parley.Queue, Open: true}
	if s.Do.Images, err = dialect.Images(images); err != nil {
		return s, err
	}
	if id != "" {
		s.ID = commandID(id, fmt.Sprintf("%s%q", content, images))
	}
	return s, nil
}

// commandID returns a command id that contains the id of the message, if there is room. messageID extracts it.
func commandID(id, more string) parley.CommandID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(id), id, more))
	if c := fmt.Sprintf("%s%x:%s", commandPrefix, sum[:8], id); len(c) <= parley.MaxName {
		return parley.CommandID(c)
	}
	return parley.CommandID(fmt.Sprintf("%s%x:", commandPrefix, sum[:]))
}

// readContent reads a string or a list of parts.
func readContent(m dialect.Object) (text string, images []string, err error) {
	var parts []struct {
		Type, Text, MimeType, Data, Filename string
		Source                               struct{ Type, Value, MimeType string }
	}
	switch {
	case json.Unmarshal(m["content"], &text) == nil:
		return text, nil, nil
	case json.Unmarshal(m["content"], &parts) != nil:
		return "", nil, dialect.Invalid("content must be a string or a list of parts")
	}
	var texts []string
	for _, p := range parts {
		switch {
		case p.Type == "text":
			texts = append(texts, p.Text)
		case p.Type == "image" && p.Source.Type == "data":
			images = append(images, p.Source.Value)
		case p.Type == "binary" && strings.HasPrefix(p.MimeType, "image/") && p.Data != "":
			images = append(images, p.Data)
		case p.Type == "document" && p.Source.Type == "data" && dialect.IsPDF(p.Source.MimeType):
			images = append(images, dialect.Document("", p.Source.Value))
		case p.Type == "binary" && dialect.IsPDF(p.MimeType) && p.Data != "":
			images = append(images, dialect.Document(p.Filename, p.Data))
		default:
			return "", nil, dialect.Invalid("a part of type %.40q cannot be sent: only text, and images and PDFs as data, can",
				p.Type)
		}
	}
	return strings.Join(texts, "\n\n"), images, nil
}

func readResult(m dialect.Object) (r toolResult, err error) {
	var failed string
	if err := m.Strings(dialect.Fields{{Key: "toolCallId", To: &r.call}, {Key: "error", To: &failed}}); err != nil {
		return r, dialect.Invalid("%s", err)
	}
	if r.content, _, err = readContent(m); err == nil && failed != "" {
		r.failed = true
		if parley.IsBlank(r.content) {
			r.content = failed
		}
	}
	return r, err
}

// readContext reads the page's context for this run.
func readContext(o dialect.Object) (list []parley.EarlierMessage, err error) {
	var given []struct{ Description, Value string }
	if err := o.Into("context", &given, "a list of {description, value}"); err != nil {
		return nil, dialect.Invalid("%s", err)
	}
	for _, c := range given {
		list = append(list, parley.EarlierMessage{Role: parley.EarlierSystem, Text: c.Description + ": " + c.Value})
	}
	return list, nil
}

func readResume(o dialect.Object) (list []entry, err error) {
	var given []dialect.Object
	if err := o.Into("resume", &given, "a list of {interruptId, status, payload}"); err != nil {
		return nil, dialect.Invalid("%s", err)
	}
	for n, g := range given {
		var e entry
		var status string
		if err := g.Strings(dialect.Fields{{Key: "interruptId", To: &e.id}, {Key: "status", To: &status}}); err != nil {
			return nil, dialect.Invalid("resume[%d]: %s", n, err)
		}
		if status != "resolved" && status != "cancelled" {
			return nil, dialect.Invalid("resume[%d]: status must be resolved or cancelled, not %.40q", n, status)
		}
		if slices.ContainsFunc(list, func(other entry) bool { return other.id == e.id }) {
			return nil, dialect.Invalid("resume[%d]: the interrupt %.80q is answered twice", n, e.id)
		}
		e.cancelled = status == "cancelled"
		_ = json.Unmarshal(g["payload"], &e.payload) // command refuses a payload of another shape
		_ = json.Unmarshal(g["payload"], &e.text)
		list = append(list, e)
	}
	return list, nil
}

// command returns the command that answers a card.
func (e entry) command(c port.CardInfo) (parley.CommandBody, error) {
	var note string
	if err := e.payload.Strings(dialect.Fields{{Key: "note", To: &note}}); err != nil {
		return nil, dialect.Invalid("resume: payload.%s", err)
	}
	switch c.Kind {
	case parley.CardApproval:
		do := parley.DecideApproval{Card: parley.CardID(c.Seq), Decision: parley.Deny, Note: note}
		var approved *bool
		if err := e.payload.Into("approved", &approved, "true or false"); err != nil || approved == nil &&
			!e.cancelled {
			return nil, dialect.Invalid("resume: the payload for %s must be {approved: true or false, note}", e.id)
		}
		if !e.cancelled && *approved {
			do.Decision = parley.AllowOnce
		}
		return do, nil
	case parley.CardQuestion:
		return e.answers(c)
	}
	do := parley.ResolveToolCall{Call: c.Call, Resolution: parley.Abandon, Note: note}
	if !e.cancelled {
		if err := e.payload.Strings(dialect.Fields{{Key: "resolution", To: &do.Resolution}}); err != nil {
			return nil, dialect.Invalid("resume: payload.%s", err)
		}
	}
	return do, nil
}

// answers answers a question with {answers}, or with a string for one question. A cancelled question gets empty
// answers.
func (e entry) answers(c port.CardInfo) (parley.CommandBody, error) {
	do := parley.AnswerQuestion{Card: parley.CardID(c.Seq), Answers: make([][]string, len(c.Questions))}
	switch {
	case e.cancelled:
	case e.text != "" && len(c.Questions) == 1:
		do.Answers[0] = []string{e.text}
	case !e.payload.Has("answers") || json.Unmarshal(e.payload["answers"], &do.Answers) != nil:
		return nil,
			dialect.Invalid(`resume: the payload for %s must be {"answers":[["…"]]}, with a list of strings for `+
				"each question", e.id)
	}
	return do, nil
}
