package port

import (
	"time"

	"parley"
)

// A Summary is an entry in a list of sessions, stored in a row beside the log.
type Summary struct {
	ID        parley.SessionID   `json:"id"`
	Root      parley.SessionID   `json:"root"`
	Owner     parley.PrincipalID `json:"owner"`
	Agent     string             `json:"agent"`
	Title     string             `json:"title"`
	Status    parley.Status      `json:"status"`
	Run       parley.RunID       `json:"run,omitempty"` // the open run
	Transient bool               `json:"transient"`
	Project   string             `json:"project,omitempty"`
	Deleted   bool               `json:"-"`
	Head      parley.Seq         `json:"head"`
	OpenedAt  time.Time          `json:"opened_at"`
	UpdatedAt time.Time          `json:"updated_at"`
	Marks                        // of the requesting user; only in lists
}

// SummaryOf returns the summary of a session with this state.
func SummaryOf(s parley.State) Summary {
	var run parley.RunID
	if s.Run != nil {
		run = s.Run.ID
	}
	return Summary{ID: s.ID, Root: s.Root, Owner: s.Owner, Agent: s.Agent, Title: s.Title, Status: s.Status(), Run: run,
		Transient: s.Transient, Project: s.Project, Deleted: s.Deleted, Head: s.Head, OpenedAt: s.OpenedAt,
		UpdatedAt: s.LastAt}
}

// A SessionQuery filters a list of sessions. Owner empty: all owners.
type SessionQuery struct {
	Owner     parley.PrincipalID
	Search    string           // in the title
	Transient bool             // include transient sessions
	Running   bool             // only sessions with an open run
	Root      parley.SessionID // only this session and the sessions below it
	Project   Project          // only sessions of this project; zero: of every project
	Limit     int

	Viewer   parley.PrincipalID // user whose marks are shown; empty: none
	Pinned   bool               // only sessions that the viewer has pinned
	Archived Archive
}

// An Archive says which sessions a list shows.
type Archive string

const (
	NotArchived  Archive = "" // for a viewer; without a viewer there are no marks
	OnlyArchived Archive = "1"
	AlsoArchived Archive = "all"
)

// Marks are the notes of one user about a session, for lists of that user. They are not part of the log: other users do
// not see them, and they do not change the time of the session's last change.
type Marks struct {
	Pinned   bool `json:"pinned,omitempty"`
	Archived bool `json:"archived,omitempty"`
	Unread   bool `json:"unread,omitempty"` // a run has ended since the user last looked
}

// A MarkChange changes the marks of a user on a session. nil and zero change nothing.
type MarkChange struct {
	User             parley.PrincipalID
	Session          parley.SessionID
	Pinned, Archived *bool
	ReadAt           time.Time // when the user looked at it
}

// MarksAt returns the marks of a user. read is the time when the user last looked at the session (zero: never), and
// ended is the end of the last run. A session at which the user never looked is not unread: another client created it,
// or it is older than marks.
func MarksAt(pinned, archived bool, read, ended time.Time) Marks {
	return Marks{Pinned: pinned, Archived: archived, Unread: !read.IsZero() && ended.After(read)}
}
