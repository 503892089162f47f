package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A gitRule lists the options of a subcommand. It counts values in separate
// words as arguments. That is correct, because arguments of these subcommands
// are harmless.
type gitRule struct {
	short *regexp.Regexp // matches whole words
	long  string         // names, alone or followed by =
	files int            // maximal number of arguments; negative: any number
	// list names options that make the arguments a filter. Without one of them,
	// an argument is the name of a branch or tag to make.
	list []string
}

const (
	diffLong = " patch no-patch stat numstat shortstat dirstat summary name-only name-status raw unified color no-color color-words word-diff " +
		"ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines minimal patience histogram diff-algorithm diff-filter find-renames " +
		"find-copies find-copies-harder no-renames check full-index abbrev no-abbrev relative text no-ext-diff no-textconv no-prefix function-context " +
		"exit-code quiet cached staged merge-base pickaxe-all pickaxe-regex compact-summary inter-hunk-context submodule ignore-submodules no-index " +
		"src-prefix dst-prefix indent-heuristic anchored word-diff-regex stat-width stat-count patch-with-stat ita-visible-in-index "
	logLong = diffLong +
		" oneline graph decorate no-decorate decorate-refs all branches tags remotes merges no-merges first-parent reverse date-order " +
		"topo-order author-date-order format pretty abbrev-commit no-abbrev-commit date author committer grep all-match invert-grep since until after before max-count " +
		"skip follow left-right cherry-pick cherry cherry-mark no-walk walk-reflogs full-history simplify-by-decoration boundary ancestry-path count " +
		"parents children relative-date show-pulls not source regexp-ignore-case extended-regexp fixed-strings perl-regexp notes no-notes " +
		"remove-empty max-parents min-parents numbered email group diff-merges cc root always objects timestamp left-only right-only "
)

var (
	diffShort = regexp.MustCompile(`^-([puswbaRzWBDcmtr]|U[0-9]+|M[0-9]*%?|C[0-9]*%?|[SG].*|l[0-9]+)$`)
	logShort  = regexp.MustCompile(
		`^-([0-9]+|n[0-9]*|[puswbaRzWBDcmtrgiEFPneS]|sn|sne|ns|nse|U[0-9]+|M[0-9]*%?|C[0-9]*%?|[SG].*|L.*)$`)
	letters    = regexp.MustCompile(`^-[a-zA-Z]+[0-9]*$`) // for subcommands of which all letters are harmless
	noShort    = regexp.MustCompile(`^$`)
	gitGrep    = regexp.MustCompile(`^-([niIlLwcEFPhHrvopWaqzs]+|[ABCm][0-9]*|[0-9]+|e)$`)
	statusOnly = regexp.MustCompile(`^-([sbvuz]|sb|vv|u(no|all|normal))$`)
)

var gitRules = map[string]gitRule{
	"status": {short: statusOnly, long: "short branch porcelain long verbose untracked-files ignored " +
		"ignore-submodules show-stash ahead-behind no-ahead-behind renames no-renames column no-column", files: many},
	"diff":        {short: diffShort, long: diffLong, files: many},
	"diff-tree":   {short: diffShort, long: diffLong + " no-commit-id root pretty", files: many},
	"diff-index":  {short: diffShort, long: diffLong, files: many},
	"diff-files":  {short: diffShort, long: diffLong, files: many},
	"log":         {short: logShort, long: logLong, files: many},
	"show":        {short: logShort, long: logLong, files: many},
	"whatchanged": {short: logShort, long: logLong, files: many},
	"rev-list":    {short: logShort, long: logLong, files: many},
	"shortlog":    {short: logShort, long: logLong + " summary numbered", files: many},
	"blame": {short: regexp.MustCompile(`^-([wesltpfncCM]|L.*)$`), long: "porcelain line-porcelain show-email " +
		"show-name show-number since date ignore-rev root abbrev color-lines", files: many},
	"ls-files": {short: letters, long: "cached deleted modified others ignored stage unmerged killed " +
		"exclude-standard error-unmatch full-name directory no-empty-directory eol exclude abbrev deduplicate format",
		files: many},
	"ls-tree": {short: letters, long: "name-only name-status long full-name full-tree abbrev object-only format",
		files: many},
	"rev-parse": {short: regexp.MustCompile(`^-q$`), long: "abbrev-ref short show-toplevel show-prefix show-cdup " +
		"git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository verify quiet all branches tags remotes symbolic symbolic-full-name revs-only flags no-flags default local-env-vars show-object-format path-format", files: many},
	"merge-base": {short: regexp.MustCompile(`^-a$`), long: "all is-ancestor fork-point octopus independent",
		files: many},
	"name-rev": {short: noShort, long: "name-only tags refs all always no-undefined exclude", files: many},
	"describe": {short: noShort, long: "tags all always long dirty broken abbrev match exclude contains " +
		"exact-match first-parent candidates", files: many},
	"for-each-ref": {short: noShort, long: "format sort count points-at merged no-merged contains no-contains " +
		"ignore-case exclude", files: many},
	"show-ref": {short: regexp.MustCompile(`^-[sdq]$`), long: "head heads branches tags hash abbrev verify quiet " +
		"dereference exists", files: many},
	"cat-file":      {short: regexp.MustCompile(`^-[pste]$`), long: "", files: 2},
	"count-objects": {short: regexp.MustCompile(`^-[vH]+$`), long: "verbose human-readable"},
	"check-ignore":  {short: letters, long: "verbose quiet non-matching no-index", files: many},
	"cherry":        {short: letters, long: "abbrev", files: many},
	"grep": {short: gitGrep, long: "line-number ignore-case files-with-matches files-without-match count word-regexp " +
		"extended-regexp fixed-strings perl-regexp cached untracked " +
		"no-index heading break show-function function-context after-context before-context context max-count max-depth color no-color and or not all-match column name-only invert-match only-matching quiet text full-name recurse-submodules exclude-standard threads", files: many},
	"branch": {short: regexp.MustCompile(`^-(a|r|v|vv|av|avv|rv|ra|ar)$`), long: "all remotes verbose list " +
		"show-current contains no-contains merged no-merged points-at sort format column no-column color no-color ignore-case abbrev no-abbrev", files: many,
		list: []string{"--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"}},
	"tag": {short: regexp.MustCompile(`^-(l|n[0-9]*|i)$`), long: "list contains no-contains merged no-merged " +
		"points-at sort format column no-column color ignore-case", files: many,
		list: []string{"-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"}},
	"remote":       {short: regexp.MustCompile(`^-v$`), long: "verbose"},
	"symbolic-ref": {short: regexp.MustCompile(`^-q$`), long: "short quiet", files: 1},
	"version":      {short: noShort, long: "build-options"},
}

