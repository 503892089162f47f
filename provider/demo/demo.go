// Package demo is a scripted model that needs no key and no network. It is
// deterministic, and it says that it is a script.
//
// A pure function from the messages of a session to a script decides the answer
// (script.go, answers.go, tour.go). This file only plays scripts, at the pace
// of a real model.
package demo

import (
	"context"
	"iter"
	"time"
	"unicode/utf8"

	"parley"
	"parley/port"
)

// A Model plays scripts. It has no state between turns and may be used
// concurrently.
type Model struct {
	pace time.Duration
}

var _ port.Model = (*Model)(nil)

type Option func(*Model)

// Pace sets the time between two chunks. Zero means without delay.
func Pace(d time.Duration) Option { return func(m *Model) { m.pace = d } }

// defaultPace is changed only by tests. See pace_failpoint.go.
var defaultPace = 20 * time.Millisecond

const slowness = 10 // factor of the pace for a slow script

func New(opts ...Option) *Model {
	m := &Model{pace: defaultPace}
	for _, o := range opts {
		o(m)
	}
	return m
}

// Stream plays the script for the messages. It fails with ctx's error as soon
// as ctx ends, and with CodeModel where the script has a failure.
func (m *Model) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	return func(yield func(port.ModelChunk, error) bool) {
		s := scriptFor(req)
		pace := m.pace
		if s.slow {
			pace *= slowness
		}
		done := port.ModelDone{Stop: parley.StopEnd}
		spoken := 0
		var pause time.Duration // no pause before the first chunk
		for said, err := range s.pieces() {
			if ended := wait(ctx, pause); ended != nil {
				said, err = port.ModelChunk{}, ended
			}
			if !yield(said, err) || err != nil {
				return
			}
			pause = pace
			spoken += utf8.RuneCountInString(said.Text) + utf8.RuneCountInString(said.Thinking)
			if said.Call != nil {
				spoken += callLength(*said.Call)
				done.Stop = parley.StopTools
			}
		}
		done.Usage = parley.Usage{Input: tokens(length(req)), Output: tokens(spoken)}
		yield(port.ModelChunk{Done: &done}, nil)
	}
}

// wait returns ctx's error as soon as ctx ends, and nil after d.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// tokens estimates the number of tokens: four characters each.
func tokens(chars int) int64 { return int64(chars+3) / 4 }

func length(req port.ModelRequest) int {
	n := utf8.RuneCountInString(req.Instructions)
	for _, t := range req.Tools {
		n += utf8.RuneCountInString(t.Name) + utf8.RuneCountInString(t.Description) + utf8.RuneCountInString(
			t.Parameters)
	}
	for _, m := range req.Messages {
		n += utf8.RuneCountInString(m.Text)
		for _, c := range m.Calls {
			n += callLength(c)
		}
	}
	return n
}

func callLength(c parley.MessageCall) int {
	return utf8.RuneCountInString(c.Name) + utf8.RuneCountInString(c.Arguments)
}
