package threadchat

import (
	"fmt"
	"regexp"
	"strings"

	"parley"
	"parley/dialect"
)

// Decoded is a decoded message of a client: a command or a refusal.
type Decoded struct {
	Shape   Shape // shape that the message belongs to; empty: both
	Command parley.Command
	Request string // request that an error names
	Refusal string // why the message is refused; Command is empty then
}

// requestPattern is the syntax of request ids of clients. The prefixes timer_ and followup_ are reserved for autonomous
// messages.
var requestPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// isRequest reports whether a client may use this request id. It may be empty.
func isRequest(id string) bool {
	return id == "" || requestPattern.MatchString(id) && !strings.HasPrefix(id, "timer_") &&
		!strings.HasPrefix(id, originalFollowUp)
}

const aboutRequests = "must be 1 to 64 letters, digits, _ or -, and not begin with timer_ or followup_"

// Decode decodes a message on a thread's connection. fresh is the request id if the client sends none. Decode does not
// check whether an answer is for a session below the thread.
func Decode(thread parley.SessionID, data []byte, fresh string) Decoded {
	d := Decoded{Request: fresh}
	if err := d.decode(thread, data); err != nil {
		d.Command, d.Refusal = parley.Command{}, err.Error()
	}
	return d
}

func (d *Decoded) decode(thread parley.SessionID, data []byte) error {
	o, err := dialect.ParseObject(data)
	if err != nil {
		return err
	}
	kind, err := o.String("type")
	if err != nil {
		return err
	}
	if read, ok := dialect.Answers[kind]; ok {
		d.Command, err = dialect.Answer(o, "id", "id does not name a card of this thread", read)
		return err
	}
	switch kind {
	case "chat.request", "message":
		d.Shape = map[string]Shape{"chat.request": Document, "message": Original}[kind]
		return d.request(thread, o)
	case "cancel":
		return d.cancel(thread, o)
	case "":
		return fmt.Errorf("the message has no type")
	}
	return fmt.Errorf("unknown message type %.40q; this endpoint takes chat.request, cancel, approval_response, "+
		"question_response and tool_call_resolution", kind)
}

func (d *Decoded) request(thread parley.SessionID, o dialect.Object) error {
	id, err := o.String("requestId")
	switch {
	case err != nil:
		return err
	case id == "" && d.Shape == Original:
		return fmt.Errorf("requestId is missing")
	case !isRequest(id):
		return fmt.Errorf("requestId %s", aboutRequests)
	case id != "":
		d.Request = id
		d.Command.ID = parley.CommandID(id)
	}
	named, err := o.String("threadId")
	switch {
	case err != nil:
		return err
	case named == "":
		return fmt.Errorf("threadId is missing")
	case parley.SessionID(strings.ToLower(named)) != thread:
		return fmt.Errorf("threadId is not the thread of this connection")
	}
	in := parley.SubmitInput{Request: d.Request, Busy: parley.Queue, Deliver: true}
	if in.Content, err = o.String("content"); err != nil {
		return err
	}
	if parley.IsBlank(in.Content) {
		return fmt.Errorf("content must be a non-empty string")
	}
	if in.Agent.Name, err = o.String("agentId"); err != nil {
		return err
	}
	d.Command.Session, d.Command.Do = thread, in
	return nil
}

func (d *Decoded) cancel(thread parley.SessionID, o dialect.Object) error {
	id, err := o.String("requestId")
	switch {
	case err != nil:
		return err
	case id == "":
		return fmt.Errorf("requestId is missing")
	}
	d.Request = id
	do := parley.CancelRun{Request: unwire(id)}
	if name, ok := strings.CutPrefix(id, unnamed); ok {
		if session, seq, ok := parley.ParseRef(name); ok && session == thread {
			do = parley.CancelRun{Input: parley.InputID(seq)} // an id made by requestID
		}
	}
	d.Command.Session, d.Command.Do = thread, do
	return nil
}
