package agentloop

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"parley"
	"parley/dialect"
	"parley/port"
)

// conn is one socket. Show runs on one goroutine and Receive on another; asked
// and context connect them.
type conn struct {
	dialect.Conn
	session parley.SessionID
	resumes *port.Summary // nil: the session is new
	from    parley.Seq    // resume after this seq

	view View // used only by the goroutine that shows
	// heads are the last seqs of the past of this session and of those below
	// it, which is replayed without requests.
	heads map[parley.SessionID]parley.Seq
	live  bool   // the past was shown; cards are shown as they open
	skip  string // id of the last frame that the client has; empty: already passed

	mu    sync.Mutex // guards the fields below; leaf
	asked asked
	// context is the last measurement that was seen; nil: none yet.
	context *Context

	answered parley.CommandID // id of the last answer; used only by the receiving goroutine
	images   atomic.Int64     // bytes of images that are not in the log yet
}

// asked is the approval request that was last shown on this connection. An approval_response in the document does not
// say which request it answers. As long as this client's answer settles each request, that is unambiguous. If a request
// was settled in another way, an answer to it may still be in transit when the next request is shown. That answer must
// not decide the next request. So answers are in doubt until the client is known to have received the next request.
type asked struct {
	Asked
	payload  approvalRequest
	doubt    bool
	received func() bool // reports whether the doubt is over; nil: the request was not written yet
	decided  cardRef     // the last approval that this client decided
}

func (a *asked) ref() cardRef { return cardRef{a.Session, a.Card} }

// Show filters the frames of Project for a client that resumes: it drops requests that were already decided. When the
// client has seen the past, Show sends the requests that are still open.
func (c *conn) Show(_ context.Context, i *port.Item) (out [][]byte, _ *dialect.Goodbye) {
	var frames []dialect.Frame
	c.view, frames = Project(c.view, i.Event)
	if measured, ok := (Context{}).after(i.Body); ok && i.Session == c.session {
		c.measured(measured)
	}
	for _, d := range c.view.decided {
		if c.live && c.settled(d.cardRef) {
			out = append(out, dialect.Encode(reply("approval_closed", approvalClosed{d.how})))
		}
	}
	for n, f := range frames {
		if f.Close != nil {
			return out, f.Close
		}
		m := f.Body.(message)
		if c.skip != "" {
			if m.ID == c.skip {
				c.skip = ""
			}
			continue
		}
		if !c.live && asks(m.Type) {
			continue
		}
		if m.Type == "approval_request" {
			c.asks(m)
		}
		out = append(out, dialect.EncodeShared(i, c.shape(), n, f))
	}
	if !c.live && c.caughtUp(i.Event) {
		c.live, c.skip = true, ""
		for _, m := range c.view.waiting() {
			if m.Type == "approval_request" {
				c.asks(m)
			}
			out = append(out, dialect.Encode(m))
		}
	}
	return out, nil
}

// caughtUp reports whether the client has seen the past of its session and of the running sub-agents. The past of other
// sub-agents does not matter.
func (c *conn) caughtUp(e parley.Event) bool {
	if head, ok := c.heads[e.Session]; ok && e.Seq >= head {
		delete(c.heads, e.Session)
	}
	_, behind := c.heads[c.session]
	return !behind && !slices.ContainsFunc(c.view.below.Out(), func(id parley.SessionID) bool {
		_, behind := c.heads[id]
		return behind
	})
}

func (c *conn) shape() string {
	if c.view.LocalShell {
		return "agentloop-local"
	}
	return "agentloop"
}

// asks reports whether a frame of this type shows a card, or that a card is closed.
func asks(kind string) bool {
	return slices.Contains([]string{"approval_request", "question", "question_closed", "tool_call_unknown",
		"tool_call_resolved"}, kind)
}

// waiting returns the frames that show the open cards.
func (v View) waiting() (frames []message) {
	if v.asking {
		frames = append(frames, v.request)
	}
	for _, o := range v.others {
		frames = append(frames, o.frame)
	}
	return frames
}

