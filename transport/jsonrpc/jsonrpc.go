// Package jsonrpc is one end of a JSON-RPC 2.0 connection whose messages are lines:
// both sides ask and answer. It is what the Agent Client Protocol runs over.
//
// Goroutines: Serve reads, and has a goroutine that writes, for which it waits. The
// reader calls the handler, which must not wait for anything: it answers a request
// whenever it can, from any goroutine.
//
// Conn.mu is a leaf and never held across I/O. What was sent and not yet written is
// bounded in bytes, and so is a line that comes in.
package jsonrpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// Codes of errors that every connection may use.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeNoMethod       = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An Error is an answer that says no.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an error to answer with.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// A Handler takes what the other side says. Its methods are called by one goroutine,
// in the order of the messages, and must not wait.
type Handler interface {
	// Request is to be answered once, by answer, at any time.
	Request(method string, params json.RawMessage, answer Answer)
	Notification(method string, params json.RawMessage)
	// Broken is told of a line that is no message. An error ends the connection.
	Broken(error) error
}

// An Answer answers a request: with an error, or with a result. Further calls do
// nothing.
type Answer func(result any, err *Error)

// Options of a connection.
type Options struct {
	MaxLine   int // bytes of a line that comes in
	MaxUnsent int // bytes of lines that go out and are not written yet
	MaxCalls  int // requests to the other side at the same time; zero: 1024
	// Cancel is the notification that tells the other side that nobody waits for the
	// answer to a request any more; empty: it is not told.
	Cancel string
	// Linger is how long Serve waits for each line that goes out, after the other side
	// has closed its end while requests of it are not answered yet; zero: not at all.
	Linger time.Duration
}

// ErrUnsent ends a connection whose other side takes nothing.
var ErrUnsent = errors.New("it does not read what it is sent")

// ErrClosed is the end of a connection that this side wanted.
var ErrClosed = errors.New("the connection is closed")

// A Conn may be used concurrently.
type Conn struct {
	in      io.Reader
	out     io.Writer
	handler Handler
	Options
	ending chan struct{} // closed by Close
	deaf   chan struct{} // closed when nothing more comes in
	wake   chan struct{} // there is something to write

	mu     sync.Mutex // guards the following; leaf
	err    error      // why it ended
	unsent [][]byte
	size   int           // bytes in it
	room   chan struct{} // closed and replaced when a line was written, or a request answered
	owed   int           // requests of the other side that are not answered
	next   int64
	calls  map[string]chan reply
}

type reply struct {
	result json.RawMessage
	err    *Error
}

// A message is any of the three kinds.
type message struct {
	Version string           `json:"jsonrpc"`
	ID      *json.RawMessage `json:"id,omitempty"`
	Method  string           `json:"method,omitempty"`
	Params  json.RawMessage  `json:"params,omitempty"`
	Result  json.RawMessage  `json:"result,omitempty"`
	Error   *Error           `json:"error,omitempty"`
}

func New(in io.Reader, out io.Writer, h Handler, o Options) *Conn {
	if o.MaxCalls == 0 {
		o.MaxCalls = 1024
	}
	return &Conn{in: in, out: out, handler: h, Options: o, ending: make(chan struct{}),
		deaf: make(chan struct{}), wake: make(chan struct{}, 1),
		room: make(chan struct{}), calls: map[string]chan reply{}}
}

// Serve reads and writes until the connection ends, and says why; io.EOF: the other
// side closed it. Whoever owns the streams closes them: Serve returns when reading
// and writing have ended.
func (c *Conn) Serve() error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.writeAll()
	}()
	err := c.readAll()
	if !errors.Is(err, io.EOF) {
		c.end(err)
	}
	close(c.deaf)
	c.linger()
	c.end(err)
	<-written
	return c.why()
}

