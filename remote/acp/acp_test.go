package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/transport/jsonrpc"
)

// A fake is a program that runs in this process. The last words of a prompt
// choose its behaviour.
type fake struct {
	garbage atomic.Bool // it sends lines that are no messages
	conn    *jsonrpc.Conn
	do      func(f *fake, prompt []string, answer jsonrpc.Answer)
	loads   bool
	loaded  []string
	hello   initializeParams
	cancel  chan struct{}
	raw     io.Writer
}

func (f *fake) Request(method string, params json.RawMessage, answer jsonrpc.Answer) {
	switch method {
	case methodInitialize:
		_ = json.Unmarshal(params, &f.hello)
		answer(map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{"loadSession": f.loads}}, nil)
	case methodNew:
		answer(sessionResult{"s1"}, nil)
	case methodLoad:
		f.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": textBlock("said long ago")})
		var p sessionParams
		_ = json.Unmarshal(params, &p)
		f.loaded = append(f.loaded, p.Session)
		answer(struct{}{}, nil)
	case methodPrompt:
		var p promptParams
		_ = json.Unmarshal(params, &p)
		var words []string
		for _, b := range p.Prompt {
			words = append(words, b.Text)
		}
		go f.do(f, words, answer)
	}
}

func (f *fake) Notification(method string, _ json.RawMessage) {
	if method == methodCancel {
		f.cancel <- struct{}{}
	}
}

// Broken ends the fake, unless it has sent garbage itself: then it is told so.
func (f *fake) Broken(err error) error {
	if f.garbage.Load() {
		return nil
	}
	return err
}

func (f *fake) update(u map[string]any) {
	_ = f.conn.Notify(methodUpdate, map[string]any{"sessionId": "s1", "update": u})
}

func (f *fake) say(text string) {
	f.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": textBlock(text)})
}

// call sends a request to Parley, and returns the answer or the error as text.
func (f *fake) call(method string, params map[string]any) string {
	params["sessionId"] = "s1"
	var result json.RawMessage
	if err := f.conn.Call(context.Background(), method, params, &result); err != nil {
		return "error: " + err.Error()
	}
	return string(result)
}

var endTurn = map[string]any{"stopReason": "end_turn"}

// A rig is a Programs whose programs are fakes.
type rig struct {
	*Programs
	t       *testing.T
	started atomic.Int32
	last    atomic.Pointer[fake]
	request port.RemoteRequest
}

func newRig(t *testing.T, do func(*fake, []string, jsonrpc.Answer), change ...func(*Options, *fake)) *rig {
	r := &rig{t: t}
	o := Options{Log: slog.New(slog.DiscardHandler), Env: func(name string) (string, bool) {
		return "value",
			name == "SET"
	}}
	var more fake
	for _, c := range change {
		c(&o, &more)
	}
	o.Run = func(ctx context.Context, l Launch) (string, error) {
		r.started.Add(1)
		f := &fake{do: do, loads: more.loads, cancel: make(chan struct{}, 8), raw: l.Reply}
		f.conn = jsonrpc.New(l.Input, l.Reply, f, jsonrpc.Options{MaxLine: 1 << 20, MaxUnsent: 32 << 20})
		r.last.Store(f)
		served := make(chan error, 1)
		go func() { served <- f.conn.Serve() }()
		select {
		case <-served:
			return "exit code 0", nil
		case <-ctx.Done():
			f.conn.Close()
			l.Input.Close()
			l.Reply.Close()
			<-served
			return "", nil
		}
	}
	r.Programs = New(o)
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	r.request = port.RemoteRequest{Tenant: "acme", Session: "550e8400-e29b-41d4-a716-446655440000", Root: "/srv",
		Agent: parley.Agent{Name: "prog", Command: []string{"prog"}, Tools: []string{"*"}}}
	return r
}

