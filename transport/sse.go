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

// StreamOptions of a Stream. Zero fields stand for the defaults.
type StreamOptions struct {
	WriteWithin time.Duration // for one Send or Comment; 10s
}

// A Message is one server-sent event. ID is where a client resumes after it,
// Event its type; either may be empty, and neither may contain a line end. Data
// may: \r\n and \r arrive as \n, as the standard has it.
type Message struct {
	ID, Event string
	Data      []byte
}

// A Stream is a response of server-sent events. Its methods may be called
// concurrently, until the handler returns. After an error from the connection
// all further calls fail.
type Stream struct {
	ctx    context.Context
	within time.Duration

	mu sync.Mutex // guards the following
	w  http.ResponseWriter
	rc *http.ResponseController
}

// NewStream sends the headers. On failure it has answered the request already,
// if there was anybody to answer.
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
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	if err := s.write(nil); err != nil {
		http.Error(w, "This server cannot stream here.", http.StatusNotImplemented)
		return nil, fmt.Errorf("start event stream: %w", err)
	}
	return s, nil
}

// Send writes messages and flushes them once. It refuses the whole batch, and
// the stream goes on, if an ID or Event cannot be written.
func (s *Stream) Send(messages ...Message) error {
	var b []byte
	for _, m := range messages {
		// A NUL would make clients ignore the ID, and resume from an older one.
		if strings.ContainsAny(m.ID, "\r\n\x00") || strings.ContainsAny(m.Event, "\r\n") {
			return fmt.Errorf("event id %q or type %q contains a control character", m.ID, m.Event)
		}
		b = appendMessage(b, m)
	}
	return s.write(b)
}

// Mark has the client resume after id, as if it had a message of that ID, and
// shows it nothing.
func (s *Stream) Mark(id string) error {
	if strings.ContainsAny(id, "\r\n\x00") {
		return fmt.Errorf("event id %q contains a control character", id)
	}
	return s.write([]byte("id: " + id + "\n\n"))
}

// Comment writes what clients ignore, to keep the connection alive and to find
// out whether it is.
func (s *Stream) Comment(text string) error {
	return s.write(append(appendLines(nil, ": ", []byte(text)), '\n'))
}

func (s *Stream) write(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A connection the client has left still takes writes for a while.
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
	// The deadline is for this write, not for how long the next may be coming.
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

// appendLines puts prefix before every line of text, of which there is at least
// one.
func appendLines(b []byte, prefix string, text []byte) []byte {
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

// LastEventID is the ID of the last message the client has. Browsers send a
// header when they reconnect; a page that opens a new EventSource can only put
// it into the address.
func LastEventID(r *http.Request) string {
	return cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("last_event_id"))
}
