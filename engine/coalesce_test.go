package engine

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"parley"
	"parley/port"
)

// TestChunksGatherDuringACommit checks that the first chunk is committed at
// once, and that text of the model during a commit goes into the next one.
func TestChunksGatherDuringACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Store = &rough{append: func(b port.Batch) error {
				if has[parley.OutputAppended](b) {
					time.Sleep(30 * time.Millisecond)
				}
				return nil
			}}
		})
		id := r.open()
		r.puppet.pace = time.Millisecond
		r.do(id, parley.SubmitInput{Content: strings.TrimSuffix(strings.Repeat("say x;", 120), ";")})
		r.finished(id, 1)
		log := r.log(id)
		pieces := all[parley.OutputAppended](log)
		if len(pieces[0].Text) != 1 {
			t.Errorf("the first piece waited: %q", pieces[0].Text)
		}
		if n := len(pieces); n < 4 || n > 6 { // 120 ms at 30 ms each
			t.Errorf("%d pieces", n)
		}
		r.check(id)
	})
}

// TestTheLastChunkIsCommittedWithTheEnd checks that a short answer costs no
// more commits than there are things to show at different times.
func TestTheLastChunkIsCommittedWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var together atomic.Bool
		r := newRig(t, func(c *Config) {
			c.Store = &rough{append: func(b port.Batch) error {
				if has[parley.OutputAppended](b) && !has[parley.RunFinished](b) {
					time.Sleep(time.Second) // the model ends meanwhile
				}
				together.Store(together.Load() || has[parley.OutputAppended](b) && has[parley.RunFinished](b))
				return nil
			}}
		})
		id := r.open()
		r.puppet.pace = time.Millisecond
		r.say(id, "say a;say b")
		r.finished(id, 1)
		if !together.Load() {
			t.Error("the last chunk had a commit of its own")
		}
		r.check(id)
	})
}

// TestStreamsLeaveRoomInTheStore checks that only pieceCommits commits of
// chunks wait for the store at a time, however many sessions stream. The other
// sessions gather, and commit later.
func TestStreamsLeaveRoomInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waiting atomic.Int64
		hangs := make(chan struct{})
		r := newRig(t, func(c *Config) {
			c.Store = &rough{append: func(b port.Batch) error {
				if has[parley.OutputAppended](b) {
					waiting.Add(1)
					<-hangs
				}
				return nil
			}}
		})
		var ids []parley.SessionID
		for range pieceCommits + 16 {
			id := r.open()
			r.say(id, "say a;hang")
			ids = append(ids, id)
		}
		synctest.Wait()
		if n := waiting.Load(); n != pieceCommits {
			t.Errorf("%d commits of chunks wait for the store", n)
		}
		close(hangs)
		for _, id := range ids {
			r.until(id, "its chunk is shown", seen[parley.OutputAppended](1))
			r.do(id, parley.CancelRun{})
		}
	})
}

// TestUntakenStreamsAreBounded checks that a worker blocks while its
// actor does not take its output, and that it ends when the actor leaves.
func TestUntakenStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoalescer(make(chan struct{}, 1))
		said := make(chan struct{})
		go func() {
			c.say(parley.Text, strings.Repeat("x", 3*pieceBytes))
			close(said)
		}()
		synctest.Wait()
		if got := c.take(false); len(got) != 1 || len(got[0].text) != pieceBytes {
			t.Errorf("%d pieces were gathered", len(got))
		}
		synctest.Wait()
		c.leave()
		<-said
		if got := c.take(true); len(got) != 0 {
			t.Errorf("%d pieces after the end", len(got))
		}
	})
}

// TestChunksAddUpToTheText checks that the chunks are valid UTF-8 and
// together equal the text, wherever the vendor cuts it and whenever the actor
// takes it.
func TestChunksAddUpToTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := parley.CallModel{Run: 1, Turn: 2}
		c := newCoalescer(make(chan struct{}, 1))
		var want, got []piece
		add := func(list []piece, kind parley.OutputKind, text string) []piece {
			if last := len(list) - 1; last >= 0 && list[last].kind == kind {
				list[last].text = append(list[last].text, text...)
				return list
			}
			return append(list, piece{kind: kind, text: []byte(text)})
		}
		take := func(whole bool) {
			for _, p := range c.reports(step, time.Time{}, whole) {
				said := p.Body.(parley.ModelPiece)
				if !utf8.ValidString(said.Text) || said.Text == "" {
					t.Fatalf("%q", said.Text)
				}
				got = add(got, said.Kind, said.Text)
			}
		}
		for range rapid.IntRange(0, 6).Draw(t, "outputs") {
			kind := rapid.SampledFrom([]parley.OutputKind{parley.Text, parley.Thinking}).Draw(t, "kind")
			text := rapid.StringN(1, 8, -1).Draw(t, "text")
			want = add(want, kind, text)
			for text != "" {
				n := rapid.IntRange(1, len(text)).Draw(t, "cut")
				c.say(kind, text[:n])
				if text = text[n:]; rapid.Bool().Draw(t, "take") {
					take(false)
				}
			}
		}
		take(true)
		if fmt.Sprintf("%s", want) != fmt.Sprintf("%s", got) {
			t.Fatalf("said %s, taken %s", want, got)
		}
	})
}
