package engine

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley"
)

const (
	// pieceBytes bounds the text that a coalescer gathers, and so the size of a
	// chunk.
	pieceBytes = 64 << 10
	// pieceCommits bounds the commits of chunks that wait for the store at the
	// same time, over all sessions. Streams without a place gather meanwhile.
	// So a store that falls behind gets larger chunks, and other commits do not
	// wait for the chunks of every stream.
	pieceCommits = 64
)

// A coalescer gathers the output of a worker until the actor commits it. There
// is no timer: the actor takes the text as soon as it can, and text that comes
// during a commit goes into the next one. So chunks are small while the server
// is idle and large while it is busy.
//
// The chunks are always valid UTF-8 and never end inside a character, so that
// the stored text equals the text that was shown.
type coalescer struct {
	outputReady chan struct{} // of the actor; buffers one signal

	mu       sync.Mutex // guards the following; leaf
	taken    sync.Cond  // of mu: the actor has taken what was gathered, or left
	gathered []piece
	size     int  // in bytes
	left     bool // the actor takes no more text
}

type piece struct {
	kind   parley.OutputKind // of a model's output
	stream parley.Stream     // of a tool's
	text   []byte
}

func newCoalescer(spoke chan struct{}) *coalescer {
	c := &coalescer{outputReady: spoke}
	c.taken.L = &c.mu
	return c
}

// say adds text of a model. It blocks while the coalescer is full.
func (c *coalescer) say(kind parley.OutputKind, text string) { c.add(kind, "", text) }

// print adds text that a tool prints to a stream, in the same way.
func (c *coalescer) print(stream parley.Stream, text string) { c.add("", stream, text) }

func (c *coalescer) add(kind parley.OutputKind, stream parley.Stream, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(text) > 0 {
		for c.size >= pieceBytes && !c.left {
			c.taken.Wait()
		}
		if c.left {
			return
		}
		n := min(len(text), pieceBytes-c.size)
		if last := len(c.gathered) - 1; last < 0 || c.gathered[last].kind != kind || c.gathered[last].stream != stream {
			c.gathered = append(c.gathered, piece{kind: kind, stream: stream})
		}
		p := &c.gathered[len(c.gathered)-1]
		p.text = append(p.text, text[:n]...)
		c.size += n
		text = text[n:]
		select {
		case c.outputReady <- struct{}{}:
		default:
		}
	}
}

// take returns the gathered text, in order. An incomplete character at the end
// stays, unless whole says that nothing follows it.
func (c *coalescer) take(whole bool) []piece {
	c.mu.Lock()
	defer c.mu.Unlock()
	pieces := c.gathered
	c.gathered, c.size = nil, 0
	if last := len(pieces) - 1; last >= 0 && !whole {
		n := wholeCharacters(pieces[last].text)
		if rest := pieces[last].text[n:]; len(rest) > 0 {
			c.gathered, c.size = []piece{{pieces[last].kind, pieces[last].stream, rest}}, len(rest)
			pieces[last].text = pieces[last].text[:n:n]
		}
		if n == 0 {
			pieces = pieces[:last]
		}
	}
	c.taken.Broadcast()
	return pieces
}

// leave makes say and print drop all text from now on.
func (c *coalescer) leave() {
	c.mu.Lock()
	c.left, c.gathered, c.size = true, nil, 0
	c.mu.Unlock()
	c.taken.Broadcast()
}

// reports returns the gathered text as chunks: reports of the worker's step.
func (c *coalescer) reports(step parley.Step, at time.Time, whole bool) (list []parley.Report) {
	for _, p := range c.take(whole) {
		text := strings.ToValidUTF8(string(p.text), "\uFFFD")
		switch step := step.(type) {
		case parley.CallModel:
			list = append(list, parley.Report{At: at, Run: step.Run, Turn: step.Turn,
				Body: parley.ModelPiece{Kind: p.kind, Text: text}})
		case parley.CallTool:
			list = append(list, parley.Report{At: at, Run: step.Run, Call: step.Call,
				Body: parley.ToolPiece{Stream: p.stream, Text: text}})
		}
	}
	return list
}

// wholeCharacters returns the length of a text without an incomplete character
// at its end.
func wholeCharacters(s []byte) int {
	for i := 1; i <= min(len(s), utf8.UTFMax-1); i++ {
		if b := s[len(s)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(s[len(s)-i:]) {
				return len(s) - i
			}
			break
		}
	}
	return len(s)
}
