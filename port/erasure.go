package port

import (
	"slices"
	"time"

	"parley"
)

// An Erasure deletes data of a tenant permanently, in one transaction with its audit record. Unlike a deletion, it
// leaves neither events nor rows.
type Erasure struct {
	Sessions []parley.SessionID // deleted with everything that belongs to them
	// Events of other sessions replace the events with the same session and seq. Writers of these sessions are fenced
	// and read the log again.
	Events []parley.Event
	Titles map[parley.SessionID]string // new titles of these other sessions
	// Definitions are digests of definitions of agents that contain words of a person, and that no other event names up
	// to Read. A definition that a later event names stays.
	Definitions []string
	Read        parley.Position
	// Before: if one of the sessions was changed since, or has an open run, the whole erasure is refused with
	// CodeConflict. Zero: no check.
	Before time.Time
	User   parley.PrincipalID // contexts and tickets of this user are deleted, too; empty: none
	// Begun, if given, is stored until an Erasure has the user in Ended. A later Begun of the same user replaces only
	// the artifacts.
	Begun *BegunErasure
	Ended parley.PrincipalID
	Audit []parley.Audit
}

// A BegunErasure is an erasure of a user that has not ended, because it is under way, failed or was interrupted.
type BegunErasure struct {
	User      parley.PrincipalID
	By        parley.PrincipalID
	At        time.Time
	Artifacts []string // names of artifacts to delete; only this list names them once the events are erased
}

// Record returns the audit record of the beginning.
func (b BegunErasure) Record() parley.Audit {
	return parley.Audit{At: b.At, By: b.By, Action: auditErasureBegan, Resource: "user", ID: string(b.User),
		Source: parley.ViaHTTP, Metadata: parley.Metadata(map[string]any{})}
}

// Touched returns the sessions that the erasure deletes or changes. None of them may be under a legal hold.
func (e Erasure) Touched() []parley.SessionID {
	ids := slices.Clone(e.Sessions)
	for _, event := range e.Events {
		ids = append(ids, event.Session)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// An ErasureReport counts the erased data of a person. It is also the audit record.
type ErasureReport struct {
	User      parley.PrincipalID `json:"user"`
	Sessions  int                `json:"sessions"`
	Events    int                `json:"events"`
	Bytes     int64              `json:"bytes"`    // of the events
	Replaced  int                `json:"replaced"` // events in other sessions that lost the person's words
	Artifacts int                `json:"artifacts"`
	Digest    string             `json:"digest"` // SHA-256 of the erased data, in hexadecimal
	// Rewritten: the files of the database were rewritten, so that they contain no deleted bytes.
	Rewritten bool `json:"rewritten"`
}

// Record returns the audit record of an erasure. It contains counts and a digest, but no erased text.
func (r ErasureReport) Record(at time.Time, by parley.PrincipalID) parley.Audit {
	return parley.Audit{At: at, By: by, Action: AuditUserErased, Resource: "user", ID: string(r.User),
		Source: parley.ViaHTTP,
		Metadata: parley.Metadata(map[string]any{"sessions": r.Sessions, "events": r.Events,
			"bytes": r.Bytes, "replaced": r.Replaced, "artifacts": r.Artifacts, "digest": r.Digest})}
}

// erasedText replaces erased words.
const erasedText = "[erased]"

// WithoutWords returns a body without the words of its sender; false: the body has no words that can be removed.
func WithoutWords(body parley.EventBody) (parley.EventBody, bool) {
	switch b := body.(type) {
	case parley.InputReceived:
		b.Content, b.Images, b.Skill, b.Tools, b.Earlier = erasedText, nil, nil, nil, nil
		return b, true
	case parley.ApprovalDecided:
		had := b.Note != ""
		b.Note = ""
		return b, had
	case parley.QuestionAnswered:
		answers := slices.Clone(b.Answers)
		for i := range answers {
			answers[i] = []string{erasedText}
		}
		b.Answers = answers
		return b, len(answers) > 0
	case parley.SessionRenamed:
		b.Title = erasedText
		return b, true
	case parley.SessionHalted:
		had := b.Reason != ""
		b.Reason = erasedText
		return b, had
	case parley.ToolCallResolved:
		had := b.Note != ""
		b.Note = ""
		return b, had
	}
	return body, false
}

// WithoutResult returns the end of a call without its result.
func WithoutResult(b parley.ToolCallFinished) parley.ToolCallFinished {
	b.Result = erasedText
	return b
}

// WithoutHaltReason returns the end of a run that a person has halted, without the reason that the person gave.
func WithoutHaltReason(b parley.RunFinished) parley.RunFinished {
	b.Message = "The session was halted."
	return b
}

// WithoutPlanText returns a change of a plan without the text of a person's edit.
func WithoutPlanText(b parley.PlanChanged) parley.PlanChanged {
	b.Text = erasedText
	return b
}
