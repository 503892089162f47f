package frames

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// TestEveryFrame checks the result of each type of frame that an agent sends.
func TestEveryFrame(t *testing.T) {
	tool := func(r parley.RemoteTool) port.RemoteSaid { return port.RemoteSaid{Tool: &r} }
	text := func(s string) port.RemoteSaid { return port.RemoteSaid{Text: s} }
	done := port.RemoteSaid{Done: true}
	for name, c := range map[string]struct {
		frames []string // type, payload, type, payload …
		want   []port.RemoteSaid
		err    string
	}{
		"chunks": {[]string{"chunk", `{"content":"a","done":false}`, "chunk",
			`{"content":"b","done":true}`}, []port.RemoteSaid{text("a"), text("b"), done}, ""},
		"a chunk that is the end": {[]string{"chunk", `{"content":"all","done":true}`},
			[]port.RemoteSaid{text("all"), done}, ""},
		"an empty end": {[]string{"chunk", `{"done":true}`}, []port.RemoteSaid{done}, ""},
		"tools": {[]string{"tool_executed", `{"tool_name":"search","duration_ms":3,"connector_name":"c"}`,
			"tool_failed", `{"tool_name":"mail","error":"no route"}`,
			"tool_executed", `{"tool_name":"x","arguments":"{\"a\":1}","result":"r"}`, "tool_executed",
			`{"tool_name":"y","arguments":{"a":1}}`,
			"tool_blocked", `{"tool_name":"bash","reason":"tool \"bash\" not in allow-list"}`, "chunk",
			`{"done":true}`}, []port.RemoteSaid{
			tool(parley.RemoteTool{Name: "search", Outcome: parley.CallSucceeded}),
			tool(parley.RemoteTool{Name: "mail", Outcome: parley.CallFailed, Result: "no route"}),
			tool(parley.RemoteTool{Name: "x", Outcome: parley.CallSucceeded, Arguments: `{"a":1}`, Result: "r"}),
			tool(parley.RemoteTool{Name: "y", Outcome: parley.CallSucceeded, Arguments: `{"a":1}`}),
			tool(parley.RemoteTool{Name: "bash", Blocked: `tool "bash" not in allow-list`}), done}, ""},
		"events": {[]string{"runtime_event", `{"event_type":"run.started","status":"running"}`, "runtime_event",
			`{"event_type":"run.failed","status":"failed","title":"no"}`,
			"runtime_event", `{"event_type":"memory.full","status":"failed","title":"Memory","summary":"is full"}`,
			"chunk", `{"done":true}`}, []port.RemoteSaid{{Trouble: "Memory is full"}, done}, ""},
		"an error": {[]string{"chunk", `{"content":"a"}`, "error",
			`{"code":"max_iterations","message":"too many"}`}, []port.RemoteSaid{text("a")}, "model_error: too many"},
		"an error by code": {[]string{"error", `{"code":"openclaw_error"}`}, nil, "model_error: openclaw_error"},
		"a halt": {
			[]string{"session_halt", `{"reason":"canary_leak","token":"secret","source":"tool:x"}`},
			[]port.RemoteSaid{{Halt: &parley.RemoteHalted{Reason: "canary_leak"}}}, ""},
		"a halt that tells": {[]string{"session_halt", `{"reason":"found secret here","token":"secret"}`},
			[]port.RemoteSaid{{Halt: &parley.RemoteHalted{}}}, ""},
		"heartbeats and pongs": {[]string{"heartbeat", `{"status":"running","uptime_secs":10}`, "pong", `{}`, "chunk",
			`{"done":true}`}, []port.RemoteSaid{done}, ""},
		"what nobody knows": {[]string{"song", `{"la":"la"}`, "chunk", `{"done":true}`}, []port.RemoteSaid{done},
			""},
		"what cannot be read": {[]string{"chunk", `{"content":7}`}, nil, "model_error: The agent sent a chunk that " +
			"cannot be read."},
		"more than it may ask": {slices.Repeat([]string{"approval_required", `{"tool_name":"x"}`}, maxApprovals+1),
			nil, "too_large: The agent asks for more than 16 things at the same time."},
		"what follows an error": {[]string{"error", `{"message":"no"}`, "chunk", `{"content":"late","done":true}`}, nil,
			"model_error: no"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, "tcp", func(p *peer, f Frame) {
				for i := 0; i < len(c.frames); i += 2 {
					p.send(c.frames[i], f.ID, c.frames[i+1])
				}
			})
			h := hear(t.Context(), newPool(t), ask(a.address, "go"))
			got := ""
			if h.err != nil {
				got = h.err.Error()
			}
			if name == "more than it may ask" {
				h.all = nil
			}
			if got != c.err || !equal(h.all, c.want) {
				a, _ := json.Marshal(h.all)
				b, _ := json.Marshal(c.want)
				t.Errorf("%s\ngot  %s\nwant %s", got, a, b)
			}
		})
	}
}

