package aisdk

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

// ask is the part of a request that may be new to the session. Clients send the whole conversation; the session knows
// the messages up to the last one of the assistant.
type ask struct {
	chat    string
	said    []dialect.ClientMessage // new messages of the user
	answers []answer
}

// answer is a part of an assistant's message that the client has changed.
type answer struct {
	id       string // id of an approval or a tool call
	approval bool
	approved bool
	text     string // reason of a decision, or error of a call
	output   json.RawMessage
	failed   bool // the client's call failed
}

const (
	submitMessage     = "submit-message"
	regenerateMessage = "regenerate-message"
)

// decode decodes the body of a request.
func decode(o dialect.Object) (a ask, err error) {
	var trigger string
	var messages []dialect.Object
	err = o.Strings(dialect.Fields{{Key: "id", To: &a.chat}, {Key: "trigger", To: &trigger}})
	if err == nil {
		err = o.Into("messages", &messages, "a list of messages")
	}
	if err != nil {
		return ask{}, dialect.Invalid("%s", err)
	}
	if trigger != "" && trigger != submitMessage && trigger != regenerateMessage {
		return ask{}, dialect.Invalid("trigger must be %s or %s, not %.40q", submitMessage, regenerateMessage, trigger)
	}
	if a.said, a.answers, err = read(messages); err != nil {
		return ask{}, err
	}
	tools, err := dialect.ReadTools(o)
	if err != nil {
		return ask{}, dialect.Invalid("%s", err)
	}
	for i := range a.said {
		a.said[i].Do.Tools = tools
	}
	if trigger == regenerateMessage {
		return a.again()
	}
	if len(a.said) == 0 && len(a.answers) == 0 {
		return ask{}, parley.Errorf(parley.CodeEmpty, "There is nothing new in messages: the last one must be the "+
			"user's, or one of the assistant with an answer to a tool call.")
	}
	return a, nil
}

// again asks for another answer to the last message of the user.
func (a ask) again() (ask, error) {
	if len(a.said) == 0 {
		return ask{}, parley.Errorf(parley.CodeEmpty, "There is no message of the user to answer again.")
	}
	a.said = a.said[len(a.said)-1:]
	a.said[0].ID, a.answers = "", nil
	return a, nil
}

// read reads the list of messages. It skips the user's messages before the last
// message of the assistant: the session knows them.
func read(messages []dialect.Object) (said []dialect.ClientMessage, answers []answer, err error) {
	roles, known, err := dialect.ReadRoles(messages, "assistant")
	if err != nil {
		return nil, nil, err
	}
	for n, m := range messages {
		switch {
		case roles[n] == "assistant":
			var more []answer
			more, err = readAnswers(m)
			answers = append(answers, more...)
		case roles[n] == "user" && n >= known:
			var in dialect.ClientMessage
			in, err = readInput(m)
			said = append(said, in)
		case roles[n] != "user" && roles[n] != "system": // the server has the instructions of agents
			err = dialect.Invalid("role must be user, assistant or system, not %.40q", roles[n])
		}
		if err != nil {
			return nil, nil, dialect.Invalid("messages[%d]: %s", n, strings.TrimSuffix(parley.MessageOf(err), "."))
		}
	}
	return said, answers, nil
}

// partsOf returns the parts of a message.
func partsOf(m dialect.Object) (parts []dialect.Object, err error) {
	if err := m.Into("parts", &parts, "a list of parts"); err != nil {
		return nil, dialect.Invalid("%s", err)
	}
	return parts, nil
}

// readInput reads a message of the user. The command id is derived from the message: the same message is submitted only
// once, and an edited one counts as another.
func readInput(m dialect.Object) (in dialect.ClientMessage, err error) {
	parts, err := partsOf(m)
	if err != nil {
		return in, err
	}
	id, err := m.String("id")
	if err != nil {
		return in, dialect.Invalid("%s", err)
	}
	var texts, images []string
	for _, p := range parts {
		var kind, text, media, url, filename string
		if err := p.Strings(dialect.Fields{{Key: "type", To: &kind}, {Key: "text", To: &text},
			{Key: "mediaType", To: &media}, {Key: "url", To: &url}, {Key: "filename", To: &filename}}); err != nil {
			return in, dialect.Invalid("%s", err)
		}
		switch {
		case kind == "text":
			texts = append(texts, text)
		case kind == "file" && strings.HasPrefix(media, "image"):
			images = append(images, url)
		case kind == "file" && dialect.IsPDF(media):
			images = append(images, dialect.Document(filename, url))
		case kind == "file":
			return in, dialect.Invalid("a file of type %.80q cannot be sent: only images and PDFs can", media)
		}
	}
	in.Do = parley.SubmitInput{Content: dialect.MessageText(strings.Join(texts, "\n\n"), images), Busy: parley.Queue,
		Open: true}
	if in.Do.Images, err = dialect.Images(images); err != nil {
		return in, err
	}
	if id != "" {
		sum := sha256.Sum256([]byte(fmt.Sprintf("%d:%s%s%q", len(id), id, in.Do.Content, images)))
		in.ID = parley.CommandID(fmt.Sprintf("aisdk-%x", sum[:16]))
	}
	return in, nil
}

