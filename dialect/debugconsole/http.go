package debugconsole

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

const maxBody = 1 << 20

// refusal is the body of an error, in the document's words.
type refusal struct {
	Error  string `json:"error"`
	Reason string `json:"reason,omitempty"`
}

const terminated = "session terminated for security reasons"

func blocked(message string) refusal {
	return refusal{"message blocked: potential prompt injection", strings.TrimPrefix(message, "message blocked: ")}
}

// refuse writes an error as the original server does.
func (h *Handler) refuse(w http.ResponseWriter, err error) {
	message := parley.MessageOf(err)
	switch parley.CodeOf(err) {
	case parley.CodeForbidden:
		dialect.WriteJSON(w, http.StatusForbidden, refusal{"insufficient permissions", message})
	case parley.CodeBlocked:
		dialect.WriteJSON(w, http.StatusForbidden, blocked(message))
	case parley.CodeClosed:
		dialect.WriteJSON(w, http.StatusServiceUnavailable, refusal{Error: terminated})
	default:
		dialect.LogFailure(h.Log, err)
		dialect.Refuse(w, err)
	}
}

// refuseTwin is refuse for the HTTP routes, which have another text for a stopped agent.
func (h *Handler) refuseTwin(w http.ResponseWriter, err error) {
	if parley.CodeOf(err) == parley.CodeStopped {
		dialect.WriteJSON(w, http.StatusServiceUnavailable, refusal{Error: "agent not running"})
		return
	}
	h.refuse(w, err)
}

func (h *Handler) context(w http.ResponseWriter, r *http.Request) {
	who, err := h.Guard.Who(r)
	if err != nil {
		dialect.Refuse(w, err)
		return
	}
	data, err := dialect.ReadBody(w, r, maxBody)
	var text string
	if err == nil {
		var o dialect.Object
		if o, err = dialect.ParseObject(data); err == nil {
			text, err = o.String("context")
		}
		if err != nil {
			err = parley.Errorf(parley.CodeInvalid, "%s", err)
		}
	}
	if err == nil {
		err = notFound(h.Door.SetContext(r.Context(), who, dialect.ProjectName(r), r.PathValue("id"), text,
			parley.ViaHTTP))
	}
	switch {
	case err == nil:
		dialect.WriteJSON(w, http.StatusOK, map[string]string{"status": "applied"})
	case parley.CodeOf(err) == parley.CodeUnavailable:
		dialect.WriteJSON(w, http.StatusServiceUnavailable, refusal{"context store unavailable", parley.MessageOf(err)})
	default:
		h.refuse(w, err)
	}
}

// exchange is one message by HTTP and its answer.
type exchange struct {
	h    *Handler
	who  port.Principal
	to   Place
	from parley.Seq // first event of the message
}

// ask submits the message of a request. On failure it has already answered the request.
func (h *Handler) ask(w http.ResponseWriter, r *http.Request) (x *exchange, ctx context.Context, leave func()) {
	agent := r.PathValue("id")
	visit, err := h.Guard.Ask(r, agent)
	if err != nil {
		dialect.Refuse(w, err)
		return nil, nil, nil
	}
	ctx, leave = dialect.Attend(r.Context(), visit)
	x, err = h.submit(ctx, w, r, visit.Who, agent)
	if err != nil {
		leave()
		h.refuseTwin(w, err)
		return nil, nil, nil
	}
	w.Header().Set(sessionHeader, string(x.to.Session))
	return x, ctx, leave
}

