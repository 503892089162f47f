package native

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/dialect/dialecttest"
	"parley/port"
)

// TestGoldenLogsAsServed: logs are served as the lines of the transcripts. As
// server-sent events, each has its cursor.
func TestGoldenLogsAsServed(t *testing.T) {
	for n, log := range dialecttest.Logs(t) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if log[0].Seq != 1 {
				t.Skip("a log is served from its beginning or from a cursor; this is the rest of one")
			}
			srv := serve(t, &door{log: log})
			res := get(t, srv, logPath)
			body, err := io.ReadAll(res.Body)
			if err != nil || string(body) != dialecttest.Lines(log) {
				t.Errorf("read %s (%v)", body, err)
			}
			if h := res.Header; h.Get("Content-Type") != "application/jsonl" || h.Get("Parley-Epoch") != epoch {
				t.Errorf("the headers are %v", h)
			}
			res = get(t, srv, logPath, "Accept: text/event-stream")
			r := bufio.NewReader(res.Body)
			for _, e := range log {
				want := fmt.Sprintf("id: %s-%d\ndata: %s\n", epoch, e.Seq, line(e))
				if got := message(t, r); got != want {
					t.Fatalf("sent was %swant %s", got, want)
				}
			}
			if h := res.Header; h.Get("Content-Type") != "text/event-stream" {
				t.Errorf("the headers are %v", h)
			}
		})
	}
}

// message reads one server-sent event, without the empty line at its end.
func message(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	var b strings.Builder
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %q", err, b.String()+text)
		}
		if text == "\n" {
			return b.String()
		}
		b.WriteString(text)
	}
}

// TestCursors: a cursor is the id of an event or a number. The event that it
// names is not sent again. With server-sent events, the browser's header
// overrides the query.
func TestCursors(t *testing.T) {
	log := wholeLog(t)
	srv := serve(t, &door{log: log})
	for _, test := range []struct {
		path, header string
		first        parley.Seq
	}{
		{"", "", 1}, {"?after=", "", 1}, {"?after=0", "", 1}, {"?after=4", "", 5}, {"?after=" + epoch + "-4", "", 5},
		{"?after=" + epoch + "-0", "", 1},
		{"?after=4", epoch + "-9", 10}, {"?last_event_id=" + epoch + "-6", "", 7},
	} {
		if test.header == "" && !strings.Contains(test.path, "last_event_id") {
			body, err := io.ReadAll(get(t, srv, logPath+test.path).Body)
			if err != nil || string(body) != dialecttest.Lines(log[test.first-1:]) {
				t.Errorf("lines%s: %.100s (%v)", test.path, body, err)
			}
		}
		headers := []string{"Accept: text/event-stream"}
		if test.header != "" {
			headers = append(headers, "Last-Event-ID: "+test.header)
		}
		got := message(t, bufio.NewReader(get(t, srv, logPath+test.path, headers...).Body))
		if want := fmt.Sprintf("id: %s-%d\n", epoch, test.first); !strings.HasPrefix(got, want) {
			t.Errorf("events%s, %s: %s", test.path, test.header, got)
		}
	}
	body, err := io.ReadAll(get(t, srv, fmt.Sprintf("%s?after=%d", logPath, len(log))).Body)
	if err != nil || len(body) != 0 {
		t.Errorf("after the head there is %s (%v)", body, err)
	}
}

