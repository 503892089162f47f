package native

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
)

// A branch is a fork that replaces the part of a session after some event: another answer, or another message. The id
// of a branch is derived from the user, the session, the event and a number from 2, so that branches are found without
// a list of them (docs/adr/0101). The session itself is number 1.

const (
	mostBranches = 9  // per event, including the session itself
	mostPoints   = 40 // events in one request
)

func branchOf(who port.Principal, source parley.SessionID, at parley.Seq, number int) parley.SessionID {
	return dialect.SessionFor(who, "branch", fmt.Sprintf("%s %d %d", source, at, number))
}

// numbered matches the end of a title that tells branches apart.
var numbered = regexp.MustCompile(` \(\d\)$`)

// branch opens the next branch of a session. A request that is repeated with its key gets the same branch.
func (h *Handler) branch(r request, do parley.ForkSession) (int, any, error) {
	source, err := h.Door.Session(r.Context(), r.who, do.Source)
	if err != nil {
		return 0, nil, err
	}
	title := do.Title
	if do.At == 0 {
		do.At = source.Head
	}
	for number := 2; number <= mostBranches; number++ {
		if do.Title = title; title == "" && source.Title != "" {
			do.Title = fmt.Sprintf("%s (%d)", numbered.ReplaceAllString(source.Title, ""), number)
		}
		status, made, err := h.newSession(r, string(branchOf(r.who, do.Source, do.At, number)), do)
		switch parley.CodeOf(err) {
		case parley.CodeConflict, parley.CodeClosed: // the session exists or was deleted
			continue
		}
		return status, made, err
	}
	return 0, nil, parley.Errorf(parley.CodeInvalid, "The conversation has %d branches here, and cannot have more.",
		mostBranches)
}

// branchPoint is an event after which branches of a session differ.
type branchPoint struct {
	At       parley.Seq         `json:"at"`       // the last common event
	Sessions []parley.SessionID `json:"sessions"` // the session itself comes first
}

// listBranches returns the branches of the session at each of the events in ?at= that has some.
func (h *Handler) listBranches(r request) (int, any, error) {
	source, err := h.Door.Session(r.Context(), r.who, parley.SessionID(r.PathValue("id")))
	if err != nil {
		return 0, nil, err
	}
	points := []branchPoint{}
	asked := strings.FieldsFunc(r.URL.Query().Get("at"), func(c rune) bool { return c == ',' })
	if len(asked) > mostPoints {
		return 0, nil, dialect.Invalid("at names %d events, and may name %d", len(asked), mostPoints)
	}
	for _, name := range asked {
		at, err := strconv.ParseInt(name, 10, 64)
		if err != nil || at < 1 {
			return 0, nil, dialect.Invalid("at must be numbers of events, with commas between them")
		}
		p := branchPoint{At: parley.Seq(at), Sessions: []parley.SessionID{source.ID}}
		for number := 2; number <= mostBranches; number++ {
			id := branchOf(r.who, source.ID, p.At, number)
			switch _, err := h.Door.Session(r.Context(), r.who, id); {
			case err == nil:
				p.Sessions = append(p.Sessions, id)
			case parley.CodeOf(err) != parley.CodeNotFound:
				return 0, nil, err
			}
		}
		if len(p.Sessions) > 1 {
			points = append(points, p)
		}
	}
	return http.StatusOK, map[string][]branchPoint{"branches": points}, nil
}
