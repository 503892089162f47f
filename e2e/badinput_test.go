package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestAThreadIdThatIsNoUUIDv4IsAcceptedAndClosed1008(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	v1, err := uuid.NewUUID()
	if err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]string{
		"missing":            "",
		"empty":              "?threadId=",
		"not a UUID":         "?threadId=general",
		"UUID v1":            "?threadId=" + v1.String(),
		"UUID v4 in braces":  "?threadId=%7B" + newThread() + "%7D",
		"UUID v4 and a path": "?threadId=" + newThread() + "/..",
	} {
		t.Run(name, func(t *testing.T) {
			c := n.in(t).open("ws://"+s.address+"/api/chat/ws"+query, nil)
			c.opened()
			c.closed(1008)
		})
	}
}

// A client's mistake is reported to that client alone, leaves no trace in the
// log, and costs only the bad message.
func TestBadMessagesAreAnsweredToTheirSenderAndNothingElse(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	object := func(fields map[string]any) func(string) string {
		return func(thread string) string {
			all := map[string]any{"type": "chat.request", "threadId": thread, "content": "repeat x"}
			for k, v := range fields {
				if all[k] = v; v == nil {
					delete(all, k)
				}
			}
			raw, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
	}
	text := func(s string) func(string) string { return func(string) string { return s } }
	for _, bad := range []struct {
		name    string
		message func(thread string) string
		names   string // a text that the error must mention
	}{
		{"unknown type", object(map[string]any{"type": "chat.reqest"}), "chat.reqest"},
		{"no type", object(map[string]any{"type": nil}), "type"},
		{"type a number", object(map[string]any{"type": 7}), "type"},
		{"empty", text(""), "JSON"},
		{"broken JSON", text(`{"type": "chat.request", `), "JSON"},
		{"two objects", text(`{} {}`), "JSON"},
		{"array", text(`[]`), "object"},
		{"string", text(`"hello"`), "object"},
		{"number", text(`42`), "object"},
		{"null", text(`null`), "object"},
		{"very deep", text(strings.Repeat("[", 1000) + strings.Repeat("]", 1000)), "deep"},
		{"key twice", func(thread string) string {
			return `{"type":"chat.request","threadId":"` + thread + `","content":"one","content":"two"}`
		}, "content"},
		{"no content", object(map[string]any{"content": nil}), "content"},
		{"empty content", object(map[string]any{"content": ""}), "content"},
		{"blank content", object(map[string]any{"content": " \t\n\u00a0\u200b"}), "content"},
		{"content of NULs", object(map[string]any{"content": "\x00\x00"}), "empty"},
		{"content a number", object(map[string]any{"content": 42}), "content"},
		{"content an object", object(map[string]any{"content": map[string]any{"text": "x"}}), "content"},
		{"no threadId", object(map[string]any{"threadId": nil}), "threadId"},
		{"another thread's id", object(map[string]any{"threadId": newThread()}), "threadId"},
		{"unknown agent", object(map[string]any{"agentId": "nobody"}), "helpful-assistant"},
		{"requestId of the server's own", object(map[string]any{"requestId": "timer_autonomous_1"}), "requestId"},
		{"cancel without requestId", text(`{"type":"cancel"}`), "requestId"},
		{"answer to a card of nowhere", text(`{"type":"approval_response","id":"x","decision":"allow"}`), "card"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			s, n, thread := s.in(t), n.in(t), newThread()
			c, other := n.dial(s, thread), n.dial(s, thread)
			before := len(s.events(thread))

			c.text(bad.message(thread))
			f := c.expect("error")
			exactly(t, f, "error", map[string]any{"requestId": f.RequestID, "error": f.Error})
			if f.RequestID == "" || !strings.Contains(f.Error, bad.names) {
				t.Errorf("want an error with a requestId that mentions %q, got %s", bad.names, f.raw)
			}
			if after := len(s.events(thread)); after != before {
				t.Errorf("%d events were appended", after-before)
			}
			silent(t, c, other)
		})
	}
}

func TestMessagesNoSocketMayCarryCloseItAndNoOther(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	for _, bad := range []struct {
		name string
		send func(*socket)
		code int
		says string
	}{
		{"over 1 MiB", func(c *socket) { c.ask(strings.Repeat("x", 1<<20)) }, 1009, "1048576"},
		{"far over 1 MiB", func(c *socket) { c.ask(strings.Repeat("x", 5<<20)) }, 1009, "1048576"},
		{"invalid UTF-8", func(c *socket) { c.raw("{\"type\":\"chat.request\",\"content\":\"\xff\"}") }, 1007, "UTF-8"},
		{"binary", func(c *socket) { c.binary(`{"type":"chat.request"}`) }, 1003, "binary"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			s, n, thread := s.in(t), n.in(t), newThread()
			c, other := n.dial(s, thread), n.dial(s, thread)
			before := len(s.events(thread))
			bad.send(c)
			if reason := c.closed(bad.code); !strings.Contains(reason, bad.says) {
				t.Errorf("the reason %q does not mention %q", reason, bad.says)
			}
			if after := len(s.events(thread)); after != before {
				t.Errorf("%d events were appended", after-before)
			}
			silent(t, other)
		})
	}
}
