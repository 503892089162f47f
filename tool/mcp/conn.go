package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/port"
)

// A conn is one connection to a server.
type conn struct {
	session *sdk.ClientSession
	ctx     context.Context // ends with the connection
	stop    context.CancelFunc
	wire    wire

	gone     chan struct{} // closed when the session has ended, whichever side ended it
	changed  chan struct{} // the server's tools have changed; has room for one
	unwanted chan struct{} // closed when the connection is to end
	drop     sync.Once
	wg       sync.WaitGroup

	last  atomic.Int64 // progress token
	mu    sync.Mutex   // guards the following; leaf
	calls map[string]chan string
}

// A wire is the transport of a connection.
type wire interface {
	sdk.Transport
	// end ends the wire and returns when its processes and requests are gone.
	// After a grace period it uses force. The session closes closed after it
	// has said goodbye.
	end(closed <-chan struct{})
	// kill ends the wire at once.
	kill()
	// why returns why the wire has ended.
	why() error
}

// olderProtocol is the last version whose sessions begin with initialize. A
// server that knows no newer one should say so, and Parley then uses this one.
// Some servers never answer instead.
const olderProtocol = "2025-11-25"

// grace is how long a server may take to end.
const grace = 2 * time.Second

// connect connects to the server and lists its tools, within startWithin.
func (l *link) connect() (*conn, []offered, error) {
	c := &conn{gone: make(chan struct{}), changed: make(chan struct{}, 1), unwanted: make(chan struct{}),
		calls: map[string]chan string{}}
	c.ctx, c.stop = context.WithCancel(l.servers.ctx)
	wire, err := l.dial(c.ctx)
	if err != nil {
		c.stop()
		return nil, nil, err
	}
	c.wire = wire
	tooLate := time.AfterFunc(startWithin, c.stop)
	var tools []offered
	l.mu.Lock()
	greeting := &sdk.ClientSessionOptions{}
	if l.old {
		greeting.ProtocolVersion = olderProtocol
	}
	l.mu.Unlock()
	c.session, err = c.client().Connect(c.ctx, wire, greeting)
	if err == nil {
		tools, err = list(c.ctx, c.session, l.server.Name, l.servers.Screen)
	}
	if !tooLate.Stop() && err == nil {
		err = c.ctx.Err()
	}
	if err != nil {
		late := c.ctx.Err() != nil && l.servers.ctx.Err() == nil
		l.mu.Lock()
		l.old = late && !l.old
		l.mu.Unlock()
		c.close()
		return nil, nil, startProblem(err, wire.why(), late)
	}
	c.wg.Go(func() {
		_ = c.session.Wait() // wire.why has the better reason
		close(c.gone)
	})
	return c, tools, nil
}

// startProblem returns the error to show for a server that did not start.
func startProblem(err, wire error, late bool) error {
	if e, ok := errors.AsType[*parley.Error](wire); ok {
		return e
	}
	message := "It does not speak the Model Context Protocol, or broke off at once; the server's log says more."
	if late {
		message = fmt.Sprintf("It did not list its tools within %s.", startWithin)
	}
	return &parley.Error{Code: parley.CodeUnavailable, Message: message, Err: errors.Join(err, wire)}
}

// client returns a client without capabilities. If the server asks for a model,
// an answer of a person, or folders, the client refuses, and the server may
// continue without.
func (c *conn) client() *sdk.Client {
	return sdk.NewClient(&sdk.Implementation{Name: "parley", Version: "1"}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case c.changed <- struct{}{}:
			default: // a change is already waiting
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			c.heard(
				r.Params)
		},
	})
}

// heard passes progress on to the call that waits for it. If the call is too
// slow, the progress is dropped: the result does not depend on it.
func (c *conn) heard(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.calls[token] <- progressText(p): // if the call is over, the channel is nil and never ready
	default:
	}
}

func progressText(p *sdk.ProgressNotificationParams) string {
	text := strconv.FormatFloat(p.Progress, 'f', -1, 64)
	if p.Total > 0 {
		text += "/" + strconv.FormatFloat(p.Total, 'f', -1, 64)
	}
	if p.Message != "" {
		text += " " + line(p.Message, 1000)
	}
	return text + "\n"
}

// call makes the server carry out a call. When ctx ends, the server is told to
// stop. If it does not even read that, the connection is ended.
func (c *conn) call(ctx context.Context, tool, arguments string, progress port.Progress) (port.ToolResult, error) {
	token := "call-" + strconv.FormatInt(c.last.Add(1), 10)
	heard := make(chan string, 16)
	c.mu.Lock()
	c.calls[token] = heard
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, token)
		c.mu.Unlock()
	}()
	params := &sdk.CallToolParams{Name: tool, Arguments: raw(arguments)}
	params.SetProgressToken(token)
	type answer struct {
		result *sdk.CallToolResult
		err    error
	}
	answered := make(chan answer, 1)
	refused := &refusals{}
	go func() { // the loop below waits for it
		result, err := c.session.CallTool(withRefusals(ctx, refused), params)
		answered <- answer{result, err}
	}()
	var late <-chan time.Time
	ended := ctx.Done()
	for {
		select {
		case text := <-heard:
			progress(parley.Stdout, text)
		case <-ended:
			ended = nil
			timer := time.NewTimer(grace)
			defer timer.Stop()
			late = timer.C
		case <-late: // the server does not read its messages
			c.dropped()
			c.wire.kill()
		case a := <-answered:
			for more := true; more; {
				select {
				case text := <-heard:
					progress(parley.Stdout, text)
				default:
					more = false
				}
			}
			if a.err != nil {
				return port.ToolResult{}, refused.explain(a.err)
			}
			return result(a.result), nil
		}
	}
}

// dropped makes the connection end.
func (c *conn) dropped() { c.drop.Do(func() { close(c.unwanted) }) }

func (c *conn) isGone() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func (c *conn) why() error {
	if err := c.wire.why(); err != nil {
		return err
	}
	return parley.Errorf(parley.CodeUnavailable, "The connection ended.")
}

// close ends the connection and returns when its process and goroutines are
// gone.
func (c *conn) close() {
	closed := make(chan struct{})
	c.wg.Go(func() {
		defer close(closed)
		if c.session != nil {
			_ = c.session.Close() // waits for calls, which end with the wire
		}
	})
	c.wire.end(closed)
	c.stop()
	c.wg.Wait()
}

// line returns a server's text as one line of limited length.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(parley.CleanText(text)), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
