package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"parley"
	"parley/port"
)

// A message is the body of a delivery: the event and where to look, but no text
// of the conversation. It is made from the log alone, so it is the same for
// every attempt.
type message struct {
	Type      parley.HookEvent `json:"type"`
	Timestamp time.Time        `json:"timestamp"`
	Data      data             `json:"data"`
}

type data struct {
	Tenant  parley.TenantID  `json:"tenant"`
	Session parley.SessionID `json:"session"`
	Root    parley.SessionID `json:"root"` // differs from Session for a sub-agent
	Run     string           `json:"run"`
	Agent   string           `json:"agent"`
	Request string           `json:"request,omitempty"` // the caller's name for the input

	Outcome parley.Outcome `json:"outcome,omitempty"` // for a run that has ended
	Code    parley.Code    `json:"code,omitempty"`
	Usage   *parley.Usage  `json:"usage,omitempty"`

	Kind    parley.CardKind `json:"kind,omitempty"` // for a card that waits for a person
	ID      string          `json:"id,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Expires *time.Time      `json:"expires,omitempty"`

	Links map[string]string `json:"links"`
}

var errNoEvent = errors.New("the log does not have the event")

// compose makes the message of a delivery from the log.
func compose(ctx context.Context, logs port.TenantStore, d port.HookDue, base string) ([]byte, error) {
	about, err := event(ctx, logs, d.Session, d.About)
	if err != nil {
		return nil, err
	}
	first, err := event(ctx, logs, d.Session, parley.Seq(d.Run))
	if err != nil {
		return nil, err
	}
	started, ok := first.Body.(parley.RunStarted)
	if !ok {
		return nil, errNoEvent
	}
	run := parley.Ref(d.Session, parley.Seq(d.Run))
	m := message{Type: d.Event, Timestamp: about.At, Data: data{Tenant: d.Tenant, Session: d.Session, Root: about.Root,
		Run: run, Agent: started.Agent.Name, Request: started.Request,
		Links: map[string]string{"session": base + "/api/v1/sessions/" + string(d.Session),
			"run": base + "/api/v1/runs/" + run}}}
	card := func(kind parley.CardKind, seq parley.Seq, route string) {
		m.Data.Kind, m.Data.ID = kind, parley.Ref(d.Session, seq)
		m.Data.Links["answer"] = base + "/api/v1/" + route + "/" + m.Data.ID
	}
	switch b := about.Body.(type) {
	case parley.RunFinished:
		m.Data.Outcome, m.Data.Code, m.Data.Usage = b.Outcome, b.Code, &b.Usage
	case parley.ApprovalRequested:
		card(parley.CardApproval, about.Seq, "approvals")
		m.Data.Tool, m.Data.Expires = b.Name, &b.Expires
	case parley.QuestionAsked:
		card(parley.CardQuestion, about.Seq, "questions")
		m.Data.Expires = &b.Expires
	case parley.ToolCallFinished:
		card(parley.CardCall, parley.Seq(b.Call), "calls")
		m.Data.Tool = b.Name
	default:
		return nil, errNoEvent
	}
	return json.Marshal(m)
}

func event(ctx context.Context, logs port.TenantStore, session parley.SessionID, seq parley.Seq) (parley.Event,
	error) {
	if seq < 1 {
		return parley.Event{}, errNoEvent
	}
	events, err := logs.Events(ctx, session, seq-1, 1)
	if err != nil {
		return parley.Event{}, err
	}
	if len(events) == 0 || events[0].Seq != seq {
		return parley.Event{}, errNoEvent
	}
	return events[0], nil
}
