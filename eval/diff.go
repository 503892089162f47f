package eval

import (
	"slices"
	"strings"
	"unicode"
)

// A Part is a part of a difference: words that are in both texts or in only one of them.
type Part struct {
	Op   Op     `json:"op"`
	Text string `json:"text"`
}

type Op string

const (
	Same    Op = "same"
	Removed Op = "removed" // only in the recording
	Added   Op = "added"   // only in the replay
)

// Words returns the difference of two texts, word by word. The first text is the concatenation of all parts that are
// not added, and the second of all that are not removed.
func Words(recorded, replayed string) (parts []Part) {
	for _, p := range Lists(words(recorded), words(replayed)) {
		if n := len(parts); n > 0 && parts[n-1].Op == p.Op {
			parts[n-1].Text += p.Text
			continue
		}
		parts = append(parts, p)
	}
	return parts
}

// words splits a text after each run of spaces.
func words(text string) (list []string) {
	start, space := 0, false
	for i, r := range text {
		if space && !unicode.IsSpace(r) {
			list = append(list, text[start:i])
			start = i
		}
		space = unicode.IsSpace(r)
	}
	if start < len(text) {
		list = append(list, text[start:])
	}
	return list
}

// maxCells limits the memory of a difference. In longer texts only a common beginning and end are found.
const maxCells = 4 << 20

// Lists returns the difference of two lists, with a part for each entry.
func Lists(a, b []string) (parts []Part) {
	add := func(op Op, list []string) {
		for _, text := range list {
			parts = append(parts, Part{op, text})
		}
	}
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	add(Same, a[:head])
	parts = append(parts, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	add(Same, a[len(a)-tail:])
	return parts
}

// middle finds the longest common subsequence.
func middle(a, b []string) (parts []Part) {
	if len(a)*len(b) > maxCells {
		return []Part{{Removed, strings.Join(a, "")}, {Added, strings.Join(b, "")}}
	}
	width := len(b) + 1
	longest := make([]int32, (len(a)+1)*width) // for a[i:] and b[j:]
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			} else {
				longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			parts = append(parts, Part{Same, a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[(i+1)*width+j] >= longest[i*width+j+1]:
			parts = append(parts, Part{Removed, a[i]})
			i++
		default:
			parts = append(parts, Part{Added, b[j]})
			j++
		}
	}
	return parts
}

// A Comparison is an exchange and its replay.
type Comparison struct {
	Recorded   Exchange `json:"recorded"`
	Replayed   Exchange `json:"replayed"`
	SameAnswer bool     `json:"same_answer"`
	SameCalls  bool     `json:"same_calls"`
}

// Compare compares an exchange with its replay. Calls are the same if they have the same names and arguments in the
// same order.
func Compare(recorded, replayed Exchange) Comparison {
	return Comparison{recorded, replayed, recorded.Answer == replayed.Answer,
		slices.EqualFunc(recorded.Calls, replayed.Calls, func(a, b Call) bool { return a.key() == b.key() })}
}

// Calls returns the difference of the calls.
func (c Comparison) Calls() []Part {
	lines := func(calls []Call) (list []string) {
		for _, c := range calls {
			list = append(list, c.key())
		}
		return list
	}
	return Lists(lines(c.Recorded.Calls), lines(c.Replayed.Calls))
}
