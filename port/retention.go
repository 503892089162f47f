package port

import (
	"fmt"
	"time"

	"parley"
)

// A Retention says how long a tenant keeps its data. Zero: for ever.
type Retention struct {
	Chunks      time.Duration // streamed chunks of answers, since the answer was finished
	Transcripts time.Duration // whole sessions, since their last change
	Artifacts   time.Duration // long outputs of tools, since they were written
	Audit       time.Duration // records of the audit, in whole days; at least ShortestAudit
}

// ShortestAudit is the minimum of Audit, so that a wrong setting cannot delete the records of recent events.
const ShortestAudit = 30 * 24 * time.Hour

// Shortest returns the shortest time of all; zero: everything is kept for ever.
func (r Retention) Shortest() (shortest time.Duration) {
	for _, d := range []time.Duration{r.Chunks, r.Transcripts, r.Artifacts, r.Audit} {
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
	Kind   HoldKind           `json:"kind"`
	ID     string             `json:"id"` // of the session or the user
	Reason string             `json:"reason"`
	By     parley.PrincipalID `json:"by"`
	At     time.Time          `json:"at"`
}

// String describes a hold in the middle of a sentence.
func (h LegalHold) String() string {
	return fmt.Sprintf("a legal hold on %s %s since %s (%s)", h.Kind, h.ID, h.At.UTC().Format(time.DateOnly), h.Reason)
}

// A HoldChange sets a legal hold or releases it.
type HoldChange struct {
	LegalHold
	Release bool
}

// Check validates a change.
func (c HoldChange) Check() error {
	const maxHeld = 256
	switch {
	case c.Kind != HoldSession && c.Kind != HoldUser:
		return parley.Errorf(parley.CodeInvalid, "A legal hold is on a session or a user, not on %q.", string(c.Kind))
	case c.ID == "" || parley.SessionID(c.ID) == parley.TenantSession:
		return parley.Errorf(parley.CodeInvalid, "Say which %s is to be held.", c.Kind)
	case len(c.ID) > maxHeld || parley.CleanText(c.ID) != c.ID:
		return parley.Errorf(parley.CodeInvalid, "The id of a %s has at most %d bytes and no control characters.",
			c.Kind, maxHeld)
	case !c.Release && parley.IsBlank(c.Reason):
		return parley.Errorf(parley.CodeInvalid, "A legal hold needs a reason.")
	case len(c.Reason) > parley.MaxNote:
		return parley.Errorf(parley.CodeTooLarge, "The reason of a legal hold has at most %d bytes.", parley.MaxNote)
	}
	return nil
}

// Record returns the audit record of the change.
func (c HoldChange) Record() parley.Audit {
	action, values := auditHoldSet, map[string]any{"kind": c.Kind, "reason": c.Reason}
	if c.Release {
		action, values = auditHoldReleased, map[string]any{"kind": c.Kind}
	}
	return parley.Audit{At: c.At, By: c.By, Action: action, Resource: string(c.Kind), ID: c.ID, Source: parley.ViaHTTP,
		Metadata: parley.Metadata(values)}
}

// LegalHolds are the legal holds of a tenant.
type LegalHolds []LegalHold

// On returns the hold on a session with this root, or on its owner; nil: none.
func (l LegalHolds) On(root parley.SessionID, owner parley.PrincipalID) *LegalHold {
	for i, h := range l {
		if h.Kind == HoldSession && h.ID == string(root) || h.Kind == HoldUser && h.ID == string(owner) {
			return &l[i]
		}
	}
	return nil
}

// An OldSession has not been changed since some time.
type OldSession struct {
	ID        parley.SessionID
	Owner     parley.PrincipalID
	UpdatedAt time.Time
	Members   []parley.SessionID // its sub-agents, and finally the session itself
	Bytes     int64              // of all their events
	Open      bool               // a run is open
	Owed      bool               // a timer is pending, or an effect such as a webhook
}

// Needed returns the reason why a session may not be deleted yet; empty: it may.
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

// AddMember adds a session to the tree of an old session. The old session becomes the last entry of the list, if it is
// not already.
func AddMember(list []OldSession, of OldSession, member parley.SessionID, bytes int64, open, owed bool) []OldSession {
	if len(list) == 0 || list[len(list)-1].ID != of.ID {
		list = append(list, of)
	}
	s := &list[len(list)-1]
	s.Members, s.Bytes = append(s.Members, member), s.Bytes+bytes
	s.Open, s.Owed = s.Open || open, s.Owed || owed
	return list
}

// A RetentionReport counts the data that the retention rules have deleted, or would delete.
type RetentionReport struct {
	DryRun    bool          `json:"dry_run"` // nothing was deleted
	Chunks    int           `json:"chunks"`
	Sessions  int           `json:"sessions"`
	Bytes     int64         `json:"bytes"` // of the sessions
	Artifacts int           `json:"artifacts"`
	Audit     int           `json:"audit"`          // records
	Kept      []KeptSession `json:"kept"`           // the first sessions that a rule skips
	More      int           `json:"more,omitempty"` // number of further sessions kept
	Note      string        `json:"note,omitempty"` // why a rule could not be applied
}

// Keep records that a rule skips a session.
func (r *RetentionReport) Keep(s OldSession, reason string) {
	if len(r.Kept) == maxKept {
		r.More++
		return
	}
	r.Kept = append(r.Kept, KeptSession{s.ID, s.Owner, reason})
}

// A KeptSession is a session that a rule skips.
type KeptSession struct {
	Session parley.SessionID   `json:"session"` // empty: the audit of the tenant
	Owner   parley.PrincipalID `json:"owner"`
	Reason  string             `json:"reason"`
}

// maxKept limits the number of sessions that a report lists.
const maxKept = 100

// RetentionRecord returns the audit record of sessions that a rule has deleted.
func RetentionRecord(at time.Time, by parley.PrincipalID, sessions []OldSession, artifacts int) parley.Audit {
	var bytes int64
	ids := []parley.SessionID{}
	for _, s := range sessions {
		bytes += s.Bytes
		ids = append(ids, s.ID)
	}
	return parley.Audit{At: at, By: by, Action: AuditRetention, Resource: "tenant", Source: sourceOf(by),
		Metadata: parley.Metadata(map[string]any{"sessions": ids, "bytes": bytes, "artifacts": artifacts})}
}
