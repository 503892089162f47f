package client

import (
	"context"
	"net/http"
	"net/url"

	"parley"
	"parley/port"
)

// A Card waits for a person: an approval, a question, or a call of unknown outcome.
type Card struct {
	ID string `json:"id"` // <session>.<seq>; parley.Ref builds it from an event
	port.CardInfo
}

// A CardQuery filters a list of cards.
type CardQuery struct {
	Session parley.SessionID
	Project string // root or id
	Limit   int    // zero: 50
}

// Approvals lists the pending approvals, the longest waiting first.
func (c *Client) Approvals(ctx context.Context, q CardQuery) ([]Card, error) {
	return c.cards(ctx, "approvals", q)
}

// Questions lists the pending questions, the longest waiting first.
func (c *Client) Questions(ctx context.Context, q CardQuery) ([]Card, error) {
	return c.cards(ctx, "questions", q)
}

// LostCalls lists the calls of unknown outcome, the longest waiting first.
func (c *Client) LostCalls(ctx context.Context, q CardQuery) ([]Card, error) {
	return c.cards(ctx, "calls", q)
}

func (c *Client) cards(ctx context.Context, kind string, q CardQuery) ([]Card, error) {
	answer := map[string][]Card{}
	err := c.do(ctx, request{method: http.MethodGet, path: "/" + kind, query: query("session", string(q.Session),
		"project", q.Project, "limit", number(q.Limit)), answer: &answer})
	return answer[kind], err
}

// An Approval decides whether a call runs.
type Approval struct {
	Decision parley.Decision   `json:"decision"`
	Scope    parley.GrantScope `json:"scope,omitempty"`  // of parley.AllowAlways; default: exactly this call
	Note     string            `json:"note,omitempty"`   // for the model, with parley.Deny
	Digest   string            `json:"digest,omitempty"` // of the call that the person saw; another one is refused
}

// Decide answers an approval.
func (c *Client) Decide(ctx context.Context, card string, a Approval) (port.Receipt, error) {
	return c.command(ctx, "/approvals/"+url.PathEscape(card), "", a)
}

// Explain asks the model to explain a call that waits for an approval. The text appears in the log
// (parley.ApprovalExplained).
func (c *Client) Explain(ctx context.Context, card string) (port.Receipt, error) {
	return c.command(ctx, "/approvals/"+url.PathEscape(card), "", fields{"decision": "explain"})
}

// Answer answers the questions of a card, each with a list of texts.
func (c *Client) Answer(ctx context.Context, card string, answers [][]string) (port.Receipt, error) {
	return c.command(ctx, "/questions/"+url.PathEscape(card), "", fields{"answers": answers})
}

// ReturnResult returns the result of a call that the client executes. The call is named by its session and the seq of
// its ToolCallRequested.
func (c *Client) ReturnResult(ctx context.Context, call, result string, failed bool) (port.Receipt, error) {
	return c.command(ctx, "/calls/"+url.PathEscape(call), "", fields{"result": result, "failed": failed})
}

// Resolve decides a call of unknown outcome.
func (c *Client) Resolve(ctx context.Context, call string, r parley.Resolution, note string) (port.Receipt, error) {
	body := fields{"resolution": r}
	if note != "" {
		body["note"] = note
	}
	return c.command(ctx, "/calls/"+url.PathEscape(call), "", body)
}
