package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley"
)

// A Log selects the events to follow. The zero value selects all sessions of the tenant that the user may read.
type Log struct {
	Session parley.SessionID
	Tree    bool   // also the sessions of its sub-agents
	Project string // root or id; limits the log of a tenant
}

// An Update is one step of a follower: an event, or, with Lost or Resync, a change of its connection.
type Update struct {
	// Cursor is where Follow resumes after this update. It is opaque.
	Cursor string

	// Event is the event. If this version does not know its type, its body is parley.Unreadable.
	Event parley.Event
	// Line is the event in JSON, as the server sent it.
	Line []byte

	// Lost is set if the connection was lost or could not be made. The follower tries again by itself.
	Lost error
	// Resync is set if the server does not know the cursor: it was restored from a backup, or another server is at the
	// address. The log follows from its beginning, so discard everything received before.
	Resync *Error
}

// Head is the cursor at the present end of a log.
const Head = "head"

// Follow yields the events of a log after a cursor, and then each new one. An empty cursor is the beginning. It ends
// when the loop ends, when ctx ends, or when the server refuses; only then is the error set. If the server cannot be
// reached, Follow reports it once and tries again without limit.
func (c *Client) Follow(ctx context.Context, log Log, after string) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		f := &follower{client: c, log: log, cursor: after, last: numberOf(after), yield: yield}
		if err := f.run(ctx); err != nil {
			yield(Update{Cursor: f.cursor}, err)
		}
	}
}

type follower struct {
	client   *Client
	log      Log
	cursor   string
	last     int64 // number in the cursor of the last event that was yielded
	yield    func(Update, error) bool
	progress bool // data arrived on this connection
}

// errLeft: the caller has ended the loop.
var errLeft = errors.New("the caller left")

func (f *follower) run(ctx context.Context) error {
	reported := false
	for attempt := 0; ; attempt++ {
		f.progress = false
		err := f.connect(ctx)
		if f.progress {
			attempt, reported = 0, false
		}
		refused, is := errors.AsType[*Error](err)
		switch {
		case errors.Is(err, errLeft):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case is && !refused.temporary():
			return err
		}
		if !reported {
			reported = true
			if !f.yield(Update{Cursor: f.cursor, Lost: err}, nil) {
				return nil
			}
		}
		if err := f.client.pause(ctx, attempt, err); err != nil {
			return err
		}
	}
}

// A server with nothing to send sends a comment every 15 seconds.
const silence = 45 * time.Second

// connect follows over one connection until it ends. It always returns an error.
func (f *follower) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := time.AfterFunc(silence, cancel)
	defer watch.Stop()
	q := request{method: http.MethodGet, path: "/log", query: url.Values{}}
	if f.log.Session != "" {
		q.path = "/sessions/" + url.PathEscape(string(f.log.Session)) + "/log"
	}
	if f.log.Tree {
		q.query.Set("scope", "tree")
	}
	if f.log.Project != "" {
		q.query.Set("project", f.log.Project)
	}
	header := http.Header{"Accept": {"text/event-stream"}}
	switch f.cursor {
	case "":
	case Head:
		q.query.Set("after", Head)
	default:
		header.Set("Last-Event-ID", f.cursor)
	}
	response, err := f.client.send(ctx, q, header, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return &Error{Status: response.StatusCode, Message: fmt.Sprintf("The server at %s does not stream logs; is it "+
			"a Parley server?", f.client.address)}
	}
	err = f.read(response.Body, func() {
		f.progress = true
		watch.Reset(silence)
	})
	if _, refused := errors.AsType[*Error](err); refused || errors.Is(err, errLeft) {
		return err
	}
	return &Unreachable{Address: f.client.address, Sent: true, Err: err}
}

// read handles the messages of a stream. A message is complete with the empty line after it; an incomplete message
// comes again on the next connection.
func (f *follower) read(body io.Reader, alive func()) error {
	var id, event string
	var data []byte
	for lines := bufio.NewReader(body); ; {
		line, err := readLine(lines)
		if err != nil {
			return err
		}
		alive()
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "id":
			id = string(value)
		case "event":
			event = string(value)
		case "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		case "":
			if len(line) > 0 {
				continue // a comment, which keeps the connection alive
			}
			if err := f.deliver(id, event, data); err != nil {
				return err
			}
			id, event, data = "", "", nil
		}
	}
}

