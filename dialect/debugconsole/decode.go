package debugconsole

import (
	"errors"
	"fmt"
	"strings"

	"parley"
	"parley/dialect"
)

// Decoded is what a client's message means: a command, a refusal, or neither, if
// it is to be ignored.
type Decoded struct {
	Command parley.Command
	Refusal string
}

// A Place is what messages of a connection are for. Request names the message
// that is decoded.
type Place struct {
	Session parley.SessionID
	Agent   string
	Request string
}

// Decode reads a message. The document has unknown types and empty content
// ignored without a word.
func Decode(to Place, data []byte) Decoded {
	c, err := decode(to, data)
	if err != nil {
		return Decoded{Refusal: err.Error()}
	}
	return Decoded{Command: c}
}

func decode(to Place, data []byte) (c parley.Command, err error) {
	o, err := dialect.ParseObject(data)
	if err != nil {
		return c, err
	}
	kind, err := o.String("type")
	if err != nil {
		return c, nil // no type that anybody knows
	}
	switch kind {
	case "message":
		content, err := o.String("content")
		if err != nil || parley.IsBlank(parley.CleanText(content)) {
			return c, err
		}
		return to.input(content), nil
	case "approval_response":
		return about(o, func(card parley.Seq) (parley.CommandBody, error) {
			do := parley.DecideApproval{Card: parley.CardID(card)}
			if err := o.Into("decision", &do.Decision, "a string"); err != nil {
				return nil, err
			}
			return do, o.Into("note", &do.Note, "a string")
		})
	case "question_response":
		return about(o, func(card parley.Seq) (parley.CommandBody, error) {
			do := parley.AnswerQuestion{Card: parley.CardID(card)}
			if !o.Has("answers") {
				return nil, errors.New("answers is missing")
			}
			return do, o.Into("answers", &do.Answers, "a list with a list of strings for each question")
		})
	case "tool_call_resolution":
		return about(o, func(call parley.Seq) (parley.CommandBody, error) {
			do := parley.ResolveToolCall{Call: parley.CallID(call)}
			if err := o.Into("resolution", &do.Resolution, "a string"); err != nil {
				return nil, err
			}
			return do, o.Into("note", &do.Note, "a string")
		})
	}
	return c, nil
}

// input is what somebody says there. The session opens with it, and is left out
// of lists.
func (to Place) input(content string) parley.Command {
	return parley.Command{Session: to.Session, Do: parley.SubmitInput{Content: content, Request: to.Request,
		Agent: parley.AgentRef{Name: to.Agent}, Busy: parley.Queue, Open: true, Transient: true}}
}

// about reads an answer to something that waits for a person.
func about(o dialect.Object, read func(parley.Seq) (parley.CommandBody, error)) (c parley.Command, err error) {
	id, err := o.String("id")
	if err != nil {
		return c, err
	}
	session, seq, ok := parley.ParseRef(id)
	if !ok {
		return c, errors.New("id does not name a card")
	}
	do, err := read(seq)
	if err != nil {
		return c, err
	}
	return parley.Command{Session: session, Do: do}, nil
}

// An asked is the body of a request by HTTP.
type asked struct {
	content string
	session parley.SessionID // to go on with; empty: a new one
}

// decodeBody reads {"role","content"} or {"messages":[{"role","content"}…]}, of
// which the last of a user counts: what was said before is in the session.
func decodeBody(data []byte) (asked, error) {
	o, err := dialect.ParseObject(data)
	if err != nil {
		return asked{}, err
	}
	content, err := lastOfUser(o)
	if err != nil {
		return asked{}, err
	}
	if parley.IsBlank(parley.CleanText(content)) {
		return asked{}, errors.New("content is required")
	}
	name, err := o.String("session_id")
	if err != nil {
		return asked{}, err
	}
	session := parley.SessionID(strings.ToLower(name))
	if name != "" && !session.Valid() {
		return asked{}, errors.New("session_id must be the id of a session, as the header Parley-Session gives it")
	}
	return asked{content, session}, nil
}

func lastOfUser(o dialect.Object) (content string, err error) {
	messages := []dialect.Object{o}
	if o.Has("messages") {
		var raw []rawObject
		if err := o.Into("messages", &raw, "a list of objects with role and content"); err != nil {
			return "", err
		}
		messages = nil
		for _, m := range raw {
			messages = append(messages, m.Object)
		}
	}
	found := false
	for _, m := range messages {
		role, err := m.String("role")
		if err != nil {
			return "", err
		}
		if role != "" && role != "user" {
			continue
		}
		if content, err = m.String("content"); err != nil {
			return "", err
		}
		found = true
	}
	if !found {
		return "", errors.New("there is no message of the role user")
	}
	return content, nil
}

// A rawObject is an object within a list, read as strictly as the outermost.
type rawObject struct{ dialect.Object }

func (r *rawObject) UnmarshalJSON(data []byte) (err error) {
	if r.Object, err = dialect.ParseObject(data); err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	return nil
}