// ask adds a message of the user and returns the answer as text, with the error at the end. heed is called for all
// parts of the answer that are not text.
func (r *rig) ask(ctx context.Context, text string, heed ...func(port.RemoteAnswer, port.RemoteSaid)) string {
	r.t.Helper()
	r.request.Messages = append(r.request.Messages, parley.Message{Role: parley.RoleUser, Text: text})
	a, err := r.Ask(ctx, r.request)
	if err != nil {
		return "not asked: " + parley.MessageOf(err)
	}
	said := ""
	for s, err := range a.Said() {
		switch {
		case err != nil:
			return said + "!" + parley.MessageOf(err)
		case s.Done:
			r.request.Messages = append(r.request.Messages, parley.Message{Role: parley.RoleAssistant, Text: said})
			return said
		case s.Text != "":
			said += s.Text
		case s.Thinking != "":
			said += "(" + s.Thinking + ")"
		}
		for _, h := range heed {
			h(a, s)
		}
	}
	return said + "!ended"
}

func echo(f *fake, prompt []string, answer jsonrpc.Answer) {
	f.say(strings.Join(prompt, "|"))
	answer(endTurn, nil)
}

// TestAConversation checks that a program gets every message that it does not know, and none twice.
func TestAConversation(t *testing.T) {
	r := newRig(t, echo)
	r.request.Instructions, r.request.Context = "Be brief.", "I live in Oslo."
	if got := r.ask(t.Context(), "one"); got != "Be brief.|I live in Oslo.|one" {
		t.Error(got)
	}
	if got := r.ask(t.Context(), "two"); got != "two" {
		t.Error(got)
	}
	// The program gets messages that others have sent in between, but not its own answers.
	r.request.Messages = append(r.request.Messages, parley.Message{Role: parley.RoleUser, Text: "you there"},
		parley.Message{Role: parley.RoleAssistant, Text: "yes"})
	if got := r.ask(t.Context(), "three"); got != "This was said before in this conversation:\n\nuser: you there\n\n"+
		"assistant: yes\n|three" {
		t.Error(got)
	}
	// If the conversation was changed, the program gets it again from the start.
	r.request.Messages = []parley.Message{{Role: parley.RoleUser, Text: "a summary"}}
	if got := r.ask(t.Context(),
		"four"); got != "Be brief.|I live in Oslo.|This was said before in this conversation:\n"+
		"\nuser: a summary\n|four" {
		t.Error(got)
	}
	if n := r.started.Load(); n != 1 {
		t.Errorf("%d programs", n)
	}
	if f := r.last.Load(); f.hello.Version != 1 || !f.hello.Capabilities.Terminal || !f.hello.Capabilities.Files.Write {
		t.Errorf("%+v", f.hello)
	}
}

// TestOfferedCapabilities checks that the capabilities offered to the program depend on the tools that the agent may
// use.
func TestOfferedCapabilities(t *testing.T) {
	r := newRig(t, echo)
	r.request.Agent.Tools = []string{"read_file"}
	r.ask(t.Context(), "one")
	if c := r.last.Load().hello.Capabilities; !c.Files.Read || c.Files.Write || c.Terminal {
		t.Errorf("%+v", c)
	}
}

