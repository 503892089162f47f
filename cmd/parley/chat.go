package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"parley"
)

// chatCommand is a client of document 002 in a terminal: a line in, an answer
// out. It comes back by itself when the server goes away, sends again what the
// server may not have got, under the same id, and does not print again what it
// has printed.
type chatCommand struct {
	Server string `placeholder:"URL" help:"Address of the server (default: http://127.0.0.1:8080, or $PARLEY_SERVER)."`
	Thread string `placeholder:"UUID" help:"Thread to go on with (default: a new one)."`
	Agent  string `placeholder:"NAME" help:"Agent to talk to (default: the server's first)."`
	Token  string `placeholder:"TEXT" help:"Token to come in with, where the server wants one; better given as a variable ($PARLEY_TOKEN)."`
}

func (c chatCommand) Run(p *program) error {
	if c.Token == "" {
		c.Token, _ = p.env("PARLEY_TOKEN")
	}
	if c.Server == "" {
		address, _ := p.env("PARLEY_SERVER")
		c.Server = cmp.Or(address, "http://127.0.0.1:8080")
	}
	if c.Thread == "" {
		c.Thread = uuid.NewString()
	}
	if !parley.SessionID(strings.ToLower(c.Thread)).Valid() {
		return fmt.Errorf("--thread %s is no thread; it is a UUID of version 4, as printed when a chat begins", c.Thread)
	}
	if !strings.Contains(c.Server, "://") {
		c.Server = "http://" + c.Server
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)

	t := &chat{terminal: terminal{out: p.stdout}, chatCommand: c, lines: readLines(ctx, p.stdin), interrupts: interrupts, patient: !isTerminal(p.stdin)}
	fmt.Fprintf(p.stdout, "Thread %s. Ctrl-C stops an answer, Ctrl-D leaves. Try: hello, /tour\n", c.Thread)
	err := t.run(ctx)
	fmt.Fprintf(p.stdout, "\nGo on with: parley chat --thread %s\n", c.Thread)
	return err
}

