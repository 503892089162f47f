package dialect

import (
	"encoding/json"

	"parley"
)

// A Text is the answer of a run in dialects that show no turns: the texts of the
// turns, with an empty line between two. A text that was cut off is continued by
// the next one without a line. A Text is a value.
type Text struct {
	whole bool   // the last text was not cut off
	gap   string // stands before the text that is being said
	shown int    // bytes of that text that were shown
	begun bool   // something was shown
}

// Start begins the next text.
func (t Text) Start() Text {
	if t.gap, t.shown = "", 0; t.whole {
		t.gap = "\n\n"
	}
	return t
}

// Piece returns what is to be shown of a piece of the text.
func (t Text) Piece(b parley.OutputAppended) (_ Text, text string) {
	if text = b.Text; b.Offset == 0 {
		text = t.gap + text
	}
	t.shown, t.begun = b.Offset+len(b.Text), true
	return t, text
}

// End ends the text. rest is what no piece has shown, as in a log whose pieces
// were deleted.
func (t Text) End(b parley.OutputFinished) (_ Text, rest string) {
	if rest = b.Text[min(t.shown, len(b.Text)):]; rest != "" && t.shown == 0 {
		rest = t.gap + rest
	}
	t.whole, t.begun = !b.Incomplete, t.begun || b.Text != ""
	return t, rest
}

// Aside returns words that are not of the answer as they are to be shown now, with
// an empty line around them. The answer is the same for a client that skips them.
func (t Text) Aside(words string) string {
	if t.begun {
		words = "\n\n" + words
	}
	if !t.whole { // the next text begins without an empty line
		words += "\n\n"
	}
	return words
}

// Gap stands before the text that is being said.
func (t Text) Gap() string { return t.gap }

// Arguments are the arguments of a call as JSON. Those that are no JSON become a
// JSON string: a model may write anything.
func Arguments(given string) json.RawMessage {
	if json.Valid([]byte(given)) {
		return json.RawMessage(given)
	}
	return Encode(given)
}

// Result is what is shown as the result of a call.
func Result(b parley.ToolCallFinished) string {
	if b.Outcome == parley.CallCancelled && b.Result == "" {
		return "Cancelled before it ended."
	}
	return b.Result
}