// TestProgramUpdates checks the event for each update that a program can send.
func TestProgramUpdates(t *testing.T) {
	r := newRig(t, func(f *fake, _ []string, answer jsonrpc.Answer) {
		f.update(map[string]any{"sessionUpdate": "agent_thought_chunk", "content": textBlock("hm")})
		f.update(map[string]any{"sessionUpdate": "agent_message_chunk", "messageId": "1", "content": textBlock("a")})
		f.update(map[string]any{"sessionUpdate": "agent_message_chunk", "messageId": "1", "content": textBlock("b")})
		f.update(map[string]any{"sessionUpdate": "agent_message_chunk", "messageId": "2", "content": textBlock("c")})
		f.update(map[string]any{"sessionUpdate": "user_message_chunk", "content": textBlock("not mine")})
		f.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Look", "kind": "search",
			"status": "pending", "rawInput": map[string]any{"q": 1}})
		f.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress"})
		f.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed",
			"content": []any{map[string]any{"type": "content", "content": textBlock("found")},
				map[string]any{"type": "diff", "path": "/srv/x", "newText": "y"}}})
		f.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"})
		f.update(map[string]any{"sessionUpdate": "plan", "entries": []any{map[string]any{"content": "leap",
			"status": "completed"}}})
		f.update(map[string]any{"sessionUpdate": "notice", "severity": "error", "title": "bad", "description": "luck"})
		f.update(map[string]any{"sessionUpdate": "something_new", "content": []int{1}})
		f.update(map[string]any{"sessionUpdate": "usage_update", "used": 10, "size": 100,
			"cost": map[string]any{"amount": 0.5, "currency": "USD"}})
		answer(map[string]any{"stopReason": "max_tokens", "usage": map[string]any{"inputTokens": 3, "outputTokens": 4}},
			nil)
	})
	r.request.Messages = []parley.Message{{Role: parley.RoleUser, Text: "go"}}
	a, err := r.Ask(t.Context(), r.request)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for s, err := range a.Said() {
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(s)
		got = append(got, string(raw))
		if s.Done && (s.End.Stop != parley.StopLength || s.End.Usage != (parley.Usage{Input: 3, Output: 4,
			CostMicros: 500000}) || s.End.Context != (parley.ContextSize{Tokens: 10, Limit: 100})) {
			t.Errorf("%+v", s.End)
		}
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{`"Thinking":"hm"`, `"Text":"a"`, `"Text":"b"`, `"Text":"\n\nc"`,
		`"Began":{"Key":"acp-1","Name":"search","Arguments":"{\"title\":\"Look\",\"input\":{\"q\":1}}"}`,
		`"Tool":{"Key":"acp-1","Name":"search"`, `"Result":"found\nchanged /srv/x"`,
		`"Plan":{"Summary":"","Items":[{"title":"leap","status":"done"}]}`, `"Trouble":"bad: luck"`, `"Done":true`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not in\n%s", want, all)
		}
	}
	if len(got) != 9 {
		t.Errorf("%d things were said:\n%s", len(got), all)
	}
}

// TestPermissions checks that a decision selects the option for this one call, never a permanent one.
func TestPermissions(t *testing.T) {
	options := []any{map[string]any{"optionId": "ever", "kind": "allow_always"},
		map[string]any{"optionId": "yes", "kind": "allow_once"},
		map[string]any{"optionId": "never", "kind": "reject_always"},
		map[string]any{"optionId": "no", "kind": "reject_once"}}
	r := newRig(t, func(f *fake, prompt []string, answer jsonrpc.Answer) {
		offered := options
		if prompt[0] == "no options" {
			offered = nil
		}
		f.say(f.call(methodPermission, map[string]any{"options": offered, "toolCall": map[string]any{"toolCallId": "c",
			"title": "Edit", "kind": "edit", "rawInput": map[string]any{"x": "<y>"},
			"locations": []any{map[string]any{"path": "/srv/f"}}}}))
		f.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"})
		answer(endTurn, nil)
	})
	decide := func(allowed bool) func(port.RemoteAnswer, port.RemoteSaid) {
		return func(a port.RemoteAnswer, s port.RemoteSaid) {
			if s.Approval != nil {
				if s.Approval.Name != "edit" || s.Approval.Target != "/srv/f" ||
					s.Approval.Arguments != `{"title":"Edit","input":{"x":"<y>"},"paths":["/srv/f"]}` {
					t.Errorf("%+v", s.Approval)
				}
				a.Decide(port.RemoteDecision{Key: "another", Allowed: !allowed})
				a.Decide(port.RemoteDecision{Key: s.Approval.Key, Allowed: allowed})
				a.Decide(port.RemoteDecision{Key: s.Approval.Key, Allowed: !allowed})
			}
			if s.Tool != nil && s.Tool.Key != "acp-1" {
				t.Errorf("%+v", s.Tool)
			}
		}
	}
	if got := r.ask(t.Context(), "go", decide(true)); got != `{"outcome":{"outcome":"selected","optionId":"yes"}}` {
		t.Error(got)
	}
	if got := r.ask(t.Context(), "go", decide(false)); got != `{"outcome":{"outcome":"selected","optionId":"no"}}` {
		t.Error(got)
	}
	if got := r.ask(t.Context(), "no options", decide(true)); got != `{"outcome":{"outcome":"cancelled"}}` {
		t.Error(got)
	}
}

