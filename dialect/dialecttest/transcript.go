package dialecttest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"parley"
)

// sources matches the word that the comment of a transcript must contain.
var sources = regexp.MustCompile(`(?i)\b(document|design)\b`)

// play returns the transcript with the actual results in its expected sections.
func (d Dialect[V]) play(a *txtar.Archive) (*txtar.Archive, error) {
	p := &player[V]{d: d, played: &txtar.Archive{Comment: a.Comment}}
	if !sources.Match(a.Comment) {
		p.wrong.add(errors.New("the comment at the top does not say which clause of the document or the design " +
			"this proves"))
	}
	for _, f := range a.Files {
		if err := p.section(f); err != nil {
			p.wrong.add(fmt.Errorf("%s: %w", f.Name, err))
			p.played.Files = append(p.played.Files, f) // unchanged
		}
	}
	p.addMissing()
	if len(a.Files) == 0 {
		p.wrong.add(errors.New("there are no sections"))
	}
	return p.played, p.wrong.err()
}

type player[V any] struct {
	d      Dialect[V]
	played *txtar.Archive
	wrong  problems

	log    []parley.Event // log of the next frames section
	in     string         // messages of the next commands section
	awaits string         // section that must come next
}

func (p *player[V]) add(name, data string) {
	p.played.Files = append(p.played.Files, txtar.File{Name: name, Data: []byte(data)})
}

// addMissing adds the section that should have come next, if it is missing.
func (p *player[V]) addMissing() {
	switch p.awaits {
	case "frames":
		if text, err := p.frames(""); err == nil {
			p.add("frames", text)
		}
	case "commands":
		p.add("commands", p.commands())
	}
	p.awaits = ""
}

func (p *player[V]) section(f txtar.File) (err error) {
	kind, rest, _ := strings.Cut(f.Name, " ")
	if kind != p.awaits {
		p.addMissing()
	}
	text := string(f.Data)
	switch kind {
	case "log":
		if p.log, err = readLog(text); err == nil {
			err = p.d.consistent(p.log, everywhere(p.log)...)
		}
		if err == nil {
			p.awaits = "frames"
		}
	case "frames":
		p.awaits = ""
		text, err = p.frames(rest)
	case "in":
		p.in, p.awaits = text, "commands"
		if p.d.Decode == nil {
			err, p.awaits = fmt.Errorf("%s takes no messages", p.d.Name), ""
		}
	case "commands":
		if p.awaits != kind {
			return errors.New("no section in stands right before it")
		}
		p.awaits = ""
		text = p.commands()
	default:
		return errors.New("no such section")
	}
	if err == nil {
		p.add(f.Name, text)
	}
	return err
}

// frames returns the frames that a connection gets for the log.
func (p *player[V]) frames(options string) (string, error) {
	if p.log == nil {
		return "", errors.New("no log stands before it")
	}
	name, log := "", p.log
	var starts []int
	for _, word := range strings.Fields(options) {
		key, at, ok := strings.Cut(word, "=")
		if !ok {
			name = word
			continue
		}
		i, err := p.index(at)
		switch {
		case err != nil:
			return "", err
		case key == "after":
			starts = p.d.starts(p.log[:i+1])
			log = p.log[starts[0]:]
		case key == "from" && slices.Contains(starts, i):
			log = p.log[i:]
		default:
			return "", fmt.Errorf("a connection cannot start %s", word)
		}
	}
	view, ok := p.d.Views[name]
	if !ok {
		return "", fmt.Errorf("%s has no view %q", p.d.Name, name)
	}
	shown, err := p.d.show(view, log)
	var b strings.Builder
	for _, frames := range shown {
		for _, frame := range frames {
			b.WriteString(frame + "\n")
		}
	}
	return b.String(), err
}

// index returns the index of a seq in the log, or of a position if the log has
// several sessions; -1 stands for the place before the first event.
func (p *player[V]) index(seq string) (int, error) {
	n, err := strconv.Atoi(seq)
	i := n - int(p.log[0].Seq)
	if len(apart(p.log)) > 1 {
		i = n - int(p.log[0].Position)
	}
	if err != nil || i < -1 || i >= len(p.log) {
		return 0, fmt.Errorf("%s is not of the log", seq)
	}
	return i, nil
}

// commands returns the decoded messages of a client.
func (p *player[V]) commands() string {
	var b strings.Builder
	for line := range strings.Lines(p.in) {
		if line = strings.TrimSuffix(line, "\n"); !forReader(line) {
			decoded := p.d.Decode([]byte(line))
			p.wrong.add(decoded.check())
			line = decoded.String()
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// compare reports where a transcript differs from the actual results.
func compare(expected, played *txtar.Archive) error {
	if len(expected.Files) != len(played.Files) {
		return errors.New("a log has no frames or an in no commands after it; -update adds them")
	}
	var p problems
	for i, want := range expected.Files {
		got := played.Files[i]
		if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
			p.add(fmt.Errorf("section %d, %s: (-expected +got, -update accepts it)\n%s", i+1, want.Name, diff))
		}
	}
	return p.err()
}

func lines(f txtar.File) []string { return strings.Split(string(f.Data), "\n") }