func (h *Handler) submit(ctx context.Context, w http.ResponseWriter, r *http.Request, who port.Principal,
	agent string) (*exchange, error) {
	in, unread := readAsked(w, r)
	project, err := h.admit(r.WithContext(ctx), who, h.projectOf(ctx, who, r, in.session))
	if err = cmp.Or(err, unread); err != nil {
		return nil, err
	}
	to := Place{Session: in.session, Project: project, Agent: agent, Request: uuid.NewString()}
	key := r.Header.Get("Idempotency-Key")
	if key != "" { // the same key gives the same request name
		to.Request = string(dialect.SessionFor(who, "debugconsole request", key))
	}
	switch {
	case in.session != "":
	case key != "":
		to.Session = dialect.SessionFor(who, "debugconsole", key)
	default:
		to.Session = parley.SessionID(uuid.NewString())
	}
	c := to.input(in.content)
	c.ID, c.Via = parley.CommandID(key), parley.ViaHTTP
	if in.session != "" {
		do := c.Do.(parley.SubmitInput)
		do.Open, do.Transient = false, false
		c.Do = do
	}
	receipt, err := h.Door.Submit(ctx, who, c)
	if parley.CodeOf(err) == parley.CodeNotFound && err != nil && in.session != "" {
		err = parley.Errorf(parley.CodeNotFound, "session not found")
	}
	return &exchange{h, who, to, receipt.First}, err
}

// readAsked reads the body of a message.
func readAsked(w http.ResponseWriter, r *http.Request) (asked, error) {
	data, err := dialect.ReadBody(w, r, maxBody)
	if err != nil {
		return asked{}, err
	}
	in, err := decodeBody(data)
	if err != nil {
		err = parley.Errorf(parley.CodeInvalid, "%s", err)
	}
	return in, err
}

// projectOf returns the project of the session that a message continues. It is empty if the address names a project:
// then Submit refuses a session of another one.
func (h *Handler) projectOf(ctx context.Context, who port.Principal, r *http.Request, id parley.SessionID) string {
	if id == "" || dialect.ProjectName(r) != "" {
		return ""
	}
	m, err := h.Door.Session(ctx, who, id)
	if err != nil {
		return "" // Submit says why
	}
	return m.Project
}

// follow follows the session from the message. frames returns the frames of an
// item that are about the message.
func (x *exchange) follow(ctx context.Context) (f port.Follower, frames func(*port.Item) []frame, err error) {
	from := port.Cursor{After: int64(x.from) - 1}
	f, err = x.h.Door.Follow(ctx, x.who, port.Scope{Session: x.to.Session, Below: true}, from)
	v := View{Session: x.to.Session}
	return f, func(i *port.Item) (mine []frame) {
		var all []dialect.Frame
		v, all = Project(v, i.Event)
		for _, f := range all {
			if body, ok := f.Body.(frame); ok && body.about().RequestID == x.to.Request {
				mine = append(mine, body)
			}
		}
		return mine
	}, err
}

// awaiting is the answer if a person must act before the run continues.
type awaiting struct {
	Type       string            `json:"type,omitempty"`
	Status     string            `json:"status"`
	RequestID  string            `json:"request_id"`
	SessionID  parley.SessionID  `json:"session_id"`
	ApprovalID string            `json:"approval_id,omitempty"`
	QuestionID string            `json:"question_id,omitempty"`
	CallID     string            `json:"call_id,omitempty"`
	Agent      string            `json:"agent,omitempty"` // the sub-agent that asks
	ToolName   string            `json:"tool_name,omitempty"`
	Command    string            `json:"command,omitempty"`
	Why        string            `json:"why,omitempty"`
	Similar    string            `json:"similar,omitempty"` // the rule that scope "similar" allows
	Questions  []parley.Question `json:"questions,omitempty"`
	Message    string            `json:"message,omitempty"`
	ExpiresAt  *time.Time        `json:"expires_at,omitempty"`
}

// awaits converts a frame with a card to an awaiting. ok is false for other frames.
func (x *exchange) awaits(f frame) (a awaiting, ok bool) {
	a = awaiting{RequestID: x.to.Request, SessionID: x.to.Session}
	switch f := f.(type) {
	case approvalRequest:
		a.Status, a.ApprovalID, a.ToolName, a.Command, a.ExpiresAt = "awaiting_approval", f.ID, f.ToolName, f.Command,
			&f.ExpiresAt
		a.Why, a.Agent, a.Similar = f.Why, f.Agent, f.Similar
	case question:
		a.Status, a.QuestionID, a.Questions, a.ExpiresAt = "awaiting_answer", f.ID, f.Questions, &f.ExpiresAt
		a.Agent = f.Agent
	case callUnknown:
		a.Status, a.CallID, a.ToolName, a.Message = "awaiting_resolution", f.ID, f.ToolName, f.Message
		a.Agent = f.Agent
	}
	return a, a.Status != ""
}