// linger waits until the requests that came are answered and everything is written.
func (c *Conn) linger() {
	for {
		c.mu.Lock()
		room, over := c.room, c.err != nil || c.Linger == 0 || c.owed == 0 && c.size == 0
		c.mu.Unlock()
		if over {
			return
		}
		timer := time.NewTimer(c.Linger)
		select {
		case <-room:
		case <-c.ending:
		case <-timer.C:
			return
		}
		timer.Stop()
	}
}

// progressed tells linger, Room and Flushed that something has changed. The caller
// holds mu.
func (c *Conn) progressed() {
	close(c.room)
	c.room = make(chan struct{})
}

// Close ends the connection: calls under way fail, nothing more is written. Serve
// returns once its streams are closed, too.
func (c *Conn) Close() { c.end(ErrClosed) }

// Ended is closed when the connection has ended.
func (c *Conn) Ended() <-chan struct{} { return c.ending }

func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.ending)
	}
}

func (c *Conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Call asks the other side and waits for its answer, which is decoded into result
// unless that is nil. An *Error is the other side's.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	wait, id, err := c.begin(method, params)
	if err != nil {
		return err
	}
	select {
	case r := <-wait:
		return r.into(method, result)
	case <-ctx.Done():
		err = ctx.Err()
		if c.Cancel != "" {
			_ = c.Notify(c.Cancel, map[string]json.RawMessage{"requestId": json.RawMessage(id)}) // it may be gone
		}
	case <-c.deaf:
		if err = c.why(); err == nil {
			err = io.EOF
		}
	case <-c.ending:
		err = c.why()
	}
	c.mu.Lock()
	delete(c.calls, id)
	c.mu.Unlock()
	select {
	case r := <-wait: // it came right before the end
		return r.into(method, result)
	default:
		return err
	}
}

