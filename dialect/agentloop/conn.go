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

// A conn is one socket. Show is one goroutine's and Receive another's; between
// them is what the client was last asked.
type conn struct {
	dialect.Conn
	session parley.SessionID
	resumes *port.Summary // nil: the session is new
	from    parley.Seq    // behind which it is resumed

	view View // of the goroutine that shows
	// heads are up to where it is shown what was there before it came, of its
	// session and those below it.
	heads map[parley.SessionID]parley.Seq
	live  bool   // it has been
	skip  string // the id of the last frame the client has; empty: it was passed

	mu    sync.Mutex // guards the following; leaf
	asked asked
	// What was measured, as far as it was seen; nil: not yet.
	context *Context

	answered parley.CommandID // the id of the last answer; of the goroutine that receives
	images   atomic.Int64     // bytes of images that are not in the log yet
}

// asked is the approval request that was last shown here. The document's answer
// does not say what it answers. As long as a request is settled by that answer,
// there can be no mistake. If it was settled in another way, an answer to it may
// be under way when the next one is shown, and must not be taken for an answer
// to that: until the client is known to have received the next one, it is in
// doubt.
type asked struct {
	Asked
	payload  approvalRequest
	doubt    bool
	received func() bool // says when the doubt is over; nil: not written yet
	decided  cardRef     // the last one that was decided here
}

func (a *asked) ref() cardRef { return cardRef{a.Session, a.Card} }

// Show filters what Project shows: what waited for a person and was decided
// before this client came is not asked again, and what still waits is asked when
// it has seen the rest.
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

// caughtUp reports whether what was there before the client came was seen, of its
// session and of those who work for it. What others below it have done is not.
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

// asks reports whether a frame asks something of a person, or says that it is no
// longer asked.
func asks(kind string) bool {
	return slices.Contains([]string{"approval_request", "question", "question_closed", "tool_call_unknown",
		"tool_call_resolved"}, kind)
}

// waiting are the frames that ask for what still waits for a person.
func (v View) waiting() (frames []message) {
	if v.asking {
		frames = append(frames, v.request)
	}
	for _, o := range v.others {
		frames = append(frames, o.frame)
	}
	return frames
}

// asks notes which approval the client is about to be shown.
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

// settled notes that an approval was decided. It reports whether this client has
// been shown it and did not decide it.
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

// Shown: when the client is in doubt what it was asked, it is asked for a sign
// that it knows.
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
	a.received = received // what is asked changes on this goroutine only
}

func (c *conn) Receive(ctx context.Context, msg []byte, tooMany error) {
	d := Decode(c.session, c.lastAsked(), msg)
	if tooMany != nil && !overtakes(d.Command.Do) {
		c.refuse(ctx, d.Command.Do, tooMany)
		return
	}
	switch {
	case d.Repeats(c.answered):
		// Sent again, and has had its effect.
	case d.Refusal != nil:
		c.Reply(ctx, reply("error", *d.Refusal))
	case d.Query == getSession:
		if !c.After(func() { c.sessionInfo(ctx) }) {
			c.refuse(ctx, nil, dialect.ErrTooMany)
		}
	case d.Query != "":
		if !c.Later(func() { c.contextInfo(ctx) }) {
			c.refuse(ctx, nil, dialect.ErrTooMany)
		}
	case c.mistaken(ctx, d):
	case !c.submit(ctx, d.Command):
		c.refuse(ctx, d.Command.Do, dialect.ErrTooMany)
	}
}

// maxImagesUnderWay is how many bytes of images a connection may have received that are not in the log yet.
const maxImagesUnderWay = 4 * dialect.MaxImageBytes

// submit hands a command over. A cancel names no input: it is for what was said
// before it, and must not overtake that, nor be overtaken by what is said next.
func (c *conn) submit(ctx context.Context, cmd parley.Command) bool {
	var size int64
	switch do := cmd.Do.(type) {
	case parley.CancelRun:
	case parley.SubmitInput:
		for _, image := range do.Images {
			size += int64(len(image.Data))
		}
	default:
		return c.Within(ctx, c.session, cmd, func(err error) { c.refused(ctx, cmd, err) })
	}
	if c.images.Load()+size > maxImagesUnderWay {
		return false
	}
	c.images.Add(size)
	cmd.Via = parley.ViaWebSocket
	added := c.After(func() {
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

// overtakes reports whether a command stops or answers something.
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

// mistaken finds answers that may have been meant for a request that was settled
// elsewhere, and asks again. What is no mistake is noted as an answer.
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

// refused is refuse for what was handed over. An answer that was not taken has
// not decided anything.
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

// refuse says why a command was not accepted.
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
			return // it is not running: what they wanted
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

// sessionInfo tells a client how to come back, and whether what it sent before is
// still being answered.
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

// contextInfo tells what was measured last. What was measured before a client
// resumed its session is looked up when it first asks.
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

// remembered keeps what was found in the log, unless something newer was seen
// meanwhile.
func (c *conn) remembered(found Context) Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.context == nil {
		c.context = &found
	}
	return *c.context
}

// lookBack finds what was measured last before the connection. Every turn
// measures, so that is near the end of the log: it is read from there, in parts.
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
