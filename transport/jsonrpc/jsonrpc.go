// Package jsonrpc is one end of a JSON-RPC 2.0 connection with one message per line. Both sides may send requests. The
// Agent Client Protocol uses it.
//
// Goroutines: Serve reads, and starts a goroutine that writes, for which it waits. The reading goroutine calls the
// handler, which must not block: it may answer a request later, from any goroutine.
//
// Conn.mu is a leaf lock and never held across I/O. The number of bytes that wait to be written is bounded, and so is
// the length of a line that is read.
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

// Error codes that every JSON-RPC connection may use.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeNoMethod       = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An Error is the error in an answer.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an Error to answer with.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// A Handler handles the messages of the other side. One goroutine calls its methods, in the order of the messages, so
// they must not block.
type Handler interface {
	// Request handles a request. The handler must call answer once, at any time.
	Request(method string, params json.RawMessage, answer Answer)
	Notification(method string, params json.RawMessage)
	// Broken is called for a line that is not a message. If it returns an error, the connection ends.
	Broken(error) error
}

// An Answer answers a request, with an error or with a result. Further calls have no effect.
type Answer func(result any, err *Error)

// Options of a connection.
type Options struct {
	MaxLine   int // maximum bytes of a line that is read
	MaxUnsent int // maximum bytes of lines that wait to be written
	MaxCalls  int // maximum concurrent requests to the other side; zero: 1024
	// Cancel is the method of the notification that tells the other side that Call has given up on a request; empty: no
	// notification is sent.
	Cancel string
	// Linger applies after the other side has closed its end and some of its requests are not answered yet. It is how
	// long Serve waits for each further answer or line that is written; zero: not at all.
	Linger time.Duration
}

// ErrUnsent ends a connection whose other side does not read: MaxUnsent was reached.
var ErrUnsent = errors.New("it does not read what it is sent")

// ErrClosed ends a connection that Close was called on.
var ErrClosed = errors.New("the connection is closed")

// A Conn is one end of a connection. It is safe for concurrent use.
type Conn struct {
	in      io.Reader
	out     io.Writer
	handler Handler
	Options
	ending chan struct{} // closed by Close
	deaf   chan struct{} // closed at the end of the input
	wake   chan struct{} // there is something to write

	mu     sync.Mutex // guards the fields below; leaf
	err    error      // why the connection ended
	unsent [][]byte
	size   int           // bytes in unsent
	room   chan struct{} // closed and replaced when a line was written or a request was answered
	owed   int           // requests of the other side without an answer yet
	next   int64
	calls  map[string]chan reply
}

type reply struct {
	result json.RawMessage
	err    *Error
}

// message is a request, a notification or an answer.
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

// Serve reads and writes until the connection ends, and returns the reason; io.EOF means that the other side closed it.
// Serve returns when reading and writing have ended. It does not close the streams: their owner does.
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

// linger waits until the received requests are answered and everything is written, within the limits of Linger.
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

// progressed tells linger, Room and Flushed that something has changed. The caller must hold mu.
func (c *Conn) progressed() {
	close(c.room)
	c.room = make(chan struct{})
}

// Close ends the connection: calls in progress fail, and nothing more is written. Serve returns once its streams are
// closed, too.
func (c *Conn) Close() { c.end(ErrClosed) }

// Ended returns a channel that is closed when the connection has ended.
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

// Call sends a request and waits for the answer. It decodes the result into result unless that is nil. An *Error is the
// answer of the other side.
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
			_ = c.Notify(c.Cancel, map[string]json.RawMessage{"requestId": json.RawMessage(id)}) // it may have ended
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
	case r := <-wait: // the answer came right before the end
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

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	return c.send(message{Method: method}, params)
}

// Room waits until the other side has taken most of the data sent to it.
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

// ErrLong is the error for a line that is longer than MaxLine.
var ErrLong = errors.New("a line is too long")

// readLine reads a line. It reads a line that is too long to its end and drops it.
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
			return line, nil // the next read returns io.EOF again
		case err != nil:
			return nil, err
		case long:
			return nil, fmt.Errorf("%w: it has more than %d bytes", ErrLong, c.MaxLine)
		default:
			return line, nil
		}
	}
}

// take parses a line and handles its message.
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
	case m.ID != nil && bytes.ContainsAny((*m.ID)[:1], "{[tf"):
		c.refuse(Errorf(CodeInvalidRequest, "The id of a message must be a string or a number."))
		return c.handler.Broken(fmt.Errorf("%.100q has an id that is no string and no number", line))
	case m.Method != "" && m.ID != nil:
		c.handler.Request(m.Method, m.Params, c.answerTo(*m.ID))
	case m.Method != "":
		c.handler.Notification(m.Method, m.Params)
	case m.ID != nil && (m.Result != nil || m.Error != nil):
		if null { // the other side could not read one of our messages
			return c.handler.Broken(fmt.Errorf("it could not read a message: %s", errorText(m.Error)))
		}
		c.mu.Lock()
		wait := c.calls[string(*m.ID)]
		delete(c.calls, string(*m.ID))
		c.mu.Unlock()
		if wait != nil { // else the caller has given up
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

// refuse answers a message whose id could not be read.
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
			_ = c.send(m, nil) // if the connection has ended, no one needs the answer
			c.mu.Lock()
			c.owed--
			c.progressed()
			c.mu.Unlock()
		})
	}
}