// into decodes the answer to a call.
func (r reply) into(method string, result any) error {
	if r.err != nil {
		return r.err
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(r.result, result); err != nil {
		return fmt.Errorf("the answer to %s cannot be read: %w", method, err)
	}
	return nil
}

func (c *Conn) begin(method string, params any) (chan reply, string, error) {
	c.mu.Lock()
	if len(c.calls) >= c.MaxCalls {
		c.mu.Unlock()
		return nil, "", fmt.Errorf("%d requests wait for an answer", c.MaxCalls)
	}
	c.next++
	id, wait := strconv.FormatInt(c.next, 10), make(chan reply, 1)
	c.calls[id] = wait
	c.mu.Unlock()
	raw := json.RawMessage(id)
	err := c.send(message{ID: &raw, Method: method}, params)
	if err != nil {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
	}
	return wait, id, err
}

// Notify tells the other side something.
func (c *Conn) Notify(method string, params any) error {
	return c.send(message{Method: method}, params)
}

// Room waits until the other side has taken most of what it was sent.
func (c *Conn) Room(ctx context.Context) error {
	for {
		c.mu.Lock()
		size, room, err := c.size, c.room, c.err
		c.mu.Unlock()
		if err != nil || size <= c.MaxUnsent/4 {
			return err
		}
		select {
		case <-room:
		case <-c.ending:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Flushed waits until everything that was sent is written, or the connection ends.
func (c *Conn) Flushed(ctx context.Context) {
	for {
		c.mu.Lock()
		size, room, err := c.size, c.room, c.err
		c.mu.Unlock()
		if err != nil || size == 0 {
			return
		}
		select {
		case <-room:
		case <-c.ending:
		case <-ctx.Done():
			return
		}
	}
}

func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func (c *Conn) send(m message, params any) error {
	if params != nil {
		raw, err := encode(params)
		if err != nil {
			return err
		}
		m.Params = raw
	}
	m.Version = "2.0"
	line, err := encode(m)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.size > 0 && c.size+len(line) > c.MaxUnsent {
		c.err = ErrUnsent
		close(c.ending)
		return c.err
	}
	c.unsent, c.size = append(c.unsent, line), c.size+len(line)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

func (c *Conn) writeAll() {
	for {
		c.mu.Lock()
		lines := c.unsent
		c.unsent = nil
		c.mu.Unlock()
		for _, line := range lines {
			if _, err := c.out.Write(line); err != nil {
				c.end(err)
				return
			}
			c.mu.Lock()
			c.size -= len(line)
			c.progressed()
			c.mu.Unlock()
		}
		if len(lines) > 0 {
			continue
		}
		select {
		case <-c.wake:
		case <-c.ending:
			return
		}
	}
}

func (c *Conn) readAll() error {
	in := bufio.NewReaderSize(c.in, 64<<10)
	for {
		line, err := c.readLine(in)
		switch {
		case errors.Is(err, ErrLong):
			if err := c.handler.Broken(err); err != nil {
				return err
			}
		case err != nil:
			return err
		case len(bytes.TrimSpace(line)) > 0:
			if err := c.take(line); err != nil {
				return err
			}
		}
		select {
		case <-c.ending:
			return c.why()
		default:
		}
	}
}

// ErrLong is a line that is longer than MaxLine.
var ErrLong = errors.New("a line is too long")

// readLine reads a line. One that is too long is read to its end, and lost.
func (c *Conn) readLine(in *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > c.MaxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && len(line) > 0 && errors.Is(err, io.EOF):
			return line, nil // the next read is the end again
		case err != nil:
			return nil, err
		case long:
			return nil, fmt.Errorf("%w: it has more than %d bytes", ErrLong, c.MaxLine)
		default:
			return line, nil
		}
	}
}

// take understands a line.
func (c *Conn) take(line []byte) error {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		code, what := CodeParse, "This is no JSON."
		if json.Valid(line) {
			code, what = CodeInvalidRequest, "This is no JSON-RPC message."
		}
		c.refuse(Errorf(code, "%s", what))
		return c.handler.Broken(fmt.Errorf("%.100q: %w", line, err))
	}
	null := m.ID != nil && string(*m.ID) == "null"
	switch {
	case m.Method != "" && m.ID != nil:
		c.handler.Request(m.Method, m.Params, c.answerTo(*m.ID))
	case m.Method != "":
		c.handler.Notification(m.Method, m.Params)
	case m.ID != nil && (m.Result != nil || m.Error != nil):
		if null { // an answer to something that it could not read
			return c.handler.Broken(fmt.Errorf("it could not read a message: %s", errorText(m.Error)))
		}
		c.mu.Lock()
		wait := c.calls[string(*m.ID)]
		delete(c.calls, string(*m.ID))
		c.mu.Unlock()
		if wait != nil { // else nobody waits for it any more
			wait <- reply{m.Result, m.Error}
		}
	default:
		c.refuse(Errorf(CodeInvalidRequest, "This is neither a request nor an answer."))
		return c.handler.Broken(fmt.Errorf("%.100q is neither a request nor an answer", line))
	}
	return nil
}

func errorText(e *Error) string {
	if e == nil {
		return "no error"
	}
	return e.Message
}

// refuse answers a message that has no id that could be read.
func (c *Conn) refuse(e *Error) {
	null := json.RawMessage("null")
	_ = c.send(message{ID: &null, Error: e}, nil)
}

func (c *Conn) answerTo(id json.RawMessage) Answer {
	id = bytes.Clone(id)
	c.mu.Lock()
	c.owed++
	c.mu.Unlock()
	var once sync.Once
	return func(result any, err *Error) {
		once.Do(func() {
			m := message{ID: &id, Error: err}
			if err == nil {
				raw, failed := encode(result)
				if m.Result = raw; failed != nil {
					m.Result, m.Error = nil, Errorf(CodeInternal, "The answer could not be written.")
				}
			}
			_ = c.send(m, nil) // if it has ended, nobody waits for an answer
			c.mu.Lock()
			c.owed--
			c.progressed()
			c.mu.Unlock()
		})
	}
}
