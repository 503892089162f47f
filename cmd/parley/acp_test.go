package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
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