// equal compares two answers. Consecutive texts count as one.
func equal(a, b []port.RemoteSaid) bool {
	whole := func(list []port.RemoteSaid) string {
		var joined []port.RemoteSaid
		for _, s := range list {
			if n := len(joined); s.Text != "" && n > 0 && joined[n-1].Text != "" {
				joined[n-1].Text += s.Text
			} else {
				joined = append(joined, s)
			}
		}
		raw, _ := json.Marshal(joined)
		return string(raw)
	}
	return whole(a) == whole(b)
}

// TestApprovals checks that an allowed call goes back byte for byte. A denial
// goes back only to an agent with the extension; other agents would take it for
// an approval.
func TestApprovals(t *testing.T) {
	const wanted = `{"connector_id":"c-1","connector_name":"crm","tool_name":"send","arguments":"{\"to\": \"bob\"}","risk_class":"external_writes","target_type":"person"%s}`
	for name, c := range map[string]struct {
		continues, allowed bool
		after              string // what the agent sends after the decision
		sent               string // type of the frame to the agent
		tool               bool   // whether a tool result is reported
	}{
		"allowed":                  {true, true, "tool chunk", typeResume, true},
		"allowed, by the document": {false, true, "tool", typeResume, true}, // the agent sends nothing more
		"denied":                   {true, false, "chunk", typeDenied, false},
		"denied, by the document":  {false, false, "", typeCancel, false}, // it would take a resume for an approval
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, "tcp", func(p *peer, f Frame) {
				more := ""
				if c.continues {
					more = `,"continues":true`
				}
				p.send(typeApproval, f.ID, fmt.Sprintf(wanted, more))
				p.chunk(f.ID, "I wait", true) // does not end the answer while an approval is pending
			})
			pool := newPool(t, func(o *Options) { o.Times.Last = 300 * time.Millisecond })
			answer, err := pool.Ask(t.Context(), ask(a.address, "go"))
			if err != nil {
				t.Fatal(err)
			}
			p := a.peer()
			var said []port.RemoteSaid
			for s, err := range answer.Said() {
				if err != nil {
					t.Fatal(err)
				}
				said = append(said, s)
				if s.Text != "I wait" {
					continue
				}
				ask := said[0].Approval
				if ask == nil || *ask != (port.RemoteApproval{Key: ask.Key, Name: "send", Arguments: `{"to": "bob"}`,
					Connector: "crm", Risk: "external_writes", Target: "person"}) {
					t.Fatalf("%+v", ask)
				}
				answer.Decide(port.RemoteDecision{Key: "another", Allowed: true}) // has no effect
				answer.Decide(port.RemoteDecision{Key: ask.Key, Card: "s.42", Allowed: c.allowed, Note: "because"})
				answer.Decide(port.RemoteDecision{Key: ask.Key, Card: "s.42", Allowed: true}) // no effect any more
				f := wait(t, "a decision", p.got)
				want := map[string]string{
					typeResume: fmt.Sprintf(
						`{"action_id":%q,"approval_id":"s.42","connector_id":"c-1","tool_name":"send","arguments":"{\"to\": \"bob\"}","risk_class":"external_writes"}`, ask.Key),
					typeDenied: fmt.Sprintf(
						`{"action_id":%q,"approval_id":"s.42","tool_name":"send","reason":"because"}`, ask.Key),
					typeCancel: `{}`,
				}[c.sent]
				if f.Type != c.sent || string(f.Payload) != want {
					t.Errorf("%s %s, want %s %s", f.Type, f.Payload, c.sent, want)
				}
				for _, kind := range strings.Fields(c.after) {
					if kind == "tool" {
						p.send("tool_executed", f.ID, `{"tool_name":"send"}`)
					} else {
						p.chunk(f.ID, "so be it", true)
					}
				}
			}
			if n := len(said); !said[n-1].Done || c.tool != (said[2].Tool != nil) || len(p.got) > 1 {
				t.Errorf("%+v", said)
			}
		})
	}
}

