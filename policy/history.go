package policy

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The history of a project may contain content that its files no longer show:
// keys that were once committed, and the instructions of agents. The sandbox
// hides the files by name, but it cannot hide the objects of git. So a command
// that prints committed files asks, unless it is limited to files that are not
// protected.
//
// Names, numbers, messages and hashes of commits are not contents: git log, git
// diff --stat and git ls-files run without asking.

// protectedNames lists folders that hold more than a project's own files. The
// caller of Judge adds others.
var protectedNames = []string{"agents", ".git"}

// history returns why a git command may print protected files, or nil.
func (j *judging) history(args []string) error {
	dir, name, args, err := gitWords(args)
	if err != nil || name == "" {
		return err
	}
	h := reading{protected: j.names(), dir: path.Join(j.Dir, dir), name: name}
	if name == "stash" || name == "reflog" {
		if len(args) == 0 {
			return nil // a list
		}
		h.name, args = name+" "+args[0], args[1:]
	}
	h.sort(args)
	return h.judge()
}

// names returns the names of all protected folders.
func (j *judging) names() []string { return slices.Concat(j.Protected, protectedNames) }

// enter refuses to change into a protected folder, where git could then run.
func (j *judging) enter(args []string) error {
	h := reading{protected: j.names()}
	for _, dir := range args {
		if h.isProtected(dir) {
			return protectedf("%.80q is protected", dir)
		}
	}
	return nil
}

// A reading is a git command, prepared to find out whether it prints committed files.
type reading struct {
	protected []string // names of folders
	dir, name string
	options   []string
	before    []string // arguments before --
	after     []string // arguments after --
}

func (h *reading) sort(args []string) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			h.after = args[i+1:]
			return
		case strings.HasPrefix(a, "-") && a != "-":
			h.options = append(h.options, a)
			if h.name == "grep" && slices.Contains(grepValues, a) { // skip its value, which is not a pattern
				i++
			}
		default:
			h.before = append(h.before, a)
		}
	}
}

var (
	printsPatch = regexp.MustCompile(`^(-[pucW]|-U.*|-L.*|--(patch|unified|cc|diff-merges|word-diff|word-diff-regex|` +
		`color-words|check|function-context|submodule|patch-with-stat)(=.*)?)$`)
	printsNames = regexp.MustCompile(`^(-s|--(stat|numstat|shortstat|dirstat|summary|name-only|name-status|raw|` +
		`compact-summary|no-patch|quiet)(=.*)?)$`)
	asksType   = regexp.MustCompile(`^-[tse]$`) // of cat-file
	isVerbose  = regexp.MustCompile(`^(-v+|--verbose)$`)
	commitName = regexp.MustCompile(`^([A-Za-z0-9_./@-]+?)(@\{[0-9a-z. ]+\})?([~^][0-9]*)*$`)
	someHash   = regexp.MustCompile(`(^|-g)[0-9a-fA-F]{4,}$`) // including the form that git describe prints
	plainStart = regexp.MustCompile(`^[A-Za-z0-9._]`)
	stage      = regexp.MustCompile(`^[0-3]:`)
)

// sources lists file extensions and names that mark a path as a file, not a folder.
var sources = strings.Fields("go mod sum c h cc cpp cxx hpp hh rs py pyi rb js jsx mjs cjs ts tsx mts cts vue svelte " +
	"java kt kts scala swift mm cs fs vb php pl pm lua jl sh bash zsh fish ps1 bat sql md rst txt adoc html htm css scss " +
	"sass less json jsonc yaml yml toml ini cfg conf xml svg csv tsv proto graphql lock tf hcl nix el clj cljs ex exs " +
	"erl hs ml mli dart zig tex bib ipynb gradle cmake mk Makefile Dockerfile LICENSE README Gemfile Rakefile")

// isFile reports whether a path after -- names one file.
func isFile(name string) bool {
	base := path.Base(name)
	return !strings.ContainsAny(name, `*?[\:`) && slices.Contains(sources, base[strings.LastIndex(base, ".")+1:])
}

// grepValues lists options of git grep whose value is the next word.
var grepValues = strings.Fields("-e -A -B -C -m --after-context --before-context --context --max-count " +
	"--max-depth --threads")

var (
	errContents = protectedf("it may print committed files that are protected, such as .env or agent files; " +
		"limit it to files behind --, or to names with --stat")
	errIndex = protectedf("it may print committed or staged versions of files, including protected ones")
)

func (h *reading) has(pattern *regexp.Regexp) bool {
	return slices.ContainsFunc(h.options, pattern.MatchString)
}

