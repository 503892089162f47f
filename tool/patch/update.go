package patch

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Update returns the content of a file after an update section. Untouched lines
// keep every byte, including their ending. New lines get the ending of most
// lines of the file.
func (s Section) Update(content string) (string, error) {
	work := maxWork
	updated, err := s.update(split(content, false), &work)
	if err != nil && work > 0 && strings.Contains(strings.ReplaceAll(content, "\r\n", ""), "\r") {
		// A return within a line may be meant as a line ending.
		if again, err := s.update(split(content, true), &work); err == nil {
			return again, nil
		}
	}
	return updated, err
}

// maxWork limits how many lines are compared before a patch is refused. A file
// and a patch with many equal lines could keep a server busy for days.
const maxWork = 20_000_000

var errWork = errors.New("too many lines are alike")

// A fileLine is a line with its ending, which is empty if the file ends without
// a newline.
type fileLine struct{ text, ending string }

func split(content string, returns bool) []fileLine {
	var lines []fileLine
	for content != "" {
		at, n := strings.IndexByte(content, '\n'), 1
		if at > 0 && content[at-1] == '\r' {
			at, n = at-1, 2
		}
		if returns {
			if r := strings.IndexByte(content, '\r'); r >= 0 && (at < 0 || r < at) {
				at, n = r, 1
			}
		}
		if at < 0 {
			return append(lines, fileLine{text: content})
		}
		lines = append(lines, fileLine{content[:at], content[at : at+n]})
		content = content[at+n:]
	}
	return lines
}

// usual returns the most frequent line ending; in a tie, the first.
func usual(lines []fileLine) string {
	count := map[string]int{}
	for _, l := range lines {
		count[l.ending]++
	}
	best, most := "\n", 0
	for _, l := range lines {
		if n := count[l.ending]; l.ending != "" && n > most {
			best, most = l.ending, n
		}
	}
	return best
}

// An edit is a hunk with its place in the file.
type edit struct {
	at int // index of the line before which it begins
	Hunk
}

func (s Section) update(lines []fileLine, work *int) (string, error) {
	f := finder{lines: lines, work: work}
	var edits []edit
	pos := 0
	for _, h := range s.Hunks {
		for _, context := range h.Contexts {
			at, err := f.find([]string{context}, pos, false)
			if err != nil {
				return "", wrong(h.Line, "Update File Error: %s: hunk %d: %v after line %d of the file:\n%.200s",
					s.Path, h.Number, err, pos, context)
			}
			pos = at + 1
		}
		old := h.old()
		if len(old) == 0 {
			at := len(lines)
			if len(h.Contexts) > 0 && !h.AtEnd {
				at = pos
			}
			edits = append(edits, edit{at, h})
			continue
		}
		at, err := f.find(old, pos, h.AtEnd)
		if short := h.withoutBlankEnd(); err == errNowhere && len(short.old()) > 0 && len(short.Lines) < len(h.Lines) {
			h, old = short, short.old()
			at, err = f.find(old, pos, h.AtEnd)
		}
		if err != nil {
			return "", wrong(h.Line, "Update File Error: %s: hunk %d: %v after line %d of the file%s:\n%s", s.Path,
				h.Number, err, pos, f.earlier(old, pos), excerpt(old))
		}
		edits = append(edits, edit{at, h})
		pos = at + len(old)
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	return render(lines, edits), nil
}

func render(lines []fileLine, edits []edit) string {
	var b strings.Builder
	usual, open := usual(lines), false // open: the last line has no ending yet
	put := func(l fileLine) {
		if open {
			b.WriteString(usual)
		}
		b.WriteString(l.text)
		b.WriteString(l.ending)
		open = l.ending == ""
	}
	next := 0
	for _, e := range edits {
		for ; next < e.at; next++ {
			put(lines[next])
		}
		for _, l := range e.Lines {
			switch l.Op {
			case '+':
				put(fileLine{l.Text, usual})
			case ' ':
				put(lines[next])
				next++
			case '-':
				next++
			}
		}
	}
	for ; next < len(lines); next++ {
		put(lines[next])
	}
	return b.String()
}

// A finder finds lines of a file, first exactly, then less and less strictly.
type finder struct {
	lines []fileLine
	forms [len(strictness)][]string // the lines in the form of each level of strictness
	work  *int                      // how many comparisons are left
}

// strictness lists the forms in which lines are compared, the strictest first.
var strictness = [...]func(string) string{
	func(s string) string { return s },
	fold,
	func(s string) string { return strings.TrimRightFunc(fold(s), unicode.IsSpace) },
	func(s string) string { return strings.TrimSpace(fold(s)) },
}

var errNowhere = errors.New("these lines are not found")

// find returns where the wanted lines begin, searching from a line on.
func (f *finder) find(want []string, from int, atEnd bool) (int, error) {
	for i, form := range strictness {
		if f.forms[i] == nil {
			f.forms[i] = make([]string, len(f.lines))
			for n, l := range f.lines {
				f.forms[i][n] = form(l.text)
			}
		}
		sought := make([]string, len(want))
		for n, w := range want {
			sought[n] = form(w)
		}
		last := len(f.lines) - len(want)
		if atEnd && last >= from && f.same(f.forms[i][last:], sought) {
			return last, nil
		}
		for at := from; at <= last; at++ {
			if f.same(f.forms[i][at:], sought) {
				return at, nil
			}
			if *f.work <= 0 {
				return 0, errWork
			}
		}
	}
	return 0, errNowhere
}

func (f *finder) same(lines, want []string) bool {
	for i, w := range want {
		*f.work--
		if lines[i] != w || *f.work <= 0 {
			return false
		}
	}
	return true
}

// earlier returns a hint if the lines are found only before the start of the
// search.
func (f *finder) earlier(want []string, from int) string {
	if at, err := f.find(want, 0, false); err == nil && at < from {
		return ", but before it; hunks come in the order of the file"
	}
	return ""
}

// excerpt returns enough of some lines to recognize them.
func excerpt(lines []string) string {
	const most = 12
	more := ""
	if len(lines) > most {
		lines, more = lines[:most], "\n…"
	}
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if r := []rune(l); len(r) > 200 {
			l = string(r[:200]) + "…"
		}
		b.WriteString(l)
	}
	return b.String() + more
}

// fold replaces typographic dashes, quotes and spaces by those of a keyboard,
// and composes characters. It returns text that is not UTF-8 unchanged, because
// all its invalid bytes would become equal.
func fold(s string) string {
	if isASCII(s) || !utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2015', '\u2212':
			return '-'
		case '\u2018', '\u2019', '\u201a', '\u201b':
			return '\''
		case '\u201c', '\u201d', '\u201e', '\u201f', '\u00ab', '\u00bb':
			return '"'
		case '\u00a0', '\u2002', '\u2003', '\u2004', '\u2005', '\u2006', '\u2007', '\u2008', '\u2009', '\u200a',
			'\u202f', '\u205f', '\u3000':
			return ' '
		}
		return r
	}, norm.NFC.String(s))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
