package client

import (
	"context"
	"net/http"
	"strings"

	"parley"
	"parley/port"
)

// A SearchQuery asks for messages. Text is words and, in double quotes, phrases; a message must have all of them.
type SearchQuery struct {
	Text    string
	Project string // root or id
	Cursor  string // from an earlier page
	Limit   int    // zero: 50
}

// Found is a page of passages, the newest first.
type Found struct {
	Passages []port.Passage `json:"passages"`
	Cursor   string         `json:"cursor,omitempty"`   // of the next page
	Indexing bool           `json:"indexing,omitempty"` // earlier messages may be missing
}

// Search finds messages in sessions that the caller may read.
func (c *Client) Search(ctx context.Context, q SearchQuery) (f Found, err error) {
	return f, c.do(ctx, request{method: http.MethodGet, path: "/search", answer: &f,
		query: query("q", q.Text, "project", q.Project, "cursor", q.Cursor, "limit", number(q.Limit))})
}

// Marked returns the text of a passage with before and after around each match.
func Marked(p port.Passage, before, after string) string {
	text := []rune(p.Text)
	var b strings.Builder
	at := 0
	for _, m := range p.Marks {
		if m.Start < at || m.End < m.Start || m.End > len(text) {
			continue
		}
		b.WriteString(string(text[at:m.Start]) + before + string(text[m.Start:m.End]) + after)
		at = m.End
	}
	return b.String() + string(text[at:])
}

// A MarkChange changes the caller's own marks of a session, which only affect the caller's lists. nil and false change
// nothing.
type MarkChange struct {
	Pinned   *bool `json:"pinned,omitempty"`
	Archived *bool `json:"archived,omitempty"`
	Read     bool  `json:"read,omitempty"`
}

// Mark changes the caller's marks of a session.
func (c *Client) Mark(ctx context.Context, id parley.SessionID, change MarkChange) (m port.Marks, err error) {
	return m, c.do(ctx, request{method: http.MethodPut, path: sessionPath(id) + "/marks", body: change, answer: &m})
}
