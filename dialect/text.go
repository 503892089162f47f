package dialect

import (
	"encoding/json"

	"parley"
)

// A Text is the answer of a run in dialects without turns: the texts of the turns, separated by empty lines. If a text
// was cut off, the next one continues it without an empty line. A Text is a value.
type Text struct {
	whole bool   // the last text was not cut off
	gap   string // separator before the current text
	shown int    // bytes of the current text that were shown
	begun bool   // some text was shown
}

// Start starts the next text.
func (t Text) Start() Text {
	if t.gap, t.shown = "", 0; t.whole {
		t.gap = "\n\n"
	}
	return t
}

// Piece returns the text to show for a chunk of the output.
func (t Text) Piece(b parley.OutputAppended) (_ Text, text string) {
	if text = b.Text; b.Offset == 0 {
		text = t.gap + text
	}
	t.shown, t.begun = b.Offset+len(b.Text), true
	return t, text
}

// End ends the text. rest is the part that no chunk has shown, for example
// because the log's chunks were deleted.
func (t Text) End(b parley.OutputFinished) (_ Text, rest string) {
	if rest = b.Text[min(t.shown, len(b.Text)):]; rest != "" && t.shown == 0 {
		rest = t.gap + rest
	}
	t.whole, t.begun = !b.Incomplete, t.begun || b.Text != ""
	return t, rest
}

// Aside formats words that are not part of the answer for showing now, with empty lines around them. A client that
// skips them still gets the right answer.
func (t Text) Aside(words string) string {
	if t.begun {
		words = "\n\n" + words
	}
	if !t.whole { // the next text would start without an empty line
		words += "\n\n"
	}
	return words
}

// Gap returns the separator before the current text.
func (t Text) Gap() string { return t.gap }

// Arguments returns the arguments of a call as JSON. Invalid JSON, which a model may write, becomes a JSON string.
func Arguments(given string) json.RawMessage {
	if json.Valid([]byte(given)) {
		return json.RawMessage(given)
	}
	return Encode(given)
}

// Result returns the text to show as the result of a call.
func Result(b parley.ToolCallFinished) string {
	if b.Outcome == parley.CallCancelled && b.Result == "" {
		return "Cancelled before it ended."
	}
	return b.Result
}
