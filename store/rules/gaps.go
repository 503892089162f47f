package rules

import (
	"errors"
	"fmt"

	"parley"
)

// Corrupt returns the error of a log with an event that is missing or cannot be decoded.
func Corrupt(id parley.SessionID, seq parley.Seq, err error) error {
	return &parley.Error{Code: parley.CodeCorrupt, Err: fmt.Errorf("session %s, seq %d: %w", id, seq, err),
		Message: "A part of this session's log cannot be read.",
		Hint:    "restore the session from a backup; other sessions are not affected"}
}

// Gaps checks that only trimmed chunks are missing from the log of a session. A store records them as holes.
type Gaps struct {
	Session parley.SessionID
	// Hole returns the last seq of the hole that a seq lies in; 0: the seq lies in none.
	Hole func(parley.Seq) (last parley.Seq, err error)
	// Head returns the head of the session if no event is stored after a seq; 0: an event is, or there is no such
	// session.
	Head func(parley.Seq) (parley.Seq, error)
}

// Page checks that every seq missing from a page lies in a hole. If the page has fewer events than limit, the log may
// end with it, so Page also checks the end.
func (g Gaps) Page(after parley.Seq, page []parley.Event, limit int) error {
	for _, e := range page {
		if err := g.between(after, e.Seq); err != nil {
			return err
		}
		after = e.Seq
	}
	if len(page) < limit {
		return g.End(after, nil)
	}
	return nil
}

// End checks the end of a log of which events after a seq were read: if no event follows them, every seq up to the head
// must lie in a hole. Without this check, a reader would wait for rows that are lost.
func (g Gaps) End(after parley.Seq, read []parley.Event) error {
	if len(read) > 0 {
		after = read[len(read)-1].Seq
	}
	head, err := g.Head(after)
	if err != nil {
		return err
	}
	return g.between(after, head+1)
}

// between checks that every seq between two others lies in a hole.
func (g Gaps) between(after, before parley.Seq) error {
	for next := after + 1; next < before; {
		last, err := g.Hole(next)
		if err != nil {
			return err
		}
		if last == 0 {
			return Corrupt(g.Session, next, errors.New("the row is missing"))
		}
		next = last + 1
	}
	return nil
}
