package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestAThreadIsAskedByHTTP: fetch gets the whole answer, an EventSource its frames, and sockets of the thread get the
// same runs. A repeated request does not ask again.
func TestAThreadIsAskedByHTTP(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	var got struct {
		ThreadID, CorrelationID, Message string
		LatencyMs                        *int64
		Streamed                         *bool
	}
	body := fmt.Sprintf(`{"threadId":%q,"message":"repeat one","userId":%q,"clientRequestId":"ask-1"}`, thread,
		newThread())
	for range 2 {
		n.post(s, "/api/chat", body, &got)
		if got.ThreadID != thread || got.CorrelationID != "ask-1" || got.Message != "one" || got.LatencyMs == nil ||
			got.Streamed == nil || *got.Streamed {
			t.Errorf("%+v", got)
		}
	}
	// The answer was delivered: a socket does not get it again.
	c := n.dial(s, thread)
	silent(t, c)

	stream := n.begin(map[string]any{"do": "listen", "url": "http://" + s.address + "/api/chat",
		"body": fmt.Sprintf(`{"threadId":%q,"content":"count to 5","requestId":"ask-2"}`, thread)})
	stream.opened()
	text := ""
	var streamed []string
	for {
		f := stream.frame()
		streamed = append(streamed, f.raw)
		if text += f.Content; f.Type != "chat.started" && f.Type != "content" {
			break
		}
	}
	n.do(map[string]any{"do": "deafen", "socket": stream.name})
	seen := c.completed()
	if text != counted(5) || strings.TrimSpace(raws(seen.frames)) != strings.Join(streamed, "\n") ||
		seen.request != "ask-2" {
		t.Errorf("an EventSource was shown\n%s\n\nand a socket\n%s", strings.Join(streamed, "\n"), raws(seen.frames))
	}

	// Three questions are in the log, including that of silent, although the first was sent twice.
	inputs := 0
	for _, e := range s.events(thread) {
		if e.Type == "InputReceived" {
			inputs++
		}
	}
	if inputs != 3 {
		t.Errorf("the log has %d inputs, want 3", inputs)
	}

	status, raw := n.fetch(s, "POST", "/api/chat", `{"threadId":"mine","message":"x"}`)
	var refused struct {
		Error   string
		Details []struct {
			Path    []string
			Message string
		}
	}
	if err := json.Unmarshal([]byte(raw), &refused); status != 400 || err != nil ||
		refused.Error != "Invalid chat request payload" || len(refused.Details) != 1 ||
		refused.Details[0].Path[0] != "threadId" {
		t.Errorf("%d %s", status, raw)
	}
	// Without a threadId it is a message of the event bus.
	if a := n.say(s, "", "repeat two"); a.Status != "started" {
		t.Errorf("%+v", a)
	}
}

// TestUndeliveredHTTPAnswersAreOwed: the client leaves before the run ends, and the thread's next socket gets the
// run.
func TestUndeliveredHTTPAnswersAreOwed(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	s.posts("/api/v1/sessions", fmt.Sprintf(`{"id":%q}`, thread), http.StatusCreated, nil)
	to := n.tempo(s).count(10, 50)
	ctx, leave := context.WithCancel(within(t, patience))
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+"/api/chat",
		strings.NewReader(fmt.Sprintf(`{"threadId":%q,"message":"count to %d","clientRequestId":"left"}`, thread, to)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	done := make(chan error, 1)
	go func() {
		res, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			res.Body.Close()
		}
		done <- err
	}()
	s.awaitEvent(thread, func(e event) bool { return e.Type == "OutputAppended" })
	leave()
	if err := <-done; err == nil {
		t.Fatal("the answer came too early for this test")
	}
	s.awaitEvent(thread, func(e event) bool { return e.Type == "RunFinished" })
	if a := n.dial(s, thread).completed(); a.request != "left" || a.text != counted(to) {
		t.Errorf("%+v", a)
	}
}
