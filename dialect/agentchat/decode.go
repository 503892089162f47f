package agentchat

import (
	"fmt"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
)

// Decoded is a decoded message of a client: a command or a refusal.
type Decoded struct {
	Command parley.Command
	Refusal string // why the message is refused; Command is empty then
}

// Decode decodes a message of a client. own is the session of the connection,
// for messages without a session_id.
func Decode(who port.Principal, own parley.SessionID, data []byte) Decoded {
	c, err := decode(who, own, data)
	if err != nil {
		return Decoded{Refusal: err.Error()}
	}
	return Decoded{Command: c}
}

// documentError is an error in the document's own words.
type documentError string

func (e documentError) Error() string { return string(e) }

func decode(who port.Principal, own parley.SessionID, data []byte) (c parley.Command, err error) {
	o, err := dialect.ParseObject(data)
	if err != nil {
		return c, err
	}
	kind, err := o.String("type")
	if err != nil {
		kind = string(o["type"])
	}
	if read, ok := dialect.Answers[kind]; ok {
		return dialect.Answer(o, "id", "id does not name a card", read)
	}
	switch kind {
	case "chat":
		return chat(who, own, o)
	case "":
		if !o.Has("type") {
			kind = "None" // the text of the original server
		}
	}
	return c, documentError(fmt.Sprintf("Unknown message type: %.80s", kind))
}

func chat(who port.Principal, own parley.SessionID, o dialect.Object) (c parley.Command, err error) {
	message, err := o.String("message")
	if err != nil {
		return c, err
	}
	message = strings.TrimSpace(parley.CleanText(message))
	if parley.IsBlank(message) {
		return c, documentError("Empty message received")
	}
	name, err := o.String("session_id")
	if err != nil {
		return c, err
	}
	do := parley.SubmitInput{Content: message, Busy: parley.Queue, Open: true}
	if strings.TrimSpace(name) == "" {
		do.Transient = true
		return parley.Command{Session: own, Do: do}, nil
	}
	ids, err := dialect.SessionsNamed(who, space, name)
	if err != nil {
		return c, err
	}
	return parley.Command{Session: ids[0], Do: do}, nil
}

// space is the namespace of session names in this dialect.
const space = "agentchat"
