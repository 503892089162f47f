package port

import (
	"time"

	"parley"
)

// A Summary is what lists of sessions show, kept in a row beside the log.
type Summary struct {
	ID        parley.SessionID   `json:"id"`
	Root      parley.SessionID   `json:"root"`
	Owner     parley.PrincipalID `json:"owner"`
	Agent     string             `json:"agent"`
	Title     string             `json:"title"`
	Status    parley.Status      `json:"status"`
	Run       parley.RunID       `json:"run,omitempty"` // the open one
	Transient bool               `json:"transient"`
	Project   string             `json:"project,omitempty"`
	Deleted   bool               `json:"-"`
	Head      parley.Seq         `json:"head"`
	OpenedAt  time.Time          `json:"opened_at"`
	UpdatedAt time.Time          `json:"updated_at"`
	Marks                        // of the user who asks, in lists
}

// SummaryOf is the summary of a session in a state.
func SummaryOf(s parley.State) Summary {
	var run parley.RunID
	if s.Run != nil {
		run = s.Run.ID
	}
	return Summary{ID: s.ID, Root: s.Root, Owner: s.Owner, Agent: s.Agent, Title: s.Title, Status: s.Status(), Run: run,
		Transient: s.Transient, Project: s.Project, Deleted: s.Deleted, Head: s.Head, OpenedAt: s.OpenedAt,
		UpdatedAt: s.LastAt}
}

// A SessionQuery narrows a list. Owner empty: everybody's.
type SessionQuery struct {
	Owner     parley.PrincipalID
	Search    string           // in the title
	Transient bool             // list those too
	Running   bool             // only those that have an open run
	Root      parley.SessionID // only this one and those below it
	Project   Project          // only those of it; zero: of every project
	Limit     int

	Viewer   parley.PrincipalID // whose marks are shown; empty: nobody's
	Pinned   bool               // only those that the viewer has pinned
	Archived Archive
}

// An Archive says which sessions a list shows.
type Archive string

const (
	NotArchived  Archive = "" // for a viewer; without one there are no marks
	OnlyArchived Archive = "1"
	AlsoArchived Archive = "all"
)

// Marks are what one user has noted about a session, for lists of their own. They are no part of the log: nobody else
// sees them, and they do not change when the session was last changed.
type Marks struct {
	Pinned   bool `json:"pinned,omitempty"`
	Archived bool `json:"archived,omitempty"`
	Unread   bool `json:"unread,omitempty"` // a run has ended since the user last looked
}

// A MarkChange is what a user notes about a session. nil and zero change nothing.
type MarkChange struct {
	User             parley.PrincipalID
	Session          parley.SessionID
	Pinned, Archived *bool
	ReadAt           time.Time // when the user looked at it
}

// MarksAt are the marks of a user who last looked at a time, zero if never, given the end of the last run. A session
// that the user never looked at is not unread: it was made elsewhere, or before marks were kept.
func MarksAt(pinned, archived bool, read, ended time.Time) Marks {
	return Marks{Pinned: pinned, Archived: archived, Unread: !read.IsZero() && ended.After(read)}
}
