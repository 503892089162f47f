package parley

import (
	"slices"
)

// A webhook is a URL that the server calls when a run ends or needs a person.
// The owner of a session can set one, and the file of an agent can contain one.
// The log promises the delivery, in the batch of the event that it is about. It
// identifies a receiver only by host and port. No event contains the URL, which
// may hold a secret, or the secret that signs the messages.

// A HookEvent is an event that a webhook delivers.
type HookEvent string

const (
	HookFinished HookEvent = "run_finished"
	HookNeeded   HookEvent = "person_needed" // an approval or a question, or a call of unknown outcome
)

// Webhook is the effect of a webhook: call a URL. See EffectEnqueued.
const Webhook EffectType = "webhook"

// A Hook is the part of a webhook that the log records. It is comparable, as
// steps are.
type Hook struct {
	Target   string `json:"target"` // host:port
	Finished bool   `json:"run_finished,omitempty"`
	Needed   bool   `json:"person_needed,omitempty"`
}

// HookOf returns a hook for some events; none: all events.
func HookOf(target string, events []HookEvent) Hook {
	all := len(events) == 0
	return Hook{target, all || slices.Contains(events, HookFinished), all || slices.Contains(events, HookNeeded)}
}

// Events lists the events that the hook delivers.
func (h Hook) Events() []HookEvent {
	events := []HookEvent{}
	if h.Finished {
		events = append(events, HookFinished)
	}
	if h.Needed {
		events = append(events, HookNeeded)
	}
	return events
}

// A HookRef identifies the owner of a hook: a session, or an agent by the digest
// of its definition.
type HookRef struct {
	Hook
	Session SessionID `json:"session,omitempty"`
	Agent   string    `json:"agent,omitempty"`
}

// WebhookChanged: the session has this webhook from now on; without a target,
// it has none.
type WebhookChanged struct {
	Hook
}

// An AgentWebhook is the webhook in an agent's file. SecretEnv names the
// variable of the server's environment that holds the secret.
type AgentWebhook struct {
	URL       string      `json:"url"`
	Events    []HookEvent `json:"events,omitempty"` // none: all
	SecretEnv string      `json:"secret_env"`
	Target    string      `json:"target"`
}

// SetWebhook sets the webhook of the session; without a target it removes the
// webhook. Only the engine creates it, from Door.SetWebhook.
type SetWebhook struct {
	Hook   Hook
	URL    string
	Sealed []byte // the secret
}

func (b WebhookChanged) fold(s State, _ Event) State {
	s.Hook = b.Hook
	return s
}

func (SetWebhook) Rules() Rules {
	// The secret must be sealed and the URL checked first.
	return Rules{Action: ActMessage, Starts: true, ServerOnly: "A webhook is set by a request of its own."}
}

func (do SetWebhook) decide(d *decision, _ Command) error {
	if d.s.Parent != nil {
		return Errorf(CodeInvalid, "The session of a sub-agent has no webhook of its own; that of the session above "+
			"it is told.")
	}
	if do.Hook == (Hook{}) && d.s.Hook == (Hook{}) {
		return Errorf(CodeNotFound, "This session has no webhook.")
	}
	d.emit(0, WebhookChanged{do.Hook}) // even if only the URL or the secret changes
	return nil
}

// hooks returns the webhooks that may have to deliver an event of the session.
func (s State) hooks(agent AgentRef) []HookRef {
	list := slices.Clone(s.Above)
	if s.Hook != (Hook{}) {
		list = append(list, HookRef{Hook: s.Hook, Session: s.ID})
	}
	if agent.Hook != (Hook{}) {
		list = append(list, HookRef{Hook: agent.Hook, Agent: agent.Digest})
	}
	return list
}

// below returns the webhooks for a child of the open run. They deliver that a
// person is needed. They do not deliver the end of the child's run, which
// concerns only the parent.
func (s State) below() (list []HookRef) {
	for _, h := range s.hooks(s.Run.Agent) {
		if h.Finished = false; h.Needed {
			list = append(list, h)
		}
	}
	return list
}

// enqueueWebhooks promises the delivery of a decided event to webhooks. Every end
// of a run, and every card, passes through here.
func (d *decision) enqueueWebhooks(e Event, before State) {
	var what HookEvent
	run := before.Run
	switch b := e.Body.(type) {
	case RunFinished:
		what = HookFinished
	case ApprovalRequested, QuestionAsked:
		what = HookNeeded
	case ToolCallFinished:
		if b.Outcome != CallUnknown {
			return
		}
		what = HookNeeded
	default:
		return
	}
	if run == nil {
		return
	}
	within := e.Run
	if what == HookFinished {
		within = 0 // the run has ended
	}
	for _, h := range before.hooks(run.Agent) {
		if what == HookFinished && h.Finished || what == HookNeeded && h.Needed {
			d.emit(within, EffectEnqueued{Type: Webhook, Hook: &HookPromise{Event: what, About: e.Seq, Run: e.Run,
				HookRef: HookRef{Hook{Target: h.Target}, h.Session, h.Agent}}})
		}
	}
}

// A HookPromise is the event that a webhook must deliver.
type HookPromise struct {
	Event HookEvent `json:"event"`
	About Seq       `json:"about"` // Seq of the event with the details
	Run   RunID     `json:"run"`
	HookRef
}
