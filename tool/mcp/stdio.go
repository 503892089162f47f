package mcp

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/port"
	"parley/sandbox"
)

// dial makes the wire to a server.
func (l *link) dial(ctx context.Context) (wire, error) {
	if len(l.server.Missing) > 0 {
		return nil, parley.Errorf(parley.CodeUnavailable, "It needs %s, which is not set.",
			strings.Join(l.server.Missing, ", "))
	}
	if l.server.URL != "" {
		if !l.server.Guarded {
			return newWeb(l.server, nil), nil
		}
		to, err := url.Parse(l.server.URL)
		if err != nil {
			return nil, err
		}
		return newWeb(l.server, l.servers.Dial(to)), nil
	}
	return l.launch(ctx)
}

// A child is the process of a server. The sandbox gives it a session of its
// own, and ends all its processes with it.
type child struct {
	sdk.IOTransport
	stop   context.CancelFunc
	exited chan struct{} // closed when all its processes are gone
	ended  sandbox.Ended // valid after exited is closed
	err    error         // likewise
	killed atomic.Bool
}

// command returns the command for the sandbox. A process of a tenant that does
// not own the workspace has no workspace. A process with variables or without a
// sandbox starts in a folder of its own: launchers such as npx would otherwise
// first look for code in the workspace, where agents can put some.
func (l *link) command() sandbox.Command {
	s := l.server
	c := sandbox.Command{Argv: s.Command, Dir: l.servers.Workspace, ReadOnly: !s.Writes, Env: s.Env, Read: s.Read,
		Write: s.Write, Network: s.Network, Barred: l.servers.Barred, Bare: s.Bare,
		NoWorkspace: l.tenant != l.servers.Home}
	if c.NoWorkspace || c.Bare || len(c.Env) > 0 {
		c.Dir = ""
	}
	return c
}

func (l *link) launch(ctx context.Context) (wire, error) {
	box, command := l.servers.Sandbox, l.command()
	switch missing := box.Missing(); {
	case command.Bare && command.NoWorkspace:
		return nil, parley.Errorf(parley.CodeUnavailable,
			"It runs without a sandbox, where it could read the files of another tenant, so it is not started for this one.")
	case missing != nil && !command.Bare:
		return nil, parley.Errorf(parley.CodeUnavailable, "There is no sandbox here to run it in: %v.", missing)
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		in.Close()
		return nil, err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx)) // the process gets time to end after ctx does
	c := &child{IOTransport: sdk.IOTransport{Reader: out, Writer: in}, stop: stop, exited: make(chan struct{})}
	said := &notes{log: func(text string, args ...any) { l.log.Info(text, args...) }, redact: l.servers.Screen,
		tail: l.tail, tenant: l.tenant}
	command.Input, command.Reply, command.Output = theirIn, theirOut, said
	l.servers.wg.Go(func() {
		c.ended, c.err = box.Run(run, command)
		said.close()
		close(c.exited) // first, so that the reader of a closed pipe finds out why
		theirIn.Close() // unblocks a pending write
		theirOut.Close()
		stop()
	})
	return c, nil
}

func (c *child) kill() {
	c.killed.Store(true)
	c.stop()
}

// end closes the stdin of the server, which tells it to end.
func (c *child) end(<-chan struct{}) {
	c.Writer.Close()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.exited:
	case <-timer.C:
		c.kill()
		<-c.exited
	}
	c.Reader.Close()
}

func (c *child) why() error {
	select {
	case <-c.exited:
	default:
		return nil // the process is running
	}
	switch {
	case c.err != nil:
		return &parley.Error{Code: parley.CodeUnavailable, Message: fmt.Sprintf("It did not start: %s.", c.err),
			Err: c.err}
	case c.killed.Load():
		return parley.Errorf(parley.CodeUnavailable, "It did not listen and was ended.")
	case c.ended.Exit > 128:
		return parley.Errorf(parley.CodeUnavailable, "It was ended by signal %d; the server's log has what it wrote.",
			c.ended.Exit-128)
	}
	return parley.Errorf(parley.CodeUnavailable, "It ended with exit code %d; the server's log has what it wrote.",
		c.ended.Exit)
}

// notes logs the stderr of a process, up to a number of lines per minute and of
// bytes per line.
type notes struct {
	log    func(string, ...any)
	redact port.Screen
	tail   *tail // nil: not kept
	tenant parley.TenantID

	mu    sync.Mutex // guards the following; leaf
	part  []byte
	since time.Time
	lines int
}

const (
	noteBytes = 1 << 10
	noteLines = 60
)

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	var whole []string
	for _, b := range p {
		if b == '\n' {
			whole = append(whole, string(n.part))
			n.part = n.part[:0]
		} else if len(n.part) < noteBytes {
			n.part = append(n.part, b)
		}
	}
	whole, dropped := n.admit(whole)
	n.mu.Unlock()
	n.tell(whole, dropped)
	return len(p), nil
}

// admit returns the lines that may still be logged. The caller holds n.mu.
func (n *notes) admit(whole []string) (told []string, full bool) {
	if now := time.Now(); now.Sub(n.since) >= time.Minute {
		n.since, n.lines = now, 0
	}
	room := max(noteLines-n.lines, 0)
	n.lines += len(whole)
	return whole[:min(room, len(whole))], room > 0 && len(whole) >= room
}

func (n *notes) tell(lines []string, full bool) {
	for _, text := range lines {
		logged, shown := text, text
		if n.redact != nil {
			logged, shown = filtered(n.redact.LogRedactor(), text), filtered(n.redact.Redactor(n.tenant), text)
		}
		if logged = line(logged, noteBytes); logged != "" {
			n.log("an MCP server writes to stderr", "line", logged)
			n.tail.add(line(shown, noteBytes))
		}
	}
	if full {
		n.log("an MCP server writes more to stderr than is logged in a minute")
	}
}

func filtered(f port.Filter, text string) string { return f.Write(text) + f.Close() }

func (n *notes) close() {
	n.mu.Lock()
	rest, full := n.admit([]string{string(n.part)})
	n.part = nil
	n.mu.Unlock()
	n.tell(rest, full)
}
