package port

import (
	"context"

	"parley"
)

// A Screen checks texts on their way in and out. It only computes; all methods
// may be called concurrently.
type Screen interface {
	// Scan judges a text of a user or of a tool result, together with the
	// recent inputs before it.
	Scan(recent []string, text string) parley.Finding
	// Canary returns the canary of a session: a word that its model gets and
	// must never write.
	Canary(parley.TenantID, parley.SessionID) Canary
	// Redactor removes secrets from a text that arrives in chunks and that the tenant will see: the secrets of the
	// server, and the secrets that administrators of this tenant have entered. It keeps secrets of other tenants,
	// because removing them would reveal what they are.
	Redactor(parley.TenantID) Filter
	// LogRedactor removes the secrets of all tenants from a text that only the operator will see.
	LogRedactor() Filter
	// HasSecret reports whether a text contains a secret of the server or of the tenant.
	HasSecret(tenant parley.TenantID, text string) bool
}

// A Canary is in no event, snapshot or backup.
type Canary interface {
	Word() string
	// Filter returns a filter that lets no part of the word through, in any
	// chunks and in any usual encoding. Its output ends before the chunk that
	// would complete the word, and from then on Leaked is true.
	Filter() LeakFilter
	Contains(text string) bool
}

// A Filter holds back only text that may still have to be changed.
type Filter interface {
	Write(piece string) string
	Close() string // returns the text that was held back; a LeakFilter accepts more text afterwards
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
