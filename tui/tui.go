// Package tui is the terminal client: a conversation with an agent on a full screen.
//
// Fold, which is pure, turns the events of a log into a Talk. The state of the screen changes only by model.step, which
// is pure, too: it takes a message (a key, events, an answer of the server) and returns the next state and effects.
// Effects are data; the edge performs them. Drawing only reads the state. All drawn text passes Visible and onlyStyles,
// so that no text of a model, a tool or another user can control the terminal.
package tui

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley"
	"parley/client"
)

// Options are the options of Run.
type Options struct {
	Client  *client.Client   // must have the option Patient
	Session parley.SessionID // empty: a new session, which is opened with the first message
	Agent   string           // empty: the agent of the session, or the first agent
	Project string           // for a new session; empty: the first project
	// Elsewhere lists the folders in which the server works, if the user's current folder is in none of them.
	Elsewhere string
	// Again finds another server with the same sessions after the connection was lost. If Again is nil or returns nil,
	// the client waits for the server at its old address.
	Again func(context.Context) (*client.Client, error)

	In  io.Reader
	Out io.Writer
	Env []string
}

// A Visit describes the state when the user has left.
type Visit struct {
	Session parley.SessionID // empty: no session was opened
	Used    parley.Usage
}

// Run shows a session until the user leaves.
func Run(ctx context.Context, o Options) (Visit, error) {
	existing := o.Session != ""
	if !existing {
		o.Session = newSessionID()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := &edge{ctx: ctx, again: o.Again, environ: o.Env}
	e.connect(o.Client)
	defer e.unfollow()
	m := newModel(o.Session, wishes{Agent: o.Agent, Project: o.Project}, time.Now)
	if o.Elsewhere != "" {
		m.hint = "The server at " + o.Client.Address() + " works in " + o.Elsewhere + ", not in this folder."
	}
	m, effects := m.begin(existing)
	p := tea.NewProgram(screen{m, effects, e}, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out),
		tea.WithEnvironment(o.Env))
	last, err := p.Run()
	if errors.Is(err, tea.ErrInterrupted) {
		err = nil
	}
	v := Visit{}
	if s, ok := last.(screen); ok && s.started {
		v = Visit{s.talk.Session, s.talk.Total()}
	}
	return v, err
}

// screen is the model for Bubble Tea. It performs the effects of model.
type screen struct {
	model
	effects []effect // effects before the first message
	edge    *edge
}

func (s screen) Init() tea.Cmd {
	return tea.Batch(tea.RequestBackgroundColor, s.edge.perform(s.effects))
}

func (s screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var effects []effect
	s.model, effects = s.step(msg)
	return s, s.edge.perform(effects)
}

func (s screen) View() tea.View { return s.view() }
