package engine

import (
	"context"
	"slices"
	"strings"

	"parley"
	"parley/port"
)

var errNoTurn = parley.Errorf(parley.CodeNotFound, "There is no such turn.")

// TurnRequest implements port.Door.
func (e *Engine) TurnRequest(ctx context.Context, who port.Principal, id parley.SessionID, run parley.RunID,
	number int) (port.TurnRequest, error) {
	var none port.TurnRequest
	m, err := e.Session(ctx, who, id)
	if err == nil {
		err = e.auditReading(ctx, who, m)
	}
	if err != nil {
		return none, err
	}
	then, err := e.turnAt(ctx, who.Tenant, id, run, number)
	if err != nil {
		return none, err
	}
	if then.step.Agent.Remote {
		return none,
			parley.Errorf(parley.CodeNotFound, "This agent runs elsewhere, so its requests are not known here.")
	}
	a := &actor{key: key{who.Tenant, id}, engine: e, log: e.Log.With("session", id), owner: m.Owner,
		project: e.projects.at(who.Tenant, m.Project), preview: true}
	request, agent, err := a.request(ctx, then.step, &stepInput{plan: then.plan, messages: then.messages,
		hasMessages: true, offers: then.offers})
	if err != nil {
		return none, err
	}
	shown := port.TurnRequest{ModelRequest: a.withoutSecrets(request), Turn: then.step.Turn, Agent: agent.Name,
		Mode: then.step.Mode, Then: then.prompt, Now: request.Digest()}
	current, err := a.agents().Agent(who.Tenant, agent.Name)
	shown.Redefined = err != nil || !strings.HasPrefix(agent.Instructions, current.Instructions) // a skill adds to them
	if shown.Model == "" {
		shown.Model = then.model
	}
	on := port.Resource{Kind: port.OneAgent, Tenant: who.Tenant, Agent: agent.Name, Allow: agent.Allow}
	if e.Access.Permit(who, parley.ActAdmin, on) != nil { // the same rule as where definitions are shown
		shown.Instructions, shown.Hidden = "", true
	}
	return shown, nil
}

// A pastTurn holds what the log says about an earlier turn.
type pastTurn struct {
	step     parley.CallModel
	model    string
	plan     *parley.Plan
	offers   parley.InputID
	messages []parley.Message
	prompt   parley.PromptDigest
}

// turnAt folds the log up to a turn, and reads on to the end of the turn.
func (e *Engine) turnAt(ctx context.Context, tenant parley.TenantID, id parley.SessionID, run parley.RunID, number int,
) (then pastTurn, err error) {
	const page = 1000
	state, transcript := parley.NewState(tenant, id), parley.NewTranscript()
	for at := parley.Seq(0); ; {
		events, err := e.Store.Tenant(tenant).Events(ctx, id, at, page)
		if err != nil {
			return then, err
		}
		if len(events) == 0 {
			return then, then.check()
		}
		at = events[len(events)-1].Seq
		for _, event := range events {
			started, isTurn := event.Body.(parley.TurnStarted)
			_, isEnd := event.Body.(parley.RunFinished)
			switch measured, ok := event.Body.(parley.ContextMeasured); {
			case then.step.Turn == 0:
				state = parley.Fold(state, event)
				transcript.Read(event)
				if isTurn && event.Run == run && started.Number == number {
					then = newPastTurn(state, started.Model, transcript.Messages())
				}
			case ok && measured.Turn == then.step.Turn:
				then.prompt = measured.Prompt
				return then, nil
			}
			if event.Run == run && isEnd || isTurn && event.Run == run && started.Number > number {
				return then, then.check()
			}
		}
	}
}

// check returns errNoTurn unless the turn was found.
func (t pastTurn) check() error {
	if t.step.Turn == 0 {
		return errNoTurn
	}
	return nil
}

// newPastTurn returns the turn that has just started.
func newPastTurn(s parley.State, model string, messages []parley.Message) pastTurn {
	then := pastTurn{model: model, plan: s.Plan, messages: messages}
	for _, step := range parley.Next(s, s.LastAt) {
		if call, ok := step.(parley.CallModel); ok {
			then.step, then.offers = call, s.Run.Offers
		}
	}
	return then
}

// withoutSecrets returns a request as it may be shown. Files that were written before the server's secrets were known
// may have brought them into it.
func (a *actor) withoutSecrets(r port.ModelRequest) port.ModelRequest {
	r.Instructions = a.redacted(r.Instructions)
	r.Messages = slices.Clone(r.Messages)
	for i := range r.Messages {
		m := &r.Messages[i]
		m.Text, m.Thinking, m.Calls = a.redacted(m.Text), a.redacted(m.Thinking), slices.Clone(m.Calls)
		for j := range m.Calls {
			m.Calls[j].Arguments = a.redacted(m.Calls[j].Arguments)
		}
	}
	return r
}
