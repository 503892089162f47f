package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"parley"
	"parley/dialect/acp"
	"parley/transport/jsonrpc"
)

// TestAnEditorThatClosesItsEnd checks that an editor that closes its end right
// after a request still gets the answer.
func TestAnEditorThatClosesItsEnd(t *testing.T) {
	var out strings.Builder
	p := &program{ctx: t.Context(), stdout: &out, stderr: io.Discard, stdin: strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/"}}`)}
	if err := p.run([]string{"acp", "--server", "http://127.0.0.1:1"}, func(string) (string, bool) {
		return "", false
	}); err != nil {
		t.Error(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"id":1,"result":{`) ||
		!strings.Contains(got, `"id":2,"error":{"code":-32603`) {
		t.Errorf("%s", got)
	}
}

// TestPromptsOfAClosedSession checks that every prompt of a session is answered, also one that arrives while the
// session is being closed.
func TestPromptsOfAClosedSession(t *testing.T) {
	id := parley.SessionID("550e8400-e29b-41d4-a716-446655440000")
	ctx, stop := context.WithCancel(t.Context())
	s := &acpSession{editor: &editor{sessions: map[parley.SessionID]*acpSession{}}, id: id, ctx: ctx, stop: stop,
		gone: make(chan struct{}), prompts: map[string]jsonrpc.Answer{}}
	answered := 0
	answer := func(_ any, err *jsonrpc.Error) {
		if answered++; err == nil {
			t.Error("it was answered without an error")
		}
	}
	if err := s.expect("first", answer); err != nil {
		t.Fatal(err.Message)
	}
	s.leave()
	if err := s.expect("second", answer); err == nil || err.Code != acp.CodeNotFound {
		t.Errorf("a prompt of a closed session waits for an answer: %+v", err)
	}
	if answered != 1 {
		t.Errorf("the first prompt was answered %d times", answered)
	}
}

// TestAnEditorThatIsStopped checks that parley acp ends on a signal, although the
// editor has not closed the pipe, and ends when the editor closes it.
func TestAnEditorThatIsStopped(t *testing.T) {
	for _, how := range []string{"by a signal", "by the end of its input"} {
		t.Run(how, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			in, asks := io.Pipe()
			answers, out := io.Pipe()
			p := &program{ctx: ctx, stdin: in, stdout: out, stderr: io.Discard}
			ended := make(chan error)
			go func() {
				ended <- p.run([]string{"acp", "--server", "http://127.0.0.1:1"}, func(string) (string, bool) {
					return "", false
				})
			}()
			go func() {
				_, _ = io.WriteString(asks,
					`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n")
			}()
			line, err := bufio.NewReader(answers).ReadString('\n')
			if err != nil || !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":1,"result":{`) {
				t.Errorf("%s, %v", line, err)
			}
			if how == "by a signal" {
				cancel()
			} else {
				asks.Close()
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			asks.Close()
			cancel()
		})
	}
}
