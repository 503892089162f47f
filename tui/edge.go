package tui

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley"
	"parley/client"
	"parley/port"
)

// The edge performs effects. It is the only part of the package that talks to a server.
type edge struct {
	ctx     context.Context
	link    atomic.Pointer[serverLink]
	again   func(context.Context) (*client.Client, error) // see Options.Again
	environ []string
	feed    *feed // follows the session on the screen; nil: none yet
}

// A serverLink is the client of one server. Its context ends when another server replaces it.
type serverLink struct {
	*client.Client
	ctx context.Context
	cut context.CancelFunc
}

// connect sends later requests to another server. Requests that wait for the old server are sent again.
func (e *edge) connect(c *client.Client) {
	ctx, cut := context.WithCancel(e.ctx)
	if old := e.link.Swap(&serverLink{c, ctx, cut}); old != nil {
		old.cut()
	}
}

// A feed follows a session in a goroutine of its own.
type feed struct {
	session parley.SessionID
	updates chan update
	cancel  context.CancelFunc
}

// env returns an environment variable.
func (e *edge) env(name string) string {
	for _, v := range e.environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// An update is one update of the follower, or its end.
type update struct {
	client.Update
	err   error  // the follower has ended
	crash string // stack of a panic in the follower
}

const (
	waitingUpdates = 256  // updates that the follower has read and the screen has not handled
	mostAtOnce     = 2000 // maximum number of events in one message
	tickEvery      = time.Second / 2
)

// perform turns effects into commands of Bubble Tea, which run in goroutines.
func (e *edge) perform(effects []effect) tea.Cmd {
	var cmds []tea.Cmd
	for _, f := range effects {
		cmds = append(cmds, e.command(f))
	}
	return tea.Batch(cmds...)
}

func (e *edge) command(f effect) tea.Cmd {
	switch f := f.(type) {
	case quit:
		return tea.Quit
	case suspend:
		return tea.Suspend
	case redraw:
		return tea.ClearScreen
	case tick:
		return tea.Tick(tickEvery, func(time.Time) tea.Msg { return tickMsg{} })
	case follow:
		e.follow(f.session)
		return e.listen(f.session)
	case listen:
		return e.listen(f.session)
	case unfollow:
		e.unfollow()
		return nil
	case editor:
		return e.edit(f)
	}
	return func() tea.Msg {
		if s, ok := f.(submit); ok { // read once, so that a message that is sent again has the same images
			s, err := s.withImages()
			if err != nil {
				return refusedMsg{f, err}
			}
			f = s
		}
		for {
			to := e.link.Load()
			msg, err := to.request(f)
			switch {
			case e.ctx.Err() != nil:
				return nil
			case err != nil && to.ctx.Err() != nil:
				continue
			case err != nil:
				return refusedMsg{f, err}
			}
			return msg
		}
	}
}

// request performs an effect that sends a request to the server.
func (l *serverLink) request(f effect) (tea.Msg, error) {
	switch f := f.(type) {
	case askMe:
		me, err := l.Me(l.ctx)
		var projects []port.Project
		if err == nil {
			projects, err = l.Projects(l.ctx)
		}
		return meMsg{me, projects}, err
	case open:
		_, err := l.Client.Open(l.ctx, client.NewSession{ID: f.session, Agent: f.agent})
		return openedMsg{f.session}, err
	case submit:
		return l.submit(f)
	case cancelRun:
		var err error
		if f.request == "" {
			_, err = l.Cancel(l.ctx, f.session)
		} else {
			_, err = l.CancelRequest(l.ctx, f.session, f.request)
		}
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == parley.CodeNotFound {
			err = nil // the run has just ended
		}
		return nil, err
	}
	return l.look(f)
}

// answer performs an effect that answers a card.
func (l *serverLink) answer(f effect) (err error) {
	switch f := f.(type) {
	case decide:
		_, err = l.Decide(l.ctx, f.card, f.approval)
	case explain:
		_, err = l.Explain(l.ctx, f.card)
	case answer:
		_, err = l.Answer(l.ctx, f.card, f.answers)
	case resolve:
		_, err = l.Resolve(l.ctx, f.card, f.resolution, "")
	case decidePlan:
		_, err = l.DecidePlan(l.ctx, f.session, f.answer)
	case compact:
		_, err = l.Compact(l.ctx, f.session)
	case withdraw:
		_, err = l.Withdraw(l.ctx, f.session, f.input)
	default:
		panic(fmt.Sprintf("tui: nothing performs %T", f))
	}
	return err
}

func (l *serverLink) submit(f submit) (tea.Msg, error) {
	var opened tea.Msg
	if f.open {
		if _, err := l.Client.Open(l.ctx, client.NewSession{ID: f.session, Agent: f.wish.Agent,
			Project: f.wish.Project}); err != nil {
			return nil, err
		}
		opened = openedMsg{f.session}
	}
	_, err := l.Submit(l.ctx, f.session, f.input)
	return opened, err
}

// unfollow ends the feed, and waits until its goroutine has returned.
func (e *edge) unfollow() {
	if e.feed == nil {
		return
	}
	e.feed.cancel()
	for range e.feed.updates {
	}
	e.feed = nil
}

// follow replaces the feed by one of another session.
func (e *edge) follow(session parley.SessionID) {
	e.unfollow()
	ctx, cancel := context.WithCancel(e.ctx)
	f := &feed{session: session, updates: make(chan update, waitingUpdates), cancel: cancel}
	e.feed = f
	go func() {
		defer close(f.updates)
		defer func() {
			if r := recover(); r != nil { // Bubble Tea restores the terminal only if a command panics
				f.updates <- update{crash: fmt.Sprintf("%v\n%s", r, debug.Stack())}
			}
		}()
		f.run(ctx, e)
	}()
}

func (f *feed) run(ctx context.Context, e *edge) {
	hand := func(u update) bool {
		select {
		case f.updates <- u:
			return true
		case <-ctx.Done():
			return false
		}
	}
	again := e.again
	for cursor, more := "", true; more && ctx.Err() == nil; {
		more = false
		for u, err := range e.link.Load().Follow(ctx, client.Log{Session: f.session, Tree: true}, cursor) {
			cursor = u.Cursor
			if ctx.Err() != nil || !hand(update{Update: u, err: err}) {
				return
			}
			if u.Lost != nil && again != nil {
				more = true
				break
			}
		}
		if !more || ctx.Err() != nil {
			return
		}
		next, err := again(ctx)
		switch {
		case err != nil:
			hand(update{err: err})
			return
		case next == nil:
			again = nil
		default:
			e.connect(next)
		}
	}
}

// listen waits for the next updates of a session. All available events make one message. There is only one listener at
// a time: step starts the next one after it has handled a message.
func (e *edge) listen(session parley.SessionID) tea.Cmd {
	f := e.feed
	if f == nil || f.session != session {
		return nil
	}
	return func() tea.Msg {
		msg := updatesMsg{session: session}
		for u := range f.updates {
			switch {
			case u.crash != "":
				panic(u.crash)
			case u.err != nil:
				msg.ended = u.err
				return msg
			case u.Lost != nil:
				msg.lost = u.Lost
				return msg
			case u.Resync != nil:
				msg.resync = true
				return msg
			}
			msg.events = append(msg.events, u.Event)
			if len(msg.events) >= mostAtOnce || len(f.updates) == 0 {
				return msg
			}
		}
		return nil // the feed has ended
	}
}