// asks records which approval the client is about to be shown.
func (c *conn) asks(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, card := &c.asked, c.view.cards[0]
	if a.ref() != card.cardRef {
		a.Asked = Asked{Session: card.session, Card: card.id, Patch: card.payload.ApplyPatch}
		a.payload = card.payload
	}
	a.Requests = append(a.Requests, m.ID)
}

// settled records that an approval was decided. It reports whether this client was shown the approval and did not
// decide it.
func (c *conn) settled(card cardRef) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &c.asked
	if a.ref() != card {
		return false
	}
	a.Asked, a.received = Asked{}, nil
	a.doubt = a.doubt || a.decided != card
	return a.decided != card
}

// Shown sends a ping if answers are in doubt: the pong proves that the client
// has received the current request.
func (c *conn) Shown(context.Context, *port.Item) {
	c.mu.Lock()
	a := &c.asked
	inDoubt := a.doubt && a.Card != 0 && a.received == nil
	c.mu.Unlock()
	if !inDoubt {
		return
	}
	received := c.Socket.Echo()
	c.mu.Lock()
	defer c.mu.Unlock()
	a.received = received // asked.Asked changes only on this goroutine
}

func (c *conn) Receive(ctx context.Context, msg []byte, tooMany error) {
	d := Decode(c.session, c.lastAsked(), msg)
	if tooMany != nil && !overtakes(d.Command.Do) {
		c.refuse(ctx, d.Command.Do, tooMany)
		return
	}
	switch {
	case d.Repeats(c.answered):
		// The answer was sent again and already had its effect.
	case d.Refusal != nil:
		c.Reply(ctx, reply("error", *d.Refusal))
	case d.Query == getSession:
		if !c.AfterInputs(func() { c.sessionInfo(ctx) }) {
			c.refuse(ctx, nil, dialect.ErrTooMany)
		}
	case d.Query != "":
		if !c.WithAnswers(func() { c.contextInfo(ctx) }) {
			c.refuse(ctx, nil, dialect.ErrTooMany)
		}
	case c.mistaken(ctx, d):
	case !c.submit(ctx, d.Command):
		c.refuse(ctx, d.Command.Do, dialect.ErrTooMany)
	}
}

// maxImagesUnderWay is the maximum number of bytes of images that a connection has received and the log does not have
// yet.
const maxImagesUnderWay = 4 * dialect.MaxImageBytes

// submit submits a command. A cancel names no input: it applies to the inputs
// before it. So it must not overtake them, and later inputs must not overtake
// it.
func (c *conn) submit(ctx context.Context, cmd parley.Command) bool {
	var size int64
	switch do := cmd.Do.(type) {
	case parley.CancelRun:
	case parley.SubmitInput:
		for _, image := range do.Images {
			size += int64(len(image.Data))
		}
	default:
		return c.SubmitBelow(ctx, c.session, cmd, func(err error) { c.refused(ctx, cmd, err) })
	}
	if c.images.Load()+size > maxImagesUnderWay {
		return false
	}
	c.images.Add(size)
	cmd.Via = parley.ViaWebSocket
	added := c.AfterInputs(func() {
		defer c.images.Add(-size)
		if _, err := c.Door.Submit(ctx, c.Visit.Who, cmd); err != nil && ctx.Err() == nil {
			c.refuse(ctx, cmd.Do, err)
		}
	})
	if !added {
		c.images.Add(-size)
	}
	return added
}

// overtakes reports whether a command cancels or answers something.
func overtakes(do parley.CommandBody) bool {
	switch do.(type) {
	case parley.DecideApproval, parley.AnswerQuestion, parley.ResolveToolCall, parley.CancelRun:
		return true
	}
	return false
}

func (c *conn) lastAsked() Asked {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.asked.Asked
	a.Requests = slices.Clone(a.Requests)
	return a
}

