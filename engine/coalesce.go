package engine

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Pieces are shown as they come, but not one by one: the first at once, then
// what gathered in flushAfter or flushBytes. A fast model would otherwise cost a
// commit per token.
const (
	flushAfter = 30 * time.Millisecond
	flushBytes = 512
	pieceBytes = 64 << 10 // no piece is longer
)

// A coalescer gathers text of one kind after another and emits it from a goroutine of its own, which
// close waits for. say waits while an emission is under way, so what is
// gathered stays small. What is emitted is valid UTF-8 whatever is said, and
// never ends inside a character: only so is what is stored what was shown.
type coalescer[K comparable] struct {
	pieces  chan piece[K]
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
}

type piece[K comparable] struct {
	kind K
	text string
}

func coalesce[K comparable](a *actor, emit func(K, string)) *coalescer[K] {
	c := &coalescer[K]{pieces: make(chan piece[K]), closing: make(chan struct{}), done: make(chan struct{})}
	a.engine.wg.Go(func() {
		defer close(c.done)
		c.run(emit)
	})
	return c
}

// say is not heard after close.
func (c *coalescer[K]) say(kind K, text string) {
	for len(text) > 0 {
		n := min(len(text), pieceBytes)
		select {
		case c.pieces <- piece[K]{kind, text[:n]}:
		case <-c.closing:
			return
		}
		text = text[n:]
	}
}

// close emits what is left.
func (c *coalescer[K]) close() {
	c.once.Do(func() { close(c.closing) })
	<-c.done
}

func (c *coalescer[K]) run(emit func(K, string)) {
	var gathered piece[K]
	var last time.Time // of the last emission; zero: none yet
	timer := time.NewTimer(flushAfter)
	timer.Stop()
	flush := func(whole bool) {
		timer.Stop()
		rest := ""
		if !whole {
			gathered.text, rest = cutInCharacter(gathered.text)
		}
		if gathered.text != "" {
			emit(gathered.kind, strings.ToValidUTF8(gathered.text, "\uFFFD"))
			last = time.Now()
		}
		gathered.text = rest
	}
	for {
		select {
		case p := <-c.pieces:
			if p.kind != gathered.kind {
				flush(true)
				gathered.kind = p.kind
			}
			began := gathered.text == ""
			gathered.text += p.text
			wait := flushAfter - time.Since(last)
			switch {
			case wait <= 0 || len(gathered.text) >= flushBytes:
				flush(false)
			case began:
				timer.Reset(wait)
			}
		case <-timer.C:
			flush(false)
		case <-c.closing:
			flush(true)
			return
		}
	}
}

// cutInCharacter splits off the beginning of a character that is still to come.
func cutInCharacter(s string) (whole, rest string) {
	for i := 1; i <= min(len(s), utf8.UTFMax-1); i++ {
		if b := s[len(s)-i]; utf8.RuneStart(b) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				return s[:len(s)-i], s[len(s)-i:]
			}
			break
		}
	}
	return s, ""
}
