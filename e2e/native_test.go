package e2e

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// talk makes a log with some content, and returns it as JSON lines with the
// epoch.
func talk(t *testing.T, s *server) (thread, epoch string, lines []string) {
	t.Helper()
	c := startNode(t).dial(s, newThread())
	c.ask("think about logs")
	c.completed()
	response := s.request(within(t, patience), http.MethodGet, "/api/v1/sessions/"+c.thread+"/log", nil, "")
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return c.thread, response.Header.Get("Parley-Epoch"), slices.Collect(strings.Lines(string(body)))
}

func TestALogIsServedAsLines(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	thread, epoch, lines := talk(t, s)
	if len(lines) < 10 || epoch == "" {
		t.Fatalf("epoch %q, %d lines", epoch, len(lines))
	}
	for i, line := range lines {
		if e := parseEvent(t, line); e.Seq != i+1 || e.Session != thread || e.Type == "" {
			t.Errorf("line %d is %s", i+1, line)
		}
	}
	for _, after := range []string{"5", epoch + "-5"} {
		if _, body := s.get("/api/v1/sessions/"+thread+"/log?after="+after, nil); body != strings.Join(lines[5:], "") {
			t.Errorf("after=%s: %s", after, body)
		}
	}
	if _, body := s.get(fmt.Sprintf("/api/v1/sessions/%s/log?after=%d", thread, len(lines)), nil); body != "" {
		t.Errorf("after the end there is %s", body)
	}
	for _, after := range []string{"otherepoch-5", fmt.Sprintf("%s-%d", epoch, len(lines)+1), "nonsense"} {
		if status, body := s.get("/api/v1/sessions/"+thread+"/log?after="+after, nil); status != http.StatusGone ||
			!strings.Contains(body, `"code":"resync"`) {
			t.Errorf("after=%s: %d %s", after, status, body)
		}
	}
	if status, body := s.get("/api/v1/sessions/"+newThread()+"/log", nil); status != http.StatusNotFound {
		t.Errorf("the log of nothing: %d %s", status, body)
	}
}

func TestAStreamResumesWithTheMissingEvents(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	thread, epoch, lines := talk(t, s)
	path := "/api/v1/sessions/" + thread + "/log"
	expect := func(st *stream, from int) {
		t.Helper()
		for i := from; i < len(lines); i++ {
			if m := st.next(); m.id != fmt.Sprintf("%s-%d", epoch, i+1) || m.event != "" || m.data+"\n" != lines[i] {
				t.Fatalf("want line %d, got %+v", i+1, m)
			}
		}
	}
	fresh := s.follow(path, "")
	expect(fresh, 0)
	resumed := s.follow(path, fmt.Sprintf("%s-%d", epoch, 7))
	expect(resumed, 7)
	uptodate := s.follow(path, fmt.Sprintf("%s-%d", epoch, len(lines)))

	// A cursor that is not from this log gets a message that says so, then the
	// log from the start.
	var again []*stream
	for _, cursor := range []string{"otherepoch-7", fmt.Sprintf("%s-%d", epoch, len(lines)+1), "nonsense"} {
		st := s.follow(path, cursor)
		if m := st.next(); m.event != "resync" || m.id != epoch+"-0" || m.data == "" {
			t.Fatalf("Last-Event-ID %s: want resync, got %+v", cursor, m)
		}
		expect(st, 0)
		again = append(again, st)
	}

	// The next event of the log is the next one of every stream, so there was
	// no other in between.
	response := s.request(within(t, patience), http.MethodPatch, "/api/v1/sessions/"+thread,
		http.Header{"Content-Type": {"application/json"}}, `{"title":"renamed"}`)
	response.Body.Close()
	for _, st := range append(again, fresh, resumed, uptodate) {
		m := st.next()
		if e := parseEvent(t, m.data); m.id != fmt.Sprintf("%s-%d", epoch, len(lines)+1) ||
			e.Type != "SessionRenamed" || e.Body.Title != "renamed" {
			t.Errorf("want the new name, got %+v", m)
		}
	}
}

// A stream that reconnects gets the events that came while it was away, also
// from another process.
func TestAStreamResumesAcrossARestart(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	thread, epoch, lines := talk(t, s)
	s.kill()
	s = s.again()
	st := s.follow("/api/v1/sessions/"+thread+"/log", fmt.Sprintf("%s-%d", epoch, len(lines)-2))
	for i := len(lines) - 2; i < len(lines); i++ {
		if m := st.next(); m.data+"\n" != lines[i] {
			t.Errorf("want line %d, got %+v", i+1, m)
		}
	}
}
