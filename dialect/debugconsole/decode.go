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
	Project string // of the agent; empty: the tenant's first
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

// input is what somebody says there. The session opens with it, and is left out
// of lists.
func (to Place) input(content string) parley.Command {
	return parley.Command{Session: to.Session, Do: parley.SubmitInput{Content: content, Request: to.Request,
		Agent: parley.AgentRef{Name: to.Agent}, Busy: parley.Queue, Open: true, Transient: true,
		Project: to.Project}}
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
