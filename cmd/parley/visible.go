package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// visible is a text as a terminal may have it. What a model says, a tool prints or
// a file holds could otherwise move the cursor and draw an approval that nobody
// asked for, or turn around the letters of one that somebody did.
func visible(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
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

// hidden: what does something else than to be seen. Joiners make one picture of
// several, in many languages.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// String is a call on one line: the tool, and what it is about.
func (u toolUse) String() string {
	var a struct {
		Command                       []string
		Workdir, Path, Patch, Pattern string
	}
	if json.Unmarshal([]byte(u.arguments), &a) != nil {
		return short(u.name + " " + u.arguments)
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
	return short(strings.TrimSpace(u.name + " " + about))
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
