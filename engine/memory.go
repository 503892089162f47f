package engine

import (
	"context"
	"sync/atomic"

	"parley"
)

// Conversations of loaded sessions are kept up to these sizes. One that is larger,
// or for which there is no room, is read from the store for every turn.
const (
	rememberSession = 8 << 20
	rememberAll     = 64 << 20
)

// A memory is the conversation of a session as its model is told it. It is kept
// while the session is loaded, so that the start of a turn does not depend on how
// long the conversation is. The first turn reads the log, in its worker; from then
// on the actor adds what it commits. Everything is of the actor's goroutine.
type memory struct {
	all        *atomic.Int64      // bytes that all memories hold
	transcript *parley.Transcript // nil: not known
	counted    int64              // bytes of it that are counted in all

	reading bool           // a worker reads the log
	since   []parley.Event // what was committed meanwhile
	size    int            // about how many bytes since holds
}

// messages is the conversation as far as it was committed; false: it is not known,
// and the worker that asks is to read it. The actor gives what the worker has read
// to learned.
func (m *memory) messages() ([]parley.Message, bool) {
	if m.transcript != nil {
		return m.transcript.Messages(), true
	}
	m.reading, m.since, m.size = true, nil, 0
	return nil, false
}

// add takes what was committed.
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

// learned takes what a worker has read of the log; nil: nothing.
func (m *memory) learned(t *parley.Transcript) {
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

// count forgets a conversation that is too large, or for which there is no room.
func (m *memory) count() {
	if m.transcript == nil {
		return
	}
	size := int64(m.transcript.Size())
	if m.all.Add(size-m.counted) > rememberAll || size > rememberSession {
		m.counted = size
		m.forget()
		return
	}
	m.counted = size
}

// forget gives up what is kept.
func (m *memory) forget() {
	m.all.Add(-m.counted)
	m.transcript, m.counted = nil, 0
}

// recallTurn is the agent of a turn, and the conversation that it is told. A
// conversation that the actor does not know is read from the log.
func (a *actor) recallTurn(ctx context.Context, step parley.CallModel, b *brief) (parley.Agent, []parley.Message,
	error) {
	if b.known {
		agent, err := a.definition(ctx, step.Agent)
		return agent, b.messages, err
	}
	agent, log, err := a.recall(ctx, step.Agent, step.From)
	if err != nil {
		return agent, nil, err
	}
	b.read = parley.NewTranscript()
	for _, e := range log {
		b.read.Read(e)
	}
	return agent, b.read.Messages(), nil
}
