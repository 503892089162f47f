package e2e

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestALeftDebugConsoleCancelsWhatWaits closes a page while its run waits for an approval. The approval leaves the
// inbox after a minute, and the run has the user's message as its title.
func TestALeftDebugConsoleCancelsWhatWaits(t *testing.T) {
	if testing.Short() {
		t.Skip("the server waits a minute for the page")
	}
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := &console{socket: n.open("ws://"+s.address+"/api/v1/agents/helpful-assistant/ws", nil)}
	session := c.next().Data
	c.opened()
	c.say("write it to left.txt")
	for f := c.frame(); f.Type != "approval_request"; {
		f = c.frame()
	}
	if _, listed := s.get("/api/v1/sessions?transient=1", nil); !strings.Contains(listed,
		`"title":"write it to left.txt"`) {
		t.Errorf("the session is listed as %s", listed)
	}
	left := time.Now()
	c.close()

	response := s.request(within(t, 2*patience), http.MethodGet, "/api/v1/sessions/"+session+"/log?follow=1", nil, "")
	defer response.Body.Close()
	for lines, over := bufio.NewReader(response.Body), false; !over; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		e := parseEvent(t, line)
		if over = e.Type == "RunFinished"; over && e.Body.Outcome != "cancelled" {
			t.Errorf("the run ended as %s", e.Body.Outcome)
		}
	}
	if took := time.Since(left); took < 50*time.Second {
		t.Errorf("the page had only %v to come back", took)
	}
	if _, waiting := s.get("/api/v1/approvals", nil); strings.Contains(waiting, session) {
		t.Errorf("the inbox still has %s", waiting)
	}
	wantNoFile(t, s, "left.txt")
}
