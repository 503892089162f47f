package port

import (
	"time"

	"parley"
)

// A UserInfo is a user of a tenant that has a session or is named in the audit. There is no list of accounts: a token
// names its user.
type UserInfo struct {
	ID            parley.PrincipalID `json:"id"`
	Conversations int                `json:"conversations"` // not deleted, and not of sub-agents
	SeenAt        time.Time          `json:"seen_at"`       // time of the user's last record
}

// A WebhookQuery filters a list of the webhooks of sessions, in the order of the sessions' ids.
type WebhookQuery struct {
	Owner parley.PrincipalID // empty: all owners
	After parley.SessionID
	Limit int
}

// A SessionWebhook is an entry in a list of webhooks.
type SessionWebhook struct {
	Session parley.SessionID   `json:"session"`
	Title   string             `json:"title"`
	Owner   parley.PrincipalID `json:"owner"`
	WebhookInfo
}
