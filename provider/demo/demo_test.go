package demo

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"parley"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var allTools = []parley.ToolSpec{{Name: "list_files"}, {Name: "read_file"}, {Name: "write_file"}, {Name: "ask_user"},
	{Name: "update_plan"}, {Name: "shell"}}

// A turn is the result of one model call.
type turn struct {
	pieces   []string
	text     string
	thinking string
	calls    []parley.MessageCall
	done     *port.ModelDone
	err      error
}

// listen plays a turn and checks the rules for every turn.
func listen(t testing.TB, m *Model, req port.ModelRequest) turn {
	t.Helper()
	var h turn
	for said, err := range m.Stream(t.Context(), req) {
		if h.done != nil || h.err != nil {
			t.Fatal("something was said after the end")
		}
		if err != nil {
			h.err = err
			continue
		}
		set := 0
		for _, is := range []bool{said.Text != "", said.Thinking != "", said.Call != nil, said.Done != nil} {
			if is {
				set++
			}
		}
		if set != 1 {
			t.Fatalf("%d fields are set in %+v", set, said)
		}
		switch {
		case said.Text != "":
			h.pieces = append(h.pieces, said.Text)
			h.text += said.Text
		case said.Thinking != "":
			if h.text != "" {
				t.Fatal("a thought came after text: a cut could not be continued")
			}
			h.thinking += said.Thinking
		case said.Call != nil:
			h.calls = append(h.calls, *said.Call)
		default:
			h.done = said.Done
		}
	}
	if h.done == nil && h.err == nil {
		t.Fatal("the turn has no end")
	}
	return h
}

func say(tools []parley.ToolSpec, inputs ...string) port.ModelRequest {
	req := port.ModelRequest{Model: "demo", Tools: tools}
	for _, in := range inputs {
		req.Messages = append(req.Messages, parley.Message{Role: parley.RoleUser, Text: in})
	}
	return req
}

// goOn appends a turn and the result of its call, as a session would.
func goOn(req port.ModelRequest, h turn, result string) port.ModelRequest {
	m := parley.Message{Role: parley.RoleAssistant, Text: h.text, Calls: slices.Clone(h.calls)}
	id := parley.CallID(len(req.Messages) + 100)
	m.Calls[0].ID = id
	req.Messages = append(slices.Clone(req.Messages), m, parley.Message{Role: parley.RoleTool, Call: id, Text: result})
	return req
}

func TestUsage(t *testing.T) {
	req := say([]parley.ToolSpec{{Name: "abcd", Description: "efgh", Parameters: "{}"}}, "say äöü x")
	req.Instructions = "be brief"
	h := listen(t, New(Pace(0)), req)
	if want := (parley.Usage{Input: 7, Output: 2}); h.done.Usage != want { // 8+10+9 = 27 and 5 characters
		t.Errorf("used %+v, want %+v", h.done.Usage, want)
	}
	called := listen(t, New(Pace(0)), say(allTools, "list files"))
	if want := int64(
		(len("I look at the files of the workspace.") + len(
			"list_files{}") + 3) / 4); called.done.Usage.Output != want {
		t.Errorf("a call used %d, want %d", called.done.Usage.Output, want)
	}
}

func TestPace(t *testing.T) {
	for _, c := range []struct {
		model *Model
		input string
		want  time.Duration
	}{
		{New(), "count to 11", 200 * time.Millisecond},
		{New(Pace(time.Second)), "count to 11", 10 * time.Second},
		{New(Pace(time.Second)), "count slowly to 11", 100 * time.Second},
		{New(Pace(0)), "count slowly to 11", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			listen(t, c.model, say(nil, c.input))
			if took := time.Since(start); took != c.want {
				t.Errorf("%s took %v, want %v", c.input, took, c.want)
			}
		})
	}
}

func TestTheFirstPieceComesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for range New(Pace(time.Hour)).Stream(t.Context(), say(nil, "count to 5")) {
			break
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

func TestTheEndOfTheContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		start := time.Now()
		var text string
		var last error
		for said, err := range New(Pace(time.Hour)).Stream(ctx, say(nil, "count to 5")) {
			text, last = text+said.Text, err
		}
		if took := time.Since(start); took != 90*time.Minute || text != "1 2 " ||
			!errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("after %v: %q, %v", took, text, last)
		}
	})
}

func TestAnEndedContextSaysNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for said, err := range New(Pace(0)).Stream(ctx, say(nil, "count to 10000")) {
		if n++; said != (port.ModelChunk{}) || !errors.Is(err, context.Canceled) {
			t.Errorf("said %+v, %v", said, err)
		}
	}
	if n != 1 {
		t.Errorf("%d things were said", n)
	}
}

func TestLeavingTheLoopIsFine(t *testing.T) {
	for name, req := range turns(t) {
		total := 0
		for range New(Pace(0)).Stream(t.Context(), req) {
			total++
		}
		for stop := 1; stop <= total; stop++ {
			n := 0
			for range New(Pace(0)).Stream(t.Context(), req) {
				if n++; n == stop {
					break
				}
			}
			if n != stop {
				t.Fatalf("%s: left after %d, want %d", name, n, stop)
			}
		}
	}
}
