package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/client"
	"parley/eval"
	"parley/port"
)

// playFlags are the flags of commands that replay recorded sessions.
type playFlags struct {
	serverFlags
	Agent   string        `placeholder:"NAME" help:"Agent that answers (default: the recorded one)."`
	Model   string        `placeholder:"NAME" help:"Model that answers (default: the agent's). Needs the right to change the agent."`
	Prompt  string        `placeholder:"FILE" help:"File with instructions that replace the agent's. Needs the right to change the agent."`
	Project string        `placeholder:"DIR" help:"Project of the new session: its folder on the server, or its id (default: the project of this folder, or the first)."`
	Approve string        `default:"never" enum:"never,safe,all" help:"Calls to approve while tools run: never, safe (edits of files in the workspace) or all. Other calls are denied."`
	Timeout time.Duration `default:"10m" placeholder:"DURATION" help:"Longest time for one session (default: 10m)."`
}

// A player sends recorded inputs to a new session.
type player struct {
	to      *connection
	run     eval.Run
	live    bool   // run tools, instead of returning recorded results
	approve string // the calls to approve if live is true
	project string
	source  eval.Recording // the recording with the results of calls if live is false
	fork    bool           // the session begins as a fork, at the same point as the source
	keep    bool           // do not delete the session
	timeout time.Duration

	session parley.SessionID
	results eval.Results
}

// play sends inputs one after another, each after the previous run has ended. The result contains the completed
// exchanges, also if there is an error.
func (p *player) play(ctx context.Context, inputs []eval.Exchange) (eval.Recording, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("it took longer than %s (--timeout)", p.timeout))
	defer cancel()
	s, err := p.open(ctx)
	if err != nil {
		return eval.Recording{}, err
	}
	p.session, p.results = s.ID, p.source.Results()
	defer p.close(ctx)
	var r eval.Recorder
	err = p.follow(ctx, inputs, &r)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r.Recording(), err
}

func (p *player) open(ctx context.Context) (port.Summary, error) {
	title := "Replay"
	if p.source.Session != "" {
		title = fmt.Sprintf("Replay of %.8s", p.source.Session)
	}
	if p.fork {
		return p.to.Fork(ctx, p.source.Session, client.Fork{At: p.source.Forked, Title: title})
	}
	return p.to.Open(ctx, client.NewSession{Agent: p.run.Agent, Title: title, Project: p.project})
}

// close deletes the session, or cancels its run if the session is to be kept.
func (p *player) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
	defer cancel()
	if p.keep {
		_, _ = p.to.Cancel(ctx, p.session) // usually no run is open
		return
	}
	_ = p.to.Delete(ctx, p.session) // the result matters more than a session that stays
}

func (p *player) follow(ctx context.Context, inputs []eval.Exchange, r *eval.Recorder) error {
	sent := 0
	send := func() error {
		x := inputs[sent]
		sent++
		agent := p.run.Agent
		if agent == "" {
			agent = x.Agent
		}
		_, err := p.to.Submit(ctx, p.session, client.Input{Content: x.Input, Agent: agent, Mode: x.Mode,
			Model: p.run.Model, Instructions: p.run.Prompt, ClientCalls: !p.live})
		return err
	}
	if err := send(); err != nil {
		return err
	}
	for u, err := range p.to.Follow(ctx, client.Log{Session: p.session, Tree: true}, "") {
		switch {
		case err != nil:
			return err
		case u.Resync != nil, u.Lost != nil && p.to.brief:
			return errors.New("the server of another command ended, or was restored, during the replay")
		case u.Lost != nil:
			continue
		}
		r.Add(u.Event)
		if err := p.answer(ctx, u.Event); err != nil {
			return err
		}
		if _, ended := u.Event.Body.(parley.RunFinished); !ended || u.Event.Session != p.session {
			continue
		}
		if sent == len(inputs) {
			return nil
		}
		if err := send(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// answer responds to an event that waits for a client: a call that gets a recorded result, or a card.
func (p *player) answer(ctx context.Context, e parley.Event) (err error) {
	id := parley.Ref(e.Session, e.Seq)
	switch b := e.Body.(type) {
	case parley.ToolCallRequested:
		if b.Client {
			result, failed := p.results.Next(b.Name, b.Arguments)
			_, err = p.to.ReturnResult(ctx, id, result, failed)
		}
	case parley.ApprovalRequested:
		a := client.Approval{Decision: parley.AllowOnce, Digest: b.Digest}
		if !approves(p.approve, b) {
			a = client.Approval{Decision: parley.Deny, Note: "This is a replay: no person can approve calls."}
		}
		_, err = p.to.Decide(ctx, id, a)
	case parley.QuestionAsked:
		_, err = p.to.Cancel(ctx, p.session) // no person can answer during a replay
	case parley.ToolCallFinished:
		if b.Outcome == parley.CallUnknown {
			_, err = p.to.Resolve(ctx, parley.Ref(e.Session, parley.Seq(b.Call)), parley.Abandon, "")
		}
	}
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == parley.CodeClosed {
		return nil // another client has answered first, or the run has ended
	}
	return err
}
