package a2a

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

// door is a door to one session whose log a test writes.
type door struct {
	port.Door
	items chan []*port.Item
	asked chan struct{} // closed when a message was submitted
}

func newDoor() *door {
	return &door{items: make(chan []*port.Item, 10), asked: make(chan struct{})}
}

func (d *door) May(context.Context, port.Principal, parley.Action, port.Resource) error {
	return nil
}

func (d *door) Submit(_ context.Context, _ port.Principal, c parley.Command) (port.Receipt, error) {
	in := c.Do.(parley.SubmitInput)
	d.say(c.Session, 1, parley.InputReceived{Content: in.Content, Agent: in.Agent, Busy: in.Busy},
		parley.RunStarted{Input: 1, Agent: in.Agent})
	close(d.asked)
	return port.Receipt{Session: c.Session, First: 1, Last: 2}, nil
}

// say writes events of run 2 to the log.
func (d *door) say(session parley.SessionID, first parley.Seq, bodies ...parley.EventBody) {
	var list []*port.Item
	for i, b := range bodies {
		list = append(list, &port.Item{Event: parley.Event{Session: session, Root: session, Seq: first + parley.Seq(i),
			Run: 2, Body: b}})
	}
	d.items <- list
}

func (d *door) Follow(context.Context, port.Principal, port.Scope, port.Cursor) (port.Follower, error) {
	return d, nil
}

func (d *door) Next(ctx context.Context) ([]*port.Item, error) {
	select {
	case list := <-d.items:
		return list, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *door) Close() {}

type agents struct{ port.ProjectAgents }

func (a agents) Of(string) port.Agents { return a }

func (agents) Agent(_ parley.TenantID, name string) (parley.Agent, error) {
	return parley.Agent{Name: name}, nil
}

// guard admits all requests except those with the header X-Nobody.
type guard struct{ dialect.AnswerGuard }

func (guard) Begin(r *http.Request, _ string) (port.Principal, func() (port.Visit, error), error) {
	if r.Header.Get("X-Nobody") != "" {
		return ann, nil, parley.Errorf(parley.CodeUnauthenticated, "Who are you?")
	}
	return ann, func() (port.Visit, error) {
		return port.Visit{Who: ann, Watch: context.WithCancel, Leave: func() {}}, nil
	}, nil
}

func routes(d *door) map[string]http.HandlerFunc {
	return (&Handler{Door: d, Agents: agents{}, Guard: guard{}, Log: slog.New(slog.DiscardHandler)}).Routes()
}

func TestSlowBodies(t *testing.T) {
	dialecttest.Bodies(t, func() map[string]http.HandlerFunc { return routes(newDoor()) }, dialecttest.Body{
		Path: "/a2a/scout", JSON: `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"none"}}`,
		Nobody: "X-Nobody: 1"})
}

// TestLateAnswers: an answer may take longer than the server's write timeout, and a stream may be silent for long.
func TestLateAnswers(t *testing.T) {
	for method, want := range map[string]string{
		"message/send":   `"state":"completed"`,
		"message/stream": ": still here\n\n: still here\n\n: still here\n\ndata: {",
	} {
		t.Run(method, func(t *testing.T) {
			var d *door
			serve := func() map[string]http.HandlerFunc {
				d = newDoor()
				return routes(d)
			}
			dialecttest.Serve(t, serve, func(t *testing.T, c *dialecttest.Client) {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"message":{"messageId":"m",`+
					`"role":"user","contextId":%q,"parts":[{"kind":"text","text":"Hi"}]}}}`, method, dialecttest.Session)
				c.Send(fmt.Sprintf("POST /a2a/scout HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
					"Content-Length: %d\r\n\r\n%s", len(body), body))
				<-d.asked
				time.AfterFunc(50*time.Second, func() {
					d.say(dialecttest.Session, 3, parley.OutputStarted{Turn: 2, Kind: parley.Text},
						parley.OutputAppended{Output: 3, Kind: parley.Text, Text: "Hi"},
						parley.RunFinished{Outcome: parley.Completed})
				})
				if status, body := c.Answer(); status != http.StatusOK || !strings.Contains(body, want) ||
					!strings.Contains(body, `"text":"Hi"`) {
					t.Errorf("answered is %d %s", status, body)
				}
			})
		})
	}
}