// deliver yields one message of the stream.
func (f *follower) deliver(id, event string, data []byte) error {
	switch {
	case event == "resync":
		f.cursor, f.last = id, 0
		return f.hand(Update{Cursor: id, Resync: refusalIn(data)})
	case event == "error":
		return refusalIn(data)
	case data == nil && id != "": // a bookmark, which only moves the cursor
		f.cursor, f.last = id, numberOf(id)
		return nil
	case data == nil:
		return nil
	}
	if n := numberOf(id); n <= f.last {
		return nil // the server has sent it before
	}
	f.cursor, f.last = id, numberOf(id)
	e, err := parseEvent(data)
	if err != nil {
		return &Error{Code: parley.CodeCorrupt, Message: fmt.Sprintf("The server sent a line that is no event: %v.",
			err)}
	}
	return f.hand(Update{Cursor: id, Event: e, Line: data})
}

func (f *follower) hand(u Update) error {
	if !f.yield(u, nil) {
		return errLeft
	}
	return nil
}

func refusalIn(data []byte) *Error {
	var said struct {
		Code          parley.Code
		Message, Hint string
	}
	if json.Unmarshal(data, &said) != nil {
		said.Message = string(data)
	}
	return &Error{Code: said.Code, Message: said.Message, Hint: said.Hint}
}

// numberOf returns the number at the end of a cursor. It grows from event to event.
func numberOf(cursor string) int64 {
	n, _ := strconv.ParseInt(cursor[strings.LastIndex(cursor, "-")+1:], 10, 64)
	return n
}

// parseEvent decodes a line of a log. If this version does not know the type, the body is parley.Unreadable.
func parseEvent(line []byte) (e parley.Event, err error) {
	if json.Unmarshal(line, &e) == nil {
		return e, nil
	}
	var known struct {
		Session  parley.SessionID
		Seq      parley.Seq
		Position parley.Position
		Root     parley.SessionID
		At       time.Time
		Run      parley.RunID
		By       parley.PrincipalID
		Type     string
	}
	if err := json.Unmarshal(line, &known); err != nil {
		return e, err
	}
	return parley.Event{Session: known.Session, Seq: known.Seq, Position: known.Position, Root: known.Root,
		At:  known.At,
		Run: known.Run, By: known.By, Body: parley.Unreadable{Type: known.Type}}, nil
}

// longestLine limits the memory that a broken server can use.
const longestLine = 64 << 20

// readLine reads a line and removes its end. A line without an end was cut off.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != bufio.ErrBufferFull {
			return nil, err
		}
		if len(line) > longestLine {
			return nil, fmt.Errorf("the server sent a line of more than %d bytes", longestLine)
		}
	}
}

// Read yields the events of one session after a seq, up to the present end of the log. If the connection is lost, Read
// continues where it was.
func (c *Client) Read(ctx context.Context, session parley.SessionID, after parley.Seq) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		r := &reader{client: c, session: session, at: after, yield: yield}
		if err := r.run(ctx); err != nil && !errors.Is(err, errLeft) {
			yield(Update{}, err)
		}
	}
}

type reader struct {
	client  *Client
	session parley.SessionID
	at      parley.Seq
	until   parley.Seq
	yield   func(Update, error) bool
}

func (r *reader) run(ctx context.Context) error {
	about, err := r.client.Session(ctx, r.session)
	if err != nil {
		return err
	}
	r.until = about.Head
	for again := r.client.newRetry(); r.at < r.until; {
		at := r.at
		err := r.connect(ctx)
		if r.at > at {
			again = r.client.newRetry()
			again.sent = true
		}
		if err == nil {
			continue
		}
		if err := again.wait(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) connect(ctx context.Context) error {
	q := request{method: http.MethodGet, path: "/sessions/" + url.PathEscape(string(r.session)) + "/log",
		query: url.Values{"after": {strconv.FormatInt(int64(r.at), 10)}}}
	response, err := r.client.send(ctx, q, http.Header{}, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for lines := bufio.NewReader(response.Body); r.at < r.until; {
		line, err := readLine(lines)
		if err != nil {
			return &Unreachable{Address: r.client.address, Sent: true, Err: err}
		}
		e, err := parseEvent(line)
		if err != nil {
			return fmt.Errorf("the server at %s sent a line that is no event: %w", r.client.address, err)
		}
		if r.at = e.Seq; r.at > r.until {
			return nil
		}
		if !r.yield(Update{Cursor: strconv.FormatInt(int64(e.Seq), 10), Event: e, Line: line}, nil) {
			return errLeft
		}
	}
	return nil
}
