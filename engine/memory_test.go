package engine

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"parley"
	"parley/port"
)

// TestTurnsGetTheConversationOfTheLog checks that the cached conversation equals the
// one in the log, whatever happens in a session, before and after a restart.
func TestTurnsGetTheConversationOfTheLog(t *testing.T) {
	r := newRig(t, forward, small(4000), func(c *Config) { c.Changes = &notebook{} })
	var turns atomic.Int64
	watch := func() {
		r.puppet.seen = func(q port.ModelRequest) {
			if strings.HasPrefix(q.Instructions, SummaryPrompt) || strings.HasPrefix(q.Instructions, EvaluatorPrompt) ||
				strings.HasPrefix(q.Instructions, explainInstructions) ||
				strings.HasPrefix(q.Instructions, TitlePrompt) {
				return
			}
			list, err := r.Store.Tenant(acme).Sessions(context.Background(), port.SessionQuery{Limit: 1000})
			if err != nil {
				t.Error(err)
			}
			for _, s := range list {
				log, err := r.Store.Tenant(acme).EventsWithoutChunks(context.Background(), s.ID, 0)
				if err != nil {
					t.Error(err)
				}
				if reflect.DeepEqual(parley.Conversation(log), q.Messages) {
					turns.Add(1)
					return
				}
			}
			t.Errorf("no session holds\n%s", strings.Join(outline(q.Messages), "\n"))
		}
	}
	watch()
	for _, s := range scripts {
		id := r.open()
		s.play(r, id)
		watch() // a script may restart the server
		log := r.log(id)
		if seen[parley.SessionDeleted](1)(log) || seen[parley.SessionHalted](1)(log) {
			continue
		}
		ends := len(all[parley.RunFinished](log))
		r.say(id, "say more")
		r.finished(id, ends+1)
		r.say(id, "say even more")
		r.finished(id, ends+2)
	}
	if n := turns.Load(); n < 2*int64(len(scripts)) {
		t.Errorf("only %d turns were looked at", n)
	}
}

// TestAConversationIsReadOnce checks that a loaded session does not read its
// log for every turn, not even after a compaction.
func TestAConversationIsReadOnce(t *testing.T) {
	store := &rough{}
	r := newRig(t, small(400), func(c *Config) { c.Store = store })
	var reads atomic.Int64
	store.spoken = func() error {
		reads.Add(1)
		return nil
	}
	id := r.open()
	r.say(id, "say hello")
	r.finished(id, 1)
	if n := reads.Load(); n != 0 {
		t.Errorf("the log of a new session was read %d times", n)
	}
	r.restart(false)
	asked := r.asks()
	for i := 1; i < 5; i++ {
		r.tell(id, fmt.Sprintf("say %s %d", strings.Repeat("word ", 40), i))
		r.until(id, "it ended", seen[parley.RunFinished](i+1))
	}
	if n := reads.Load(); n != 1 {
		t.Errorf("the log was read %d times", n)
	}
	r.do(id, parley.CompactContext{})
	r.until(id, "it was compacted", seen[parley.ContextCompacted](1))
	reads.Store(0)
	r.say(id, "say end")
	r.finished(id, 6)
	if n := reads.Load(); n != 0 {
		t.Errorf("after a compaction the log was read %d times", n)
	}
	last := (*asked)[len(*asked)-1].Messages
	if !strings.HasPrefix(last[0].Text, "This is a summary") || len(last) > 5 {
		t.Errorf("told was %q", outline(last))
	}
	r.stop(true)
	if n := r.conversationBytes.Load(); n != 0 {
		t.Errorf("%d bytes are counted after the end", n)
	}
	r.start()
}

// TestMemoriesAreBounded checks that conversations that are too large, alone or
// together, are read from the log for every turn.
func TestMemoriesAreBounded(t *testing.T) {
	var all atomic.Int64
	input := func(n int) []parley.Event {
		return []parley.Event{{Seq: 1, Body: parley.InputReceived{Content: strings.Repeat("x", n)}}}
	}
	grown := func(n int) *memory {
		m := &memory{total: &all}
		if _, known := m.messages(); known {
			t.Fatal("it is known before it was read")
		}
		m.setTranscript(parley.NewTranscript())
		m.add(input(n))
		return m
	}
	if m := grown(rememberSession + 1); m.transcript != nil || all.Load() != 0 {
		t.Errorf("a large one is kept, %d bytes", all.Load())
	}
	var kept []*memory
	for range 2 * rememberAll / rememberSession {
		if m := grown(rememberSession / 2); m.transcript != nil {
			kept = append(kept, m)
		}
	}
	if n := all.Load(); n > rememberAll || len(kept) < rememberAll/rememberSession {
		t.Errorf("%d are kept, %d bytes", len(kept), n)
	}
	for _, m := range kept {
		m.drop()
	}
	m := &memory{total: &all}
	m.messages()
	m.add(input(rememberSession + 1)) // while a worker reads
	if m.since != nil || m.reading || all.Load() != 0 {
		t.Errorf("what is committed during a read is kept without a limit")
	}
}

// TestCommitsDuringAReadAreKept checks that events that the actor commits while a worker reads the log are in
// the conversation.
func TestCommitsDuringAReadAreKept(t *testing.T) {
	m := memory{total: new(atomic.Int64)}
	if _, known := m.messages(); known {
		t.Fatal("an empty memory knows the conversation")
	}
	m.add([]parley.Event{{Seq: 2, Body: parley.InputReceived{Content: "hello"}},
		{Seq: 4, Run: 3, Body: parley.InputAdopted{Input: 2}}})
	m.setTranscript(parley.NewTranscript())
	if list, known := m.messages(); !known || len(list) != 1 {
		t.Errorf("%v, %t", list, known)
	}
}
