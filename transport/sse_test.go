package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

// parse parses an event stream as the standard requires of clients.
func parse(stream string) (all []Message) {
	var m Message
	var data []byte
	seen := false
	lines := strings.Split(normalise(stream), "\n")
	for _, line := range lines[:len(lines)-1] { // the last line is not complete
		if line == "" {
			if seen {
				m.Data = bytes.TrimSuffix(data, []byte("\n"))
				all = append(all, m)
			}
			m, data, seen = Message{}, nil, false
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			m.ID = value
		case "event":
			m.Event = value
		case "data":
			data, seen = append(append(data, value...), '\n'), true
		}
	}
	return all
}

func normalise(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// tape is a ResponseWriter that records everything that was written, and the
// last deadline.
type tape struct {
	bytes.Buffer
	header   http.Header
	flushes  int
	deadline time.Time
}

func (t *tape) Header() http.Header { return t.header }
func (t *tape) WriteHeader(int)     {}
func (t *tape) Flush()              { t.flushes++ }
func (t *tape) SetWriteDeadline(d time.Time) error {
	t.deadline = d
	return nil
}

func record(t *testing.T) (*tape, *Stream) {
	t.Helper()
	w := &tape{header: http.Header{}}
	s, err := NewStream(w, httptest.NewRequest("GET", "/", nil), StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w, s
}

func FuzzSend(f *testing.F) {
	f.Add("1", "message", []byte(`{"a":1}`))
	f.Add("", "", []byte(""))
	f.Add("7", "", []byte("a\nb\r\nc\rd\n\re\r\r\n"))
	f.Add("a\nb", "x", []byte("id: 9\n\ndata: forged"))
	f.Add("a\x00b", "x\r", []byte("\n"))
	f.Add(" 1 ", ": x", []byte("  \xff\x00:\ufeff"))
	f.Fuzz(func(t *testing.T, id, event string, data []byte) {
		w, s := record(t)
		sent := Message{ID: id, Event: event, Data: data}
		if err := s.Send(sent, Message{ID: "next"}); err != nil {
			if !strings.ContainsAny(id, "\r\n\x00") && !strings.ContainsAny(event, "\r\n") {
				t.Errorf("refused: %v", err)
			}
			if w.Len() > 0 {
				t.Errorf("refused, but wrote %q", w)
			}
			return
		}
		sent.Data = []byte(normalise(string(data)))
		want := []Message{sent, {ID: "next", Data: []byte{}}}
		if got := parse(w.String()); len(got) != 2 || !equal(got[0], want[0]) || !equal(got[1], want[1]) {
			t.Errorf("sent %q, received %q", want, got)
		}
		if w.flushes != 2 || !w.deadline.IsZero() { // one for the headers, one for the batch
			t.Errorf("%d flushes, deadline left at %v", w.flushes, w.deadline)
		}
	})
}

func equal(a, b Message) bool {
	return a.ID == b.ID && a.Event == b.Event && bytes.Equal(a.Data, b.Data)
}

func TestMarkShowsNothing(t *testing.T) {
	w, s := record(t)
	if err := s.Mark("a-7"); err != nil || w.String() != "id: a-7\n\n" || len(parse(w.String())) != 0 {
		t.Errorf("%v, wrote %q", err, w)
	}
	if err := s.Mark("a\nb"); err == nil {
		t.Error("an id of two lines was written")
	}
}

func TestCommentIsIgnored(t *testing.T) {
	w, s := record(t)
	if err := s.Comment("still here\ndata: not a message\r\rid: 3"); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(Message{ID: "1", Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	want := []Message{{ID: "1", Data: []byte("x")}}
	if got := parse(w.String()); !reflect.DeepEqual(got, want) {
		t.Errorf("received %q from %q", got, w)
	}
}

// stream serves one stream over HTTP/1.1 or 2 and returns the response; the
// channel receives the error of f.
func stream(t *testing.T, h2 bool, o StreamOptions, f func(*Stream, *http.Request) error) (*http.Response,
	<-chan error) {
	t.Helper()
	done := make(chan error, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := NewStream(w, r, o)
		if err == nil {
			err = f(s, r)
		}
		done <- err
	}))
	if srv.EnableHTTP2 = h2; h2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL, nil)
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp, done
}

func TestStream(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			resp, done := stream(t, h2, StreamOptions{}, func(s *Stream, _ *http.Request) error {
				<-seen // the headers do not wait for a message
				err := s.Send(Message{ID: "1", Event: "e", Data: []byte("a\nb")}, Message{ID: "2", Data: []byte("c")})
				<-seen
				return errors.Join(err, s.Comment("bye"))
			})
			if resp.Proto != name || resp.StatusCode != http.StatusOK {
				t.Errorf("%s %s", resp.Proto, resp.Status)
			}
			for header, want := range map[string]string{"Content-Type": "text/event-stream",
				"Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
				if got := resp.Header.Get(header); got != want {
					t.Errorf("%s: %q, want %q", header, got, want)
				}
			}
			seen <- struct{}{}
			const want = "id: 1\nevent: e\ndata: a\ndata: b\n\nid: 2\ndata: c\n\n"
			got := make([]byte, len(want))
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
				t.Errorf("received %q, %v", got, err)
			}
			seen <- struct{}{}
			if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != ": bye\n\n" {
				t.Errorf("received %q, %v", rest, err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStreamStalls(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(name, func(t *testing.T) {
			_, done := stream(t, h2, StreamOptions{WriteWithin: 100 * time.Millisecond},
				func(s *Stream, _ *http.Request) error {
					for m := (Message{Data: make([]byte, 1<<20)}); ; {
						if err := s.Send(m); err != nil {
							return err
						}
					}
				})
			if err := <-done; err == nil {
				t.Error("a stream nobody reads did not end")
			}
		})
	}
}

func TestStreamEndsWithItsClient(t *testing.T) {
	resp, done := stream(t, false, StreamOptions{}, func(s *Stream, r *http.Request) error {
		<-r.Context().Done()
		return s.Comment("anybody?")
	})
	resp.Body.Close()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Comment: %v", err)
	}
}

func TestNewStreamRefuses(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := NewStream(struct{ http.ResponseWriter }{w}, r, StreamOptions{}); !errors.Is(err,
			http.ErrNotSupported) {
			t.Errorf("NewStream: %v", err)
		}
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 501 || strings.Contains(got, "event-stream") {
		t.Errorf("%s, %s", resp.Status, got)
	}
}

func TestLastEventID(t *testing.T) {
	for _, test := range []struct{ header, query, want string }{
		{"", "", ""}, {"7", "", "7"}, {"", "?last_event_id=e%2F8", "e/8"}, {"7", "?last_event_id=8", "7"},
	} {
		r := httptest.NewRequest("GET", "/"+test.query, nil)
		if test.header != "" {
			r.Header.Set("Last-Event-ID", test.header)
		}
		if got := LastEventID(r); got != test.want {
			t.Errorf("header %q, query %q: %q", test.header, test.query, got)
		}
	}
}
