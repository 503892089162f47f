package tui

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley"
	"parley/client"
)

// The edge performs effects. It is the only part of the package that talks to a server and reads a clock.
type edge struct {
	ctx     context.Context
	client  *client.Client
	environ []string
	feed    *feed // of the session on the screen; nil: none yet
}

// A feed follows a session in a goroutine of its own.
type feed struct {
	session parley.SessionID
	updates chan update
	cancel  context.CancelFunc
}

// env is a variable of the environment.
func (e *edge) env(name string) string {
	for _, v := range e.environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// An update is one step of the follower.
type update struct {
	client.Update
	err   error  // the follower has ended
	crash string // it panicked
}

const (
	waitingUpdates = 256  // that the follower has read and the screen has not
	mostAtOnce     = 2000 // events in one message
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
		msg, err := e.request(f)
		switch {
		case e.ctx.Err() != nil:
			return nil
		case err != nil:
			return refusedMsg{f, err}
		}
		return msg
	}
}

// request performs an effect that asks the server.
func (e *edge) request(f effect) (tea.Msg, error) {
	switch f := f.(type) {
	case askMe:
		me, err := e.client.Me(e.ctx)
		return meMsg{me}, err
	case open:
		_, err := e.client.Open(e.ctx, client.NewSession{ID: f.session, Agent: f.wish.Agent, Project: f.wish.Project})
		return openedMsg{f.session}, err
	case submit:
		return e.submit(f)
	case cancelRun:
		var err error
		if f.request == "" {
			_, err = e.client.Cancel(e.ctx, f.session)
		} else {
			_, err = e.client.CancelRequest(e.ctx, f.session, f.request)
		}
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == parley.CodeNotFound {
			err = nil // it has just ended
		}
		return nil, err
	}
	return e.look(f)
}

// answer performs an effect that answers a card.
func (e *edge) answer(f effect) (err error) {
	switch f := f.(type) {
	case decide:
		_, err = e.client.Decide(e.ctx, f.card, f.approval)
	case explain:
		_, err = e.client.Explain(e.ctx, f.card)
	case answer:
		_, err = e.client.Answer(e.ctx, f.card, f.answers)
	case resolve:
		_, err = e.client.Resolve(e.ctx, f.card, f.resolution, "")
	case decidePlan:
		_, err = e.client.DecidePlan(e.ctx, f.session, f.answer)
	case compact:
		_, err = e.client.Compact(e.ctx, f.session)
	case withdraw:
		_, err = e.client.Withdraw(e.ctx, f.session, f.input)
	default:
		panic(fmt.Sprintf("tui: nothing performs %T", f))
	}
	return err
}

func (e *edge) submit(f submit) (tea.Msg, error) {
	var opened tea.Msg
	if f.open {
		if _, err := e.client.Open(e.ctx, client.NewSession{ID: f.session, Agent: f.wish.Agent,
			Project: f.wish.Project}); err != nil {
			return nil, err
		}
		opened = openedMsg{f.session}
	}
	_, err := e.client.Submit(e.ctx, f.session, f.input)
	return opened, err
}

// unfollow ends the feed, and waits until its goroutine has ended.
func (e *edge) unfollow() {
	if e.feed == nil {
		return
	}
	e.feed.cancel()
	for range e.feed.updates {
	}
	e.feed = nil
}

// follow replaces the feed.
func (e *edge) follow(session parley.SessionID) {
	e.unfollow()
	ctx, cancel := context.WithCancel(e.ctx)
	f := &feed{session: session, updates: make(chan update, waitingUpdates), cancel: cancel}
	e.feed = f
	go func() {
		defer close(f.updates)
		defer func() {
			if r := recover(); r != nil { // Bubble Tea restores the terminal if a command panics
				f.updates <- update{crash: fmt.Sprintf("%v\n%s", r, debug.Stack())}
			}
		}()
		f.run(ctx, e.client)
	}()
}

func (f *feed) run(ctx context.Context, c *client.Client) {
	hand := func(u update) bool {
		select {
		case f.updates <- u:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for u, err := range c.Follow(ctx, client.Log{Session: f.session, Tree: true}, "") {
		if ctx.Err() != nil || !hand(update{Update: u, err: err}) {
			return
		}
	}
}

// listen waits for the next updates of a session. All events that are there make one message. There is one listener at
// a time: step asks for the next one when it has handled a message.
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
