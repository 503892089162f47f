package transport

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// StreamOptions configures a Stream. Zero fields mean the defaults.
type StreamOptions struct {
	WriteWithin time.Duration // timeout of one Send or Comment; 10s
}

// A Message is one server-sent event. A client that has received it resumes
// after ID; Event is its type. Either may be empty, and neither may contain a
// line end. Data may contain line ends: \r\n and \r arrive as \n, as the
// standard requires.
type Message struct {
	ID, Event string
	Data      []byte
}

// A Stream is a response of server-sent events. Its methods may be called
// concurrently until the handler returns. After an error from the connection,
// all further calls fail.
type Stream struct {
	ctx    context.Context
	within time.Duration

	mu sync.Mutex // guards the fields below
	w  http.ResponseWriter
	rc *http.ResponseController
}

// NewStream sends the headers. On failure it has already answered the request,
// if the client is still connected.
func NewStream(w http.ResponseWriter, r *http.Request, o StreamOptions) (*Stream, error) {
	s := &Stream{
		ctx:    r.Context(),
		within: cmp.Or(o.WriteWithin, 10*time.Second),
		w:      w,
		rc:     http.NewResponseController(w),
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // otherwise nginx buffers events
	if err := s.write(nil); err != nil {
		http.Error(w, "This server cannot stream here.", http.StatusNotImplemented)
		return nil, fmt.Errorf("start event stream: %w", err)
	}
	return s, nil
}

// Send writes messages and flushes them once. If an ID or Event is invalid, it
// refuses the whole batch, and the stream stays usable.
func (s *Stream) Send(messages ...Message) error {
	var b []byte
	for _, m := range messages {
		// Clients ignore an ID with a NUL, and would resume from an older one.
		if strings.ContainsAny(m.ID, "\r\n\x00") || strings.ContainsAny(m.Event, "\r\n") {
			return fmt.Errorf("event id %q or type %q contains a control character", m.ID, m.Event)
		}
		b = appendMessage(b, m)
	}
	return s.write(b)
}

// Mark makes the client resume after id, without sending an event.
func (s *Stream) Mark(id string) error {
	if strings.ContainsAny(id, "\r\n\x00") {
		return fmt.Errorf("event id %q contains a control character", id)
	}
	return s.write([]byte("id: " + id + "\n\n"))
}

// Comment writes a comment, which clients ignore. It keeps the connection alive
// and detects a lost one.
func (s *Stream) Comment(text string) error {
	return s.write(append(appendLines(nil, ": ", []byte(text)), '\n'))
}

func (s *Stream) write(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A connection that the client has closed still accepts writes for a while.
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if err := s.rc.SetWriteDeadline(time.Now().Add(s.within)); err != nil {
		return err
	}
	if len(b) > 0 {
		if _, err := s.w.Write(b); err != nil {
			return err
		}
	}
	if err := s.rc.Flush(); err != nil {
		return err
	}
	// The deadline is for this write only: any amount of time may pass until
	// the next one.
	return s.rc.SetWriteDeadline(time.Time{})
}

func appendMessage(b []byte, m Message) []byte {
	if m.ID != "" {
		b = append(b, "id: "+m.ID+"\n"...)
	}
	if m.Event != "" {
		b = append(b, "event: "+m.Event+"\n"...)
	}
	return append(appendLines(b, "data: ", m.Data), '\n')
}

// appendLines appends text with prefix before every line. Empty text counts as
// one line.
func appendLines(b []byte, prefix string, text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 { // as in JSON
		return append(append(append(b, prefix...), text...), '\n')
	}
	for {
		b = append(b, prefix...)
		i := bytes.IndexAny(text, "\r\n")
		if i < 0 {
			return append(append(b, text...), '\n')
		}
		b = append(append(b, text[:i]...), '\n')
		if bytes.HasPrefix(text[i:], []byte("\r\n")) {
			i++
		}
		text = text[i+1:]
	}
}

// LastEventID returns the ID of the last message that the client has received.
// Browsers send a header when they reconnect. A page that opens a new
// EventSource can only put the ID into the address.
func LastEventID(r *http.Request) string {
	return cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("last_event_id"))
}