// TestFilesAndTerminals checks that requests for files and terminals become calls of the server's tools.
func TestFilesAndTerminals(t *testing.T) {
	r := newRig(t, func(f *fake, prompt []string, answer jsonrpc.Answer) {
		switch prompt[0] {
		case "read":
			f.say(f.call(methodRead, map[string]any{"path": "/srv/a/b.txt", "line": 2, "limit": 3}))
		case "outside":
			f.say(f.call(methodRead, map[string]any{"path": "/workshop/b.txt"}))
		case "write":
			f.say(f.call(methodWrite, map[string]any{"path": "/srv/c", "content": "<d>"}))
		case "run":
			f.say(f.call(methodTerminal, map[string]any{"command": "ls", "args": []string{"-l"}, "cwd": "/srv/a",
				"env": []any{map[string]any{"name": "A", "value": "b"}}}))
			f.say(f.call(methodWait, map[string]any{"terminalId": "terminal-acp-1"}))
			f.say(f.call(methodOutput, map[string]any{"terminalId": "terminal-acp-1"}))
			f.say(f.call(methodRelease, map[string]any{"terminalId": "terminal-acp-1"}))
			f.say(f.call(methodOutput, map[string]any{"terminalId": "terminal-acp-1"}))
		case "kill":
			f.say(f.call(methodTerminal, map[string]any{"command": "sleep 5 | cat", "outputByteLimit": 4}))
			f.say(f.call(methodOutput, map[string]any{"terminalId": "terminal-acp-1"}))
			f.say(f.call(methodKill, map[string]any{"terminalId": "terminal-acp-1"}))
			f.say(f.call(methodWait, map[string]any{"terminalId": "terminal-acp-1"}))
		case "wrong":
			f.say(f.call(methodWrite, map[string]any{"path": 1}))
			f.say(f.call("fs/format", map[string]any{}))
			f.say(f.call(methodOutput, map[string]any{"terminalId": "t"}))
		}
		answer(endTurn, nil)
	})
	zero := 0
	for prompt, want := range map[string]struct {
		call, said string
		result     port.RemoteResult
	}{
		"read": {`read_file {"path":"a/b.txt","offset":2,"limit":3}`, `{"content":"text"}`,
			port.RemoteResult{Outcome: parley.CallSucceeded, Text: "text"}},
		"outside": {`read_file {"path":"/workshop/b.txt"}`, "error: it is outside",
			port.RemoteResult{Outcome: parley.CallFailed, Text: "it is outside"}},
		"write": {`write_file {"path":"c","content":"<d>"}`, "error: A person did not allow this.",
			port.RemoteResult{Outcome: parley.CallDenied, Text: "A person did not allow this."}},
		"run": {`shell {"command":["env","A=b","ls","-l"],"workdir":"a","timeout_ms":600000}`,
			`{"terminalId":"terminal-acp-1"}{"exitCode":0,"signal":null}` +
				`{"output":"all","truncated":false,"exitStatus":{"exitCode":0,"signal":null}}{}` +
				`error: There is no terminal "terminal-acp-1".`,
			port.RemoteResult{Outcome: parley.CallSucceeded, Text: "all", Exit: &zero}},
		"kill": {`shell {"command":["bash","-c","sleep 5 | cat"],"timeout_ms":600000}`,
			`{"terminalId":"terminal-acp-1"}{"output":"üve","truncated":true}{}{"exitCode":null,"signal":"SIGKILL"}`,
			port.RemoteResult{Outcome: parley.CallCancelled}},
		"wrong": {"", "error: The parameters cannot be read: json: cannot unmarshal number into Go struct field " +
			"writeParams.path of type string." + `error: There is no method "fs/format".` +
			`error: There is no terminal "t".`, port.RemoteResult{}},
	} {
		t.Run(prompt, func(t *testing.T) {
			called := ""
			got := r.ask(t.Context(), prompt, func(a port.RemoteAnswer, s port.RemoteSaid) {
				switch {
				case s.Call != nil:
					called = s.Call.Name + " " + s.Call.Arguments
					if want.result.Outcome != parley.CallFailed && want.result.Outcome != parley.CallDenied {
						a.Made(port.RemoteMade{Key: s.Call.Key, Printed: "above üve"})
						a.Made(port.RemoteMade{Key: s.Call.Key, Started: true})
					}
					if prompt != "kill" {
						a.Made(port.RemoteMade{Key: s.Call.Key, Ended: &want.result})
					}
				case s.Drop != "":
					a.Made(port.RemoteMade{Key: s.Drop, Ended: &want.result})
				}
			})
			if got != want.said || called != want.call {
				t.Errorf("it said %s\nand called %s", got, called)
			}
		})
	}
}

