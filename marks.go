package parley

import "time"

// Marks are what one user has noted about a session, for lists of their own. They are no part of the log: nobody else
// sees them, and they do not change when the session was last changed.
type Marks struct {
	Pinned   bool `json:"pinned,omitempty"`
	Archived bool `json:"archived,omitempty"`
	Unread   bool `json:"unread,omitempty"` // a run has ended since the user last looked
}

// A MarkChange is what a user notes about a session. nil and zero change nothing.
type MarkChange struct {
	User             PrincipalID
	Session          SessionID
	Pinned, Archived *bool
	ReadAt           time.Time // when the user looked at it
}

// MarksAt are the marks of a user who last looked at a time, zero if never, given the end of the last run. A session
// that the user never looked at is not unread: it was made elsewhere, or before marks were kept.
func MarksAt(pinned, archived bool, read, ended time.Time) Marks {
	return Marks{pinned, archived, !read.IsZero() && ended.After(read)}
}

// An Archive says which sessions a list shows.
type Archive string

const (
	NotArchived  Archive = "" // for a viewer; without one there are no marks
	OnlyArchived Archive = "1"
	AlsoArchived Archive = "all"
)
