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

	gone     chan struct{} // closed when the session has ended, whoever ended it
	changed  chan struct{} // the server has other tools; has room for one
	unwanted chan struct{} // closed when nobody wants it any more
	drop     sync.Once
	wg       sync.WaitGroup

	last  atomic.Int64 // progress token
	mu    sync.Mutex   // guards the following; leaf
	calls map[string]chan string
}

// A wire is what a connection runs over.
type wire interface {
	sdk.Transport
	// end returns when nothing of it is left. After a while it stops being
	// polite; closed is closed once the session has taken leave.
	end(closed <-chan struct{})
	// kill ends it at once.
	kill()
	// why it ended.
	why() error
}

// olderProtocol is the last that begins with initialize. A server that knows
// nothing newer should say so, and then gets it; some only keep silent.
const olderProtocol = "2025-11-25"

// grace is how long a server that is told to end may take.
const grace = 2 * time.Second

// connect connects to the server and lists its tools, within a time.
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
		_ = c.session.Wait() // wire.why knows more
		close(c.gone)
	})
	return c, tools, nil
}

// startProblem is what is told of a server that did not start.
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

// client offers the server nothing: what it asks of us (a model, a question to
// a person, folders) is refused, and it may go on without.
func (c *conn) client() *sdk.Client {
	return sdk.NewClient(&sdk.Implementation{Name: "parley", Version: "1"}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case c.changed <- struct{}{}:
			default: // one is waiting to be looked at
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			c.heard(
				r.Params)
		},
	})
}

// heard passes progress on to who waits for it, and drops it if that one is too
// slow: it says nothing that the result does not.
func (c *conn) heard(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.calls[token] <- progressText(p): // nil, of a call that is over: never
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

// call has the server carry out a call. When ctx ends the server is told, and
// one that cannot even be told is ended.
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
	go func() { // is waited for below
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
		case <-late: // it does not read what it is sent
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

// dropped has the connection end.
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

// close ends the connection and returns when nothing of it is left.
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

// line is a text of a server on one line, and not too long.
func line(text string, most int) string {
	text = strings.Join(strings.Fields(parley.CleanText(text)), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