// TestCancel checks that a program is told to cancel, and is ended if it does not. All of its pending requests are
// answered.
func TestCancel(t *testing.T) {
	outcome := make(chan string, 1)
	r := newRig(t, func(f *fake, prompt []string, answer jsonrpc.Answer) {
		f.say("on it")
		if prompt[len(prompt)-1] == "deaf" {
			return
		}
		outcome <- f.call(methodPermission, map[string]any{"toolCall": map[string]any{"toolCallId": "c"}})
		<-f.cancel
		answer(map[string]any{"stopReason": "cancelled"}, nil)
	}, func(o *Options, _ *fake) { o.Times.Cancel = 50 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	got := r.ask(ctx, "listen", func(_ port.RemoteAnswer, s port.RemoteSaid) {
		if s.Approval != nil {
			cancel()
		}
	})
	if got != "on it!"+parley.MessageOf(context.Canceled) {
		t.Error(got)
	}
	if got := <-outcome; got != `{"outcome":{"outcome":"cancelled"}}` {
		t.Error(got)
	}
	first := r.last.Load()
	ctx, cancel = context.WithCancel(t.Context())
	r.ask(ctx, "deaf", func(port.RemoteAnswer, port.RemoteSaid) { cancel() })
	select {
	case <-first.conn.Ended():
	default:
		t.Error("it still runs")
	}
}

// TestDeath checks that the answer ends when its program dies, and that the next message starts the program again. A
// program that can load its session is asked to do so.
func TestDeath(t *testing.T) {
	for _, loads := range []bool{false, true} {
		t.Run(fmt.Sprint(loads), func(t *testing.T) {
			r := newRig(t, func(f *fake, prompt []string, answer jsonrpc.Answer) {
				if prompt[len(prompt)-1] == "die" {
					f.say("farewell")
					f.conn.Flushed(context.Background())
					f.conn.Close()
					f.raw.(io.Closer).Close()
					return
				}
				echo(f, prompt, answer)
			}, func(_ *Options, f *fake) { f.loads = loads })
			if got := r.ask(t.Context(), "one"); got != "one" {
				t.Error(got)
			}
			if got := r.ask(t.Context(), "die"); !strings.HasPrefix(got,
				"farewell!The agent's program was lost in the "+
					"middle of the answer: ") {
				t.Error(got)
			}
			r.request.Messages = append(r.request.Messages,
				parley.Message{Role: parley.RoleAssistant, Text: "farewell"})
			got, want := r.ask(t.Context(), "two"),
				"This was said before in this conversation:\n\nuser: one\n\nassistant: "+
					"one\n\nuser: die\n\nassistant: farewell\n|two"
			if loads {
				want = "two"
			}
			if got != want || r.started.Load() != 2 {
				t.Errorf("%q, %d programs", got, r.started.Load())
			}
			if loaded := r.last.Load().loaded; loads != slices.Equal(loaded, []string{"s1"}) {
				t.Errorf("loaded %q", loaded)
			}
		})
	}
}

// TestBadPrograms checks the errors for programs that are not agents. They must help to fix the cause.
func TestBadPrograms(t *testing.T) {
	huge := []byte(`{"jsonrpc":"2.0","method":"session/update","params":"` + strings.Repeat("x", maxLine) + "\"}\n")
	for name, bad := range map[string]struct {
		do     func(*fake, []string, jsonrpc.Answer)
		change func(*Options)
		env    []string
		want   string
	}{
		"huge": {do: func(f *fake, _ []string, _ jsonrpc.Answer) { _, _ = f.raw.Write(huge) },
			want: "!The agent's program was lost in the middle of the answer: a line is too long"},
		"garbage": {do: func(f *fake, _ []string, _ jsonrpc.Answer) {
			f.garbage.Store(true)
			_, _ = f.raw.Write(bytes.Repeat([]byte("hello\n"), maxBroken+1))
		}, want: "!The agent's program was lost in the middle of the answer: it sends lines that are no messages."},
		"silent": {do: func(*fake, []string, jsonrpc.Answer) {}, change: func(o *Options) {
			o.Times.Silence, o.Times.Cancel = time.Millisecond, time.Millisecond
		}, want: "!The agent's program said nothing for 1ms."},
		"error": {do: func(_ *fake, _ []string, answer jsonrpc.Answer) {
			answer(nil, &jsonrpc.Error{Code: -1, Message: "No.", Data: json.RawMessage(`{"why":"rain"}`)})
		}, want: `!No. {"why":"rain"}`},
		"stop": {do: func(_ *fake, _ []string, answer jsonrpc.Answer) {
			answer(map[string]any{"stopReason": "bored"}, nil)
		}, want: `!The agent's program ended its answer: "bored".`},
		"unset": {env: []string{"SET", "UNSET"}, want: "not asked: The program of agent prog does not start: " +
			"it needs UNSET, which is not set."},
		"absent": {change: func(o *Options) {
			o.Run = func(context.Context, Launch) (string, error) { return "", errors.New("there is no such program") }
		}, want: "not asked: The program of agent prog does not start: there is no such program."},
		"mute": {change: func(o *Options) {
			o.Times.Start = time.Millisecond
			o.Run = func(ctx context.Context, l Launch) (string, error) { <-ctx.Done(); return "", nil }
		}, want: "not asked: The program of agent prog does not start: it did not answer within 1ms."},
		"crash": {change: func(o *Options) {
			o.Run = func(ctx context.Context, l Launch) (string, error) {
				fmt.Fprintln(l.Stderr, "first\nno module")
				return "exit code 1", nil
			}
		}, want: "not asked: The program of agent prog does not start: it ended with exit code 1: no module."},
		"old": {change: func(o *Options) {
			o.Run = func(ctx context.Context, l Launch) (string, error) {
				if _, err := bufio.NewReader(l.Input).ReadString('\n'); err != nil { // unsolicited answer
					return "", err
				}
				fmt.Fprintln(l.Reply, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":9}}`)
				<-ctx.Done()
				return "", nil
			}
		}, want: "not asked: The program of agent prog does not start: it speaks version 9 of the Agent " +
			"Client Protocol, not 1."},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bad.do)
			if bad.change != nil {
				bad.change(&r.Options)
			}
			r.request.Agent.Env = bad.env
			if got := r.ask(t.Context(), "go"); !strings.HasPrefix(got, bad.want) {
				t.Errorf("%q", got)
			}
			err := r.Unreachable("acme", r.request.Agent)
			if (err != nil) != strings.HasPrefix(bad.want, "not asked") {
				t.Errorf("unreachable: %v", err)
			}
			if r.Unreachable("other", r.request.Agent) != nil {
				t.Error("another tenant is told")
			}
		})
	}
}

