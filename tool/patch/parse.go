package patch

import (
	"regexp"
	"strings"
)

const (
	begin  = "*** Begin Patch"
	end    = "*** End Patch"
	atEnd  = "*** End of File"
	moveTo = "*** Move to:"
)

var (
	headings = map[string]Kind{"*** Add File:": Add, "*** Delete File:": Delete, "*** Update File:": Update}
	heredoc  = regexp.MustCompile(`^(?:apply_patch\s+)?<<-?\s*(?:'(\w+)'|"(\w+)"|(\w+))$`)
	unified  = regexp.MustCompile(`^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@`)
)

// Parse parses a patch. It removes a wrapping here-document. The end marker may
// be missing: a truncated patch would not have been valid JSON.
func Parse(text string) (Patch, error) {
	p := parser{lines: strings.Split(text, "\n"), first: 1}
	p.unwrap()
	if len(p.lines) == 0 {
		return nil, wrong(1, "Patch must start with %s", begin)
	}
	if strings.TrimSpace(p.lines[0]) != begin {
		return nil, wrong(p.first, "Patch must start with %s", begin)
	}
	if strings.HasSuffix(p.lines[0], "\r") { // the whole patch has CRLF line endings
		for i, l := range p.lines {
			p.lines[i] = strings.TrimSuffix(l, "\r")
		}
	}
	if last := len(p.lines) - 1; strings.TrimSpace(p.lines[last]) == end {
		p.lines = p.lines[:last]
	}
	p.at = 1
	var patch Patch
	for p.more() {
		if strings.TrimSpace(p.line()) == "" {
			p.at++
			continue
		}
		s, err := p.section()
		if err != nil {
			return nil, err
		}
		patch = append(patch, s)
	}
	if len(patch) == 0 {
		return nil, wrong(p.first, "The patch is empty: it has no Add, Delete or Update File section")
	}
	if err := patch.once(); err != nil {
		return nil, err
	}
	return patch, nil
}

type parser struct {
	lines []string
	at    int // index in lines
	first int // the number of lines[0]
}

func (p *parser) more() bool   { return p.at < len(p.lines) }
func (p *parser) line() string { return p.lines[p.at] }
func (p *parser) number() int  { return p.first + p.at }

// unwrap removes blank lines around the patch, and the here-document around it.
func (p *parser) unwrap() {
	p.trim()
	if len(p.lines) == 0 {
		return
	}
	m := heredoc.FindStringSubmatch(strings.TrimSpace(p.lines[0]))
	if m == nil {
		return
	}
	if last := len(p.lines) - 1; last > 0 && strings.TrimSpace(p.lines[last]) == m[1]+m[2]+m[3] {
		p.lines = p.lines[:last]
	}
	p.lines, p.first = p.lines[1:], p.first+1
	p.trim()
}

func (p *parser) trim() {
	for len(p.lines) > 0 && strings.TrimSpace(p.lines[0]) == "" {
		p.lines, p.first = p.lines[1:], p.first+1
	}
	for len(p.lines) > 0 && strings.TrimSpace(p.lines[len(p.lines)-1]) == "" {
		p.lines = p.lines[:len(p.lines)-1]
	}
}

func (p *parser) section() (Section, error) {
	s := Section{Line: p.number()}
	heading := strings.TrimSpace(p.line())
	for prefix, kind := range headings {
		if rest, ok := strings.CutPrefix(heading, prefix); ok {
			s.Kind, s.Path = kind, strings.TrimSpace(rest)
		}
	}
	switch {
	case s.Kind != "" && s.Path == "":
		return s, wrong(s.Line, "%s File Error: no path is given", s.Kind)
	case s.Kind == "" && heading == end:
		return s, wrong(s.Line, "There is more after %s", end)
	case s.Kind == "" && p.at == len(p.lines)-1 && strings.HasPrefix(end, heading):
		return s, wrong(s.Line, "Missing End Patch")
	case s.Kind == "":
		return s, wrong(s.Line, "Unknown Line: %.200s", p.line())
	}
	p.at++
	switch s.Kind {
	case Add:
		s.Added = p.added()
	case Update:
		return s, p.update(&s)
	}
	return s, nil
}

func (p *parser) added() string {
	var b strings.Builder
	for ; p.more() && strings.HasPrefix(p.line(), "+"); p.at++ {
		b.WriteString(p.line()[1:])
		b.WriteByte('\n')
	}
	return b.String()
}

func (p *parser) update(s *Section) error {
	if p.more() {
		if to, ok := strings.CutPrefix(strings.TrimSpace(p.line()), moveTo); ok {
			if s.To = strings.TrimSpace(to); s.To == "" {
				return wrong(p.number(), "Update File Error: no path to move to is given")
			}
			p.at++
		}
	}
	for p.skipBlanks(); p.more() && !isMarker(p.line()); p.skipBlanks() {
		h, err := p.hunk()
		if err != nil {
			return err
		}
		h.Number = len(s.Hunks) + 1
		s.Hunks = append(s.Hunks, h)
	}
	if len(s.Hunks) == 0 && s.To == "" {
		return wrong(s.Line, "Update File Error: nothing is to be changed in %s", s.Path)
	}
	return nil
}

// skipBlanks skips blank lines before a hunk's header or a marker. Other blank
// lines belong to a hunk without a header.
func (p *parser) skipBlanks() {
	at := p.at
	for at < len(p.lines) && strings.TrimSpace(p.lines[at]) == "" {
		at++
	}
	if at == len(p.lines) || isMarker(p.lines[at]) || strings.HasPrefix(p.lines[at], "@@") {
		p.at = at
	}
}

func isMarker(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "***") }

func (p *parser) hunk() (Hunk, error) {
	h := Hunk{Line: p.number()}
	for ; p.more() && strings.HasPrefix(p.line(), "@@"); p.at++ {
		header := strings.TrimSuffix(p.line(), "\r")
		if unified.MatchString(header) {
			continue // line numbers of a model are unreliable
		}
		if context := strings.TrimPrefix(header[2:], " "); strings.TrimSpace(context) != "" {
			h.Contexts = append(h.Contexts, context)
		}
	}
	for ; p.more(); p.at++ {
		line := strings.TrimSuffix(p.line(), "\r")
		switch {
		case line == "":
			h.Lines = append(h.Lines, Line{' ', ""})
		case strings.ContainsRune(" +-", rune(line[0])):
			h.Lines = append(h.Lines, Line{line[0], line[1:]})
		case strings.TrimRight(line, " \t") == atEnd:
			h.AtEnd = true
			p.at++
			return h, h.check()
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "***"):
			return h, h.check()
		case strings.HasPrefix(line, `\ No newline`): // as in unified diffs
		default:
			return h, wrong(p.number(), "Unknown Line: %.200s", line)
		}
	}
	return h, h.check()
}

func (h Hunk) check() error {
	if len(h.Lines) == 0 {
		return wrong(h.Line, "The hunk is empty: it needs lines that begin with a space, - or +")
	}
	return nil
}
