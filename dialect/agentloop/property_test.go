package agentloop

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
)

// TestDecodeTakesAnything: every message of a client is either a command, a query or a refusal. A message can decide
// only the approval that the connection was last shown.
func TestDecodeTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := anyMessage(t)
		asked := rapid.SampledFrom([]Asked{{}, shownCard}).Draw(t, "asked")
		d := Decode(dialecttest.Session, asked, data)
		kinds := 0
		for _, is := range []bool{d.Command.Do != nil, d.Query != "", d.Refusal != nil} {
			if is {
				kinds++
			}
		}
		own := true
		switch d.Command.Do.(type) {
		case nil, parley.AnswerQuestion, parley.ResolveToolCall: // may be for a sub-agent
			own = false
		}
		if kinds != 1 || own && d.Command.Session != dialecttest.Session {
			t.Fatalf("%q is decoded to %+v", data, d)
		}
		switch do := d.Command.Do.(type) {
		case parley.SubmitInput:
			if parley.IsBlank(parley.CleanText(do.Content)) || do.Busy != parley.Queue || !do.Open {
				t.Fatalf("%q is the input %+v", data, do)
			}
		case parley.DecideApproval:
			if asked.Card == 0 || do.Card != asked.Card {
				t.Fatalf("%q decides card %d, shown was %d", data, do.Card, asked.Card)
			}
		case parley.ExplainApproval:
			if asked.Card == 0 || do.Card != asked.Card {
				t.Fatalf("%q is about card %d, shown was %d", data, do.Card, asked.Card)
			}
		}
	})
}

// anyMessage draws a message of a client.
func anyMessage(t *rapid.T) []byte {
	if rapid.IntRange(0, 3).Draw(t, "any") == 0 {
		return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	}
	payload := dialecttest.AnyObject(t, 0, 4,
		[]string{"input", "review", "review", "customDenyMessage", "explanation", "applyPatch", "requestId",
			"questionId", "callId", "answers", "resolution", "note"},
		[]string{`"yes"`, `"no-exit"`, `"explain"`, `"x"`, `"req-1"`, `"` + string(dialecttest.Session) + `.7"`, `[]`,
			`""`, `{"patch":"*** Begin Patch"}`, `[{"role":"user","content":"hi"}]`,
			`[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]`,
			`[{"role":"user","content":["hi",{"type":"input_image","image_url":"data:image/gif;base64,R0lGODlh"}]}]`})
	kind := rapid.SampledFrom([]string{"user_input", "approval_response", "approval_response", "get_context_info",
		"manual_compact", "cancel", "question_response", "tool_call_resolution", "get_session", "x"}).Draw(t, "type")
	return []byte(`{"id":"x","type":"` + kind + `","payload":` + payload + `}`)
}

// shown is a frame of any type, with the seq of its event.
type shown struct {
	Seq     parley.Seq `json:"-"`
	ID      string
	Type    string
	Payload struct {
		ID, Type, Role, Output string
		CallID                 string `json:"call_id"`
		Content                []text
		Loading                bool
		Command                []string
	}
	raw string
}

func show(t fataler, v View, log []parley.Event) (list []shown, last View) {
	for _, e := range log {
		var frames []dialect.Frame
		v, frames = Project(v, e)
		for _, f := range frames {
			if f.Close != nil {
				return list, v
			}
			s := shown{Seq: e.Seq, raw: string(dialect.Encode(f.Body))}
			if err := json.Unmarshal([]byte(s.raw), &s); err != nil {
				t.Fatal(err)
			}
			list = append(list, s)
		}
	}
	return list, v
}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

// everyLog runs a check on the logs of transcripts and on random logs, in both
// views.
func everyLog(t *testing.T, check func(fataler, View, []parley.Event)) {
	for _, log := range dialecttest.Sessions(t) {
		for _, v := range views {
			check(t, v, log)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyLog(t)
		for _, v := range views {
			check(t, v, log)
		}
	})
}

