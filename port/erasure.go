package port

import (
	"slices"
	"time"

	"parley"
)

// An Erasure is what a store deletes of a tenant for good, in one transaction with its record. Unlike a deletion it
// leaves neither events nor rows.
type Erasure struct {
	Sessions []parley.SessionID // all that is kept of them
	// Events of other sessions replace those with their session and seq. Writers of these sessions are fenced and read
	// the log again.
	Events []parley.Event
	Titles map[parley.SessionID]string // new titles of these other sessions
	// Before: if one of the sessions was changed since, or has an open run, all of it is refused with CodeConflict.
	// Zero: whenever they were changed.
	Before time.Time
	User   parley.PrincipalID // whose contexts and tickets go too; empty: nobody's
	// Begun, if given, is noted until an Erasure has the user in Ended. A later one of the same user replaces the
	// artifacts only.
	Begun *BegunErasure
	Ended parley.PrincipalID
	Audit []parley.Audit
}

// A BegunErasure is an erasure of a user that has not ended, because it is under way, failed or was cut off.
type BegunErasure struct {
	User      parley.PrincipalID
	By        parley.PrincipalID
	At        time.Time
	Artifacts []string // names of those that have to go; nothing else names them once the events are erased
}

// Record is the audit record of the beginning.
func (b BegunErasure) Record() parley.Audit {
	return parley.Audit{At: b.At, By: b.By, Action: auditErasureBegan, Resource: "user", ID: string(b.User),
		Source: parley.ViaHTTP, Metadata: parley.Metadata(map[string]any{})}
}

// Touched are the sessions that it deletes or changes. None of them may be under a legal hold.
func (e Erasure) Touched() []parley.SessionID {
	ids := slices.Clone(e.Sessions)
	for _, event := range e.Events {
		ids = append(ids, event.Session)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// An ErasureReport is what was erased of a person. It is also the record in the audit.
type ErasureReport struct {
	User      parley.PrincipalID `json:"user"`
	Sessions  int                `json:"sessions"`
	Events    int                `json:"events"`
	Bytes     int64              `json:"bytes"`    // of the events
	Replaced  int                `json:"replaced"` // events of others' sessions that have lost the person's words
	Artifacts int                `json:"artifacts"`
	Digest    string             `json:"digest"` // SHA-256 of what was erased, in hexadecimal
	// Rewritten: the files of the database were written anew, so that no deleted byte is in them.
	Rewritten bool `json:"rewritten"`
}

// Record is the proof of an erasure: what it was, and nothing of what was said.
func (r ErasureReport) Record(at time.Time, by parley.PrincipalID) parley.Audit {
	return parley.Audit{At: at, By: by, Action: auditUserErased, Resource: "user", ID: string(r.User),
		Source: parley.ViaHTTP,
		Metadata: parley.Metadata(map[string]any{"sessions": r.Sessions, "events": r.Events,
			"bytes": r.Bytes, "replaced": r.Replaced, "artifacts": r.Artifacts, "digest": r.Digest})}
}

// erasedText stands for words that were erased.
const erasedText = "[erased]"

// WithoutWords is a body without the words of its sender; false: the body has no words that can be removed.
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
