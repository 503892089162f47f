package parley

import (
	"regexp"
	"slices"
	"time"
)

// An Erasure is what a store deletes of a tenant for good, in one transaction with its record. Unlike a deletion it
// leaves neither events nor rows.
type Erasure struct {
	Sessions []SessionID // all that is kept of them
	// Events of other sessions replace those with their session and seq. Writers of these sessions are fenced and read
	// the log again.
	Events []Event
	// Before: if one of the sessions was changed since, or has an open run, all of it is refused with CodeConflict.
	// Zero: whenever they were changed.
	Before time.Time
	User   PrincipalID // whose contexts and tickets go too; empty: nobody's
	Audit  []Audit
}

// Touched are the sessions that it deletes or changes. None of them may be under a legal hold.
func (e Erasure) Touched() []SessionID {
	ids := slices.Clone(e.Sessions)
	for _, event := range e.Events {
		ids = append(ids, event.Session)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// An ErasureReport is what was erased of a person. It is also the record in the audit.
type ErasureReport struct {
	User      PrincipalID `json:"user"`
	Sessions  int         `json:"sessions"`
	Events    int         `json:"events"`
	Bytes     int64       `json:"bytes"`    // of the events
	Replaced  int         `json:"replaced"` // events of other people's sessions that have lost the person's words
	Artifacts int         `json:"artifacts"`
	Digest    string      `json:"digest"` // SHA-256 of what was erased, in hexadecimal
	// Rewritten: the files of the database were written anew, so that no deleted byte is in them.
	Rewritten bool `json:"rewritten"`
}

// Record is the proof of an erasure: what it was, and nothing of what was said.
func (r ErasureReport) Record(at time.Time, by PrincipalID) Audit {
	return Audit{At: at, By: by, Action: auditUserErased, Resource: "user", ID: string(r.User), Source: ViaHTTP,
		Metadata: Metadata(map[string]any{"sessions": r.Sessions, "events": r.Events, "bytes": r.Bytes,
			"replaced": r.Replaced, "artifacts": r.Artifacts, "digest": r.Digest})}
}

// erasedText stands for words that were erased.
const erasedText = "[erased]"

// WithoutWords is a body without the words of its sender; false: the body has no words that can be removed.
func WithoutWords(body EventBody) (EventBody, bool) {
	switch b := body.(type) {
	case InputReceived:
		b.Content, b.Images, b.Skill, b.Tools, b.Earlier = erasedText, nil, nil, nil, nil
		return b, true
	case ApprovalDecided:
		had := b.Note != ""
		b.Note = ""
		return b, had
	case QuestionAnswered:
		answers := slices.Clone(b.Answers)
		for i := range answers {
			answers[i] = []string{erasedText}
		}
		b.Answers = answers
		return b, len(answers) > 0
	case SessionRenamed:
		b.Title = erasedText
		return b, true
	case SessionHalted:
		had := b.Reason != ""
		b.Reason = erasedText
		return b, had
	case ToolCallResolved:
		had := b.Note != ""
		b.Note = ""
		return b, had
	}
	return body, false
}

var artifactName = regexp.MustCompile(`artifact://([A-Za-z0-9.-]+\.txt)`)

// ArtifactsIn lists the names of artifacts in a text.
func ArtifactsIn(text string) (names []string) {
	for _, m := range artifactName.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}