// TestFramesHaveIDs: ids of frames are unique UUIDs.
func TestFramesHaveIDs(t *testing.T) {
	everyLog(t, func(t fataler, v View, log []parley.Event) {
		seen := map[string]bool{}
		list, _ := show(t, v, log)
		for _, s := range list {
			if _, err := uuid.Parse(s.ID); err != nil || seen[s.ID] {
				t.Fatalf("%s: %v, seen before: %v", s.raw, err, seen[s.ID])
			}
			seen[s.ID] = true
		}
	})
}

// TestEveryInputEndsOnce: a run starts with loading_state true. It has exactly one ending: loading_state false with
// agent_finished after it, or with an error before it. No frame of a run comes outside of it. A withdrawn input has one
// ending, too.
func TestEveryInputEndsOnce(t *testing.T) {
	everyLog(t, func(t fataler, v View, log []parley.Event) {
		list, _ := show(t, v, log)
		of := map[parley.Seq][]string{}
		loading := false
		for i, s := range list {
			name := s.Type
			switch {
			case s.Type == "loading_state" && s.Payload.Loading == loading:
				t.Fatalf("%s does not change anything in\n%s", s.raw, dialecttest.Lines(log))
			case s.Type == "loading_state":
				loading = s.Payload.Loading
			case s.Type == "agent_finished" && (i == 0 || list[i-1].Type != "loading_state"):
				t.Fatalf("%s comes while it is loading", s.raw)
			case !loading && (s.Type == "response_item" && s.Payload.Role != "system" || s.Type == "approval_request"):
				t.Fatalf("%s is of no run in\n%s", s.raw, dialecttest.Lines(log))
			}
			of[s.Seq] = append(of[s.Seq], name)
		}
		for _, e := range log {
			var want []string
			switch b := e.Body.(type) {
			case parley.SessionDeleted:
				return
			case parley.RunStarted:
				want = []string{"loading_state"}
			case parley.InputWithdrawn:
				want = []string{"error"}
			case parley.RunFinished:
				if want = []string{"error", "loading_state"}; b.Outcome == parley.Completed {
					want = []string{"loading_state", "agent_finished", "context_info"}
				}
			default:
				if slices.Contains(of[e.Seq], "agent_finished") || slices.Contains(of[e.Seq], "loading_state") {
					t.Fatalf("seq %d is shown as %q", e.Seq, of[e.Seq])
				}
				continue
			}
			got := slices.DeleteFunc(of[e.Seq], func(kind string) bool {
				return kind == "tool_call_resolved" ||
					kind == "response_item"
			})
			if !slices.Equal(got, want) {
				t.Fatalf("seq %d, %T is shown as %q, want %q in\n%s", e.Seq, e.Body, got, want, dialecttest.Lines(log))
			}
		}
	})
}

// TestEveryCallHasItsOutput: every call is shown once, and its output once after it has ended. A call that needs an
// approval is shown when the approval is decided, and not before.
func TestEveryCallHasItsOutput(t *testing.T) {
	everyLog(t, func(t fataler, v View, log []parley.Event) {
		list, last := show(t, v, log)
		requested, finished, approving := 0, 0, map[parley.CallID]bool{}
		for _, e := range log {
			switch b := e.Body.(type) {
			case parley.ToolCallRequested:
				requested++
			case parley.ToolCallBlocked, parley.ToolCallFinished:
				finished++
			case parley.ApprovalRequested:
				approving[b.Call] = true
			case parley.ApprovalDecided:
				delete(approving, b.Call)
			}
		}
		calls, outputs := map[string]int{}, 0
		for _, s := range list {
			switch p := s.Payload; p.Type {
			case "function_call":
				calls[p.ID]++
				if p.ID != p.CallID {
					t.Fatalf("%s", s.raw)
				}
			case "local_shell_call":
				calls[strings.TrimPrefix(p.ID, "shell_")]++
			case "function_call_output", "local_shell_call_output":
				id := p.CallID
				if id == "" {
					id = strings.TrimPrefix(p.ID, "shell_output_")
				}
				if calls[id] == 0 {
					t.Fatalf("%s is of no call in\n%s", s.raw, dialecttest.Lines(log))
				}
				outputs++
				var out toolOutput
				if err := json.Unmarshal([]byte(p.Output), &out); err != nil {
					t.Fatalf("%s: %v", s.raw, err)
				}
			}
		}
		n := 0
		for _, times := range calls {
			n += times
		}
		waits := len(approving)
		if last.fresh != 0 {
			waits++
		}
		if n != requested-waits || outputs != finished {
			t.Fatalf("%d calls are shown of %d, of which %d wait; %d outputs of %d in\n%s", n, requested, waits,
				outputs, finished, dialecttest.Lines(log))
		}
	})
}