// TestLastWords covers agents that send nothing after a blocked tool, like the
// original agent. The original relay waited forever.
func TestLastWords(t *testing.T) {
	a := newAgent(t, "tcp", func(p *peer, f Frame) {
		p.chunk(f.ID, "I try. ", false)
		p.send(typeToolBlocked, f.ID, `{"tool_name":"bash","reason":"no","continues":`+
			fmt.Sprint(content(f) == "go on")+`}`)
		p.send(typeRuntimeEvent, f.ID, `{"event_type":"connector.blocked","status":"blocked"}`) // only a remark
		if content(f) == "go on" {
			p.chunk(f.ID, "Otherwise then.", true)
		}
	})
	pool := newPool(t, func(o *Options) { o.Times.Last = 2 * time.Second })
	for say, text := range map[string]string{"go on": "I try. Otherwise then.", "stop": "I try. "} {
		h := hear(t.Context(), pool, ask(a.address, say))
		if h.err != nil || h.text != text || len(h.all) < 3 {
			t.Errorf("%s: %+v", say, h)
		}
	}
}

// TestSilenceInTheMiddleOfAnAnswer checks that silence ends the answer and cancels the agent's request.
func TestSilenceInTheMiddleOfAnAnswer(t *testing.T) {
	a := newAgent(t, "tcp", func(p *peer, f Frame) { p.chunk(f.ID, "well", false) })
	pool := newPool(t, func(o *Options) { o.Times.Silence = time.Second })
	pool.Keep("acme", []parley.Agent{ask(a.address, "").Agent})
	h := hear(t.Context(), pool, ask(a.address, "go"))
	if code(h.err) != parley.CodeUnavailable || h.text != "well" ||
		!strings.Contains(parley.MessageOf(h.err), "said nothing for") {
		t.Errorf("%+v", h)
	}
	if f := wait(t, "a cancel", a.peer().got); f.Type != typeCancel {
		t.Errorf("%+v", f)
	}
}

// TestCancelTellsTheAgent checks that a cancelled agent is told, and that its later frames are dropped.
func TestCancelTellsTheAgent(t *testing.T) {
	onBoth(t, func(t *testing.T, network string) {
		asked := make(chan Frame, 8)
		a := newAgent(t, network, func(p *peer, f Frame) {
			if content(f) == "hello" {
				echo(p, f)
				return
			}
			p.chunk(f.ID, "I will", false)
			asked <- f
		})
		pool := newPool(t)
		pool.Keep("acme", []parley.Agent{ask(a.address, "").Agent})
		ctx, cancel := context.WithCancel(t.Context())
		answer, err := pool.Ask(ctx, ask(a.address, "go"))
		if err != nil {
			t.Fatal(err)
		}
		p, f := a.peer(), wait(t, "a message", asked)
		cancel() // the agent must be told, although the answer has no reader
		if got := wait(t, "a cancel", p.got); got.Type != typeCancel || got.ID != f.ID || string(got.Payload) != "{}" {
			t.Errorf("%+v", got)
		}
		p.chunk(f.ID, "go on", true)
		want(t, pool, a.address, "hello", "you said hello")
		h := heard{answer: answer}
		if h.listen(); !errors.Is(h.err, context.Canceled) || h.text != "" {
			t.Errorf("%q, %v", h.text, h.err)
		}
		if n := troublesOf(pool, a.address).of("a frame came after the end"); n == 0 {
			t.Errorf("%d", n)
		}
	})
}

