package tui

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"parley"
)

// nasty has texts that would control a terminal or deceive its user if they were printed unchanged.
var nasty = []string{
	"\x1b[2J\x1b[H",                        // clears the screen
	"\x1b]0;title\x07",                     // sets the title
	"\x1b]52;c;aGVsbG8=\x07",               // writes to the clipboard
	"\x1b]8;;http://evil.example\x1b\\x",   // a link
	"\x1b[?1049l\x1b[?1003h",               // leaves the screen, turns the mouse on
	"\x1bP+q544e\x1b\\",                    // asks for a capability
	"\x1b[6n\x1b[c",                        // makes the terminal type an answer
	"\x1b[8mhidden\x1b[28m",                // conceals
	"\x1b[31mred",                          // only colours
	"\u009b2J\u009d0;x\u009c",              // controls of one character
	"\x9b2J",                               // the same, as a byte that is not UTF-8
	"a\rb\x08\x08c\x7f\x0b\x0c\x0e\x0f",    // moves back
	"\x00\x05\x07",                         // asks for the answerback, rings
	"rm \u202egnp.x\u202c",                 // reordered
	"\u2066x\u2069\u061c\u200e\u200f",      // isolates and marks
	"a\u200bb\u2060c\ufeffd\u00ade",        // invisible
	"\U000e0041\U000e0042",                 // tags
	"x\U000e0100\u3164\u115f\u034f",        // variation selector, fillers
	"a\u2028b\u2029c",                      // other line ends
	"&#27;[2J &#x1b;]0;x&#7; &#155;2J",     // HTML references, which Markdown resolves
	"&ZeroWidthSpace;&rlm;&#8238;&shy;",    // by name
	"&amp;#27;[2J",                         // twice
	"[link](http://a/\x1b[2J)",             // in a link
	"[x](<http://a/&#27;[2J>)",             // by reference
	"![image](data:x \"&#27;]0;x&#7;\")",   // in a title
	"<b>\x1b[2J</b><script>&#27;</script>", // in HTML
	"```\n\x1b[2J\n```",                    // in code
	"```\x1b[2J\nx\n```",                   // in the name of a language
	"| a |\n|---|\n| \x1b[2J&#27;[2J |",    // in a table
	"`&#27;[2J` &#27;[31mred",
	"\x1b", "\x1b[", "\x1b]", // cut off
}

// obeyed returns the first sequence that a terminal would obey instead of print, except styles.
func obeyed(drawn string) string {
	left := regexp.MustCompile("\x1b\\[[0-9;:]*m").ReplaceAllString(drawn, "")
	for _, r := range left {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' ||
			r == '\u2028' || r == '\u2029') {
			return string(r)
		}
	}
	if !strings.HasPrefix(drawn, "\x1b") && strings.ContainsRune(drawn, unicode.ReplacementChar) {
		return "" // an invalid byte is shown as a replacement character
	}
	return ""
}

// TestUntrustedTextCannotControlTerminal draws nasty texts in every place of the screen that shows untrusted text.
func TestUntrustedTextCannotControlTerminal(t *testing.T) {
	t.Parallel()
	for _, text := range nasty {
		for name, drawn := range everywhere(text) {
			if found := obeyed(drawn); found != "" {
				t.Errorf("%q as %s: the terminal would obey %q in %q", text, name, found, drawn)
			}
			if strings.Contains(drawn, "\x1b[8m") || strings.Contains(drawn, "\x1b[31mred") {
				t.Errorf("%q as %s: the text chose its own style: %q", text, name, drawn)
			}
		}
	}
}

// everywhere draws a text in every kind of item, and on the screen.
func everywhere(text string) map[string]string {
	p := newPainter(look{width: 60, unfolded: true})
	drawn := map[string]string{}
	for name, i := range map[string]Item{
		"input":          {Kind: Said, Text: text},
		"answer":         {Kind: Answered, Text: text},
		"partial answer": {Kind: Answered, Text: "a\n\n" + text + "\n\nmore\n", Open: true},
		"thinking":       {Kind: Thought, Text: text},
		"call": {Kind: Worked, Calls: []Call{{Tool: text, Line: CallLine(text, `{"path":"x"}`), Output: text,
			Result: text, State: CallFailed}, {Line: text, Output: text, State: CallRuns}}},
		"plan":        {Kind: Planned, Plan: parley.Plan{Summary: text, Items: []parley.PlanItem{{Title: text}}}},
		"edited plan": {Kind: Planned, Plan: parley.Plan{Text: text}},
		"files":       {Kind: Changed, Files: []parley.FileChange{{Path: text, Summary: text, Diff: "+" + text}}},
		"note":        {Kind: Noted, Text: text},
		"error":       {Kind: Troubled, Text: text},
	} {
		drawn[name] = strings.Join(p.draw(&i, block{}).lines, "\n")
	}
	m := sized(newTestModel(), 60, 20)
	m.hint, m.talk.Agent, m.talk.Title, m.talk.Run, m.talk.Doing = text, text, text, 1, text
	m.talk.Queue = []Waiting{{Text: text}}
	m.sending = []sentInput{{text: text}}
	for name, c := range map[string]Card{
		"approval": {Kind: Approval, Agent: text, Tool: text, Show: text, Why: text, Similar: text, Explained: text},
		"question": {Kind: Questions, Questions: []parley.Question{{Question: text, Header: text,
			Options: []parley.Option{{Label: text, Description: text}}}}},
		"lost call": {Kind: LostCall, Tool: text, Show: text},
		"plan card": {Kind: PlanCard, Plan: parley.Plan{Summary: text, Text: text}},
	} {
		carded := m
		carded.talk.Run, carded.talk.Cards = 0, []Card{c}
		carded = carded.present().layout()
		drawn[name] = carded.view().Content
		carded.card.aside = true
		drawn[name+" aside"] = carded.view().Content
	}
	v := m.view()
	drawn["screen"], drawn["title"] = v.Content, v.WindowTitle
	return drawn
}
