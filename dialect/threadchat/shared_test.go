package threadchat

import (
	"testing"

	"parley"
	"parley/dialect"
	"parley/port"
)

// TestEqualViewsShareAProjection: connections that have seen the same share frames and views, whenever they came. Those
// of another shape do not.
func TestEqualViewsShareAProjection(t *testing.T) {
	const thread = parley.SessionID("11111111-1111-4111-8111-111111111111")
	event := func(seq parley.Seq, body parley.EventBody) parley.Event {
		return parley.Event{Session: thread, Root: thread, Seq: seq, Run: 1, Body: body}
	}
	started := event(1, parley.RunStarted{Request: "r", Input: 1})
	chunk := event(2, parley.OutputAppended{Kind: parley.Text, Text: "hello"})
	item := &port.Item{Event: chunk}
	show := func(v View) *projection {
		return projected(projected(&v, &port.Item{Event: started}).after, item) // it has read the start by itself
	}
	first := show(View{Shape: Document, Thread: thread})
	if len(first.frames) != 1 {
		t.Fatalf("%d frames", len(first.frames))
	}
	if again := show(View{Shape: Document, Thread: thread}); again != first {
		t.Error("an equal view has a projection of its own")
	}
	for name, v := range map[string]View{
		"shape":   {Shape: Original, Thread: thread},
		"notices": {Shape: Document, Thread: thread, Notices: dialect.Notices{Off: true}},
	} {
		if show(v) == first {
			t.Errorf("a view of another %s shares the projection", name)
		}
	}
	open := *first.before
	open.lost = []string{"1"}
	if projected(&open, item) == first {
		t.Error("a view with an open card shares the projection of one without")
	}
}

// TestOneSocketRecordsADelivery: an end that one socket of a thread has recorded is settled for the others, as long as
// they are writing it.
func TestOneSocketRecordsADelivery(t *testing.T) {
	d, key := &deliveries{}, threadKey{"acme", "t"}
	d.add(key, 3)
	if left := d.settled(key, []parley.RunID{1}); len(left) != 1 {
		t.Errorf("before it is recorded, %v are left", left)
	}
	d.record(key, []parley.RunID{1})
	d.add(key, -1)
	if left := d.settled(key, []parley.RunID{1, 2}); len(left) != 1 || left[0] != 2 {
		t.Errorf("after it is recorded, %v are left", left)
	}
	d.add(key, -1)
	if len(d.open) != 0 {
		t.Errorf("%v are open", d.open)
	}
}
