package threadchat

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// POST /api/chat {threadId, message | content, agentId?, userId?, clientRequestId | requestId?} sends one message and
// is answered when the run ends: as JSON, or with Accept: text/event-stream as the frames of a socket. A body with
// message, as in the original server, gets the original's frames; a body with content gets the document's. userId is
// ignored: the credential identifies the user.

// Answers of the HTTP route.
type (
	answer struct {
		ThreadID      parley.SessionID `json:"threadId"`
		CorrelationID string           `json:"correlationId"` // the requestId in frames of sockets
		Message       string           `json:"message"`
		LatencyMs     int64            `json:"latencyMs"`
		Streamed      bool             `json:"streamed"`
	}
	// awaiting is the answer if a person must decide before the run continues.
	awaiting struct {
		ThreadID      parley.SessionID `json:"threadId"`
		CorrelationID string           `json:"correlationId"`
		Awaiting      any              `json:"awaiting"` // the card, as in frames of sockets
	}
	refusal struct {
		Error   string `json:"error"`
		Details any    `json:"details,omitempty"`
	}
	issue struct {
		Path    []string `json:"path"`
		Message string   `json:"message"`
	}
)

// post is a request and the state of its answer.
type post struct {
	h       *Handler
	door    port.Door
	project port.Project // the project that the address names; zero: none
	who     port.Principal
	shape   Shape
	command parley.Command
	request string     // request id for clients
	from    parley.Seq // seq of its first event
}

// Chat serves POST /api/chat for an admitted visit, and ends the visit.
func (h *Handler) Chat(w http.ResponseWriter, r *http.Request, visit port.Visit, body dialect.Object) {
	ctx, leave := dialect.Attend(r.Context(), visit)
	defer leave()
	p, err := decodePost(body, freshID())
	p.h, p.who = h, visit.Who
	if err == nil {
		p.door, p.project, err = dialect.InProjectOf(h.Door, visit.Who.Tenant, r, body)
	}
	if err == nil {
		err = p.submit(ctx)
	}
	if err != nil {
		p.refuse(w, err)
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		p.stream(ctx, w, r)
	} else {
		p.answer(ctx, w)
	}
}

// decodePost decodes a body. Its errors begin with the name of a field.
func decodePost(o dialect.Object, fresh string) (p post, err error) {
	invalid := func(format string, args ...any) (post, error) {
		return p, parley.Errorf(parley.CodeInvalid, format, args...)
	}
	p.shape = Document
	text, name := "content", "requestId"
	if !o.Has(text) {
		p.shape, text, name = Original, "message", "clientRequestId"
	}
	var thread, request, user string
	in := parley.SubmitInput{Request: fresh, Busy: parley.Queue, Deliver: true, Open: true}
	if err := o.Strings(dialect.Fields{{"threadId", &thread}, {text, &in.Content}, {"agentId", &in.Agent.Name},
		{name, &request}, {"userId", &user}}); err != nil {
		return invalid("%s", err)
	}
	p.command.Session = parley.SessionID(strings.ToLower(thread))
	switch {
	case !p.command.Session.Valid():
		return invalid("threadId must be a UUID version 4")
	case parley.IsBlank(in.Content):
		return invalid("%s must be a non-empty string", text)
	case !isRequest(request):
		return invalid("%s %s", name, aboutRequests)
	case request != "":
		in.Request, p.command.ID = request, parley.CommandID(request)
	}
	p.request, p.command.Via, p.command.Do = in.Request, parley.ViaHTTP, in
	return p, nil
}

// submit submits the message.
func (p *post) submit(ctx context.Context) error {
	own := port.Resource{Kind: port.OwnSessions, Tenant: p.who.Tenant}
	if err := p.h.Door.May(ctx, p.who, parley.ActMessage, own); err != nil {
		return err
	}
	// Check the agent here, so that a "not found" from Submit is about the thread.
	if name := p.command.Do.(parley.SubmitInput).Agent.Name; name != "" {
		root := p.project.Root
		if m, err := p.door.Session(ctx, p.who, p.command.Session); err == nil && root == "" {
			root = m.Project
		}
		_, err := p.h.Agents.Of(root).Agent(p.who.Tenant, name)
		if parley.CodeOf(err) == parley.CodeNotFound && err != nil {
			err = parley.Errorf(parley.CodeInvalid, "agentId names no agent: %s", parley.MessageOf(err))
		}
		if err != nil {
			return err
		}
	}
	receipt, err := p.door.Submit(ctx, p.who, p.command)
	p.from = receipt.First
	return err
}

// refuse writes an error as the original server does.
func (p *post) refuse(w http.ResponseWriter, err error) {
	message := parley.MessageOf(err)
	switch parley.CodeOf(err) {
	case parley.CodeInvalid, parley.CodeEmpty:
		path := []string{} // name of the wrong field, if any
		if field, _, _ := strings.Cut(message, " "); field == strings.ToLower(field[:1])+field[1:] {
			path = append(path, field)
		}
		dialect.WriteJSON(w, http.StatusBadRequest, refusal{"Invalid chat request payload", []issue{{path, message}}})
	case parley.CodeNotFound:
		dialect.WriteJSON(w, http.StatusNotFound, refusal{"Thread not found",
			"No thread exists with ID " + string(p.command.Session)})
	default:
		dialect.LogFailure(p.h.Log, err)
		dialect.Refuse(w, err)
	}
}

