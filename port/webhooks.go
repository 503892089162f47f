package port

import (
	"context"
	"slices"
	"strings"
	"time"

	"parley"
)

// Webhooks checks URLs, and seals secrets.
type Webhooks interface {
	// Check returns the target of a URL as host:port, or the reason why the URL
	// is not allowed.
	Check(url string) (target string, err error)
	// Seal creates a secret, unless one is given, and seals it for its session.
	Seal(tenant parley.TenantID, session parley.SessionID, secret string) (plain string, sealed []byte, err error)
	// Try sends a sample to the webhook of a session, once.
	Try(ctx context.Context, tenant parley.TenantID, session parley.SessionID, hook StoredWebhook) (WebhookTrial, error)
}

// A WebhookTrial is the result of sending a sample to a webhook.
type WebhookTrial struct {
	Delivered    bool   `json:"delivered"`        // the receiver's answer counts as a delivery
	Reason       string `json:"reason,omitempty"` // why it was not delivered
	Status       int    `json:"status,omitempty"` // HTTP status of the answer; zero: there was none
	Milliseconds int64  `json:"milliseconds"`
	Answer       string `json:"answer,omitempty"`   // its first kilobyte
	Withheld     bool   `json:"withheld,omitempty"` // there is an answer, but this user may not see it
	Private      bool   `json:"-"`                  // its address is permitted only by the operator's list
}

// A WebhookAsk is a request of an owner for a webhook.
type WebhookAsk struct {
	URL    string
	Events []parley.HookEvent // none: all events
	Secret string             // empty: the server creates one
}

// CheckHookEvents rejects unknown and repeated events.
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

// A WebhookInfo is the public part of a session's webhook.
type WebhookInfo struct {
	URL    string             `json:"url"`
	Events []parley.HookEvent `json:"events"`
	Status string             `json:"status"`           // active, or gone: the receiver wants no more deliveries
	Secret string             `json:"secret,omitempty"` // returned once, to the user who sets it
	SetAt  time.Time          `json:"set_at"`
	GoneAt time.Time          `json:"gone_at,omitzero"`
}

// A StoredWebhook is the webhook of a session in the store, beside the log.
type StoredWebhook struct {
	URL    string
	Sealed []byte // the secret
	Hook   parley.Hook
	At     time.Time // when it was set
	Gone   time.Time // when the receiver refused further deliveries; zero: it has not
}

// Info returns the webhook without the secret.
func (h StoredWebhook) Info() WebhookInfo {
	info := WebhookInfo{URL: h.URL, Events: h.Hook.Events(), Status: "active", SetAt: h.At, GoneAt: h.Gone}
	if !h.Gone.IsZero() {
		info.Status = "gone"
	}
	return info
}

// A HookStore finds the webhooks to deliver, of every tenant, and records the
// progress. A delivery under way is claimed until a time. After that, the
// dispatcher with the claim counts as dead, and another one can claim the
// delivery.
type HookStore interface {
	// DueHooks lists due deliveries, soonest first, skipping busy receivers and
	// tenants. It also returns when the next one is due (zero: none). A
	// delivery that is further off than any retry counts as due, and is listed
	// last.
	DueHooks(ctx context.Context, now time.Time, except HooksBusy, limit int) (due []HookDue, next time.Time, err error)
	// ClaimHook claims a delivery as it was listed. It returns false if another
	// dispatcher has claimed it.
	ClaimHook(ctx context.Context, due HookDue, now, until time.Time) (bool, error)
	// SettleHook records the result of an attempt. After the claim has run out,
	// it changes nothing, unless the webhook was delivered.
	SettleHook(ctx context.Context, due HookDue, until time.Time, fate HookFate) error
	// HookGone records that a receiver wants no more deliveries, for a session
	// or for an AgentHook. It applies as long as the URL stays the same.
	HookGone(ctx context.Context, tenant parley.TenantID, whose parley.SessionID, url string, at time.Time) error
}

// HooksBusy are the receivers and tenants with enough deliveries under way.
type HooksBusy struct {
	Targets []string
	Tenants []parley.TenantID
}

// A HookDue is a due webhook delivery.
type HookDue struct {
	Tenant   parley.TenantID
	Session  parley.SessionID
	Effect   parley.Seq
	Attempts int // attempts so far
	Made     time.Time
	Next     time.Time // time of the next attempt
	parley.HookPromise
}

// A HookFate is the result of an attempt. If the status is still pending, the
// next attempt is at Next.
type HookFate struct {
	Status EffectStatus
	Why    string
	At     time.Time
	Next   time.Time
}

// AgentHook returns the key of an agent's webhook among the webhooks of
// sessions.
func AgentHook(agent string) parley.SessionID { return parley.SessionID("agent:" + agent) }

// IsAgentHook reports whether a key is an agent's.
func IsAgentHook(whose parley.SessionID) bool { return strings.HasPrefix(string(whose), "agent:") }