// TestOneApprovalAtATime: only the oldest open approval is requested. It is
// requested again only after an explanation.
func TestOneApprovalAtATime(t *testing.T) {
	everyLog(t, func(t fataler, v View, log []parley.Event) {
		var open []parley.CardID
		asked, stopped := parley.CardID(0), false
		for _, e := range log {
			var frames []dialect.Frame
			v, frames = Project(v, e)
			explained := false
			switch b := e.Body.(type) {
			case parley.SessionDeleted:
				return
			case parley.RunStarted:
				stopped = false
			case parley.ApprovalRequested:
				open = append(open, parley.CardID(e.Seq))
			case parley.ApprovalExplained:
				explained = b.Card == asked
			case parley.ApprovalDecided:
				open = slices.DeleteFunc(open, func(c parley.CardID) bool { return c == b.Card })
				if asked == b.Card {
					asked = 0
				}
				stopped = stopped || b.Decision == parley.DenyAndStop // no further approval is requested then
			}
			for _, f := range frames {
				if m := f.Body.(message); m.Type == "approval_request" {
					if asked != 0 && !explained || len(open) == 0 || v.cards[0].id != open[0] || m.ID != v.request.ID {
						t.Fatalf("seq %d asks for %v while %d is asked for in\n%s", e.Seq, m.Payload, asked,
							dialecttest.Lines(log))
					}
					asked, explained = open[0], false
				}
			}
			if explained {
				t.Fatalf("seq %d: it was explained and is not asked for again", e.Seq)
			}
			if (asked == 0) != (len(open) == 0) && e.Run != 0 && !stopped && !runEnds(log, e.Seq) {
				t.Fatalf("seq %d: open are %v, asked for is %d in\n%s", e.Seq, open, asked, dialecttest.Lines(log))
			}
		}
	})
}

// TestOneApprovalAtATimeInATree: with sub-agents, too, only one approval is requested at a time. When no event follows,
// it is the oldest open one.
func TestOneApprovalAtATimeInATree(t *testing.T) {
	waited := 0
	oneAtATime := func(t *rapid.T) {
		log := dialecttest.AnyTree(t)
		v, asked := View{}, cardRef{}
		ending := false // a run with its open approvals is ending
		for i, e := range log {
			var frames []dialect.Frame
			v, frames = Project(v, e)
			for _, d := range v.decided {
				if d.cardRef == asked {
					asked = cardRef{}
				}
				ending = ending || d.how == "stop" || d.how == "cancelled"
			}
			ending = ending && !ends(e.Body)
			_, explained := e.Body.(parley.ApprovalExplained)
			for _, f := range frames {
				if f.Close != nil {
					return
				}
				if f.Body.(message).Type != "approval_request" {
					continue
				}
				if next := v.cards[0].cardRef; asked != (cardRef{}) && (asked != next || !explained) {
					t.Fatalf("position %d asks for %v while %v is asked for in\n%s", e.Position, next, asked,
						dialecttest.Lines(log))
				} else {
					asked = next
				}
			}
			if i+1 < len(log) && log[i+1].At.Equal(e.At) {
				continue // the batch has more events
			}
			if len(v.cards) > 1 {
				waited++
			}
			if len(v.cards) > 0 && asked != v.cards[0].cardRef && !ending || len(v.cards) == 0 && asked != (cardRef{}) {
				t.Fatalf("after position %d %v is asked for, open are %v in\n%s", e.Position, asked, v.cards,
					dialecttest.Lines(log))
			}
		}
	}
	// A short test run draws so few trees that possibly none has two open approvals.
	for tries := 0; waited == 0 && tries < 20; tries++ {
		rapid.Check(t, oneAtATime)
	}
	if waited == 0 {
		t.Error("never did one wait for another")
	}
}

