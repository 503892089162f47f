package port

import (
	"time"

	"parley"
)

// A UserInfo is a user of a tenant that has a session or is named in the audit. There is no list of accounts: a token
// names its user.
type UserInfo struct {
	ID            parley.PrincipalID `json:"id"`
	Conversations int                `json:"conversations"` // not deleted; those of sub-agents do not count
	SeenAt        time.Time          `json:"seen_at"`       // when something of the user was last recorded
}

// A WebhookQuery narrows a list of the webhooks of sessions, in order of the sessions' ids.
type WebhookQuery struct {
	Owner parley.PrincipalID // empty: everybody's
	After parley.SessionID
	Limit int
}

// A SessionWebhook is what a list of webhooks shows.
type SessionWebhook struct {
	Session parley.SessionID   `json:"session"`
	Title   string             `json:"title"`
	Owner   parley.PrincipalID `json:"owner"`
	WebhookInfo
}
