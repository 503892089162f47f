package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// An event is one line of a session's log.
type event struct {
	Session string
	By      string
	Seq     int
	Run     int
	Type    string
	Body    struct {
		Request string
		Outcome string
		Text    string
		Kind    string
		Title   string
		Follows bool `json:"report_follows"`

		Decision string

		Incomplete bool
	}
}

func (e event) String() string { return fmt.Sprintf("%d %s %+v", e.Seq, e.Type, e.Body) }

// events reads a thread's log up to now.
func (s *server) events(thread string) []event {
	s.t.Helper()
	status, body := s.get("/api/v1/sessions/"+thread+"/log", nil)
	if status != http.StatusOK {
		s.t.Fatalf("the log of %s: %d %s", thread, status, body)
	}
	var events []event
	for line := range strings.Lines(body) {
		events = append(events, parseEvent(s.t, line))
	}
	return events
}

func parseEvent(t *testing.T, line string) (e event) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatalf("%v in the line %q", err, line)
	}
	return e
}

// of returns the events of one type.
func of(kind string, events []event) (kept []event) {
	for _, e := range events {
		if e.Type == kind {
			kept = append(kept, e)
		}
	}
	return kept
}

// awaitEvent waits until a thread's log has an event.
func (s *server) awaitEvent(thread string, wanted func(event) bool) event {
	s.t.Helper()
	ctx, cancel := context.WithCancel(within(s.t, patience))
	defer cancel()
	response := s.request(ctx, http.MethodGet, "/api/v1/sessions/"+thread+"/log?follow=1", nil, "")
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			s.t.Fatalf("following %s: %v", thread, err)
		}
		if e := parseEvent(s.t, line); wanted(e) {
			return e
		}
	}
}

// A stream reads server-sent events as the standard describes them.
type stream struct {
	t     *testing.T
	lines *bufio.Reader
}

type sent struct{ id, event, data string }

// follow opens a stream, which ends with the test.
func (s *server) follow(path, lastEventID string) *stream {
	s.t.Helper()
	header := http.Header{"Accept": {"text/event-stream"}}
	if lastEventID != "" {
		header.Set("Last-Event-ID", lastEventID)
	}
	response := s.request(within(s.t, patience), http.MethodGet, path, header, "")
	s.t.Cleanup(func() { response.Body.Close() })
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK ||
		kind != "text/event-stream" {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		s.t.Fatalf("GET %s: %d %s %s", path, response.StatusCode, kind, body)
	}
	return &stream{s.t, bufio.NewReader(response.Body)}
}

func (s *stream) next() (m sent) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			s.t.Fatalf("the stream ended: %v", err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data += value
		case "":
			if value == "" && m != (sent{}) { // it is an empty line, not a comment
				return m
			}
		}
	}
}