// gitSecond lists rules for subcommands that only read because of their second
// word.
var gitSecond = map[string]gitRule{
	"stash list":     {short: logShort, long: logLong, files: 1},
	"stash show":     {short: diffShort, long: diffLong, files: 1},
	"reflog show":    {short: logShort, long: logLong, files: many},
	"worktree list":  {short: regexp.MustCompile(`^-[vz]$`), long: "porcelain verbose"},
	"remote get-url": {short: noShort, long: "all push", files: 1},
	"config list":    {short: noShort, long: "global local system show-origin show-scope name-only"},
	"config get":     {short: noShort, long: "global local system show-origin show-scope all regexp", files: 1},
	"notes show":     {short: noShort, files: 1},
}

// git is judged by its subcommand. Options before the subcommand may name
// programs to run (-c, --exec-path) or other repositories, so only a few are
// allowed. Options of subcommands may write (--output), run (--ext-diff, -O) or
// delete (-D).
func git(args []string) error {
	_, name, args, err := gitWords(args)
	if err != nil || name == "" {
		return err
	}
	if len(args) > 0 {
		if rule, ok := gitSecond[name+" "+args[0]]; ok {
			return rule.judge(name+" "+args[0], args[1:])
		}
	}
	switch rule, ok := gitRules[name]; {
	case ok:
		return rule.judge(name, args)
	case name == "reflog" && len(args) == 0:
		return nil
	case name == "config":
		return gitConfig(args)
	}
	return fmt.Errorf("%.80q is not a subcommand that is known only to read", name)
}

func (r gitRule) judge(name string, args []string) error {
	files, isList, ended := 0, r.list == nil, false
	for _, a := range args {
		long, isLong := strings.CutPrefix(a, "--")
		long, _, _ = strings.Cut(long, "=")
		switch {
		case ended || !strings.HasPrefix(a, "-") || a == "-":
			files++
		case a == "--":
			ended = true
		case isLong && slices.Contains(strings.Fields(r.long), long):
			isList = isList || slices.Contains(r.list, "--"+long)
		case !isLong && r.short.MatchString(a):
			isList = isList || slices.Contains(r.list, a)
		default:
			return fmt.Errorf("the option %.80q of %s is not known only to read", a, name)
		}
	}
	switch {
	case !isList && files > 0:
		return fmt.Errorf("%s with a name may make or change something", name)
	case r.files >= 0 && files > r.files:
		return fmt.Errorf("%s has more than %d arguments", name, r.files)
	}
	return nil
}

// gitConfig accepts a config call with an option that reads, or with a single
// name.
func gitConfig(args []string) error {
	reads := strings.Fields("--get --get-all --get-regexp --list -l")
	harmless := strings.Fields("--global --local --system --show-origin --show-scope --name-only --null -z --bool " +
		"--int --path --includes")
	reading, names := false, 0
	for _, a := range args {
		switch {
		case slices.Contains(reads, a):
			reading = true
		case slices.Contains(harmless, a):
		case strings.HasPrefix(a, "-"):
			return fmt.Errorf("the option %.80q of config is not known only to read", a)
		default:
			names++
		}
	}
	// The name must contain a dot: newer versions of git take other words as
	// subcommands.
	if reading || names == 1 && len(args) == 1 && strings.Contains(args[0], ".") {
		return nil
	}
	return errors.New("config may change something")
}
