package native

import (
	"net/http"
	"strconv"

	"parley"
	"parley/dialect"
	"parley/port"
)

type searchAnswer struct {
	Passages []port.Passage `json:"passages"`
	Cursor   string         `json:"cursor,omitempty"`   // cursor of the next page
	Indexing bool           `json:"indexing,omitempty"` // older messages may be missing
}

// search searches messages.
func (h *Handler) search(r request) (int, any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return 0, nil, err
	}
	q := port.SearchQuery{Text: r.URL.Query().Get("q"), Project: r.only, Limit: limit}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		before, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil || before < 1 {
			return 0, nil, dialect.Invalid("cursor must be the value of cursor in an earlier answer")
		}
		q.Before = parley.Position(before)
	}
	found, err := h.Door.Search(r.Context(), r.who, q)
	answer := searchAnswer{Passages: found.Passages, Indexing: found.Indexing}
	if answer.Passages == nil {
		answer.Passages = []port.Passage{}
	}
	if found.Next > 0 {
		answer.Cursor = strconv.FormatInt(int64(found.Next), 10)
	}
	return http.StatusOK, answer, err
}