func (h *reading) judge() error {
	switch h.name {
	case "show":
		if err := h.objects(); err != nil {
			return err
		}
		if files := h.blobs(); files == len(h.before) && files > 0 { // only files, which objects has checked
			return nil
		}
		return h.patches(!h.has(printsNames))
	case "diff":
		if slices.Contains(h.options, "--no-index") { // compares files on disk, which the sandbox protects
			return nil
		}
		return h.patches(!h.has(printsNames))
	case "diff-tree", "diff-index", "diff-files", "log", "whatchanged", "rev-list", "shortlog", "reflog show":
		return h.patches(false)
	case "stash list", "stash show": // these pass on arguments after -- too, and print patches without --stat
		named := h.name == "stash list" || h.has(printsNames) || len(h.options) == 0
		if h.after != nil || !named {
			return errContents
		}
		return h.patches(false)
	case "blame":
		return h.blame()
	case "grep":
		return h.grep()
	case "cat-file":
		typed := len(h.before) > 1 && slices.Contains([]string{"commit", "tree", "tag"}, h.before[0])
		if typed || h.has(asksType) {
			return nil
		}
		return h.objects()
	case "status":
		if h.has(isVerbose) {
			return errIndex
		}
	}
	return nil
}

// patches judges commands that print differences, either by default or because of an
// option.
func (h *reading) patches(byDefault bool) error {
	if !byDefault && !h.has(printsPatch) {
		return nil
	}
	if len(h.after) == 0 || slices.Contains(h.options, "--follow") || slices.ContainsFunc(h.options, isRange) {
		return errContents
	}
	for _, rev := range h.before { // git diff BLOB -- FILE compares any blob
		if mayBeBlob(rev) {
			return errContents
		}
	}
	for _, name := range h.after { // a folder may contain any file
		if h.isProtected(name) || !isFile(name) {
			return errContents
		}
	}
	return nil
}

// isRange reports whether an option is -L, which names a file of its own.
func isRange(option string) bool { return strings.HasPrefix(option, "-L") }

// objects judges arguments that may name a file by REV:PATH, or any object by
// its hash.
func (h *reading) objects() error {
	for _, object := range h.before {
		if file, isFile := fileOf(object); mayBeBlob(object) && (!isFile || h.isProtected(file)) {
			return errContents
		}
	}
	return nil
}

// blobs counts the arguments that name files, as REV:PATH.
func (h *reading) blobs() (n int) {
	for _, object := range h.before {
		if _, isFile := fileOf(object); isFile {
			n++
		}
	}
	return n
}

// mayBeBlob returns false if the argument is clearly a commit, or a range of two: a
// branch or HEAD, or a commit relative to one.
func mayBeBlob(object string) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(object, "...", ".."), "..") {
		m := commitName.FindStringSubmatch(strings.TrimPrefix(part, "^"))
		if part != "" && (m == nil || someHash.MatchString(m[1])) {
			return true
		}
	}
	return false
}

// fileOf returns the file that REV:PATH or :PATH names, if the syntax is unambiguous.
func fileOf(object string) (file string, ok bool) {
	rev, file, ok := strings.Cut(object, ":")
	if rev == "" {
		file = stage.ReplaceAllString(file, "")
		ok = ok && plainStart.MatchString(file) // :/ searches messages, :! and :( begin a pattern
	}
	return file, ok && !strings.ContainsAny(rev, "{}") && !strings.Contains(file, ":")
}

// blame checks all arguments, as git blame prints the last file named.
func (h *reading) blame() error {
	for _, name := range slices.Concat(h.before, h.after) {
		if h.isProtected(name) || strings.Contains(name, ":") {
			return errContents
		}
	}
	return nil
}

// grep searches files on disk, which the sandbox protects, except with commits
// as arguments or with --cached. An argument before -- may be a commit.
func (h *reading) grep() error {
	if slices.Contains(h.options, "--cached") {
		return errIndex
	}
	patterns := 1
	if slices.Contains(h.options, "-e") {
		patterns = 0
	}
	for _, name := range h.before {
		switch {
		case patterns > 0:
			patterns--
		case strings.Contains(name, ":") || name != "." && !strings.HasPrefix(name, "./") &&
			!strings.HasSuffix(name, "/"):
			return protectedf("%.80q may be a commit, and files in it may be protected; name folders as in %s/", name,
				name)
		}
	}
	return nil
}

// isProtected judges a path by its text: .env files, and protected folders by
// name, at any depth.
func (h *reading) isProtected(name string) bool {
	parts := strings.Split(strings.ToLower(path.Join(h.dir, name)), "/")
	return isEnv(parts[len(parts)-1]) ||
		slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(h.protected, part) })
}

// gitWords splits the arguments of git into the folder of -C, the subcommand
// and the remaining arguments.
func gitWords(args []string) (dir, name string, rest []string, err error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "--no-pager" || args[0] == "-P" || args[0] == "--no-optional-locks":
			args = args[1:]
		case args[0] == "-C" && len(args) > 1 && !strings.HasPrefix(args[1], "-"):
			dir = path.Join(dir, args[1])
			args = args[2:]
		case args[0] == "--version" && len(args) == 1:
			return "", "", nil, nil
		default:
			return "", "", nil, fmt.Errorf("the option %.80q is not known only to read", args[0])
		}
	}
	if len(args) == 0 {
		return "", "", nil, errors.New("it has no subcommand")
	}
	return dir, args[0], args[1:], nil
}
