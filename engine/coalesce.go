package engine

import (
	"sync"
	"time"

	"parley"
)

// Pieces are shown as they come, but not one by one: the first at once, then
// what gathered in flushAfter or flushBytes. A fast model would otherwise cost a
// commit per token.
const (
	flushAfter = 30 * time.Millisecond
	flushBytes = 512
	pieceBytes = 64 << 10 // no piece is longer
)

// A coalescer gathers text and emits it from a goroutine of its own, which
// close waits for. say waits while an emission is under way, so what is
// gathered stays small.
type coalescer struct {
	pieces chan piece
	done   chan struct{}
	once   sync.Once
}

type piece struct {
	kind parley.OutputKind
	text string
}

func (a *actor) coalesce(emit func(parley.OutputKind, string)) *coalescer {
	c := &coalescer{pieces: make(chan piece), done: make(chan struct{})}
	a.engine.wg.Go(func() {
		defer close(c.done)
		c.run(emit)
	})
	return c
}

// say may not be called after close.
func (c *coalescer) say(kind parley.OutputKind, text string) {
	for len(text) > pieceBytes {
		cut := pieceBytes
		for cut > pieceBytes-4 && text[cut]&0xC0 == 0x80 {
			cut-- // not inside a character
		}
		c.pieces <- piece{kind, text[:cut]}
		text = text[cut:]
	}
	c.pieces <- piece{kind, text}
}

// close emits what is left.
func (c *coalescer) close() {
	c.once.Do(func() { close(c.pieces) })
	<-c.done
}

func (c *coalescer) run(emit func(parley.OutputKind, string)) {
	var gathered piece
	var last time.Time // of the last emission; zero: none yet
	timer := time.NewTimer(flushAfter)
	timer.Stop()
	flush := func() {
		timer.Stop()
		if gathered.text != "" {
			emit(gathered.kind, gathered.text)
			gathered.text, last = "", time.Now()
		}
	}
	for {
		select {
		case p, ok := <-c.pieces:
			if !ok {
				flush()
				return
			}
			if p.kind != gathered.kind {
				flush()
				gathered.kind = p.kind
			}
			began := gathered.text == ""
			gathered.text += p.text
			wait := flushAfter - time.Since(last)
			switch {
			case wait <= 0 || len(gathered.text) >= flushBytes:
				flush()
			case began:
				timer.Reset(wait)
			}
		case <-timer.C:
			flush()
		}
	}
}
