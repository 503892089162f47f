package mcpserver

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/dialect"
	"parley/port"
)

// conversation is the result of get_session.
type conversation struct {
	Session  string   `json:"session"`
	Agent    string   `json:"agent,omitempty"`
	Title    string   `json:"title,omitempty"`
	Status   string   `json:"status"`
	Messages []spoken `json:"messages"`
	Waiting  []string `json:"waiting"`           // open cards, in words
	Earlier  bool     `json:"earlier,omitempty"` // older messages were left out
}

type spoken struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// lookBack is how many events get_session reads, and most how many messages it returns.
const (
	lookBack = 5000
	most     = 200
)

// session returns the state of a session and its last messages.
func (h *Handler) session(ctx context.Context, who port.Principal, r *sdk.CallToolRequest) (*sdk.CallToolResult,
	error) {
	var name string
	err := decodeArguments(r.Params.Arguments, dialect.Fields{{Key: "session", To: &name}})
	if err == nil && name == "" {
		err = dialect.Invalid("session is missing")
	}
	if err != nil {
		return nil, err
	}
	id, _, err := dialect.SessionNamed(who, name)
	if err != nil {
		return nil, err
	}
	m, err := h.Door.Session(ctx, who, id)
	if err != nil {
		return nil, err
	}
	c := conversation{Session: name, Agent: m.Agent, Title: m.Title, Status: string(m.Status), Messages: []spoken{},
		Waiting: []string{}}
	first := max(1, m.Head-lookBack)
	if err := dialect.ReadLog(ctx, h.Door, who, id, first, m.Head, func(e parley.Event) {
		c.Messages = append(c.Messages, said(e)...)
	}); err != nil {
		return nil, err
	}
	c.Earlier = first > 1 || len(c.Messages) > most
	c.Messages = c.Messages[max(0, len(c.Messages)-most):]
	which := port.CardQuery{Session: id}
	if m.Root == id {
		which = port.CardQuery{Root: id} // including cards of sub-agents
	}
	cards, err := h.Door.Cards(ctx, who, which)
	if err != nil {
		return nil, err
	}
	slices.Reverse(cards) // oldest first
	for _, card := range cards {
		c.Waiting = append(c.Waiting, strings.TrimSuffix(string(card.Kind)+" of "+card.Tool+": "+card.Show, ": "))
	}
	return result(c.text(), c), nil
}

// said returns the messages in an event.
func said(e parley.Event) []spoken {
	switch b := e.Body.(type) {
	case parley.InputReceived:
		if !b.Synthetic {
			return []spoken{{"user", b.Content}}
		}
	case parley.OutputFinished:
		if b.Kind == parley.Text && b.Text != "" {
			return []spoken{{"assistant", b.Text}}
		}
	}
	return nil
}

// text returns the conversation as text for a model.
func (c conversation) text() string {
	lines := []string{"Status: " + c.Status}
	for _, m := range c.Messages {
		lines = append(lines, m.Role+": "+m.Text)
	}
	for _, w := range c.Waiting {
		lines = append(lines, "Waits for a person: "+w)
	}
	return strings.Join(lines, "\n\n")
}
