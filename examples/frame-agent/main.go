// Command frame-agent is a complete remote agent for Parley on one page; docs/remote-agents.md explains it:
//
//	go run ./examples/frame-agent tcp://127.0.0.1:9100
//
// The agent repeats each message, word by word. "use TOOL" makes it use a tool, if
// that is allowed. "send TEXT" makes it request an approval first.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Payload json.RawMessage `json:"payload"`
}

type object map[string]any

// A link is the connection from a Parley server. There is only one, for the
// messages of all users.
type link struct {
	net.Conn
	mu       sync.Mutex
	allowed  []string                      // allowed tools; none: all tools
	canaries []string                      // words that the agent must not output
	running  map[string]context.CancelFunc // by the id of the message
	decided  map[string]chan frame         // decisions of people, by the id of the message
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: frame-agent tcp://host:port | unix:///path")
	}
	network, address, _ := strings.Cut(os.Args[1], "://")
	listener, err := net.Listen(network, address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s://%s\n", network, listener.Addr())
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		l := &link{Conn: conn, running: map[string]context.CancelFunc{}, decided: map[string]chan frame{}}
		go l.beat()
		go l.serve()
	}
}

func (l *link) beat() {
	for began := time.Now(); l.send("heartbeat", "",
		object{"status": "running", "uptime_secs": int(time.Since(began).Seconds())}) == nil; {
		time.Sleep(10 * time.Second)
	}
}

func (l *link) send(kind, id string, payload any) error {
	body, err := json.Marshal(object{"type": kind, "id": id, "payload": payload})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

func (l *link) serve() {
	defer l.Close()
	all, stop := context.WithCancel(context.Background())
	defer stop()
	for {
		var size uint32
		if err := binary.Read(l, binary.BigEndian, &size); err != nil || size > 4<<20 {
			return
		}
		var f frame
		body := make([]byte, size)
		if _, err := io.ReadFull(l, body); err != nil || json.Unmarshal(body, &f) != nil {
			return
		}
		switch f.Type {
		case "ping":
			_ = l.send("pong", f.ID, object{}) // an error also ends serve, which cannot read then
		case "config_update":
			var config struct {
				Tools    []string `json:"tool_allowlist"`
				Canaries []string `json:"canary_tokens"`
			}
			err := json.Unmarshal(f.Payload, &config)
			l.mu.Lock()
			l.allowed, l.canaries = config.Tools, config.Canaries
			l.mu.Unlock()
			_ = l.send("config_ack", f.ID, object{"applied": err == nil})
		case "message":
			ctx, cancel := context.WithCancel(all)
			l.mu.Lock()
			l.running[f.ID], l.decided[f.ID] = cancel, make(chan frame, 1)
			l.mu.Unlock()
			go l.answer(ctx, f)
		case "cancel":
			l.end(f.ID)
		case "connector_action_resume", "connector_action_denied":
			l.mu.Lock()
			select {
			case l.decided[f.ID] <- f:
			default: // there is no approval, or it is decided already
			}
			l.mu.Unlock()
		}
	}
}

func (l *link) end(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel := l.running[id]; cancel != nil {
		cancel()
	}
	delete(l.running, id)
	delete(l.decided, id)
}

// answer answers a message in chunks, the last of which is marked as done.
func (l *link) answer(ctx context.Context, f frame) {
	defer l.end(f.ID)
	var message struct {
		Content string `json:"content"`
	}
	if err := json.Unmarshal(f.Payload, &message); err != nil {
		_ = l.send("error", f.ID, object{"code": "invalid_message", "message": err.Error()})
		return
	}
	verb, rest, _ := strings.Cut(message.Content, " ")
	text := "You said: " + message.Content
	switch verb {
	case "use":
		l.mu.Lock()
		allowed := len(l.allowed) == 0 || slices.Contains(l.allowed, rest)
		l.mu.Unlock()
		if allowed {
			_ = l.send("tool_executed", f.ID, object{"tool_name": rest, "duration_ms": 1, "result": "looked"})
			text = "I used " + rest + "."
		} else {
			_ = l.send("tool_blocked", f.ID,
				object{"tool_name": rest, "reason": fmt.Sprintf("tool %q not in allow-list", rest), "continues": true})
			text = "I may not use " + rest + "."
		}
	case "send":
		l.mu.Lock()
		decided := l.decided[f.ID]
		l.mu.Unlock()
		arguments, _ := json.Marshal(object{"text": rest})
		_ = l.send("approval_required", f.ID, object{"tool_name": "send", "arguments": string(arguments),
			"risk_class": "external_writes", "continues": true})
		select {
		case d := <-decided:
			if text = "I did not send it."; d.Type == "connector_action_resume" {
				_ = l.send("tool_executed", f.ID, object{"tool_name": "send", "duration_ms": 1})
				text = "I sent it."
			}
		case <-ctx.Done():
			return
		}
	}
	l.mu.Lock()
	canaries := l.canaries
	l.mu.Unlock()
	for _, word := range canaries {
		if strings.Contains(text, word) {
			_ = l.send("session_halt", f.ID, object{"reason": "canary_leak", "token": word})
			return
		}
	}
	for _, word := range strings.SplitAfter(text, " ") {
		select {
		case <-time.After(20 * time.Millisecond): // simulates the pace of a model
			_ = l.send("chunk", f.ID, object{"content": word, "done": false})
		case <-ctx.Done():
			return // the message was cancelled
		}
	}
	_ = l.send("chunk", f.ID, object{"content": "", "done": true})
}
