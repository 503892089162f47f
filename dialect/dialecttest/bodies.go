package dialecttest

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/server"
)

// A Body is the body of a POST request that a route accepts.
type Body struct {
	Path   string
	JSON   string
	Nobody string // a header that makes the guard refuse with "Who are you?"
}

// Bodies tests how a route reads request bodies, on the real server with its
// timeout for bodies.
func Bodies(t *testing.T, routes func() map[string]http.HandlerFunc, b Body) {
	half := len(b.JSON) / 2
	begun := b.head("") + b.JSON[:half]
	t.Run("a slow client has time", func(t *testing.T) {
		Serve(t, routes, func(t *testing.T, c *Client) {
			c.Send(begun)
			time.Sleep(8 * time.Second) // longer than a body may stay unread
			c.Send(b.JSON[half:])
			if status, body := c.Answer(); status >= 300 {
				t.Errorf("a slow body is answered %d %s", status, body)
			}
			time.Sleep(time.Minute) // longer than any deadline for a body
			c.Send(b.head("") + b.JSON)
			if status, body := c.Answer(); status >= 300 {
				t.Errorf("the next body is answered %d %s", status, body)
			}
		})
	})
	t.Run("a client that stops is refused", func(t *testing.T) {
		Serve(t, routes, func(t *testing.T, c *Client) {
			c.Send(begun)
			status, body := c.Answer()
			if status != http.StatusBadRequest || !strings.Contains(body, "The body arrived too slowly.") {
				t.Errorf("answered is %d %s", status, body)
			}
			c.Ends(15 * time.Second)
		})
	})
	t.Run("a client without a credential is refused at once", func(t *testing.T) {
		Serve(t, routes, func(t *testing.T, c *Client) {
			c.Send(b.head(b.Nobody+"\r\n") + b.JSON[:half])
			status, body := c.Answer()
			if took := time.Since(c.start); status >= 500 || !strings.Contains(body, "Who are you?") || took > 0 {
				t.Errorf("answered is %d %s after %v", status, body, took)
			}
			c.Ends(6 * time.Second)
		})
	})
}

// head returns the head of a request with the body.
func (b Body) head(header string) string {
	return "POST " + b.Path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + header +
		"Content-Length: " + strconv.Itoa(len(b.JSON)) + "\r\n\r\n"
}

// A Client is one connection to a server that uses the clock of synctest.
type Client struct {
	t     *testing.T
	conn  net.Conn
	r     *bufio.Reader
	start time.Time
}

// Serve serves routes to a client, in a synctest bubble with a fake clock.
func Serve(t *testing.T, routes func() map[string]http.HandlerFunc, test func(*testing.T, *Client)) {
	synctest.Test(t, func(t *testing.T) {
		handlers := map[string]http.Handler{}
		for pattern, h := range routes() {
			handlers[pattern] = h
		}
		ours, theirs := net.Pipe()
		l := &pipe{conns: make(chan net.Conn, 1), done: make(chan struct{})}
		l.conns <- theirs
		s := server.New(l, slog.New(slog.DiscardHandler), server.Options{
			Routes: handlers,
			Admit:  func(http.ResponseWriter, *http.Request) bool { return true },
			Able:   func(context.Context) error { return nil },
		})
		s.Start()
		test(t, &Client{t, ours, bufio.NewReader(ours), time.Now()})
		ours.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Send sends a part of a request.
func (c *Client) Send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// Answer reads an answer.
func (c *Client) Answer() (status int, body string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Errorf("the answer %s breaks off: %v", raw, err)
	}
	return res.StatusCode, string(raw)
}

// Ends waits for the server to end the connection, and fails if it is open for
// longer than within.
func (c *Client) Ends(within time.Duration) {
	c.t.Helper()
	_, err := c.r.ReadByte()
	if took := time.Since(c.start); err != io.EOF || took > within {
		c.t.Errorf("the connection is open for %v (%v)", took, err)
	}
}

// pipe is a listener for one in-memory connection.
type pipe struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error   { close(p.done); return nil }
func (p *pipe) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }
