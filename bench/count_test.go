package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTally checks that lost, duplicated and swapped tokens are noticed, however
// the text is split.
func TestTally(t *testing.T) {
	token := func(tag, index int) string { return string(appendToken(nil, tag, index, 42, 30)) }
	good := token(1, 0) + token(1, 1) + token(1, 2)
	for _, test := range []struct{ name, text, want string }{
		{"exact", good, ""},
		{"doubled", token(1, 0) + token(1, 1) + token(1, 1) + token(1, 2), "token 1 of run 1 came twice"},
		{"lost", token(1, 0) + token(1, 2), "tokens 1 to 1 of run 1 are missing"},
		{"lost at the end", token(1, 0) + token(1, 1), "run 1 ended after 2 of 3 tokens"},
		{"swapped", token(1, 1) + token(1, 0) + token(1, 2), "tokens 0 to 0 of run 1 are missing"},
		{"of another run", token(1, 0) + token(2, 1) + token(1, 2), "token 1 of run 2 came during run 1"},
		{"cut", good[:len(good)-5], "run 1 ended after 3 of 3 tokens"},
		{"garbled", token(1, 0) + "hello " + token(1, 1), `the text has "hello ", which is no token of the mock model`},
	} {
		for _, piece := range []int{1, 7, 31, 1000} {
			count := tally{expect: []*answer{{tag: 1, tokens: 3}}}
			for rest := test.text; rest != ""; {
				n := min(piece, len(rest))
				count.text([]byte(rest[:n]))
				rest = rest[n:]
			}
			count.end()
			if err := count.finished(); fmt.Sprint(err) != test.want && (err != nil || test.want != "") {
				t.Errorf("%s, in pieces of %d bytes: %v", test.name, piece, err)
			}
		}
	}
}

// TestTallyOfEvents checks that lost, duplicated and swapped events are noticed by
// their seq.
func TestTallyOfEvents(t *testing.T) {
	for _, test := range []struct {
		seqs []int64
		want string
	}{
		{[]int64{1, 2, 3}, ""},
		{[]int64{1, 2, 2}, "event 2 came again or late, after event 2"},
		{[]int64{1, 3}, "events 2 to 2 are missing"},
		{[]int64{1, 3, 2}, "events 2 to 2 are missing"},
		{[]int64{2}, "events 1 to 1 are missing"},
	} {
		count := tally{}
		for _, seq := range test.seqs {
			count.sequence(seq)
		}
		if err := count.finished(); fmt.Sprint(err) != test.want && (err != nil || test.want != "") {
			t.Errorf("%v: %v", test.seqs, err)
		}
	}
}

// TestLogsAreChecked checks that a log must contain exactly the expected runs.
func TestLogsAreChecked(t *testing.T) {
	runs := []*answer{{tag: 1, tokens: 1}, {tag: 2, tokens: 1}}
	line := func(seq int, kind, body string) string {
		return fmt.Sprintf(`{"seq":%d,"type":%q,"body":{%s}}`, seq, kind, body) + "\n"
	}
	said := func(seq, tag int) string {
		return line(seq, "OutputFinished", fmt.Sprintf(`"text":%q`, appendToken(nil, tag, 0, 1, 0))) +
			line(seq+1, "RunFinished", `"outcome":"completed"`)
	}
	for _, test := range []struct{ name, log, want string }{
		{"exact", said(1, 1) + said(3, 2), "<nil>"},
		{"a run twice", said(1, 1) + said(3, 2) + said(5, 2), "token 0 of run 2 came after the last run had ended"},
		{"a run missing", said(1, 1), "1 of 2 runs ended"},
		{"a failed run", said(1, 1) + line(3, "RunFinished", `"outcome":"failed"`), "a run ended as failed"},
		{"a hole", said(1, 1) + said(4, 2), "events 3 to 3 are missing"},
	} {
		if err := checkLog(strings.NewReader(test.log), runs); fmt.Sprint(err) != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestHistogram checks that quantiles are correct within one percent.
func TestHistogram(t *testing.T) {
	h := &histogram{}
	for i := range 100_000 {
		h.record(int64(i) * 1000)
	}
	for _, q := range []float64{0.001, 0.5, 0.9, 0.99, 0.9999} {
		want := time.Duration(q * 100_000 * 1000)
		if got := h.quantile(q); got < want*99/100 || got > want*101/100+1000 {
			t.Errorf("quantile %v: %v, not %v", q, got, want)
		}
	}
	if h.quantile(1) != 99_999_000 || (&histogram{}).quantile(0.5) != 0 {
		t.Error(h.quantile(1))
	}
}
