package engine

import (
	"context"
	"sync/atomic"

	"parley"
)

// Conversations of loaded sessions are kept in memory up to these sizes. A
// larger one, or one without room, is read from the store for every turn.
const (
	rememberSession = 8 << 20
	rememberAll     = 64 << 20
)

// A memory caches the conversation of a session as the model gets it. It is
// kept while the session is loaded, so that the start of a turn does not depend
// on the length of the conversation. The worker of the first turn reads the
// log; from then on the actor adds the events that it commits. Only the actor's
// goroutine uses it.
type memory struct {
	total      *atomic.Int64      // bytes that all memories hold
	transcript *parley.Transcript // nil: not cached
	counted    int64              // bytes of it that are counted in all

	reading bool           // a worker reads the log
	since   []parley.Event // events committed meanwhile
	size    int            // about how many bytes since holds
}

// messages returns the conversation as far as it was committed. False means
// that it is not cached: the worker has to read it, and the actor passes the
// result to setTranscript.
func (m *memory) messages() ([]parley.Message, bool) {
	if m.transcript != nil {
		return m.transcript.Messages(), true
	}
	m.reading, m.since, m.size = true, nil, 0
	return nil, false
}

// add takes the events of a commit.
func (m *memory) add(events []parley.Event) {
	for _, e := range events {
		switch {
		case e.IsPiece():
		case m.transcript != nil:
			m.transcript.Read(e)
		case m.reading:
			m.since = append(m.since, e)
			if m.size += sizeOf(e); m.size > rememberSession { // the next turn reads again
				m.reading, m.since = false, nil
			}
		}
	}
	m.count()
}

// sizeOf is about how many bytes an event holds.
func sizeOf(e parley.Event) int {
	const fixed = 512
	switch b := e.Body.(type) {
	case parley.InputReceived:
		return fixed + b.Size()
	case parley.SessionForked:
		n := fixed
		for _, m := range b.Messages {
			n += fixed + len(m.Text)
		}
		return n
	case parley.OutputFinished:
		return fixed + len(b.Text)
	case parley.ToolCallRequested:
		return fixed + len(b.Arguments)
	case parley.ToolCallFinished:
		return fixed + len(b.Result)
	}
	return fixed
}

// setTranscript takes the conversation that a worker has read from the log; nil: it
// has read none.
func (m *memory) setTranscript(t *parley.Transcript) {
	if !m.reading {
		return
	}
	since := m.since
	m.reading, m.since = false, nil
	if t == nil {
		return
	}
	for _, e := range since {
		if e.Seq > t.Head() {
			t.Read(e)
		}
	}
	m.transcript = t
	m.count()
}

// count updates the size of the cache. It drops a conversation that is too
// large, or for which there is no room.
func (m *memory) count() {
	if m.transcript == nil {
		return
	}
	size := int64(m.transcript.Size())
	if m.total.Add(size-m.counted) > rememberAll || size > rememberSession {
		m.counted = size
		m.drop()
		return
	}
	m.counted = size
}

// drop drops the conversation.
func (m *memory) drop() {
	m.total.Add(-m.counted)
	m.transcript, m.counted = nil, 0
}

// turnInput returns the agent of a turn and the conversation for it. A
// conversation that the actor has not cached is read from the log.
func (a *actor) turnInput(ctx context.Context, step parley.CallModel, b *stepInput) (parley.Agent, []parley.Message,
	error) {
	if b.hasMessages {
		agent, err := a.definition(ctx, step.Agent)
		return agent, b.messages, err
	}
	agent, log, err := a.definitionAndLog(ctx, step.Agent, step.From)
	if err != nil {
		return agent, nil, err
	}
	b.transcript = parley.NewTranscript()
	for _, e := range log {
		b.transcript.Read(e)
	}
	return agent, b.transcript.Messages(), nil
}
