package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley"
)

const (
	testSession parley.SessionID = "3f0c1a52-0a1e-4c6e-9f5e-2b7d7a3c9e10"
	testChild   parley.SessionID = "5a1d7e7e-3c55-4d3a-8a43-6f5c8e0f7b21"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A script generates consecutive events of a session.
type script struct {
	events []parley.Event
	seqs   map[parley.SessionID]parley.Seq
}

func (s *script) in(session parley.SessionID, body parley.EventBody) parley.Seq {
	if s.seqs == nil {
		s.seqs = map[parley.SessionID]parley.Seq{}
	}
	s.seqs[session]++
	n := len(s.events) + 1
	s.events = append(s.events, parley.Event{Session: session, Root: testSession, Seq: s.seqs[session],
		Position: parley.Position(n), At: testTime.Add(time.Duration(n) * time.Second), By: "local", Body: body})
	return s.seqs[session]
}

func (s *script) add(body parley.EventBody) parley.Seq { return s.in(testSession, body) }

// ask adds an input and the start of its run.
func (s *script) ask(text string) {
	in := s.add(parley.InputReceived{Content: text, Request: "r-" + text})
	s.add(parley.RunStarted{Input: parley.InputID(in), Agent: parley.AgentRef{Name: "coder"}})
	s.add(parley.InputAdopted{Input: parley.InputID(in)})
	s.add(parley.TurnStarted{Number: 1, Model: "gpt-4.1"})
}

// say adds an output of the model in chunks.
func (s *script) say(kind parley.OutputKind, pieces ...string) {
	id := parley.OutputID(s.add(parley.OutputStarted{Kind: kind}))
	whole := ""
	for _, p := range pieces {
		s.add(parley.OutputAppended{Output: id, Kind: kind, Offset: len(whole), Text: p})
		whole += p
	}
	s.add(parley.OutputFinished{Output: id, Kind: kind, Text: whole})
}

// outline summarizes a talk, for comparison.
func outline(t Talk) string {
	var b strings.Builder
	kinds := map[Kind]string{Said: "said", Answered: "answer", Thought: "thought", Worked: "work", Planned: "plan",
		Changed: "files", Noted: "note", Troubled: "error"}
	for _, i := range t.Items {
		fmt.Fprintf(&b, "%s %s", kinds[i.Kind], i.Text)
		for _, c := range i.Calls {
			fmt.Fprintf(&b, "\n%s%s %s", strings.Repeat("  ", c.Depth+1), c.State, c.Line)
		}
		if i.Open {
			b.WriteString(" …")
		}
		b.WriteString("\n")
	}
	for _, w := range t.Queue {
		fmt.Fprintf(&b, "waits %s\n", w.Text)
	}
	for _, c := range t.Cards {
		fmt.Fprintf(&b, "card %d %s\n", c.Kind, c.Tool)
	}
	return b.String()
}

func TestFold(t *testing.T) {
	t.Parallel()
	var s script
	s.add(parley.SessionOpened{Owner: "local", Agent: "coder"})
	s.ask("look")
	s.say(parley.Thinking, "hm", "m")
	s.say(parley.Text, "I ", "look.")
	first := parley.CallID(s.add(parley.ToolCallRequested{Name: "read_file", Arguments: `{"path":"a.txt"}`}))
	second := parley.CallID(s.add(parley.ToolCallRequested{Name: "delegate", Arguments: `{"agent_id":"x"}`}))
	third := parley.CallID(s.add(parley.ToolCallRequested{Name: "shell", Arguments: `{"command":["make"]}`}))
	s.add(parley.ToolCallStarted{Call: first, Attempt: 1})
	s.add(parley.ToolCallFinished{Call: first, Name: "read_file", Outcome: parley.CallSucceeded, Result: "text"})
	s.add(parley.ChildSpawned{Call: second, Child: testChild, Agent: "explorer", Task: "find it"})
	s.in(testChild, parley.SessionOpened{Owner: "local"})
	below := parley.CallID(s.in(testChild, parley.ToolCallRequested{Name: "list_files", Arguments: `{}`}))
	s.in(testChild, parley.ToolCallStarted{Call: below, Attempt: 1})
	card := parley.CardID(s.add(parley.ApprovalRequested{Call: third, Name: "shell", Show: "make"}))
	s.add(parley.InputReceived{Content: "hurry", Request: "r-hurry", Busy: parley.Steer})
	got := Fold(Talk{Session: testSession}, s.events...)
	want := "said look\nthought hmm\nanswer I look.\nwork \n  done read_file a.txt\n  runs explorer: find it\n" +
		"    runs list_files\n  waits shell make …\nwaits hurry\ncard 0 shell\n"
	if o := outline(got); o != want {
		t.Errorf("got\n%s\nwant\n%s", o, want)
	}
	if got.Run == 0 || got.Agent != "coder" || got.Model != "gpt-4.1" || got.Doing != "running delegate" {
		t.Errorf("run %d of %s by %s is %s", got.Run, got.Agent, got.Model, got.Doing)
	}
	known := len(s.events)
	s.add(parley.ApprovalDecided{Card: card, Call: third, Decision: parley.Deny})
	s.add(parley.ToolCallFinished{Call: third, Name: "shell", Outcome: parley.CallDenied, Result: "no"})
	s.add(parley.RunFinished{Outcome: parley.Failed, Message: "Out of turns.", Usage: parley.Usage{Input: 7}})
	later := Fold(got, s.events[known:]...)
	if o := outline(later); !strings.Contains(o, "refused shell make") || strings.Contains(o, "card") ||
		!strings.Contains(o, "error Out of turns.") || later.Run != 0 || later.Total().Input != 7 {
		t.Errorf("at the end:\n%s", o)
	}
	if o := outline(got); o != want {
		t.Errorf("folding more events changed the earlier talk:\n%s", o)
	}
}

// TestFoldInPartsAndTwice checks that the grouping of events does not matter, and that a repeated event changes
// nothing.
func TestFoldInPartsAndTwice(t *testing.T) {
	t.Parallel()
	var s script
	s.add(parley.SessionOpened{Owner: "local"})
	for _, text := range []string{"one", "two"} {
		s.ask(text)
		s.say(parley.Text, "a", "b", text)
		s.add(parley.RunFinished{Outcome: parley.Completed})
	}
	whole := Fold(Talk{Session: testSession}, s.events...)
	single := Talk{Session: testSession}
	for i, e := range s.events {
		single = Fold(single, e)
		single = Fold(single, s.events[max(i-3, 0):i+1]...)
	}
	if a, b := outline(whole), outline(single); a != b {
		t.Errorf("at once\n%s\none by one\n%s", a, b)
	}
}