func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// readLines ends with the program: nothing interrupts reading a terminal.
func readLines(ctx context.Context, r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewReader(r); ; {
			line, err := in.ReadString('\n')
			if line != "" {
				select {
				case lines <- strings.TrimRight(line, "\r\n"):
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// A chat is one person at one thread.
type chat struct {
	terminal
	chatCommand
	conn       *websocket.Conn
	lines      <-chan string // nil when the person has nothing more to say
	interrupts <-chan os.Signal
	patient    bool      // at the end of the input wait for answers, as a pipe wants
	sent       []request // that have not ended, oldest first
}

type request struct{ id, content string }

var (
	errLeft    = errors.New("the person left")
	errRefused = errors.New("the server refused")
)

func (t *chat) run(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		first := t.conn == nil
		err := t.connect(ctx)
		if err == nil {
			attempt = 0
			err = t.talk(ctx)
		}
		switch {
		case errors.Is(err, errLeft):
			return nil
		case errors.Is(err, errRefused) || first && attempt == 0 && t.conn == nil:
			return err
		}
		if attempt == 0 {
			fmt.Fprintf(t.out, "\n(the server is gone; coming back when it does)\n")
		}
		select {
		case <-time.After(min(time.Second<<min(attempt, 3), 5*time.Second)):
		case <-t.interrupts:
			return nil
		}
	}
}

func (t *chat) connect(ctx context.Context) error {
	u, err := url.Parse(t.Server)
	if err != nil {
		return err
	}
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	u.Path, u.RawQuery = "/api/chat/ws", url.Values{"threadId": {t.Thread}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	type dialled struct {
		conn *websocket.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		var options websocket.DialOptions
		if t.Token != "" {
			options.HTTPHeader = http.Header{"Authorization": {"Bearer " + t.Token}}
		}
		conn, res, err := websocket.Dial(ctx, u.String(), &options)
		if err != nil && res != nil && res.StatusCode >= 400 && res.StatusCode < 500 {
			err = fmt.Errorf("%w: %s", errRefused, refusalIn(res))
		}
		done <- dialled{conn, err}
	}()
	select {
	case d := <-done:
		if errors.Is(d.err, errRefused) {
			return d.err
		}
		if d.err != nil {
			return fmt.Errorf("cannot reach %s; is `parley serve` running there? Another address is given with --server or PARLEY_SERVER (%w)", t.Server, d.err)
		}
		d.conn.SetReadLimit(16 << 20)
		t.conn = d.conn
		return nil
	case <-t.interrupts:
		cancel()
		<-done
		return errLeft
	}
}

// refusalIn is what an answer says about why, and what to do if it is about who
// asks.
func refusalIn(res *http.Response) string {
	var said struct{ Error string }
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 4096)) // what there is of it
	if json.Unmarshal(raw, &said) != nil || said.Error == "" {
		said.Error = res.Status
	}
	if wait := res.Header.Get("Retry-After"); wait != "" {
		said.Error += "; come back in " + wait + " s"
	}
	if res.StatusCode == http.StatusUnauthorized {
		said.Error += " (give a token with --token, or as PARLEY_TOKEN; parley token makes one)"
	}
	return said.Error
}

// talk goes on until the person leaves or the connection is lost.
func (t *chat) talk(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	frames, ended := make(chan frame), make(chan error, 1)
	go func() { ended <- t.read(ctx, frames) }()
	defer func() {
		_ = t.conn.Close(websocket.StatusNormalClosure, "") // it ends either way
		cancel()
	}()
	for _, r := range t.sent { // the server may not have got it; if it has, this changes nothing
		if err := t.ask(ctx, r); err != nil {
			return err
		}
	}
	if len(t.sent) == 0 && t.card() == nil {
		t.prompt()
	}
	stopping := false // Ctrl-C was pressed, and nothing has happened since
	for {
		select {
		case f := <-frames:
			stopping = false
			t.heard(f)
		case err := <-ended:
			if websocket.CloseStatus(err) == websocket.StatusPolicyViolation {
				return fmt.Errorf("%w: %s", errRefused, reasonOf(err))
			}
			return err
		case line, ok := <-t.lines:
			stopping = false
			if !ok {
				if t.lines = nil; !t.patient {
					return errLeft
				}
			} else if err := t.enter(ctx, line); err != nil {
				return err
			}
		case <-t.interrupts:
			if stopping {
				return errLeft
			}
			stopping = true
			if err := t.interrupt(ctx); err != nil {
				return err
			}
		}
		if t.lines == nil && (len(t.sent) == 0 || t.card() != nil) {
			return errLeft
		}
	}
}

func reasonOf(err error) string {
	if e, ok := errors.AsType[websocket.CloseError](err); ok {
		return e.Reason
	}
	return err.Error()
}

func (t *chat) read(ctx context.Context, frames chan<- frame) error {
	for {
		_, data, err := t.conn.Read(ctx)
		if err != nil {
			return err
		}
		var f frame
		if json.Unmarshal(data, &f) != nil {
			continue // of no type we know
		}
		select {
		case frames <- f:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *chat) send(ctx context.Context, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.conn.Write(ctx, websocket.MessageText, raw)
}

func (t *chat) ask(ctx context.Context, r request) error {
	m := map[string]any{"type": "chat.request", "threadId": t.Thread, "requestId": r.id, "content": r.content}
	if t.Agent != "" {
		m["agentId"] = t.Agent
	}
	return t.send(ctx, m)
}

// enter sends what the person typed: an answer to the card that waits, or
// something new.
func (t *chat) enter(ctx context.Context, line string) error {
	if t.card() != nil {
		if answer := t.answer(line); answer != nil {
			return t.send(ctx, answer)
		}
		return nil
	}
	if strings.TrimSpace(line) == "" {
		t.prompt()
		return nil
	}
	r := request{"chat-" + uuid.NewString(), line}
	t.sent = append(t.sent, r)
	return t.ask(ctx, r)
}

// interrupt stops what is going on; if nothing is, it says how to leave.
func (t *chat) interrupt(ctx context.Context) error {
	if t.running == "" && len(t.sent) == 0 {
		fmt.Fprint(t.out, "\n(Ctrl-C again, or Ctrl-D, leaves)\n")
		t.prompt()
		return nil
	}
	id := t.running
	if id == "" {
		id = t.sent[0].id
	}
	return t.send(ctx, map[string]any{"type": "cancel", "requestId": id})
}

// heard shows a frame, and forgets requests that have ended.
func (t *chat) heard(f frame) {
	t.show(f)
	switch f.Type {
	case "chat.completed", "cancelled", "error":
		for i, r := range t.sent {
			if r.id == f.RequestID {
				t.sent = append(t.sent[:i:i], t.sent[i+1:]...)
				break
			}
		}
		if len(t.sent) == 0 && t.card() == nil {
			t.prompt()
		}
	}
}
