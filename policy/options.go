package policy

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A rule judges the arguments of one program.
type rule interface {
	judge(args []word) error
}

// anything is the rule for programs whose options all only read. max limits the
// number of arguments of programs that write to the next one; a negative max is
// no limit.
type anything struct{ max int }

func (r anything) judge(args []word) error {
	for _, a := range args {
		if err := place(a); err != nil {
			return err
		}
		if a.glob && r.max >= 0 {
			return errors.New("the number of files it is given is unknown")
		}
	}
	if r.max >= 0 && len(args) > r.max {
		return fmt.Errorf("more than %d arguments", r.max)
	}
	return nil
}

// options is the rule for programs of which only some options are allowed. It
// lists the allowed ones; abbreviations and other spellings are refused.
type options struct {
	flags  string // letters without a value, which may be combined
	values string // letters with a value, glued or as the next word
	long   string // names; with = if a value follows, glued or as the next word; with =? if only glued
	apart  bool   // letters are not parsed as usual: a value is never glued
	number bool   // -20 is an option too
	// globs marks that -g, --glob and --iglob take a pattern of file names.
	globs bool
	files int // maximal number of operands; negative: any number
	check func(files []word) error
}

func (r options) judge(args []word) error {
	long := strings.Fields(r.long)
	var files []word
	for i := 0; i < len(args); i++ {
		a := args[i]
		if err := place(a); err != nil {
			return err
		}
		switch {
		case a.text == "--" && !a.glob:
			files = append(files, args[i+1:]...)
			i = len(args)
			continue
		case !strings.HasPrefix(a.text, "-") || a.text == "-":
			files = append(files, a)
			continue
		case a.glob:
			return fmt.Errorf("it is unknown to which words %.80q expands", a.text)
		}
		takes, err := r.option(a.text, long)
		if err != nil {
			return err
		}
		if takes {
			i++
			if i >= len(args) || args[i].glob || !isValue(args[i].text) {
				return fmt.Errorf("the value of %.80q is unknown", a.text)
			}
			value := args[i]
			value.glob = value.glob || r.globs && strings.HasSuffix(strings.TrimSuffix(a.text, "lob"), "g")
			if err := place(value); err != nil {
				return err
			}
		} else if _, glued, _ := strings.Cut(a.text, "g"); r.globs && glued != "" {
			if err := place(word{glued, true}); err != nil {
				return err
			}
		}
	}
	return r.operands(files)
}

func (r options) operands(files []word) error {
	for _, f := range files {
		if err := place(f); err != nil {
			return err
		}
		// Most programs take a name that begins like an option as one. A
		// pattern that begins with a literal only matches names that begin with
		// that literal.
		if f.glob && (r.files >= 0 || strings.ContainsAny(f.text[:1], "*?[-")) {
			return fmt.Errorf("file names that match %.80q may be read as options", f.text)
		}
	}
	if r.files >= 0 && len(files) > r.files {
		return fmt.Errorf("more than %d arguments", r.files)
	}
	if r.check != nil {
		return r.check(files)
	}
	return nil
}

// option reports whether the next word is the value of this option.
func (r options) option(text string, long []string) (takes bool, err error) {
	unknown := fmt.Errorf("the option %.80q is not known only to read", text)
	if name, isLong := strings.CutPrefix(text, "--"); isLong {
		name, _, glued := strings.Cut(name, "=")
		switch {
		case slices.Contains(long, name):
			if glued {
				return false, unknown
			}
			return false, nil
		case slices.Contains(long, name+"="):
			return !glued, nil
		case slices.Contains(long, name+"=?"):
			return false, nil
		}
		return false, unknown
	}
	if r.number && isNumber(text[1:]) {
		return false, nil
	}
	for i, letter := range text[1:] {
		switch {
		case strings.ContainsRune(r.values, letter):
			last := i+2 == len(text)
			if r.apart && !last {
				return false, unknown
			}
			return last, nil // otherwise the rest is the value
		case !strings.ContainsRune(r.flags, letter):
			return false, unknown
		}
	}
	return false, nil
}

var negative = regexp.MustCompile(`^-[0-9]+[a-zA-Z]?$`)

// isValue reports whether a word can only be a value. It refuses words that
// look like an option: if the preceding option took no value, such a word would
// be an option itself.
func isValue(text string) bool { return !strings.HasPrefix(text, "-") || negative.MatchString(text) }

// place returns why a word, if it is a path, needs a question: devices do more
// than hold data, and .env files hold keys. A pattern is treated like the worst
// path that it can match.
func place(w word) error {
	text := w.text
	if name, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(name, "-") {
		text = value
		w.glob = w.glob || slices.Contains([]string{"--include", "--glob", "--iglob"}, name)
	}
	clean := path.Clean(text)
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		if clean != "/dev/null" && (clean == dir || strings.HasPrefix(clean, dir+"/")) {
			return protectedf("%.80q is not an ordinary file", text)
		}
	}
	parts := strings.Split(strings.ToLower(clean), "/")
	base := parts[len(parts)-1]
	switch i := slices.Index(parts, ".git"); {
	case isEnv(base):
		return protectedf("%.80q may hold secrets; if it does, it is hidden from commands, also if you allow this",
			text)
	case i >= 0 && i+1 < len(parts) && parts[i+1] == "objects":
		return protectedf("%.80q holds committed files, including protected ones", text)
	case !w.glob:
		return nil
	case finds(base, ".env", false) || finds(base, ".env.", true):
		return protectedf("%.80q may find files that hold secrets", text)
	}
	for i, part := range parts { // for example /d*/zero and ../../d*/zero
		above := i == 1 && parts[0] == "" || i > 0 && parts[i-1] == ".."
		if above && (finds(part, "dev", false) || finds(part, "proc", false) || finds(part, "sys", false)) {
			return protectedf("%.80q may match devices and other special files", text)
		}
	}
	return nil
}

// isEnv reports whether a name, in lower case, is that of a file with keys.
func isEnv(base string) bool { return base == ".env" || strings.HasPrefix(base, ".env.") }

// finds reports whether a shell pattern can match a name or, if more is true, a
// name that begins with it. Brackets count as matching anything. A leading dot
// is matched only by a dot.
func finds(pattern, name string, more bool) bool {
	switch {
	case name == "":
		return more || strings.Trim(pattern, "*") == "" || strings.HasPrefix(pattern, "[")
	case pattern == "":
		return false
	case name[0] == '.' && len(name) >= 4 && strings.HasPrefix(name, ".env"): // the leading dot
		return pattern[0] == '.' && finds(pattern[1:], name[1:], more)
	}
	switch pattern[0] {
	case '*':
		rest := strings.TrimLeft(pattern, "*") // collapse the stars, so that there are few branches
		return finds(rest, name, more) || finds("*"+rest, name[1:], more)
	case '?':
		return finds(pattern[1:], name[1:], more)
	case '[':
		return true
	}
	return pattern[0] == name[0] && finds(pattern[1:], name[1:], more)
}
