package policy

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variants returns the languages that may interpret a script: sh is often bash,
// and zsh parses some of bash's syntax differently. The script must be safe in
// all of them.
func variants(shell string) []syntax.LangVariant {
	switch shell {
	case "bash":
		return []syntax.LangVariant{syntax.LangBash}
	case "zsh":
		return []syntax.LangVariant{syntax.LangZsh, syntax.LangBash}
	}
	return []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash}
}

// script judges every simple command of a script.
func (j *judging) script(shell, text string, depth int) error {
	var files []*syntax.File
	for _, variant := range variants(shell) {
		file, err := parse(text, variant)
		if err != nil {
			j.commands = append(j.commands, []string{shell, "-c", text})
			return fmt.Errorf("the script cannot be parsed: %w", err)
		}
		files = append(files, file)
	}
	var verdict error
	for i, file := range files {
		s := scripted{judging: judging{Place: j.Place, similar: j.similar}, depth: depth, patterns: shell != "zsh"}
		s.stmts(file.Stmts)
		if i == 0 {
			j.commands, j.writes = append(j.commands, s.commands...), append(j.writes, s.writes...)
		}
		verdict, j.covered = graver(verdict, s.why), append(j.covered, s.covered...)
	}
	if verdict == nil && len(j.commands) == 0 {
		return errors.New("the script is empty")
	}
	return verdict
}

// parse parses a script. If the parser panics, parse returns an error, so that
// the server keeps running and the command asks.
func parse(text string, variant syntax.LangVariant) (file *syntax.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, errors.New("the parser gave up")
		}
	}()
	switch {
	case strings.ContainsAny(text, "\x00\r"):
		return nil, errors.New("it holds control characters")
	case strings.Contains(text, "\\\n"):
		// After it, the parser continues a comment; shells do not.
		return nil, errors.New("a backslash at the end of a line")
	}
	file, err = syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(text), "")
	if e := (syntax.ParseError{}); errors.As(err, &e) {
		err = errors.New(e.Text)
	}
	return file, err
}

// scripted walks a script. A node of an unknown type makes the script unsafe,
// but is still searched for commands to show.
type scripted struct {
	judging
	depth    int
	patterns bool // patterns work as in sh
	why      error
}

func (s *scripted) doubt(format string, args ...any) {
	s.why = graver(s.why, fmt.Errorf(format, args...))
}

func (s *scripted) stmts(all []*syntax.Stmt) {
	for _, st := range all {
		s.stmt(st)
	}
}

func (s *scripted) stmt(st *syntax.Stmt) {
	if st.Background || st.Coprocess || st.Disown {
		s.doubt("a part would continue in the background")
	}
	for _, r := range st.Redirs {
		s.redirect(r)
	}
	switch c := st.Cmd.(type) {
	case nil:
		s.doubt("a redirection without a command")
	case *syntax.CallExpr:
		s.call(c)
	case *syntax.BinaryCmd:
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt && c.Op != syntax.Pipe {
			s.doubt("the operator %s", c.Op)
		}
		s.stmt(c.X)
		s.stmt(c.Y)
	default:
		s.doubt("it is more than a list of commands")
		s.search(c)
	}
}

// search finds the simple commands within a node that is not judged.
func (s *scripted) search(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			s.call(n)
			return false
		case *syntax.Redirect:
			s.redirect(n)
			return false
		}
		return true
	})
}

func (s *scripted) call(c *syntax.CallExpr) {
	if len(c.Assigns) > 0 {
		s.doubt("it sets a variable")
		for _, a := range c.Assigns {
			s.search(a)
		}
	}
	if len(c.Args) == 0 {
		return
	}
	var words []word
	known := true
	for _, arg := range c.Args {
		w, err := s.word(arg)
		if err != nil {
			s.doubt("%w", err)
			known = false
			w.text = written(arg)
			for _, part := range arg.Parts { // because substitutions run commands too
				s.search(part)
			}
		}
		words = append(words, w)
	}
	if !known {
		s.commands = append(s.commands, texts(words))
		return
	}
	if err := s.command(words, s.depth+1); err != nil {
		s.doubt("%w", err)
	}
}

