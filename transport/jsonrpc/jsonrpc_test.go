package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// end answers echo requests and records everything else.
type end struct {
	*Conn
	notes  chan string
	broken chan error
	served chan error
	most   int // number of broken lines that it tolerates
}

func (e *end) Request(method string, params json.RawMessage, answer Answer) {
	switch method {
	case "echo":
		answer(params, nil)
		answer("twice", nil)
	case "never":
	default:
		answer(nil, Errorf(CodeNoMethod, "There is no %s.", method))
	}
}

func (e *end) Notification(method string, params json.RawMessage) { e.notes <- method + string(params) }

func (e *end) Broken(err error) error {
	e.broken <- err
	if e.most--; e.most < 0 {
		return err
	}
	return nil
}

func newEnd(t *testing.T, in io.Reader, out io.WriteCloser, o Options) *end {
	e := &end{notes: make(chan string, 64), broken: make(chan error, 64), served: make(chan error, 1), most: 2}
	e.Conn = New(in, out, e, o)
	go func() { e.served <- e.Serve() }()
	return e
}

// pair connects two ends.
func pair(t *testing.T) (*end, *end) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	o := Options{MaxLine: 1 << 10, MaxUnsent: 1 << 20}
	a, b := newEnd(t, r1, w2, o), newEnd(t, r2, w1, o)
	t.Cleanup(func() {
		a.Close()
		b.Close()
		for _, c := range []io.Closer{r1, w1, r2, w2} {
			c.Close()
		}
		<-a.served
		<-b.served
	})
	return a, b
}

func TestBothSidesAsk(t *testing.T) {
	a, b := pair(t)
	for _, e := range []*end{a, b} {
		var got map[string]int
		if err := e.Call(t.Context(), "echo", map[string]int{"x": 1}, &got); err != nil || got["x"] != 1 {
			t.Errorf("%v, %v", got, err)
		}
		var refused *Error
		if err := e.Call(t.Context(), "nothing", nil, nil); !errors.As(err, &refused) ||
			refused.Code != CodeNoMethod || refused.Message != "There is no nothing." {
			t.Errorf("%v", err)
		}
	}
	if err := a.Notify("told", []int{1}); err != nil {
		t.Fatal(err)
	}
	if got := <-b.notes; got != "told[1]" {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Call(ctx, "never", nil, nil) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	go func() { done <- a.Call(context.Background(), "never", nil, nil) }()
	a.Close()
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestBrokenLines: a line that is not a message does not end the connection, and its sender gets an error. Too many
// such lines do end it.
func TestBrokenLines(t *testing.T) {
	in, lines := io.Pipe()
	answers, out := io.Pipe()
	e := newEnd(t, in, out, Options{MaxLine: 100, MaxUnsent: 1 << 20})
	read := json.NewDecoder(answers)
	say := func(line, want string) {
		t.Helper()
		go fmt.Fprint(lines, line+"\n")
		var got json.RawMessage
		if err := read.Decode(&got); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", line, got, err)
		}
	}
	say("{", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"This is no JSON."}}`)
	say("[]", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This is no JSON-RPC message."}}`)
	say("\n"+`{"jsonrpc":"2.0","id":"a","method":"echo","params":"<ü>"}`, `{"jsonrpc":"2.0","id":"a","result":"<ü>"}`)
	go fmt.Fprint(lines, strings.Repeat("x", 1000)+"\n")
	if err := <-e.served; !errors.Is(err, ErrLong) {
		t.Errorf("%v", err)
	}
	out.Close()
}

// TestIDs: a request whose id is neither a string nor a number is refused, and its handler is not called.
func TestIDs(t *testing.T) {
	const refused = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,` +
		`"message":"The id of a message must be a string or a number."}}`
	for id, want := range map[string]string{
		"{}":   refused,
		"[1]":  refused,
		"true": refused,
		"-1.5": `{"jsonrpc":"2.0","id":-1.5,"result":"x"}`,
		`"{"`:  `{"jsonrpc":"2.0","id":"{","result":"x"}`,
	} {
		var out strings.Builder
		e := newEnd(t, strings.NewReader(`{"jsonrpc":"2.0","id":`+id+`,"method":"echo","params":"x"}`+"\n"),
			nopCloser{&out}, Options{MaxLine: 100, MaxUnsent: 1 << 20, Linger: time.Minute})
		<-e.served
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// TestSlowReaderEndsConnection: a connection ends when too many bytes wait for a side that does not read.
func TestSlowReaderEndsConnection(t *testing.T) {
	in, _ := io.Pipe()
	answers, out := io.Pipe()
	e := newEnd(t, in, out, Options{MaxLine: 100, MaxUnsent: 200})
	var err error
	for range 10 {
		err = e.Notify("x", strings.Repeat("y", 50))
	}
	if !errors.Is(err, ErrUnsent) {
		t.Errorf("%v", err)
	}
	in.Close()
	answers.Close()
	if err := <-e.served; !errors.Is(err, ErrUnsent) {
		t.Errorf("%v", err)
	}
}

// slow answers requests when a test tells it to.
type slow struct {
	*end
	asked chan Answer
}

func (s *slow) Request(_ string, _ json.RawMessage, answer Answer) { s.asked <- answer }

// TestTheOtherSideClosesItsEnd: requests that it sent before are still answered. Calls to it fail, and Serve waits no
// longer than Linger.
func TestTheOtherSideClosesItsEnd(t *testing.T) {
	for _, c := range []struct {
		linger time.Duration
		want   string
	}{{time.Hour, `{"jsonrpc":"2.0","id":7,"result":"late"}` + "\n"}, {0, ""}, {time.Nanosecond, ""}} {
		in, lines := io.Pipe()
		written, out := io.Pipe()
		s := &slow{&end{broken: make(chan error, 1)}, make(chan Answer, 1)}
		s.Conn = New(in, out, s, Options{MaxLine: 100, MaxUnsent: 1 << 20, Linger: c.linger})
		served, got := make(chan error, 1), make(chan string, 1)
		go func() {
			served <- s.Serve()
			out.Close()
		}()
		go func() {
			raw, _ := io.ReadAll(written) // until out is closed
			got <- string(raw)
		}()
		_, _ = io.WriteString(lines, `{"jsonrpc":"2.0","id":7,"method":"x"}`+"\n")
		answer := <-s.asked
		lines.Close()
		if c.linger == time.Hour {
			if err := s.Call(t.Context(), "ask", nil, nil); !errors.Is(err, io.EOF) {
				t.Errorf("a call to it: %v", err)
			}
			answer("late", nil)
		}
		if err := <-served; !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if all := <-got; !strings.HasSuffix(all, c.want) || c.want == "" && all != "" {
			t.Errorf("%v: %q was written", c.linger, all)
		}
	}
}
