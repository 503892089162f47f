package main

import (
	"context"
	"strings"
	"testing"

	"parley"
	"parley/client"
	"parley/port"
)

// TestAStreamThatRepeats checks that a repeated event is noticed, although clients
// ignore it.
func TestAStreamThatRepeats(t *testing.T) {
	for stream, wrong := range map[string]bool{
		"id: a-1\ndata: {}\n\nid: a-2\ndata: {}\n\n":                false,
		"id: a-1\ndata: {}\n\nid: a-1\ndata: {}\n\n":                true,
		": a comment\n\nid: a-5\n\nid: a-6\ndata: {}\ndata: {}\n\n": false,
	} {
		for cursor, more := range map[string]bool{"": false, "a-3": strings.Contains(stream, "a-1")} {
			s := &strict{faults: &faults{}}
			var out strings.Builder
			if err := s.copy(&out, strings.NewReader(stream), "/log", cursor); err == nil || out.String() != stream {
				t.Errorf("%q became %q, %v", stream, out.String(), err)
			}
			if got := s.faults.err() != nil; got != (wrong || more) {
				t.Errorf("%q after %q: %v", stream, cursor, s.faults.err())
			}
		}
	}
}

// TestHistoryMismatchIsFound checks that differences between a client's records and the
// log are found.
func TestHistoryMismatchIsFound(t *testing.T) {
	log := []parley.Event{
		{Seq: 1, Body: parley.InputReceived{Request: "a", Content: "count to 3"}},
		{Seq: 2, Run: 2, Body: parley.RunStarted{Input: 1}},
		{Seq: 3, Run: 2, Body: parley.OutputAppended{Text: "1 2 "}},
		{Seq: 4, Run: 2, Body: parley.OutputAppended{Text: "3"}},
		{Seq: 5, Run: 2, Body: parley.RunFinished{Outcome: parley.Completed}},
		{Seq: 6, Body: parley.InputReceived{Request: "b"}},
	}
	talk := &talk{accepted: map[string]port.Receipt{"a": {First: 1}, "b": {First: 6}}}
	if wrong := append(talk.inputs(log), talk.numbers(log)...); wrong != nil {
		t.Error(wrong)
	}
	if wrong := talk.inputs(log[:5]); len(wrong) != 1 {
		t.Error("an input that was accepted and is not in the log:", wrong)
	}
	if wrong := talk.inputs(append(log, log[0])); len(wrong) != 2 {
		t.Error("an input that is there twice:", wrong)
	}
	if wrong := talk.numbers(append(log[:3:3], log[4])); len(wrong) != 1 {
		t.Error("a token that is missing:", wrong)
	}
	follower := newListener("a follower", client.Log{})
	lines := [][]byte{[]byte("one"), []byte("two")}
	follower.seen, follower.raw = log[:2], lines
	if err := follower.saw(t.Context(), "", lines); err != nil {
		t.Error(err)
	}
	if err := follower.saw(t.Context(), "", [][]byte{[]byte("one"), []byte("three")}); err == nil {
		t.Error("an event that differs is not noticed")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := follower.saw(ended, "", append(lines, []byte("three"))); err == nil {
		t.Error("an event that did not come is not noticed")
	}
}
