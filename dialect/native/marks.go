package native

import (
	"net/http"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
)

type marksBody struct {
	Pinned   *bool `json:"pinned,omitempty"`
	Archived *bool `json:"archived,omitempty"`
	Read     *bool `json:"read,omitempty"` // true: the caller has read everything so far
}

// markSession changes the caller's marks on a session.
func (h *Handler) markSession(r request) (int, any, error) {
	var body marksBody
	for name, into := range map[string]**bool{"pinned": &body.Pinned, "archived": &body.Archived, "read": &body.Read} {
		if err := r.body.Into(name, into, "true or false"); err != nil {
			return 0, nil, dialect.Invalid("%s", err)
		}
	}
	change := port.MarkChange{Session: parley.SessionID(r.PathValue("id")), Pinned: body.Pinned, Archived: body.Archived}
	switch {
	case body.Read != nil && *body.Read:
		change.ReadAt = time.Now() // the engine replaces it by its own time
	case body.Read != nil:
		return 0, nil, dialect.Invalid("read can only be true")
	case body.Pinned == nil && body.Archived == nil:
		return 0, nil, dialect.Invalid("pinned, archived or read is required")
	}
	marks, err := h.Door.Mark(r.Context(), r.who, change)
	return http.StatusOK, marks, err
}
