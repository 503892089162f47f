package openai

import "unicode/utf8"

// cut is what a client has not seen of an event, if it has what is before the number after. A delta may be cut in the
// middle: a client may have seen the text in other pieces.
func cut(e event, after int64) (event, bool) {
	number := e.about().Number
	if number < after {
		return nil, false
	}
	rest := func(delta string) string {
		n := after - (number - int64(len(delta)) + 1)
		if n <= 0 {
			return delta
		}
		for n < int64(len(delta)) && !utf8.RuneStart(delta[n]) {
			n--
		}
		return delta[n:]
	}
	switch b := e.(type) {
	case textDelta:
		b.Delta = rest(b.Delta)
		return b, true
	case summaryDelta:
		b.Delta = rest(b.Delta)
		return b, true
	case argumentsDelta:
		b.Delta = rest(b.Delta)
		return b, true
	}
	return e, true
}