// TestCursorAtTheHead: a client that starts at the head gets the cursor of the
// head before the first event.
func TestCursorAtTheHead(t *testing.T) {
	log := wholeLog(t)
	srv := serve(t, &door{log: log})
	for _, path := range []string{logPath, logPath + "?scope=tree", "/api/v1/log"} {
		r := bufio.NewReader(get(t, srv, with(path, "head"), "Accept: text/event-stream").Body)
		if got, want := message(t, r), fmt.Sprintf("id: %s-%d\n", epoch, len(log)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestCursorsOfMany: cursors for several sessions are positions, not seqs.
func TestCursorsOfMany(t *testing.T) {
	log := wholeLog(t)
	for i := range log {
		log[i].Position = parley.Position(100 + 3*i)
	}
	srv := serve(t, &door{log: log})
	for _, path := range []string{"/api/v1/log?after=100", logPath + "?scope=tree&after=" + epoch + "-100"} {
		got := message(t, bufio.NewReader(get(t, srv, path, "Accept: text/event-stream").Body))
		if want := fmt.Sprintf("id: %s-103\ndata: %s\n", epoch, line(log[1])); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

var strangers = []string{"other-3", epoch + "-999", "999", "x", epoch + "-", "-3", epoch + "--3", epoch + "-1.5",
	"99999999999999999999", "\x00\x7fé\U000e0001"}

// TestResyncOverLines: an invalid cursor always gets an error, and never the
// wrong events.
func TestResyncOverLines(t *testing.T) {
	for _, path := range []string{logPath, logPath + "?follow=1", logPath + "?scope=tree", "/api/v1/log"} {
		srv := serve(t, &door{log: wholeLog(t)})
		for _, cursor := range strangers {
			res := get(t, srv, with(path, cursor))
			if c, m := failure(t, res.Body); res.StatusCode != http.StatusGone || c != parley.CodeResync || m == "" {
				t.Errorf("%s after %q: %d %s %q", path, cursor, res.StatusCode, c, m)
			}
		}
	}
}

// TestResyncOverEvents: with server-sent events, clients cannot see a status. Instead they get a resync event with a
// cursor from before the beginning, and then all events.
func TestResyncOverEvents(t *testing.T) {
	log := wholeLog(t)
	srv := serve(t, &door{log: log})
	for _, cursor := range strangers {
		r := bufio.NewReader(get(t, srv, with(logPath, cursor), "Accept: text/event-stream").Body)
		checkEvent(t, message(t, r), "id: "+epoch+"-0\nevent: resync\n", parley.CodeResync, "")
		for _, e := range log {
			if got, want := message(t, r), fmt.Sprintf("id: %s-%d\ndata: %s\n", epoch, e.Seq, line(e)); got != want {
				t.Fatalf("after %q: %s", cursor, got)
			}
		}
	}
}

func with(path, cursor string) string {
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	return path + sep + "after=" + strings.NewReplacer("\x00", "%00", "\x7f", "%7F", "é", "%C3%A9", "\U000e0001",
		"%F3%A0%80%81").Replace(cursor)
}

// difficult needs real JSON encoding: %q and strconv.Quote write \x7f, \a, \v
// and \U000e0001, which are not valid in JSON.
const difficult = "“café” \"quoted\" \\ \x7f \a \v \x00 \u200b \U000e0001 <b>\nnext line"

func TestMessagesInEventsAreJSON(t *testing.T) {
	srv := serve(t, &door{log: wholeLog(t), resync: parley.Errorf(parley.CodeResync, "%s", difficult)})
	r := bufio.NewReader(get(t, srv, logPath+"?after=other-1", "Accept: text/event-stream").Body)
	checkEvent(t, message(t, r), "id: "+epoch+"-0\nevent: resync\n", parley.CodeResync, difficult)

	srv = serve(t, &door{end: parley.Errorf(parley.CodeCorrupt, "%s", difficult)})
	res := get(t, srv, logPath, "Accept: text/event-stream")
	r = bufio.NewReader(res.Body)
	checkEvent(t, message(t, r), "event: error\n", parley.CodeCorrupt, difficult)
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("after the error come %q, %v", rest, err)
	}
}

// checkEvent checks an error event; an empty message matches any.
func checkEvent(t *testing.T, got, prefix string, code parley.Code, message string) {
	t.Helper()
	rest, ok := strings.CutPrefix(got, prefix+"data: ")
	if !ok {
		t.Fatalf("sent was %q, want %q", got, prefix)
	}
	var data struct {
		Code    parley.Code
		Message string
	}
	if err := json.Unmarshal([]byte(rest), &data); err != nil {
		t.Fatalf("the data is not JSON: %v: %s", err, rest)
	}
	if data.Code != code || data.Message == "" || message != "" && data.Message != message {
		t.Errorf("told was %+v", data)
	}
}

// TestFollowing: a log ends at its head. With follow=1 it continues, and past events are sent at once.
func TestFollowing(t *testing.T) {
	log := wholeLog(t)
	d := &door{log: log[:3], more: make(chan []*port.Item)}
	srv := serve(t, d)
	body, err := io.ReadAll(get(t, srv, logPath).Body)
	if err != nil || string(body) != dialecttest.Lines(log[:3]) {
		t.Errorf("the finite log is %s (%v)", body, err)
	}

	res := get(t, srv, logPath+"?follow=1&after=2")
	r := bufio.NewReader(res.Body)
	read := func(want parley.Event) {
		t.Helper()
		if got, err := r.ReadString('\n'); err != nil || got != string(line(want))+"\n" {
			t.Fatalf("read %s (%v)", got, err)
		}
	}
	read(log[2])
	for _, e := range log[3:6] {
		select {
		case d.more <- []*port.Item{{Event: e}}:
			read(e)
		case <-time.After(time.Minute):
			t.Fatal("nobody waits for more")
		}
	}
	// The client leaves, and the handler ends: serve checks that.
	res.Body.Close()

	// A client that follows from the head gets the headers before any event.
	res = get(t, srv, logPath+"?follow=1&after=3")
	if res.StatusCode != http.StatusOK || res.Header.Get("Parley-Epoch") != epoch {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	res.Body.Close()
}

// TestAFiniteLogEndsAtTheHeadItHad: events after the head that was looked up
// are not sent.
func TestAFiniteLogEndsAtTheHeadItHad(t *testing.T) {
	log := wholeLog(t)
	d := &door{log: log}
	h := handler(d)
	w := newRecorder()
	f, err := d.Follow(t.Context(), port.Principal{}, port.Scope{Session: dialecttest.Session}, port.Beginning)
	if err != nil {
		t.Fatal(err)
	}
	h.lines(w, httptest.NewRequest("GET", logPath, nil), f, 0, 10)
	if got := w.Body.String(); got != dialecttest.Lines(log[:10]) {
		t.Errorf("written was %s", got)
	}
}

// TestACutLogDoesNotLookWhole: if the log cannot be read to its end, the
// response must not end normally, because a client would take it for the whole
// log.
func TestACutLogDoesNotLookWhole(t *testing.T) {
	log := wholeLog(t)
	for _, end := range []error{
		parley.Errorf(parley.CodeCorrupt, "A row cannot be read."),
		parley.Errorf(parley.CodeUnavailable, "The server is stopping."), errors.New("disk"),
	} {
		srv := serve(t, &door{log: log[:9], head: parley.Seq(len(log)), end: end})
		body, err := io.ReadAll(get(t, srv, logPath).Body)
		if err == nil || !strings.HasPrefix(dialecttest.Lines(log), string(body)) {
			t.Errorf("%v: read %d bytes and %v", end, len(body), err)
		}
	}
	// Before anything was written, an error status is still possible.
	stopping := parley.Errorf(parley.CodeUnavailable, "The server is stopping.")
	srv := serve(t, &door{head: 9, end: stopping})
	if res := get(t, srv, logPath); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the status is %d", res.StatusCode)
	}
	// A client that follows expects an end at any time.
	srv = serve(t, &door{log: log[:9], end: stopping})
	if body, err := io.ReadAll(get(t, srv, logPath+"?follow=1").Body); err != nil ||
		string(body) != dialecttest.Lines(log[:9]) {
		t.Errorf("read %s and %v", body, err)
	}
}

// recorder records a response and its last write deadline.
type recorder struct {
	*httptest.ResponseRecorder
	deadline time.Time
	refuses  error // error of SetWriteDeadline
}

func newRecorder() *recorder { return &recorder{ResponseRecorder: httptest.NewRecorder()} }

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.deadline = t
	return r.refuses
}

// TestNoDeadlineWhileWaiting: deadlines are for writes. While a follower waits, none is set: otherwise it would pass,
// and nothing more could be sent.
func TestNoDeadlineWhileWaiting(t *testing.T) {
	w := newRecorder()
	stopping := parley.Errorf(parley.CodeUnavailable, "The server is stopping.")
	mux(&door{log: wholeLog(t), end: stopping}).ServeHTTP(w, httptest.NewRequest("GET", logPath+"?follow=1", nil))
	if w.Body.Len() == 0 || !w.deadline.IsZero() {
		t.Errorf("after %d bytes the deadline is %v", w.Body.Len(), w.deadline)
	}
}

// TestALogThatCannotBeWrittenDoesNotLookEmpty: if no deadline can be set,
// nothing is written. The response must not look like an empty log.
func TestALogThatCannotBeWrittenDoesNotLookEmpty(t *testing.T) {
	w := newRecorder()
	w.refuses = http.ErrNotSupported
	defer func() {
		if end := recover(); end != http.ErrAbortHandler && w.Code < http.StatusInternalServerError {
			t.Errorf("answered was %d with %d bytes (%v)", w.Code, w.Body.Len(), end)
		}
	}()
	mux(&door{log: wholeLog(t)}).ServeHTTP(w, httptest.NewRequest("GET", logPath, nil))
}

// TestKeepAlive: an idle stream gets comments, so that proxies keep it and the server notices a lost connection.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newRecorder()
		r := httptest.NewRequestWithContext(ctx, "GET", logPath, nil)
		r.Header.Set("Accept", "text/event-stream")
		done := make(chan struct{})
		go func() { defer close(done); mux(&door{}).ServeHTTP(w, r) }()
		time.Sleep(31 * time.Second) // fake time of the bubble
		synctest.Wait()
		if got := w.Body.String(); got != ": still here\n\n: still here\n\n" {
			t.Errorf("sent was %q", got)
		}
		cancel()
		<-done
	})
}

