package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"parley"
	"parley/dialect"
	"parley/port"
)

// question is a client's question to an agent. Without a message, it asks for the answer of the open run of the
// session.
type question struct {
	agent, message string
	session        string // the client's name for the session; empty: a new one
}

// decodeAsk decodes the arguments of ask_agent.
func decodeAsk(arguments json.RawMessage) (q question, err error) {
	err = decodeArguments(arguments, dialect.Fields{{Key: "agent", To: &q.agent}, {Key: "message", To: &q.message},
		{Key: "session", To: &q.session}})
	if strings.TrimSpace(q.message) == "" {
		q.message = ""
	}
	attends := q.message == "" && q.session != ""
	switch {
	case err != nil || attends:
	case q.agent == "":
		err = dialect.Invalid("agent is missing")
	case q.message == "":
		err = dialect.Invalid("message is missing")
	}
	return q, err
}

func decodeArguments(arguments json.RawMessage, fields dialect.Fields) error {
	if len(arguments) == 0 || string(arguments) == "null" {
		return nil
	}
	o, err := dialect.ParseObject(arguments)
	if err != nil {
		return dialect.Invalid("%s", strings.Replace(err.Error(), "the message", "arguments", 1))
	}
	if err := o.Strings(fields); err != nil {
		return dialect.Invalid("%s", err)
	}
	return nil
}

// input returns the command for a question. fresh is the session for a question that names none.
func (q question) input(who port.Principal, fresh parley.SessionID) (c parley.Command, err error) {
	do := parley.SubmitInput{Content: q.message, Agent: parley.AgentRef{Name: q.agent}, Busy: parley.Queue, Open: true}
	if q.session != "" {
		if fresh, do.Name, err = dialect.SessionNamed(who, q.session); err != nil {
			return c, err
		}
	}
	return parley.Command{Session: fresh, Via: parley.ViaHTTP, Do: do}, nil
}

// errorOf converts an error to a JSON-RPC error. It means that nothing was appended to the log.
func errorOf(err error) error {
	code := int64(jsonrpc.CodeInvalidRequest)
	switch parley.CodeOf(err) {
	case parley.CodeInvalid, parley.CodeEmpty, parley.CodeTooLarge, parley.CodeNotFound, parley.CodeConflict:
		code = jsonrpc.CodeInvalidParams
	case parley.CodeInternal, parley.CodeCorrupt:
		code = jsonrpc.CodeInternalError
	}
	return &jsonrpc.Error{Code: code, Message: parley.MessageOf(err),
		Data: dialect.Encode(map[string]parley.Code{"code": parley.CodeOf(err)})}
}

// form returns the text of a card and the schema of its answer. Elicitations allow only schemas without nesting.
func form(c dialect.Card) (message string, schema json.RawMessage) {
	who := ""
	if c.Agent != "" {
		who = "The sub-agent " + c.Agent + " asks. "
	}
	properties, required := map[string]any{}, []string{"decision"}
	decision := func(choices ...string) {
		properties["decision"] = map[string]any{"type": "string", "title": "Decision", "enum": choices}
		properties["note"] = map[string]any{"type": "string", "title": "Note to the agent"}
	}
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		decision(string(parley.AllowOnce), string(parley.AllowAlways), string(parley.Deny))
		message = fmt.Sprintf("%sApproval needed for %s: %s", who, b.Name, b.Show)
		if b.Why != "" {
			message += "\n" + b.Why
		}
	case parley.QuestionAsked:
		required = nil
		var texts []string
		for i, q := range b.Questions {
			properties[answerKey(i)] = field(q)
			required, texts = append(required, answerKey(i)), append(texts, q.Question)
		}
		message = who + strings.Join(texts, "\n")
	case parley.ToolCallFinished:
		decision(string(parley.Rerun), string(parley.MarkDone), string(parley.Abandon))
		message = fmt.Sprintf("%sThe outcome of %s is unknown. %s", who, b.Name, b.Result)
	}
	return message, dialect.Encode(map[string]any{"type": "object", "properties": properties, "required": required})
}

func answerKey(i int) string { return fmt.Sprintf("answer_%d", i+1) }

// field returns the schema of one question.
func field(q parley.Question) map[string]any {
	f := map[string]any{"type": "string", "title": q.Question}
	var labels []string
	for _, o := range q.Options {
		labels = append(labels, o.Label)
	}
	switch {
	case len(labels) == 0:
	case q.MultiSelect:
		f["type"], f["items"] = "array", map[string]any{"type": "string", "enum": labels}
	default:
		f["enum"] = labels
	}
	return f
}

// reply returns the command for a person's answer to an elicitation. ok is false if the person has not decided; then
// the card stays open.
func reply(c dialect.Card, action string, content map[string]any) (cmd parley.Command, ok bool) {
	text := func(key string) string {
		s, _ := content[key].(string)
		return s
	}
	decision, note := text("decision"), text("note")
	cmd.Session, cmd.Via = c.Session, parley.ViaHTTP
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		if action == "decline" {
			decision = string(parley.Deny)
		}
		cmd.Do = parley.DecideApproval{Card: parley.CardID(c.Seq), Decision: parley.Decision(decision), Note: note,
			Digest: b.Digest}
		return cmd, action == "decline" || action == "accept" && decision != ""
	case parley.QuestionAsked:
		do := parley.AnswerQuestion{Card: parley.CardID(c.Seq)}
		for i := range b.Questions {
			do.Answers = append(do.Answers, chosen(content[answerKey(i)]))
		}
		cmd.Do = do
		return cmd, action == "accept"
	}
	cmd.Do = parley.ResolveToolCall{Call: parley.CallID(c.Seq), Resolution: parley.Resolution(decision), Note: note}
	return cmd, action == "accept" && decision != ""
}

// chosen returns the answers to one question.
func chosen(given any) (list []string) {
	switch g := given.(type) {
	case string:
		return []string{g}
	case []any:
		for _, one := range g {
			if s, ok := one.(string); ok {
				list = append(list, s)
			}
		}
	}
	return list
}
