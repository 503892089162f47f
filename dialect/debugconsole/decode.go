package debugconsole

import (
	"errors"
	"fmt"
	"strings"

	"parley"
	"parley/dialect"
)

// Decoded is a decoded message of a client: a command or a refusal, or neither if the message is ignored.
type Decoded struct {
	Command parley.Command
	Refusal string
}

// A Place is the destination of a connection's messages. Request names the
// message that is being decoded.
type Place struct {
	Session parley.SessionID
	Project string // project of the agent; empty: the tenant's first
	Agent   string
	Request string
}

// Decode decodes a message. As in the document, unknown types and empty content
// are ignored silently.
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
		return c, nil // an unknown type
	}
	if read, ok := dialect.Answers[kind]; ok {
		return dialect.Answer(o, "id", "id does not name a card", read)
	}
	if kind != "message" {
		return c, nil
	}
	content, err := o.String("content")
	if err != nil || parley.IsBlank(parley.CleanText(content)) {
		return c, err
	}
	return to.input(content), nil
}

// input returns the command for a message. The first one opens the session,
// which is transient: it is not in lists of sessions.
func (to Place) input(content string) parley.Command {
	return parley.Command{Session: to.Session, Do: parley.SubmitInput{Content: content, Request: to.Request,
		Agent: parley.AgentRef{Name: to.Agent}, Busy: parley.Queue, Open: true, Transient: true,
		Project: to.Project}}
}

// asked is the body of an HTTP request.
type asked struct {
	content string
	session parley.SessionID // the session to continue; empty: a new one
}

// decodeBody decodes {"role","content"} or {"messages":[{"role","content"}…]}.
// Only the last message of the user counts: the session has the earlier ones.
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

// rawObject is an object within a list, parsed as strictly as the outermost.
type rawObject struct{ dialect.Object }

func (r *rawObject) UnmarshalJSON(data []byte) (err error) {
	if r.Object, err = dialect.ParseObject(data); err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	return nil
}