// redirect accepts redirections that write nothing: to and from /dev/null, from
// a file, and from one output to the other.
func (s *scripted) redirect(r *syntax.Redirect) {
	if r.N != nil && !isNumber(r.N.Value) {
		s.doubt("a redirection that sets a variable")
	}
	target, err := s.word(r.Word)
	if err != nil || target.glob {
		target = word{text: written(r.Word)}
		s.doubt("a redirection with an unknown target")
		s.search(r.Word)
	}
	writes := false
	switch r.Op {
	case syntax.RdrIn:
		if err := place(target); err != nil {
			s.doubt("%w", err)
		}
	case syntax.DplOut:
		if target.text != "1" && target.text != "2" {
			writes = true // a file unless it is a number
		}
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll:
		writes = target.text != "/dev/null"
	case syntax.RdrInOut, syntax.RdrClob, syntax.AppAll, syntax.AppClob, syntax.RdrAllClob, syntax.AppAllClob:
		writes = true
	default:
		s.doubt("the redirection %s", r.Op)
	}
	if writes {
		s.writes = append(s.writes, target.text)
		s.doubt("it writes to %.80q", target.text)
	}
	if r.Hdoc != nil {
		s.search(r.Hdoc)
	}
}

// word returns the word that the program will get, if it is known without
// running anything.
func (s *scripted) word(w *syntax.Word) (word, error) {
	var out word
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text, glob, err := s.literal(p.Value, out.text)
			if err != nil {
				return out, err
			}
			if glob && len(w.Parts) > 1 {
				return out, errors.New("a pattern with quotes in it")
			}
			out.text, out.glob = out.text+text, glob
		case *syntax.SglQuoted:
			if p.Dollar {
				return out, errors.New("quoting with $'…'")
			}
			out.text += p.Value
		case *syntax.DblQuoted:
			inner, err := doubleQuoted(p)
			if err != nil {
				return out, err
			}
			out.text += inner
		default:
			return out, errors.New("a word that the shell makes up when it runs")
		}
	}
	return out, nil
}

// literal interprets text outside of quotes. before is the part of the word in
// front of it.
func (s *scripted) literal(raw, before string) (text string, glob bool, err error) {
	unknown := fmt.Errorf("it is unknown how the shell expands %.80q", raw)
	if raw == "[" && before == "" { // the program [
		return raw, false, nil
	}
	escaped, quoted := false, false
	for _, r := range raw {
		at := before + text
		switch {
		case escaped && (r <= ' ' || r >= 0x7f || isPlain(r)):
			return "", false, unknown
		case escaped:
			escaped, quoted = false, true
		case r == '\\':
			escaped = true
			continue
		case isPlain(r) && (r != '=' || at != ""): // zsh replaces a leading = and a name by the program's path
		case (r == '~' || r == '^') && s.patterns && at != "" && !strings.ContainsAny(at[len(at)-1:], ":="):
		case strings.ContainsRune("*?[]", r) && s.patterns:
			glob = true
		default:
			return "", false, unknown
		}
		text += string(r)
	}
	if escaped || glob && quoted {
		return "", false, unknown
	}
	return text, glob && raw != "]", nil
}

// isPlain reports whether every shell takes a character literally, unquoted and
// in any position.
func isPlain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./:,@%+-=", r)
}

func doubleQuoted(q *syntax.DblQuoted) (string, error) {
	if q.Dollar {
		return "", errors.New(`quoting with $"…"`)
	}
	var b strings.Builder
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return "", errors.New("a word that the shell makes up when it runs")
		}
		escaped := false
		for _, r := range lit.Value {
			switch {
			case escaped && r == '\n':
				escaped = false
			case escaped:
				if !strings.ContainsRune("$`\"\\", r) {
					b.WriteRune('\\')
				}
				b.WriteRune(r)
				escaped = false
			case r == '\\':
				escaped = true
			default:
				b.WriteRune(r)
			}
		}
		if escaped {
			return "", errors.New("a backslash with nothing behind it")
		}
	}
	return b.String(), nil
}

// written returns a word as it is in the script, for people.
func written(w *syntax.Word) string {
	var b strings.Builder
	if syntax.NewPrinter().Print(&b, w) != nil {
		return "…"
	}
	return b.String()
}