// TestBadFrames checks that bad frames are counted. If the next frame cannot be
// found, the connection ends, but nothing else.
func TestBadFrames(t *testing.T) {
	for name, c := range map[string]struct {
		send     func(p *peer, f Frame)
		trouble  string // the expected count; empty: the connection is replaced
		answered bool   // the request is still answered
	}{
		"oversized":   {func(p *peer, _ Frame) { p.raw(MaxFrame+1, nil) }, "", false},
		"huge":        {func(p *peer, _ Frame) { p.raw(1<<32-1, []byte("x")) }, "", false},
		"truncated":   {func(p *peer, _ Frame) { p.raw(100, []byte(`{"type":`)); _ = p.Close() }, "", false},
		"half a size": {func(p *peer, _ Frame) { _, _ = p.Write([]byte{0, 0}); _ = p.Close() }, "", false},
		"no JSON":     {func(p *peer, _ Frame) { p.raw(4, []byte("nope")) }, "a frame is broken", true},
		"empty":       {func(p *peer, _ Frame) { p.raw(0, nil) }, "a frame is broken", true},
		"no object":   {func(p *peer, _ Frame) { p.raw(2, []byte("[]")) }, "a frame is broken", true},
		"no type":     {func(p *peer, _ Frame) { p.raw(2, []byte("{}")) }, "a frame is broken", true},
		"deep": {func(p *peer, _ Frame) { p.raw(40000, []byte(strings.Repeat("[", 40000))) },
			"a frame is broken", true},
		"a stream of nonsense": {func(p *peer, _ Frame) {
			for range maxBroken + 1 {
				p.raw(1, []byte("x"))
			}
		}, "", false},
		"unknown id": {func(p *peer, _ Frame) { p.chunk("somebody", "x", true) }, "a frame has an unknown id", true},
		"no id":      {func(p *peer, _ Frame) { p.chunk("", "x", true) }, "a frame has an unknown id", true},
		"unknown ack": {func(p *peer, _ Frame) { p.send(typeConfigAck, "x", `{"applied":true}`) },
			"a frame has an unknown id", true},
		"unknown type": {func(p *peer, f Frame) { p.send("song", f.ID, `{}`) }, "a frame has an unknown type", true},
		"after the end": {func(p *peer, f Frame) { p.chunk(f.ID, "you said go", true); p.chunk(f.ID, "x", true) },
			"a frame came after the end", true},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, network string) {
				a := newAgent(t, network, func(p *peer, f Frame) {
					if content(f) == "go" {
						c.send(p, f)
					}
					echo(p, f)
				})
				other := newAgent(t, network, echo)
				pool := newPool(t)
				pool.Keep("acme", []parley.Agent{ask(a.address, "").Agent, ask(other.address, "").Agent})
				want(t, pool, other.address, "before", "you said before")
				h := hear(t.Context(), pool, ask(a.address, "go"))
				switch {
				case c.answered && (h.err != nil || h.text != "you said go"):
					t.Errorf("%q, %v", h.text, h.err)
				case !c.answered && code(h.err) != parley.CodeInterrupted:
					t.Errorf("%q, %v", h.text, h.err)
				}
				if c.trouble != "" {
					want(t, pool, a.address, "a", "you said a") // frames before the bad one were read
					if n := troublesOf(pool, a.address).of(c.trouble); n == 0 {
						t.Errorf("it was not noted: %s", troublesOf(pool, a.address))
					}
					if a.peer(); len(a.arrived) > 0 {
						t.Error("the connection was replaced")
					}
				}
				want(t, pool, a.address, "after", "you said after")
				want(t, pool, other.address, "after", "you said after")
				if other.peer(); len(other.arrived) > 0 {
					t.Error("another agent noticed")
				}
			})
		})
	}
}

