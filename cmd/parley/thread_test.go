package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
)

// frame is any frame of thread chat.
type frame struct {
	Type      string `json:"type"`
	RequestID string `json:"requestId"`
	Content   string `json:"content"`
	Error     string `json:"error"`
	ID        string `json:"id"`
}

// A line is a client of a thread, on a server in this process.
type line struct {
	t    *testing.T
	ctx  context.Context
	conn *websocket.Conn
}

func dial(t *testing.T, addr, thread string) *line {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, strings.Replace(addr, "http", "ws", 1)+"/api/chat/ws?threadId="+thread, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &line{t, ctx, conn}
}

func (l *line) send(format string, args ...any) {
	l.t.Helper()
	if err := l.conn.Write(l.ctx, websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		l.t.Fatal(err)
	}
}

func (l *line) next() (f frame) {
	l.t.Helper()
	_, data, err := l.conn.Read(l.ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		l.t.Fatal(err)
	}
	return f
}

// ended reads until a request has ended, and returns the type of the last frame.
func (l *line) ended(request string) string {
	l.t.Helper()
	for {
		switch f := l.next(); f.Type {
		case "chat.completed", "cancelled", "error":
			if f.RequestID == request {
				return f.Type
			}
		}
	}
}

// TestACancelDoesNotOvertakeItsRequest sends a request and its cancel together,
// many times.
func TestACancelDoesNotOvertakeItsRequest(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir())
	defer stop()
	thread := uuid.NewString()
	l := dial(t, addr, thread)
	for i := range 20 {
		request := fmt.Sprint("r", i)
		l.send(`{"type":"chat.request","threadId":%q,"requestId":%q,"content":"count slowly to 500"}`, thread, request)
		l.send(`{"type":"cancel","requestId":%q}`, request)
		if how := l.ended(request); how != "cancelled" {
			t.Fatalf("request %d: %s", i, how)
		}
	}
	_ = l.conn.Close(websocket.StatusNormalClosure, "")
}

// TestDeliveredAnswerIsNotRepeated: a client reads the end of its answer and
// disconnects at once. The next client of the thread must not get that answer
// again.
func TestDeliveredAnswerIsNotRepeated(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir())
	defer stop()
	thread := uuid.NewString()
	for i := range 10 {
		l := dial(t, addr, thread)
		l.send(`{"type":"chat.request","threadId":%q,"requestId":"r%d","content":"say %d"}`, thread, i, i)
		for ended := false; !ended; {
			f := l.next()
			if f.RequestID != fmt.Sprint("r", i) {
				t.Fatalf("connection %d was shown %+v", i, f)
			}
			ended = f.Type == "chat.completed"
		}
		_ = l.conn.Close(websocket.StatusNormalClosure, "")
	}
}