// follow follows the thread from the message. frames returns the frames of an item that are about the message.
func (p *post) follow(ctx context.Context, shape Shape) (f port.Follower, frames func(*port.Item) []any,
	err error) {
	f, err = p.h.Door.Follow(ctx, p.who, port.Scope{Session: p.command.Session, Below: true},
		port.Cursor{After: int64(p.from) - 1})
	v := View{Shape: shape, Thread: p.command.Session}
	return f, func(i *port.Item) (mine []any) {
		var all []dialect.Frame
		v, all = Project(v, i.Event)
		for _, f := range all {
			if f.Body != nil && reflect.ValueOf(f.Body).FieldByName("RequestID").String() == p.request {
				mine = append(mine, f.Body)
			}
		}
		return mine
	}, err
}

// isEnding reports whether a frame is the last one of its request.
func isEnding(frame any) bool {
	switch frame.(type) {
	case completed, final, failed, failedOriginal, cancelled:
		return true
	}
	return false
}

const noAnswer = "Chat agent failed to produce a response"

// answer answers with the whole text, or with the reason why there is none.
func (p *post) answer(ctx context.Context, w http.ResponseWriter) {
	within := p.h.Within
	if within == 0 {
		within = time.Minute
	}
	inTime, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	frame, run, err := p.wait(inTime)
	answered := func(status int, body any) {
		p.ends()
		dialect.WriteJSON(w, status, body)
		p.ended(ctx, run, http.NewResponseController(w).Flush())
	}
	switch f := frame.(type) {
	case final:
		answered(http.StatusOK, answer{p.command.Session, p.request, f.Message, f.LatencyMs, false})
	case failedOriginal:
		answered(http.StatusBadGateway, refusal{noAnswer, f.Message})
	case cancelled:
		answered(http.StatusBadGateway, refusal{noAnswer, "The request was cancelled."})
	case nil:
		switch {
		case ctx.Err() != nil: // the client has left, or its visit has ended
			if cause, ok := errors.AsType[*parley.Error](context.Cause(ctx)); ok {
				dialect.Refuse(w, cause)
			}
		case inTime.Err() != nil:
			dialect.WriteJSON(w, http.StatusGatewayTimeout, refusal{noAnswer, "There was no answer within " +
				within.String() + ". The run goes on; a socket of the thread is shown its answer."})
		default:
			p.refuse(w, err)
		}
	default:
		dialect.WriteJSON(w, http.StatusAccepted, awaiting{p.command.Session, p.request, f})
	}
}

// wait returns the ending of the request with its run, or a card that a person must answer first.
func (p *post) wait(ctx context.Context) (frame any, run parley.RunID, err error) {
	follower, frames, err := p.follow(ctx, Original)
	if err != nil {
		return nil, 0, err
	}
	defer follower.Close()
	err = dialect.ReadUntil(ctx, follower, func(i *port.Item) bool {
		for _, f := range frames(i) {
			switch f.(type) {
			case approvalRequest, question, callUnknown:
				frame = f
				return true
			}
			if isEnding(f) {
				frame, run = f, i.Run
				return true
			}
		}
		return false
	})
	return frame, run, err
}

// stream streams the answer. The stream continues while the run waits for a person. If the client leaves, the stream
// ends but not the run.
func (p *post) stream(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	s, err := transport.NewStream(w, r, transport.StreamOptions{})
	if err != nil {
		return
	}
	var run parley.RunID
	ending := false
	follower, frames, err := p.follow(ctx, p.shape)
	if err == nil {
		defer follower.Close()
		err = dialect.Stream(ctx, s, follower, func(i *port.Item) (out []transport.Message, last bool) {
			mine := frames(i)
			for _, f := range mine {
				out = append(out, transport.Message{Data: dialect.Encode(f)})
			}
			if last = slices.ContainsFunc(mine, isEnding); last {
				run, ending = i.Run, true
				p.ends()
			}
			return out, last
		})
	}
	if ending {
		p.ended(ctx, run, err)
	}
	if err == nil {
		return
	}
	if cause, ok := errors.AsType[*parley.Error](context.Cause(ctx)); ok {
		err = cause
	}
	message := dialect.Encode(View{Shape: p.shape}.failure(p.request, err))
	_ = s.Send(transport.Message{Data: message}) // fails if the client has gone
}

// ends is called before the end of a run is written, and ended afterwards. Sockets that open in between wait. If the
// end could not be written, the next socket of the thread gets the run.
func (p *post) ends() { p.h.deliveries.add(threadKey{p.who.Tenant, p.command.Session}, +1) }

func (p *post) ended(ctx context.Context, run parley.RunID, err error) {
	defer p.h.deliveries.add(threadKey{p.who.Tenant, p.command.Session}, -1)
	if err != nil || run == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := p.h.Door.Delivered(ctx, p.who, p.command.Session, run); err != nil {
		p.h.Log.Warn("a delivery was not noted; it will be shown again", "run", run, "error", err)
	}
}
