package port

import (
	"context"
	"slices"
	"strings"
	"time"

	"parley"
)

// Webhooks judges URLs, and seals secrets.
type Webhooks interface {
	// Check says what is wrong with a URL, and who is told by it, as host:port.
	Check(url string) (target string, err error)
	// Seal makes a secret, unless one is given, and seals it for its place.
	Seal(tenant parley.TenantID, session parley.SessionID, secret string) (plain string, sealed []byte, err error)
	// Try sends a sample to the webhook of a session, once.
	Try(ctx context.Context, tenant parley.TenantID, session parley.SessionID, hook StoredWebhook) (WebhookTrial, error)
}

// A WebhookTrial is what came of a sample that a webhook was sent.
type WebhookTrial struct {
	Delivered    bool   `json:"delivered"`        // it would count as delivered
	Reason       string `json:"reason,omitempty"` // why not
	Status       int    `json:"status,omitempty"` // of the answer; zero: there was none
	Milliseconds int64  `json:"milliseconds"`
	Answer       string `json:"answer,omitempty"`   // its first kilobyte
	Withheld     bool   `json:"withheld,omitempty"` // there is an answer, and it is not for this user
	Private      bool   `json:"-"`                  // it is from an address that only the operator's list permits
}

// A WebhookAsk is what an owner wants.
type WebhookAsk struct {
	URL    string
	Events []parley.HookEvent // none: all
	Secret string             // empty: one is made
}

// CheckHookEvents says which of them there is not.
func CheckHookEvents(events []parley.HookEvent) error {
	for i, e := range events {
		if e != parley.HookFinished && e != parley.HookNeeded || slices.Contains(events[:i], e) {
			return parley.Errorf(parley.CodeInvalid,
				"A webhook is told of %s and %s, each named once; there is no %q.", parley.HookFinished,
				parley.HookNeeded, e)
		}
	}
	return nil
}

// A WebhookInfo is what is shown of a session's webhook.
type WebhookInfo struct {
	URL    string             `json:"url"`
	Events []parley.HookEvent `json:"events"`
	Status string             `json:"status"`           // active, or gone: the receiver wants no more
	Secret string             `json:"secret,omitempty"` // told once, to who sets it
	SetAt  time.Time          `json:"set_at"`
	GoneAt time.Time          `json:"gone_at,omitzero"`
}

// A StoredWebhook is the webhook of a session as it is kept, beside the log.
type StoredWebhook struct {
	URL    string
	Sealed []byte // the secret
	Hook   parley.Hook
	At     time.Time // when it was set
	Gone   time.Time // when the receiver said that it wants no more; zero: it did not
}

// Info is what people are shown of it: without the secret.
func (h StoredWebhook) Info() WebhookInfo {
	info := WebhookInfo{URL: h.URL, Events: h.Hook.Events(), Status: "active", SetAt: h.At, GoneAt: h.Gone}
	if !h.Gone.IsZero() {
		info.Status = "gone"
	}
	return info
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
	HookGone(ctx context.Context, tenant parley.TenantID, whose parley.SessionID, url string, at time.Time) error
}

// HooksBusy are those who have enough under way.
type HooksBusy struct {
	Targets []string
	Tenants []parley.TenantID
}

// A HookDue is an effect that tells a webhook.
type HookDue struct {
	Tenant   parley.TenantID
	Session  parley.SessionID
	Effect   parley.Seq
	Attempts int // made so far
	Made     time.Time
	Next     time.Time // when it is to be tried
	parley.HookPromise
}

// A HookFate is what came of an attempt. One that is still pending is tried again
// at Next.
type HookFate struct {
	Status EffectStatus
	Why    string
	At     time.Time
	Next   time.Time
}

// AgentHook is the place of an agent's webhook among those of sessions.
func AgentHook(agent string) parley.SessionID { return parley.SessionID("agent:" + agent) }

// IsAgentHook reports whether a place is an agent's.
func IsAgentHook(whose parley.SessionID) bool { return strings.HasPrefix(string(whose), "agent:") }
