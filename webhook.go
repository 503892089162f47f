package parley

import (
	"context"
	"slices"
	"strings"
	"time"
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

// CheckHookEvents says which of them there is not.
func CheckHookEvents(events []HookEvent) error {
	for i, e := range events {
		if e != HookFinished && e != HookNeeded || slices.Contains(events[:i], e) {
			return Errorf(CodeInvalid, "A webhook is told of %s and %s, each named once; there is no %q.", HookFinished,
				HookNeeded, e)
		}
	}
	return nil
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

// A StoredWebhook is the webhook of a session as it is kept, beside the log.
type StoredWebhook struct {
	URL    string
	Sealed []byte // the secret
	Hook   Hook
	At     time.Time // when it was set
	Gone   time.Time // when the receiver said that it wants no more; zero: it did not
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

// A HookStore finds the webhooks that are to be told, of every tenant, and keeps
// how far that got. What is being told is claimed until a time: who made the
// claim may be dead by then, and somebody else makes another.
type HookStore interface {
	// DueHooks lists those whose time has come, soonest first, without those of
	// whom is busy, and says when the next one's will be (zero: there is none).
	// Those whose time is further off than any retry are due, and listed last.
	DueHooks(ctx context.Context, now time.Time, except HooksBusy, limit int) (due []HookDue, next time.Time, err error)
	// ClaimHook claims one as it was listed, and is false if somebody else has.
	ClaimHook(ctx context.Context, due HookDue, now, until time.Time) (bool, error)
	// SettleHook says what came of one. Whoever's claim has run out changes
	// nothing any more, unless it was told.
	SettleHook(ctx context.Context, due HookDue, until time.Time, fate HookFate) error
	// HookGone notes that a receiver wants no more, of a session or of
	// AgentHook; it holds as long as the URL is this one.
	HookGone(ctx context.Context, tenant TenantID, whose SessionID, url string, at time.Time) error
}

// HooksBusy are those who have enough under way.
type HooksBusy struct {
	Targets []string
	Tenants []TenantID
}

// AgentHook is the place of an agent's webhook among those of sessions.
func AgentHook(agent string) SessionID { return SessionID("agent:" + agent) }

// A HookDue is an effect that tells a webhook.
type HookDue struct {
	Tenant   TenantID
	Session  SessionID
	Effect   Seq
	Attempts int // made so far
	Made     time.Time
	Next     time.Time // when it is to be tried
	HookPromise
}

// A HookFate is what came of an attempt. One that is still pending is tried again
// at Next.
type HookFate struct {
	Status EffectStatus
	Why    string
	At     time.Time
	Next   time.Time
}

// IsAgentHook reports whether a place is an agent's.
func IsAgentHook(whose SessionID) bool { return strings.HasPrefix(string(whose), "agent:") }

// Webhooks judges URLs, and seals secrets.
type Webhooks interface {
	// Check says what is wrong with a URL, and who is told by it, as host:port.
	Check(url string) (target string, err error)
	// Seal makes a secret, unless one is given, and seals it for its place.
	Seal(tenant TenantID, session SessionID, secret string) (plain string, sealed []byte, err error)
}

// A WebhookAsk is what an owner wants.
type WebhookAsk struct {
	URL    string
	Events []HookEvent // none: all
	Secret string      // empty: one is made
}

// A WebhookInfo is what is shown of a session's webhook.
type WebhookInfo struct {
	URL    string      `json:"url"`
	Events []HookEvent `json:"events"`
	Status string      `json:"status"`           // active, or gone: the receiver wants no more
	Secret string      `json:"secret,omitempty"` // told once, to who sets it
	SetAt  time.Time   `json:"set_at"`
	GoneAt time.Time   `json:"gone_at,omitzero"`
}
