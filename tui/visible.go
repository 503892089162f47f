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

// Visible returns a text that a terminal prints without obeying it. Otherwise, text of models, tools, files and other
// users could move the cursor and draw an approval card, or hide and reorder letters of a real one. Control characters
// become their pictures, invisible and bidirectional characters their numbers, and carriage returns become line ends.
func Visible(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case r == '\r': // as from a progress bar, which overwrites its line
			b.WriteByte('\n')
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r) // picture of the control character
		case r == 0x7f:
			b.WriteRune('\u2421')
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

// hidden reports whether a character is invisible or controls the terminal. Joiners are not hidden: they are part of
// words in many languages, and of emoji.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	case '\u2028', '\u2029', // line and paragraph separators
		'\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u3164', '\uffa0': // letters without a glyph
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r >= 0xe0100 && r <= 0xe01ef // variation selectors
}

// entity matches an HTML character reference. Markdown replaces it by its character.
var entity = regexp.MustCompile(`&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,40});`)

// visibleMarkdown is Visible for Markdown. It also makes character references such as &#27; visible.
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

// onlyStyles is the last check before the terminal. It removes all control sequences from a drawn text except those for
// colours and attributes. Links of Markdown keep their text.
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

// CallLine returns a tool call on one line: the tool, and its most important arguments. The result is untrusted text.
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

// short shortens a text to one or two lines.
func short(text string) string {
	const most = 160
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}