// runEnds reports whether the run ends in the batch of an event: then no further approval is requested.
func runEnds(log []parley.Event, seq parley.Seq) bool {
	for _, e := range log {
		if e.Seq < seq {
			continue
		}
		switch b := e.Body.(type) {
		case parley.ApprovalDecided:
			if b.Decision != parley.CardCancelled && b.Decision != parley.DenyAndStop {
				return false
			}
		case parley.RunFinished:
			return true
		case parley.TurnFinished:
			if b.Stop == parley.StopCut {
				return true
			}
		}
	}
	return true // the log ends before the end of the batch
}

// TestChunksAddUpToTheText: a client that joins the chunks of a message by its id, as the document requires, gets the
// text of the model. That is also true for a log without chunks.
func TestChunksAddUpToTheText(t *testing.T) {
	everyLog(t, func(t fataler, v View, log []parley.Event) {
		want := map[string]string{}
		for _, e := range log {
			switch b := e.Body.(type) {
			case parley.OutputAppended:
				if b.Kind == parley.Text {
					want[named("resp", parley.Seq(b.Output))] += b.Text
				}
			case parley.OutputFinished:
				if b.Kind == parley.Text && b.Text != "" {
					want[named("resp", parley.Seq(b.Output))] = b.Text
				}
			case parley.ApprovalExplained:
				want[named("resp", e.Seq)] = b.Text
			}
		}
		for _, log := range [][]parley.Event{log, dialecttest.Trimmed(log)} {
			got := map[string]string{}
			list, _ := show(t, v, log)
			for _, s := range list {
				if s.Payload.Role == "assistant" {
					got[s.Payload.ID] += s.Payload.Content[0].Text
				}
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("%s\n%s", diff, dialecttest.Lines(log))
			}
		}
	})
}

// TestNaughtyStrings: text is unchanged from a client's message into the log
// and from the log to clients, except for control characters.
func TestNaughtyStrings(t *testing.T) {
	for _, s := range dialecttest.NaughtyStrings(t) {
		d := Decode(dialecttest.Session, Asked{},
			dialect.Encode(
				message{"x", "user_input",
					map[string]any{"input": []any{map[string]any{"role": "user", "content": s}}}}))
		in, ok := d.Command.Do.(parley.SubmitInput)
		if ok == parley.IsBlank(parley.CleanText(s)) || ok && in.Content != s {
			t.Errorf("%q is decoded to %+v", s, d)
		}
		_, frames := Project(View{run: 3}, parley.Event{Session: dialecttest.Session, Seq: 9, Run: 3,
			Body: parley.OutputAppended{Output: 8, Kind: parley.Text, Text: s}})
		var got shown
		if err := json.Unmarshal(dialect.Encode(frames[0].Body), &got); err != nil || got.Payload.Content[0].Text != s {
			t.Errorf("%q is shown as %q (%v)", s, got.Payload.Content, err)
		}
	}
}

func TestPercents(t *testing.T) {
	for _, c := range []struct {
		tokens, limit int
		want          float64
	}{{0, 128000, 0}, {1, 128000, 0.1}, {45231, 128000, 35.4}, {64000, 128000, 50}, {128000, 128000, 100},
		{200000, 128000, 100}, {-1, 128000, 0}} {
		if got := usage(c.tokens, c.limit); got != c.want {
			t.Errorf("%d of %d is %v percent", c.tokens, c.limit, got)
		}
	}
	for _, c := range []struct {
		before, after int
		want          float64
	}{{98234, 12456, 87.3}, {100, 0, 100}, {100, 100, 0}, {100, 200, 0}, {0, 0, 0}, {3, 2, 33.3}} {
		if got := reduction(c.before, c.after); got != c.want {
			t.Errorf("from %d to %d is %v percent less", c.before, c.after, got)
		}
	}
}