// message answers with the whole text, or with the reason why there is none.
func (h *Handler) message(w http.ResponseWriter, r *http.Request) {
	x, ctx, leave := h.ask(w, r)
	if x == nil {
		return
	}
	defer leave()
	within := h.Within
	if within == 0 {
		within = time.Minute
	}
	inTime, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	status, said, err := x.wait(inTime)
	switch {
	case err == nil:
		dialect.WriteJSON(w, status, said)
	case ctx.Err() != nil: // the client has left, or its visit has ended
		if cause, ok := errors.AsType[*parley.Error](context.Cause(ctx)); ok {
			dialect.Refuse(w, cause)
		}
	case inTime.Err() != nil:
		dialect.WriteJSON(w, http.StatusGatewayTimeout, refusal{"agent error: timeout",
			"There was no answer within " + within.String() + ". The run goes on; its log is /api/v1/sessions/" +
				string(x.to.Session) + "/log."})
	default:
		h.refuse(w, err)
	}
}

// wait returns the answer to the message, or the card that a person must answer first.
func (x *exchange) wait(ctx context.Context) (status int, said any, err error) {
	follower, frames, err := x.follow(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer follower.Close()
	var text strings.Builder
	err = dialect.ReadUntil(ctx, follower, func(i *port.Item) bool {
		for _, f := range frames(i) {
			if a, ok := x.awaits(f); ok {
				status, said = http.StatusAccepted, a
			}
			switch f := f.(type) {
			case chunk:
				if text.WriteString(f.Content); f.Done {
					status, said = http.StatusOK, map[string]string{"content": text.String()}
				}
			case failure:
				status, said = goodbyeFor(f)
			case sessionHalt:
				status, said = http.StatusServiceUnavailable, refusal{terminated, f.Reason}
			}
			if status != 0 {
				return true
			}
		}
		return false
	})
	return status, said, err
}

// goodbyeFor returns the answer to a message whose run failed.
func goodbyeFor(f failure) (int, refusal) {
	if f.code == parley.CodeBlocked {
		return http.StatusForbidden, blocked(f.Message)
	}
	text := f.Message
	if !strings.HasPrefix(text, "agent error: ") {
		text = "agent error: " + text
	}
	return http.StatusBadGateway, refusal{Error: text}
}

// stream streams the answer. The stream continues while the run waits for a
// person. If the client leaves, the stream ends but not the run.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	x, ctx, leave := h.ask(w, r)
	if x == nil {
		return
	}
	defer leave()
	s, err := transport.NewStream(w, r, transport.StreamOptions{})
	if err != nil {
		return
	}
	follower, frames, err := x.follow(ctx)
	if err == nil {
		defer follower.Close()
		err = dialect.Stream(ctx, s, follower, func(i *port.Item) (out []transport.Message, last bool) {
			for _, f := range frames(i) {
				out, last = append(out, x.event(f)), isEnd(f)
			}
			return out, last
		})
	}
	if err == nil {
		_ = s.Send(transport.Message{Event: "done", Data: []byte("{}")}) // then the stream ends
		return
	}
	// No done event, because the answer is not complete.
	if cause, ok := errors.AsType[*parley.Error](context.Cause(ctx)); ok {
		err = cause
	}
	message := failure{head{"error", x.to.Request}, parley.MessageOf(err), ""}
	_ = s.Send(transport.Message{Event: "error", Data: dialect.Encode(message)}) // fails if the client has gone
}

// event converts a frame to a server-sent event. For approvals, the original server has another event name.
func (x *exchange) event(f frame) transport.Message {
	if _, ok := f.(approvalRequest); ok {
		a, _ := x.awaits(f)
		a.Type = "approval_required"
		return transport.Message{Event: a.Type, Data: dialect.Encode(a)}
	}
	return transport.Message{Event: f.about().Type, Data: dialect.Encode(f)}
}
