package port

import (
	"context"

	"parley"
)

// A Screen looks at texts on their way in and out. It computes, and nothing
// else; all methods may be called concurrently.
type Screen interface {
	// Scan judges a text that somebody sent, or that a tool has read, with what
	// was said before it.
	Scan(recent []string, text string) parley.Finding
	// Canary is the word that the model of a session is given and must never
	// say.
	Canary(parley.TenantID, parley.SessionID) Canary
	// Redactor takes secrets out of a text that comes in pieces and that the tenant will see: those of the server, and
	// those that administrators of this tenant have entered. What another tenant has entered stays, so that nobody
	// finds out what it is.
	Redactor(parley.TenantID) Filter
	// LogRedactor takes the secrets of all tenants out of a text that only the operator will see.
	LogRedactor() Filter
	// HasSecret reports whether a text holds a secret of the server or of the tenant.
	HasSecret(tenant parley.TenantID, text string) bool
}

// A Canary is in no event, snapshot or backup.
type Canary interface {
	Word() string
	// Filter lets nothing of the word through, in whatever pieces or usual
	// encoding it comes: the piece that would complete it is the end of what
	// it returns, and from then on it has leaked.
	Filter() LeakFilter
	Contains(text string) bool
}

// A Filter holds back no more than could still become something to be changed.
type Filter interface {
	Write(piece string) string
	Close() string // what was held back; for a LeakFilter not yet the end
}

type LeakFilter interface {
	Filter
	Leaked() bool
}

// A Classifier judges an input with more than rules. It is asked before the
// model, and has two seconds.
type Classifier interface {
	Classify(ctx context.Context, text string) (parley.Finding, error)
}