// TestPrograms checks that each session has its own program, and that the number of programs is limited.
func TestPrograms(t *testing.T) {
	block := make(chan struct{})
	r := newRig(t, func(f *fake, prompt []string, answer jsonrpc.Answer) {
		if prompt[len(prompt)-1] == "wait" {
			<-block
		}
		echo(f, prompt[len(prompt)-1:], answer)
	}, func(o *Options, _ *fake) { o.Most = 2 })
	for i := range 4 {
		r.request.Session = parley.SessionID(fmt.Sprint(i))
		if got := r.ask(t.Context(), "go"); got != "go" {
			t.Error(got)
		}
	}
	r.mu.Lock()
	if n := len(r.running); n != 2 || r.started.Load() != 4 {
		t.Errorf("%d run of %d", n, r.started.Load())
	}
	r.mu.Unlock()
	done := make(chan string)
	for i := range 2 {
		q := r.request
		q.Session = parley.SessionID(fmt.Sprint("busy", i))
		q.Messages = []parley.Message{{Role: parley.RoleUser, Text: "wait"}}
		a, err := r.Ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for s := range a.Said() {
				if s.Done {
					done <- "done"
				}
			}
		}()
	}
	if got := r.ask(t.Context(), "go"); !strings.Contains(got, "2 programs of agents are at work") {
		t.Error(got)
	}
	close(block)
	<-done
	<-done
}

// TestIdlePrograms checks that idle programs are ended.
func TestIdlePrograms(t *testing.T) {
	r := newRig(t, echo, func(o *Options, _ *fake) { o.Times.Idle = time.Millisecond })
	r.ask(t.Context(), "go")
	<-r.last.Load().conn.Ended()
}
