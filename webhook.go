package parley

import (
	"slices"
)

// A webhook is a URL that is told when a run ends or a person is needed: a
// session's, which its owner names, or an agent's, which its file does. The log
// says that somebody is to be told, in the batch of what they are told about. It
// knows whom by host and port alone: the URL, which may hold a secret, and the
// secret by which messages are signed are in no event.

// A HookEvent is something a webhook is told of.
type HookEvent string

const (
	HookFinished HookEvent = "run_finished"
	HookNeeded   HookEvent = "person_needed" // an approval or a question, or a call of unknown outcome
)

// Webhook: tell a URL. See EffectEnqueued.
const Webhook EffectType = "webhook"

// A Hook is what the log knows of a webhook. It can be compared, as steps are.
type Hook struct {
	Target   string `json:"target"` // host:port
	Finished bool   `json:"run_finished,omitempty"`
	Needed   bool   `json:"person_needed,omitempty"`
}

// HookOf is a hook for some events; none: for all.
func HookOf(target string, events []HookEvent) Hook {
	all := len(events) == 0
	return Hook{target, all || slices.Contains(events, HookFinished), all || slices.Contains(events, HookNeeded)}
}

// Events lists what the hook is for.
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

// A HookRef says whose hook it is: a session's, or that of an agent by the digest
// of its definition.
type HookRef struct {
	Hook
	Session SessionID `json:"session,omitempty"`
	Agent   string    `json:"agent,omitempty"`
}

// WebhookChanged: the session has this webhook from now on; without a target it
// has none.
type WebhookChanged struct {
	Hook
}

// An AgentWebhook is that of an agent's file. The secret is in the server's
// environment, under this name.
type AgentWebhook struct {
	URL       string      `json:"url"`
	Events    []HookEvent `json:"events,omitempty"` // none: all
	SecretEnv string      `json:"secret_env"`
	Target    string      `json:"target"`
}

// SetWebhook gives the session a webhook, or with no target takes it away. Only
// the engine makes it, by what Door.SetWebhook was asked for.
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
	// Its secret has to be sealed and its URL looked at.
	return Rules{Action: ActMessage, ServerOnly: "A webhook is set by a request of its own."}
}

func (do SetWebhook) decide(d *decision, _ Command) error {
	if d.s.Parent != nil {
		return Errorf(CodeInvalid, "The session of a sub-agent has no webhook of its own; that of the session above "+
			"it is told.")
	}
	if do.Hook == (Hook{}) && d.s.Hook == (Hook{}) {
		return Errorf(CodeNotFound, "This session has no webhook.")
	}
	d.emit(0, WebhookChanged{do.Hook}) // also if only the URL or the secret is another
	return nil
}

// hooks are all that may have to be told of what happens in a session.
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

// below are those that are told of what happens in a child of the open run: that
// a person is needed. That a child's run has ended is the parent's affair.
func (s State) below() (list []HookRef) {
	for _, h := range s.hooks(s.Run.Agent) {
		if h.Finished = false; h.Needed {
			list = append(list, h)
		}
	}
	return list
}

// tell promises to tell webhooks of an event that was just decided. Every way in
// which a run ends or waits for a person comes by here.
func (d *decision) tell(e Event, before State) {
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
		within = 0 // it has ended
	}
	for _, h := range before.hooks(run.Agent) {
		if what == HookFinished && h.Finished || what == HookNeeded && h.Needed {
			d.emit(within, EffectEnqueued{Type: Webhook, Hook: &HookPromise{Event: what, About: e.Seq, Run: e.Run,
				HookRef: HookRef{Hook{Target: h.Target}, h.Session, h.Agent}}})
		}
	}
}

// A HookPromise is what a webhook is to be told of.
type HookPromise struct {
	Event HookEvent `json:"event"`
	About Seq       `json:"about"` // of the event that says the rest
	Run   RunID     `json:"run"`
	HookRef
}