// TestExportedFiles: a conversation is served as a file in each format, and another format is refused.
func TestExportedFiles(t *testing.T) {
	var log []parley.Event
	for i, b := range []parley.EventBody{parley.SessionOpened{Owner: "ann", Title: "Plans"},
		parley.InputReceived{Content: "Say <b>hello</b>."}, parley.OutputFinished{Kind: parley.Text, Text: "Hello."}} {
		log = append(log, parley.Event{Session: dialecttest.Session, Root: dialecttest.Session, Seq: parley.Seq(i + 1),
			Body: b})
	}
	srv := serve(t, &door{log: log})
	path := strings.TrimSuffix(logPath, "/log") + "/export"
	for _, c := range []struct{ query, kind, file, has string }{
		{"", "text/markdown; charset=utf-8", ".md", "## You\n\nSay <b>hello</b>.\n"},
		{"?format=html", "text/html; charset=utf-8", ".html", "<p>Say &lt;b&gt;hello&lt;/b&gt;.</p>"},
		{"?format=jsonl&follow=1&after=2", "application/jsonl", ".jsonl", dialecttest.Lines(log)},
	} {
		res := get(t, srv, path+c.query)
		body, err := io.ReadAll(res.Body)
		if h := res.Header; err != nil || res.StatusCode != 200 || h.Get("Content-Type") != c.kind ||
			!strings.HasSuffix(h.Get("Content-Disposition"), c.file) || !strings.Contains(string(body), c.has) {
			t.Errorf("%s: %d %v %v %s", c.query, res.StatusCode, h, err, body)
		}
	}
	if res := get(t, srv, path+"?format=html"); !strings.Contains(res.Header.Get("Content-Security-Policy"),
		"sandbox") {
		t.Error("the page may run scripts")
	}
	if res := get(t, srv, path+"?format=pdf"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("the format pdf: %d", res.StatusCode)
	}
}
