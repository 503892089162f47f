package debugconsole

import (
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

// strictGuard refuses requests with the header X-Nobody.
type strictGuard struct{ *guard }

var errNobody = parley.Errorf(parley.CodeUnauthenticated, "Who are you?")

func (g strictGuard) Ask(r *http.Request, agent string) (port.Visit, error) {
	if r.Header.Get("X-Nobody") != "" {
		return port.Visit{}, errNobody
	}
	return g.guard.Ask(r, agent)
}

func (g strictGuard) Who(r *http.Request) (port.Principal, error) {
	if r.Header.Get("X-Nobody") != "" {
		return port.Principal{}, errNobody
	}
	return g.guard.Who(r)
}

func strict(d *door) map[string]http.HandlerFunc {
	return (&Handler{Door: d, Agents: agents{}, Guard: strictGuard{&guard{expired: make(chan struct{})}},
		Conns: dialect.NewConns(), Log: slog.New(slog.DiscardHandler)}).Routes()
}

func TestSlowBodies(t *testing.T) {
	for path, json := range map[string]string{"context": `{"context":"Hello"}`, "message": `{"content":"Hello"}`} {
		routes := func() map[string]http.HandlerFunc {
			d := newDoor()
			d.answers = true
			return strict(d)
		}
		body := dialecttest.Body{Path: "/api/v1/agents/scout/" + path, JSON: json, Nobody: "X-Nobody: 1"}
		t.Run(path, func(t *testing.T) { dialecttest.Bodies(t, routes, body) })
	}
}

// TestLateAnswers: an answer may take longer than the timeouts for a body and
// for an answer of the server.
func TestLateAnswers(t *testing.T) {
	for path, want := range map[string]string{
		"message": `{"content":"Hi"}`,
		"stream":  ": still here\n\n: still here\n\n: still here\n\nevent: chunk",
	} {
		t.Run(path, func(t *testing.T) {
			var d *door
			routes := func() map[string]http.HandlerFunc {
				d = newDoor()
				return strict(d)
			}
			dialecttest.Serve(t, routes, func(t *testing.T, c *dialecttest.Client) {
				c.Send("POST /api/v1/agents/scout/" + path + " HTTP/1.1\r\nHost: x\r\n" +
					"Content-Type: application/json\r\nContent-Length: 16\r\n\r\n" + `{"content":"Hi"}`)
				<-d.asked
				time.AfterFunc(50*time.Second, func() {
					d.say(parley.OutputAppended{Output: 3, Kind: parley.Text, Text: "Hi"},
						parley.RunFinished{Outcome: parley.Completed})
				})
				if status, body := c.Answer(); status != http.StatusOK || !strings.Contains(body, want) {
					t.Errorf("answered is %d %s", status, body)
				}
			})
		})
	}
}
