package parley

import (
	"fmt"
	"time"
)

// A Retention says how long a tenant keeps its data. Zero: for ever.
type Retention struct {
	Chunks      time.Duration // streamed chunks of answers, since the answer was finished
	Transcripts time.Duration // whole sessions, since their last change
	Artifacts   time.Duration // long outputs of tools, since they were written
}

// Shortest is the shortest time of all; zero: everything is kept for ever.
func (r Retention) Shortest() (shortest time.Duration) {
	for _, d := range []time.Duration{r.Chunks, r.Transcripts, r.Artifacts} {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

// A HoldKind says what a legal hold covers.
type HoldKind string

const (
	HoldSession HoldKind = "session" // with its sub-agents
	HoldUser    HoldKind = "user"    // all sessions of the user
)

// A LegalHold keeps sessions from retention and erasure until it is released.
type LegalHold struct {
	Kind   HoldKind    `json:"kind"`
	ID     string      `json:"id"` // of the session or the user
	Reason string      `json:"reason"`
	By     PrincipalID `json:"by"`
	At     time.Time   `json:"at"`
}

// A HoldChange sets a legal hold or releases it.
type HoldChange struct {
	LegalHold
	Release bool
}

// Check says what is wrong with a change.
func (c HoldChange) Check() error {
	const maxHeld = 256
	switch {
	case c.Kind != HoldSession && c.Kind != HoldUser:
		return Errorf(CodeInvalid, "A legal hold is on a session or a user, not on %q.", string(c.Kind))
	case c.ID == "" || SessionID(c.ID) == TenantSession:
		return Errorf(CodeInvalid, "Say which %s is to be held.", c.Kind)
	case len(c.ID) > maxHeld || CleanText(c.ID) != c.ID:
		return Errorf(CodeInvalid, "The id of a %s has at most %d bytes and no control characters.", c.Kind, maxHeld)
	case !c.Release && IsBlank(c.Reason):
		return Errorf(CodeInvalid, "A legal hold needs a reason.")
	case len(c.Reason) > MaxNote:
		return Errorf(CodeTooLarge, "The reason of a legal hold has at most %d bytes.", MaxNote)
	}
	return nil
}

// Record is the audit record of the change.
func (c HoldChange) Record() Audit {
	action, values := auditHoldSet, map[string]any{"kind": c.Kind, "reason": c.Reason}
	if c.Release {
		action, values = auditHoldReleased, map[string]any{"kind": c.Kind}
	}
	return Audit{At: c.At, By: c.By, Action: action, Resource: string(c.Kind), ID: c.ID, Source: ViaHTTP,
		Metadata: Metadata(values)}
}

// LegalHolds are those of a tenant.
type LegalHolds []LegalHold

// On is the hold on a session, whose root is given, or on its owner; nil: there is none.
func (l LegalHolds) On(root SessionID, owner PrincipalID) *LegalHold {
	for i, h := range l {
		if h.Kind == HoldSession && h.ID == string(root) || h.Kind == HoldUser && h.ID == string(owner) {
			return &l[i]
		}
	}
	return nil
}

// String describes a hold in the middle of a sentence.
func (h LegalHold) String() string {
	return fmt.Sprintf("a legal hold on %s %s since %s (%s)", h.Kind, h.ID, h.At.UTC().Format(time.DateOnly), h.Reason)
}

// An OldSession was not changed since some time.
type OldSession struct {
	ID        SessionID
	Owner     PrincipalID
	UpdatedAt time.Time
	Members   []SessionID // its sub-agents, and last the session itself
	Bytes     int64       // of all their events
	Open      bool        // a run is open
	Owed      bool        // a timer, or an effect such as a webhook, is owed
}

// AddMember adds a session of the tree of an old one to the list, which has the tree above it last, if any of it.
func AddMember(list []OldSession, of OldSession, member SessionID, bytes int64, open, owed bool) []OldSession {
	if len(list) == 0 || list[len(list)-1].ID != of.ID {
		list = append(list, of)
	}
	s := &list[len(list)-1]
	s.Members, s.Bytes = append(s.Members, member), s.Bytes+bytes
	s.Open, s.Owed = s.Open || open, s.Owed || owed
	return list
}

// Needed says why a session may not be deleted yet; empty: it may.
func (s OldSession) Needed(holds LegalHolds) string {
	switch h := holds.On(s.ID, s.Owner); {
	case h != nil:
		return h.String()
	case s.Open:
		return "a run is open"
	case s.Owed:
		return "a timer, webhook or other effect is owed"
	}
	return ""
}

// A RetentionReport is what the rules of retention have deleted, or would delete.
type RetentionReport struct {
	DryRun    bool          `json:"dry_run"` // nothing was deleted
	Chunks    int           `json:"chunks"`
	Sessions  int           `json:"sessions"`
	Bytes     int64         `json:"bytes"` // of the sessions
	Artifacts int           `json:"artifacts"`
	Kept      []KeptSession `json:"kept"`           // the first ones that a rule passes over
	More      int           `json:"more,omitempty"` // how many more are kept
	Note      string        `json:"note,omitempty"` // why a rule could not be carried out
}

// A KeptSession is one that a rule passes over.
type KeptSession struct {
	Session SessionID   `json:"session"`
	Owner   PrincipalID `json:"owner"`
	Reason  string      `json:"reason"`
}

// maxKept bounds how many sessions a report lists.
const maxKept = 100

// Keep notes that a session is passed over.
func (r *RetentionReport) Keep(s OldSession, reason string) {
	if len(r.Kept) == maxKept {
		r.More++
		return
	}
	r.Kept = append(r.Kept, KeptSession{s.ID, s.Owner, reason})
}

// RetentionRecord is the audit record of sessions that a rule has deleted.
func RetentionRecord(at time.Time, by PrincipalID, sessions []OldSession, artifacts int) Audit {
	var bytes int64
	ids := []SessionID{}
	for _, s := range sessions {
		bytes += s.Bytes
		ids = append(ids, s.ID)
	}
	source := "system"
	if by != "" {
		source = ViaHTTP
	}
	return Audit{At: at, By: by, Action: auditRetention, Resource: "tenant", Source: source,
		Metadata: Metadata(map[string]any{"sessions": ids, "bytes": bytes, "artifacts": artifacts})}
}
