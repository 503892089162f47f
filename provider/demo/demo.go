// Package demo is a model that needs no key and no network: scripted,
// deterministic and honest about both.
//
// What is said is decided by a pure function from the messages of a session to
// a script (script.go, answers.go, tour.go). This file only plays scripts, at
// the pace of a real model.
package demo

import (
	"context"
	"iter"
	"time"
	"unicode/utf8"

	"parley"
	"parley/port"
)

// A Model plays scripts. It keeps nothing between turns and may be used
// concurrently.
type Model struct {
	pace time.Duration
}

var _ port.Model = (*Model)(nil)

type Option func(*Model)

// Pace sets the time between two pieces. Zero: as fast as they are taken.
func Pace(d time.Duration) Option { return func(m *Model) { m.pace = d } }

// defaultPace is changed by tests only. See pace_failpoint.go.
var defaultPace = 20 * time.Millisecond

const slowness = 10 // of a slow script

func New(opts ...Option) *Model {
	m := &Model{pace: defaultPace}
	for _, o := range opts {
		o(m)
	}
	return m
}

// Stream plays the script that the messages call for. It fails with ctx's error
// as soon as ctx ends, and with CodeModel where the script says so.
func (m *Model) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.Said, error] {
	return func(yield func(port.Said, error) bool) {
		s := scriptFor(req)
		pace := m.pace
		if s.slow {
			pace *= slowness
		}
		done := port.ModelDone{Stop: parley.StopEnd}
		spoken := 0
		var pause time.Duration // none before the first piece
		for said, err := range s.pieces() {
			if ended := wait(ctx, pause); ended != nil {
				said, err = port.Said{}, ended
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
		yield(port.Said{Done: &done}, nil)
	}
}

// wait returns ctx's error the moment ctx ends, and nil after d.
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

// tokens estimates as people do: four characters each.
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