// mistaken detects an answer that may be meant for a request that was settled elsewhere, and shows the current request
// again. It records any other answer.
func (c *conn) mistaken(ctx context.Context, d Decoded) bool {
	card := cardRef{session: d.Command.Session}
	switch do := d.Command.Do.(type) {
	case parley.DecideApproval:
		card.id = do.Card
	case parley.ExplainApproval:
		card.id = do.Card
	default:
		return false
	}
	c.mu.Lock()
	a := &c.asked
	doubt := a.doubt && !d.Named && a.ref() == card && (a.received == nil || !a.received())
	a.doubt = false
	again := reply("approval_request", a.payload)
	if doubt {
		a.Requests = append(a.Requests, again.ID)
	} else if _, decides := d.Command.Do.(parley.DecideApproval); decides {
		a.decided = card
		c.answered = d.Command.ID
	}
	c.mu.Unlock()
	if doubt {
		c.Reply(ctx, reply("error", notProcessed(approvalFailed, parley.CodeConflict,
			"What was asked before was settled elsewhere. Nothing was decided; this is asked now.")), again)
	}
	return doubt
}

// refused is refuse for a submitted command. An answer that was refused has not
// decided the approval.
func (c *conn) refused(ctx context.Context, cmd parley.Command, err error) {
	if do, ok := cmd.Do.(parley.DecideApproval); ok && parley.CodeOf(err) != parley.CodeClosed {
		c.mu.Lock()
		if c.asked.decided == (cardRef{cmd.Session, do.Card}) {
			c.asked.decided = cardRef{}
		}
		c.mu.Unlock()
	}
	c.refuse(ctx, cmd.Do, err)
}

// refuse tells the client why a command was not accepted.
func (c *conn) refuse(ctx context.Context, do parley.CommandBody, err error) {
	code, reason := parley.CodeOf(err), parley.MessageOf(err)
	title := "Failed to process the message"
	switch do.(type) {
	case parley.SubmitInput:
		title = inputFailed
	case parley.DecideApproval, parley.ExplainApproval:
		title = approvalFailed
	case parley.AnswerQuestion:
		title = questionFailed
	case parley.ResolveToolCall:
		title = unresolved
	case parley.CancelRun:
		if code == parley.CodeNotFound {
			return // nothing runs, which is what the client wanted
		}
		title = cancelFailed
	case parley.CompactContext:
		if code == parley.CodeEmpty || code == parley.CodeNotFound {
			c.Reply(ctx, reply("error", failure{nothingSaid, nil}))
			return
		}
		title = compactFailed
	}
	c.Reply(ctx, reply("error", notProcessed(title, code, reason)))
}

func (c *conn) measured(m Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.context = &m
}

func (c *conn) known() (Context, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.context == nil {
		return Context{}, false
	}
	return *c.context, true
}

// sessionInfo tells the client the id of its session, for resuming, and whether earlier inputs are still being
// answered.
func (c *conn) sessionInfo(ctx context.Context) {
	info := sessionInfo{c.session, "new"}
	switch m, err := c.Door.Session(ctx, c.Visit.Who, c.session); {
	case err == nil:
		info.Status = string(m.Status)
	case ctx.Err() != nil:
		return
	case parley.CodeOf(err) != parley.CodeNotFound:
		c.refuse(ctx, nil, err)
		return
	}
	c.Reply(ctx, reply("session", info))
}

// contextInfo sends the last measurement of the context. If the client resumed
// its session and nothing was measured since, it looks up the last measurement
// in the log.
func (c *conn) contextInfo(ctx context.Context) {
	m, ok := c.known()
	if !ok && c.resumes != nil {
		before, err := c.lookBack(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.refuse(ctx, nil, err)
			}
			return
		}
		m = c.remembered(before)
	}
	c.Reply(ctx, reply("context_info", m.info()))
}

// remembered keeps a measurement from the log, unless a newer one was seen
// meanwhile.
func (c *conn) remembered(found Context) Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.context == nil {
		c.context = &found
	}
	return *c.context
}

// lookBack finds the last measurement before the connection. Every turn measures the context, so it reads the log from
// its end, in growing parts.
func (c *conn) lookBack(ctx context.Context) (m Context, err error) {
	found := false
	last := c.resumes.Head
	for part := parley.Seq(256); last > 0 && !found; part *= 4 {
		first := max(last-part, 0) + 1
		if err := dialect.ReadLog(ctx, c.Door, c.Visit.Who, c.session, first, last, func(e parley.Event) {
			if measured, ok := m.after(e.Body); ok {
				m, found = measured, true
			}
		}); err != nil {
			return m, err
		}
		last = first - 1
	}
	return m, nil
}