// TestAConfigurationMustBeTaken checks that an agent gets no request before it has acknowledged its configuration.
func TestAConfigurationMustBeTaken(t *testing.T) {
	for name, odd := range map[string]func(*peer, Frame) bool{
		"not acknowledged": func(_ *peer, f Frame) bool { return f.Type == typeConfigUpdate },
		"not applied": func(p *peer, f Frame) bool {
			p.send(typeConfigAck, f.ID, `{"applied":false}`)
			return true
		},
		"refused": func(p *peer, f Frame) bool {
			p.send(typeError, f.ID, `{"code":"invalid_config","message":"no"}`)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, "tcp", func(*peer, Frame) { t.Error("it was asked") })
			a.mu.Lock()
			a.odd = odd
			a.mu.Unlock()
			pool := newPool(t, func(o *Options) { o.Times.Ack = 50 * time.Millisecond })
			h := hear(t.Context(), pool, ask(a.address, "go"))
			if code(h.err) != parley.CodeUnavailable {
				t.Errorf("%v", h.err)
			}
		})
	}
}

// TestRequestIDsInFlightAreUnique checks that two requests in flight cannot have the same id.
func TestRequestIDsInFlightAreUnique(t *testing.T) {
	a := newAgent(t, "tcp", func(*peer, Frame) {})
	pool := newPool(t)
	answer, err := pool.Ask(t.Context(), ask(a.address, "go"))
	if err != nil {
		t.Fatal(err)
	}
	q := answer.(*request)
	if err := q.c.register(newRequest(t.Context(), q.c, q.id, "")); err == nil || err.Error() != "request "+q.id+
		" is already in flight" {
		t.Error(err)
	}
	q.leave()
}

// TestMessage checks the message frame of a conversation.
func TestMessage(t *testing.T) {
	r := ask("tcp://far:1", "ignored")
	r.Context, r.Instructions = "I live in Oslo.", "Be brief."
	r.Messages = []parley.Message{{Role: parley.RoleUser, Text: "hi <b>"}, {Role: parley.RoleAssistant, Text: "hello"},
		{Role: parley.RoleTool, Text: "x"}, {Role: parley.RoleAssistant}, {Role: parley.RoleUser, Text: "and now?"}}
	raw, err := message("id-1", r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"message","id":"id-1","payload":{"role":"user","content":"and now?","messages":[` +
		`{"role":"system","content":"Persisted user context:\nI live in Oslo."},{"role":"system","content":"Be brief."},` +
		`{"role":"user","content":"hi <b>"},{"role":"assistant","content":"hello"},{"role":"user","content":"and now?"}],"session_id":"550e8400-e29b-41d4-a716-446655440000"}}`
	if string(raw[4:]) != want || int(raw[2])<<8|int(raw[3]) != len(want) {
		t.Errorf("%s", raw)
	}

	// A long history is shortened from the front.
	long := strings.Repeat("\n", 300_000)
	r.Messages = nil
	for i := range 21 {
		r.Messages = append(r.Messages, parley.Message{Role: parley.RoleUser, Text: fmt.Sprint(i, long)})
	}
	if raw, err = message("id-2", r); err != nil || len(raw) > 4+MaxFrame {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	if s := string(raw); !strings.Contains(s, "left out here") || strings.Count(s, "left out here") != 1 ||
		!strings.Contains(s, `"20\n`) || strings.Contains(s, `"0\n`) || !strings.Contains(s, "Oslo") {
		t.Errorf("%.600s", s)
	}
	r.Messages = []parley.Message{{Role: parley.RoleUser, Text: strings.Repeat("\n", MaxFrame)}}
	if _, err = message("id-3", r); code(err) != parley.CodeTooLarge {
		t.Error(err)
	}
}
