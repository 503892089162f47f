package engine

import (
	"parley"
	"parley/port"
)

// forkPage bounds the events in memory while a source is read.
const forkPage = 500

// prepareFork completes a fork with the conversation of its source, which the principal must be permitted to read.
func (a *actor) prepareFork(who port.Principal, do parley.ForkSession) (parley.ForkSession, error) {
	ctx := a.engine.ctx
	if do.Source == parley.TenantSession {
		return do, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	m, err := a.engine.Session(ctx, who, do.Source)
	if err == nil {
		err = a.engine.auditReading(ctx, who, m)
	}
	if err != nil {
		return do, err
	}
	if do.At == 0 {
		do.At = m.Head
	}
	if do.At > m.Head {
		return do, parley.Errorf(parley.CodeInvalid, "The session has %d events; %d is none of them.", m.Head, do.At)
	}
	state, transcript := parley.NewState(a.tenant, do.Source), parley.NewTranscript()
	for state.Head < do.At {
		events, err := a.engine.Store.Tenant(a.tenant).Events(ctx, do.Source, state.Head, forkPage)
		if err != nil {
			return do, err
		}
		if len(events) == 0 {
			break // retention deleted the chunks at the end of the log
		}
		for _, e := range events {
			if e.Seq > do.At {
				break
			}
			state = parley.Fold(state, e)
			transcript.Read(e)
		}
		if events[len(events)-1].Seq > do.At {
			break
		}
	}
	project, err := a.projectFor(state.Project)
	if parley.CodeOf(err) == parley.CodeInvalid {
		err = notServed(state.Project)
	}
	if err != nil {
		return do, err
	}
	if do.Title == "" {
		do.Title = m.Title
	}
	do.Agent, do.Project, do.Sources = state.Agent, a.engine.projects.nameToRecord(a.tenant, project), state.Sources
	do.Messages = parley.ForkOf(transcript.Messages())
	return do, nil
}