// readAnswers reads the parts of an assistant's message that may be answers. The client's list also has parts that the
// server made: match picks the answers to open cards and calls.
func readAnswers(m dialect.Object) (list []answer, err error) {
	parts, err := partsOf(m)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		var kind, state, call, errorText string
		if err := p.Strings(dialect.Fields{{Key: "type", To: &kind}, {Key: "state", To: &state},
			{Key: "toolCallId", To: &call}, {Key: "errorText", To: &errorText}}); err != nil {
			return nil, dialect.Invalid("%s", err)
		}
		switch isTool := kind == "dynamic-tool" || strings.HasPrefix(kind, "tool-"); {
		case isTool && state == "approval-responded":
			decided, err := readDecision(p)
			if err != nil {
				return nil, err
			}
			list = append(list, decided)
		case isTool && state == "output-available":
			list = append(list, answer{id: call, output: p["output"]})
		case isTool && state == "output-error":
			list = append(list, answer{id: call, text: errorText, failed: true})
		}
	}
	return list, nil
}

func readDecision(p dialect.Object) (a answer, err error) {
	var approval struct {
		ID       string
		Approved *bool
		Reason   string
	}
	const shape = "{id, approved: true or false, reason}"
	if err := p.Into("approval", &approval, shape); err != nil {
		return a, dialect.Invalid("%s", err)
	}
	if approval.Approved == nil {
		return a, dialect.Invalid("approval must be %s", shape)
	}
	return answer{id: approval.ID, approval: true, approved: *approval.Approved, text: approval.Reason}, nil
}

// match finds the answers to the open cards and calls. left is the number of those without an answer.
func (a ask) match(open []port.CardInfo) (list []dialect.CardAnswer, left int, err error) {
	for _, c := range open {
		i := slices.IndexFunc(a.answers, func(x answer) bool { return x.isTo(c) })
		if i < 0 {
			left++
			continue
		}
		if slices.ContainsFunc(a.answers[i+1:], func(x answer) bool { return x.isTo(c) }) {
			return nil, 0, dialect.Invalid("%s is answered twice.", a.answers[i].id)
		}
		do, err := a.answers[i].command(c)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, dialect.CardAnswer{Card: c, Do: do})
	}
	return list, left, nil
}

func (x answer) isTo(c port.CardInfo) bool {
	card, call := parley.Ref(c.Session, c.Seq), parley.Ref(c.Session, parley.Seq(c.Call))
	switch c.Kind {
	case parley.CardApproval:
		return x.approval && x.id == card
	case parley.CardQuestion, dialect.ClientCall: // questions of sub-agents have the id of the card
		return !x.approval && (x.id == call || x.id == card)
	}
	return false // the output of a call of unknown outcome is not an answer
}

func (x answer) command(c port.CardInfo) (parley.CommandBody, error) {
	if x.approval {
		do := parley.DecideApproval{Card: parley.CardID(c.Seq), Decision: parley.Deny, Note: x.text}
		if x.approved {
			do.Decision = parley.AllowOnce
		}
		return do, nil
	}
	if c.Kind == dialect.ClientCall {
		return x.result(c.Call), nil
	}
	answers, err := chosen(x, len(c.Questions))
	return parley.AnswerQuestion{Card: parley.CardID(c.Seq), Answers: answers}, err
}

// result returns the output of a call that the client has carried out.
func (x answer) result(call parley.CallID) parley.ReturnToolResult {
	if x.failed {
		return parley.ReturnToolResult{Call: call, Result: x.text, Failed: true}
	}
	text := string(x.output)
	if s := ""; json.Unmarshal(x.output, &s) == nil { // the model gets a string without quotes
		text = s
	}
	return parley.ReturnToolResult{Call: call, Result: text}
}

// chosen reads the output that answers a question: {answers: [[…]]}, a list of lists, a list with one string per
// question, or a string for one question.
func chosen(x answer, questions int) (list [][]string, err error) {
	const shape = `{"answers":[["…"]]}, with a list of strings for each question`
	raw := x.output
	if raw == nil {
		raw = dialect.Encode(x.text)
	}
	var object struct{ Answers json.RawMessage }
	if json.Unmarshal(raw, &object) == nil && object.Answers != nil {
		raw = object.Answers
	}
	var text string
	var texts []string
	switch {
	case json.Unmarshal(raw, &text) == nil && questions == 1:
		return [][]string{{text}}, nil
	case json.Unmarshal(raw, &texts) == nil && len(texts) == questions:
		for _, t := range texts {
			list = append(list, []string{t})
		}
		return list, nil
	case json.Unmarshal(raw, &list) == nil && list != nil:
		return list, nil
	}
	return nil, dialect.Invalid("The output of ask_user must be %s", shape)
}
