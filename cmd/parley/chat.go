package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
)

// chatCommand is a client of document 002 in a terminal: a line in, an answer
// out. It comes back by itself when the server goes away, and does not print
// again what it has printed.
type chatCommand struct {
	Server string `default:"http://127.0.0.1:8080" help:"Address of the server."`
	Thread string `help:"Thread to go on with (default: a new one)."`
	Agent  string `help:"Agent to talk to (default: the server's first)."`
}

// frame is any message of the server.
type frame struct {
	Type      string `json:"type"`
	RequestID string `json:"requestId"`
	Content   string `json:"content"`
	Error     string `json:"error"`
	ID        string `json:"id"`
	Tool      string `json:"tool"`
	Message   string `json:"message"`
	Command   string `json:"command"`
	Questions []struct {
		Question string `json:"question"`
		Options  []struct {
			Label       string `json:"label"`
			Description string `json:"description"`
		} `json:"options"`
	} `json:"questions"`
}

type chat struct {
	*program
	chatCommand
	conn    *websocket.Conn
	request string // that is being answered
	printed int    // bytes of its answer
	shown   int    // bytes of it received since the last chat.started
	card    *frame // that waits for the person
	waiting int    // requests sent and not ended
}

func (c chatCommand) Run(p *program) error {
	if c.Thread == "" {
		c.Thread = uuid.NewString()
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	lines := make(chan string)
	go func() { // ends with the program: nothing interrupts reading a terminal
		defer close(lines)
		for in := bufio.NewScanner(p.stdin); in.Scan(); {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()

	t := &chat{program: p, chatCommand: c}
	fmt.Fprintf(p.stdout, "Thread %s (--thread goes on with it). Ctrl-C stops an answer, Ctrl-D leaves. Try: hello, /tour\n", c.Thread)
	for attempt := 0; ; attempt++ {
		err := t.connect(ctx)
		if err == nil {
			attempt = 0
			err = t.talk(ctx, lines, interrupts)
		}
		if err == nil || errors.Is(err, errRefused) || attempt == 0 && t.conn == nil {
			return err
		}
		wait := min(time.Second<<min(attempt, 4), 10*time.Second)
		fmt.Fprintf(p.stderr, "\n(connection lost: %v; coming back in %v)\n", err, wait)
		select {
		case <-time.After(wait):
		case <-interrupts:
			return nil
		}
	}
}

var errRefused = errors.New("the server refused")

func (t *chat) connect(ctx context.Context) error {
	u, err := url.Parse(t.Server)
	if err != nil {
		return err
	}
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	u.Path, u.RawQuery = "/api/chat/ws", url.Values{"threadId": {t.Thread}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, u.String(), nil)
	if err != nil {
		return fmt.Errorf("cannot reach %s, is `parley serve` running? (%w)", t.Server, err)
	}
	conn.SetReadLimit(16 << 20)
	t.conn = conn
	return nil
}

// talk returns nil when the person leaves.
func (t *chat) talk(ctx context.Context, lines <-chan string, interrupts <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	frames, ended := make(chan frame), make(chan error, 1)
	go func() { ended <- t.read(ctx, frames) }()
	defer func() {
		cancel()
		_ = t.conn.Close(websocket.StatusNormalClosure, "") // it ends either way
	}()
	if t.waiting == 0 {
		t.prompt()
	}
	leaving := false
	for !leaving || t.waiting > 0 {
		select {
		case f := <-frames:
			t.show(f)
		case err := <-ended:
			if code := websocket.CloseStatus(err); code == websocket.StatusPolicyViolation {
				return fmt.Errorf("%w: %v", errRefused, err)
			}
			return err
		case line, ok := <-lines:
			if !ok {
				leaving, lines = true, nil // let what was asked be answered
				continue
			}
			if err := t.enter(ctx, line); err != nil {
				return err
			}
		case <-interrupts:
			if t.waiting == 0 {
				return nil
			}
			if err := t.send(ctx, map[string]any{"type": "cancel", "requestId": t.request}); err != nil {
				return err
			}
		}
	}
	return nil
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

// enter sends what the person typed: an answer to the card that waits, or
// something new.
func (t *chat) enter(ctx context.Context, line string) error {
	switch card := t.card; {
	case card != nil && card.Type == "tool_call_unknown":
		resolution := map[string]string{"r": "rerun", "d": "mark_done", "a": "abandon"}[strings.ToLower(strings.TrimSpace(line))]
		if resolution == "" {
			fmt.Fprint(t.stdout, "Answer r, d or a: ")
			return nil
		}
		t.card = nil
		return t.send(ctx, map[string]any{"type": "tool_call_resolution", "id": card.ID, "resolution": resolution})
	case card != nil && card.Type == "approval_request":
		decision := map[string]string{"y": "allow", "a": "always", "n": "deny", "s": "stop"}[strings.ToLower(strings.TrimSpace(line))]
		if decision == "" {
			fmt.Fprint(t.stdout, "Answer y, a, n or s: ")
			return nil
		}
		t.card = nil
		return t.send(ctx, map[string]any{"type": "approval_response", "id": card.ID, "decision": decision})
	case card != nil:
		t.card = nil
		answers := make([][]string, len(card.Questions))
		for i, q := range card.Questions {
			answer := strings.TrimSpace(line)
			if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(q.Options) {
				answer = q.Options[n-1].Label
			}
			answers[i] = []string{answer}
		}
		return t.send(ctx, map[string]any{"type": "question_response", "id": card.ID, "answers": answers})
	case strings.TrimSpace(line) == "":
		t.prompt()
		return nil
	}
	request := map[string]any{"type": "chat.request", "threadId": t.Thread, "content": line}
	if t.Agent != "" {
		request["agentId"] = t.Agent
	}
	t.waiting++
	return t.send(ctx, request)
}

func (t *chat) prompt() { fmt.Fprint(t.stdout, "> ") }

func (t *chat) show(f frame) {
	switch f.Type {
	case "chat.started":
		if f.RequestID != t.request {
			t.request, t.printed = f.RequestID, 0
		}
		t.shown = 0
		t.waiting = max(t.waiting, 1) // somebody else's, or ours from before
	case "content":
		// A run is shown from its start to who comes back.
		if skip := t.printed - t.shown; skip < len(f.Content) {
			fmt.Fprint(t.stdout, f.Content[max(skip, 0):])
			t.printed = t.shown + len(f.Content)
		}
		t.shown += len(f.Content)
	case "chat.completed":
		t.end("")
	case "cancelled":
		t.end(" (stopped)")
	case "error":
		t.end(" (" + f.Error + ")")
	case "approval_request":
		t.card = &f
		fmt.Fprintf(t.stdout, "\n[%s wants your approval]\n%s\nAllow? [y]es, [a]lways exactly this, [n]o, [s]top: ", f.Tool, f.Command)
	case "tool_call_unknown":
		t.card = &f
		fmt.Fprintf(t.stdout, "\n[%s: outcome unknown] %s\n[r]un it again, it is [d]one, [a]bandon the run: ", f.Tool, f.Message)
	case "question":
		t.card = &f
		for _, q := range f.Questions {
			fmt.Fprintf(t.stdout, "\n[question] %s\n", q.Question)
			for i, o := range q.Options {
				fmt.Fprintf(t.stdout, "  %d  %s  %s\n", i+1, o.Label, o.Description)
			}
		}
		fmt.Fprint(t.stdout, "Your answer: ")
	case "approval_closed", "question_closed", "tool_call_resolved":
		if t.card != nil && t.card.ID == f.ID {
			t.card = nil
			fmt.Fprintln(t.stdout, "(answered elsewhere)")
		}
	}
}

func (t *chat) end(note string) {
	fmt.Fprintln(t.stdout, note)
	t.waiting = max(t.waiting-1, 0)
	if t.waiting == 0 {
		t.prompt()
	}
}
