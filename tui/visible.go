package tui

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible is a text that a terminal can print without obeying it. Text of models, tools, files and other users could
// otherwise move the cursor and draw an approval card, or hide and reorder letters of a real one. Control characters
// become their pictures, invisible and bidirectional ones their numbers, and a carriage return a line end.
func Visible(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case r == '\r': // a line that is drawn over and over
			b.WriteByte('\n')
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r) // the picture of it
		case r == 0x7f:
			b.WriteRune('\u2421')
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

// hidden reports whether a character does anything else than to be seen. Joiners are part of words in many languages,
// and of emoji.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	case '\u2028', '\u2029', // line and paragraph separators
		'\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u3164', '\uffa0': // letters without a picture
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r >= 0xe0100 && r <= 0xe01ef // variation selectors
}

// entity is a character reference of HTML, which Markdown replaces by its character.
var entity = regexp.MustCompile(`&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,40});`)

// visibleMarkdown is Visible for Markdown: references to characters such as &#27; are made visible, too.
func visibleMarkdown(text string) string {
	text = Visible(text)
	if !strings.Contains(text, "&") {
		return text
	}
	return entity.ReplaceAllStringFunc(text, func(reference string) string {
		if meant := html.UnescapeString(reference); strings.IndexFunc(meant, hidden) >= 0 {
			return Visible(meant)
		}
		return reference
	})
}

var (
	style = regexp.MustCompile("\x1b\\[[0-9;:]*m")
	link  = regexp.MustCompile("\x1b\\]8;[^\x07\x1b]*(?:\x07|\x1b\\\\)")
)

// onlyStyles is the last gate to the terminal: a drawn text whose only control sequences are those that set colours
// and attributes. Links of Markdown keep their text.
func onlyStyles(text string) string {
	text = link.ReplaceAllString(text, "")
	var b strings.Builder
	at := 0
	for _, span := range style.FindAllStringIndex(text, -1) {
		b.WriteString(Visible(text[at:span[0]]))
		b.WriteString(text[span[0]:span[1]])
		at = span[1]
	}
	b.WriteString(Visible(text[at:]))
	return b.String()
}

// CallLine is a tool call on one line: the tool, and its most telling arguments. It is not made visible.
func CallLine(tool, arguments string) string {
	var a struct {
		Command                       []string
		Workdir, Path, Patch, Pattern string
	}
	if json.Unmarshal([]byte(arguments), &a) != nil {
		return short(tool + " " + arguments)
	}
	about := strings.TrimSpace(a.Pattern + " " + a.Path)
	switch {
	case len(a.Command) > 0:
		for i, word := range a.Command {
			if word == "" || strings.ContainsAny(word, " \t\n\"'\\") {
				a.Command[i] = strconv.Quote(word)
			}
		}
		about = strings.Join(a.Command, " ")
		if a.Workdir != "" {
			about += " (in " + a.Workdir + ")"
		}
	case a.Patch != "":
		var files []string
		for _, m := range patched.FindAllStringSubmatch(a.Patch, -1) {
			files = append(files, strings.TrimSpace(m[1]))
		}
		about = strings.Join(files, ", ")
	}
	return short(strings.TrimSpace(tool + " " + about))
}

var patched = regexp.MustCompile(`(?m)^\*\*\* (?:Add|Update|Delete) File: (.*)$`)

// short keeps what fits on a line or two.
func short(text string) string {
	const most = 160
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}
