package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// A tally counts the tokens and events that one follower of a session receives. It
// checks that none is lost, duplicated or out of order. The zero value has received
// nothing.
type tally struct {
	expect []*answer // the expected runs, in order
	run    int       // number of runs that have ended
	index  int       // index of the next token in the current run
	seq    int64     // seq of the last event, if the protocol contains it
	tokens int64
	rest   []byte // incomplete stamp of a token
	dots   int    // number of dots in rest
	padded bool   // inside the padding of a token
	err    error

	token func(a *answer, index int, stamp int64) // called for each token; may be nil
}

func (t *tally) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

// sequence handles the seq of an event.
func (t *tally) sequence(seq int64) {
	switch {
	case seq <= t.seq:
		t.fail("event %d came again or late, after event %d", seq, t.seq)
	case seq > t.seq+1:
		t.fail("events %d to %d are missing", t.seq+1, seq-1)
	}
	t.seq = seq
}

// text handles a part of the current run's text. A token counts as soon as its
// stamp is complete, because the server may hold back the last letters of a text
// until more follows (package screen).
func (t *tally) text(b []byte) {
	for len(b) > 0 {
		if t.padded {
			end := bytes.IndexByte(b, ' ')
			if end < 0 {
				return
			}
			t.padded, b = false, b[end+1:]
			continue
		}
		end := bytes.IndexFunc(b, func(c rune) bool {
			if c == '.' {
				t.dots++
			}
			return c == ' ' || t.dots == 3
		})
		if end < 0 {
			t.rest = append(t.rest, b...)
			return
		}
		t.padded = t.dots == 3
		t.take(append(t.rest, b[:end+1]...))
		t.rest, t.dots, b = t.rest[:0], 0, b[end+1:]
	}
}

func (t *tally) take(token []byte) {
	tag, index, stamp, ok := parseToken(token)
	switch {
	case !ok:
		t.fail("the text has %.40q, which is no token of the mock model", token)
		return
	case t.run >= len(t.expect):
		t.fail("token %d of run %d came after the last run had ended", index, tag)
		return
	}
	a := t.expect[t.run]
	switch {
	case tag != a.tag:
		t.fail("token %d of run %d came during run %d", index, tag, a.tag)
	case index < t.index:
		t.fail("token %d of run %d came twice", index, tag)
	case index > t.index:
		t.fail("tokens %d to %d of run %d are missing", t.index, index-1, tag)
	}
	t.index = index + 1
	t.tokens++
	if t.token != nil {
		t.token(a, index, stamp)
	}
}

func parseToken(b []byte) (tag, index int, stamp int64, ok bool) {
	number := func() (n int64, ok bool) {
		for i, c := range b {
			if c == '.' && i > 0 {
				b = b[i+1:]
				return n, true
			}
			if c < '0' || c > '9' {
				return 0, false
			}
			n = n*10 + int64(c-'0')
		}
		return 0, false
	}
	a, ok1 := number()
	i, ok2 := number()
	stamp, ok3 := number()
	return int(a), int(i), stamp, ok1 && ok2 && ok3
}

// end handles the end of the current run.
func (t *tally) end() {
	if t.run >= len(t.expect) {
		t.fail("a run ended that was not asked for")
		return
	}
	a := t.expect[t.run]
	if t.index != a.tokens || len(t.rest) > 0 || t.padded {
		t.fail("run %d ended after %d of %d tokens", a.tag, t.index, a.tokens)
	}
	t.run++
	t.index = 0
}

// finished returns the first error, or an error if runs are missing.
func (t *tally) finished() error {
	if t.err == nil && t.run != len(t.expect) {
		t.fail("%d of %d runs ended", t.run, len(t.expect))
	}
	return t.err
}

// checkLog reads a session's log as JSON lines. It checks that the log contains
// exactly these runs, each completed and with all its tokens in order.
func checkLog(r io.Reader, runs []*answer) error {
	t := tally{expect: runs}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), 64<<20)
	for lines.Scan() {
		var line struct {
			Seq  int64
			Type string
			Body struct{ Text, Outcome string }
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return err
		}
		t.sequence(line.Seq)
		switch line.Type {
		case "OutputFinished":
			t.text([]byte(line.Body.Text))
		case "RunFinished":
			if line.Body.Outcome != "completed" {
				t.fail("a run ended as %s", line.Body.Outcome)
			}
			t.end()
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return t.finished()
}

// field finds the value of a JSON string by its name, without parsing the rest.
// The mock model's texts need no escapes.
func field(data []byte, name string) []byte {
	at := bytes.Index(data, []byte(name))
	if at < 0 {
		return nil
	}
	data = data[at+len(name):]
	end := bytes.IndexByte(data, '"')
	if end < 0 {
		return nil
	}
	return data[:end]
}

// seqOf parses the number at the end of a cursor.
func seqOf(cursor []byte) int64 {
	n, err := strconv.ParseInt(string(cursor[bytes.LastIndexByte(cursor, '-')+1:]), 10, 64)
	if err != nil {
		return -1
	}
	return n
}
