package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/port"
)

// serverClient is a client of the native protocol for one session.
type serverClient struct {
	address string
	token   string
	session parley.SessionID
	project string // project of a new session; empty: the server's first
	cursor  string // of the last event that was delivered
	http    http.Client
}

// errAway means that the server cannot be reached.
var errAway = errors.New("no answer")

// A refusal is an error that the server returned to a request.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

func (s *serverClient) close() { s.http.CloseIdleConnections() }

// away returns the error of a lost connection. Every error but errHistory becomes an errAway.
func (s *serverClient) away(err error) error {
	if errors.Is(err, errHistory) {
		return err
	}
	return fmt.Errorf("%w: %w", errAway, err)
}

// requestWithin is how long a request may take. A server that is stopping answers at once.
const requestWithin = 15 * time.Second

// request sends a request. On success the caller reads and closes the body of the answer.
func (s *serverClient) request(ctx context.Context, method, path string, header http.Header, body []byte) (
	*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.address+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := s.http.Do(r)
	if err != nil {
		return nil, s.away(err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	code, said := refusalIn(response)
	switch response.StatusCode {
	case http.StatusUnauthorized:
		said = s.unauthorized(said)
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if code != parley.CodeStopped {
			return nil, s.away(errors.New(said))
		}
		said += "; parley agents start NAME starts it"
	}
	return nil, &refusal{response.StatusCode, said}
}

// refusalIn returns the reason in an answer, in one sentence, and its error code if it has one.
func refusalIn(res *http.Response) (code parley.Code, message string) {
	var said struct{ Error json.RawMessage }
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 4096)) // the part that could be read
	message = res.Status
	if json.Unmarshal(raw, &said) == nil {
		var reason string
		var coded struct {
			Code    parley.Code
			Message string
		}
		switch {
		case json.Unmarshal(said.Error, &reason) == nil && reason != "":
			message = reason
		case json.Unmarshal(said.Error, &coded) == nil && coded.Message != "":
			code, message = coded.Code, coded.Message
		}
	}
	if wait := res.Header.Get("Retry-After"); wait != "" {
		message, _, _ = strings.Cut(message, "; come back ") // "later" or "in a moment"
		message = strings.TrimSuffix(message, ".") + "; come back in " + wait + " s."
	}
	return code, message
}

// unauthorized describes what is wrong with the token.
func (s *serverClient) unauthorized(reason string) string {
	const get = "Give one with --token, or in the variable PARLEY_TOKEN; " +
		"parley token, on the machine of the server, makes one."
	if s.token == "" {
		return fmt.Sprintf("The server at %s wants a token. %s", s.address, get)
	}
	return fmt.Sprintf("The server at %s does not accept the token. %s %s", s.address, reason, get)
}

// post sends a command. Commands with the same key take effect once.
func (s *serverClient) post(ctx context.Context, path, key string, body map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	response, err := s.request(ctx, http.MethodPost, path, header, raw)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// enter opens the session if it does not exist. It follows the session and its
// child sessions from the cursor; without a cursor it begins at the start of
// the current run.
func (s *serverClient) enter(ctx context.Context, agent string) (*eventStream, error) {
	body := map[string]any{"id": s.session}
	if agent != "" {
		body["agent"] = agent
	}
	if s.project != "" {
		body["project"] = s.project
	}
	if err := s.post(ctx, "/sessions", "", body); err != nil {
		return nil, err
	}
	if s.cursor == "" {
		if err := s.find(ctx); err != nil {
			return nil, err
		}
	}
	return s.follow(ctx)
}

// find sets the cursor to the start of the current run, or to the end of the log if no run is open.
func (s *serverClient) find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	var about port.Summary
	if err := s.get(ctx, "/sessions/"+string(s.session),
		func(body io.Reader) error { return json.NewDecoder(body).Decode(&about) }); err != nil {
		return err
	}
	after, before := about.Head-1, parley.Position(0)
	if about.Run != 0 {
		after, before = parley.Seq(about.Run)-1, 1
	}
	return s.get(ctx, "/sessions/"+string(s.session)+"/log?after="+strconv.FormatInt(int64(max(after, 0)), 10),
		func(body io.Reader) error {
			var e parley.Event
			if err := json.NewDecoder(body).Decode(&e); err != nil {
				return s.away(err)
			}
			s.cursor = strconv.FormatInt(int64(e.Position-before), 10)
			return nil
		})
}

// demo reports whether the demo answers, with the server's sentence for an operator who gets it by mistake. The
// sentence is empty if there is none. If the server did not answer, demo returns false.
func (s *serverClient) demo(ctx context.Context) (demo bool, hint string) {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	var about struct {
		Demo bool
		Hint string
	}
	if err := s.get(ctx, "/me", func(body io.Reader) error {
		return json.NewDecoder(body).Decode(&about)
	}); err != nil || !about.Demo {
		return false, ""
	}
	return true, about.Hint
}

func (s *serverClient) get(ctx context.Context, path string, read func(io.Reader) error) error {
	response, err := s.request(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return read(response.Body)
}

// An eventStream is a connection to a log. Its channel of events is closed when the connection ends.
type eventStream struct {
	events chan parley.Event
	err    error // why the stream ended
	cancel context.CancelFunc
}

// close ends the stream and waits until it has ended.
func (s *eventStream) close() {
	s.cancel()
	for range s.events {
	}
}

// silence is how long a stream may be silent. An idle server sends a keep-alive every 15 seconds.
const silence = 45 * time.Second

func (s *serverClient) follow(ctx context.Context) (*eventStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	header := http.Header{"Accept": {"text/event-stream"}, "Last-Event-Id": {s.cursor}}
	response, err := s.request(ctx, http.MethodGet, "/sessions/"+string(s.session)+"/log?scope=tree", header, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	stream := &eventStream{events: make(chan parley.Event), cancel: cancel}
	go func() {
		defer close(stream.events)
		defer response.Body.Close()
		stream.err = s.read(ctx, cancel, response.Body, stream.events)
	}()
	return stream, nil
}

var errHistory = errors.New("the server has another history than before: it was restored, or is another one; begin a " +
	"new chat")

// read delivers events until the stream breaks off. The cursor is that of the
// last event that the chat received.
func (s *serverClient) read(ctx context.Context, cancel func(), body io.Reader, events chan<- parley.Event) error {
	watch := time.AfterFunc(silence, cancel)
	defer watch.Stop()
	id, event := "", ""
	for lines := bufio.NewReader(body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		watch.Reset(silence)
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			if event == "resync" {
				return errHistory
			}
			var e parley.Event
			if json.Unmarshal([]byte(value), &e) != nil {
				continue // a type of event of a newer server
			}
			select {
			case events <- e:
				s.cursor = id
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
