package openai

import "unicode/utf8"

// cut returns the part of an event that is new to a client that has all events with numbers before after. It may cut a
// delta: the client may have seen the text in other chunks.
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
