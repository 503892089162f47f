package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const many = -1

// rules lists the programs that only read, if their arguments follow the rule.
// If you add one, you answer for every argument that the rule accepts. Can it
// write, run a program, reach the network, or run forever? If it matches names:
// what could it match in the current folder?
var rules map[string]rule

func init() { // initialized here because the table and its rules refer to each other
	rules = map[string]rule{
		// All options of these programs only choose what is shown.
		"ls": anything{many}, "cat": anything{many}, "wc": anything{many}, "head": anything{many},
		"stat": anything{many},
		"echo": anything{many}, "true": anything{many}, "false": anything{many}, ":": anything{many},
		"pwd":  anything{many},
		"grep": anything{many}, "egrep": anything{many}, "fgrep": anything{many}, "tac": anything{many},
		"rev": anything{many},
		"cut": anything{many}, "tr": anything{many}, "nl": anything{many}, "paste": anything{many},
		"fold": anything{many},
		"comm": anything{many}, "join": anything{many}, "cmp": anything{many}, "expand": anything{many},
		"fmt":      anything{many},
		"basename": anything{many}, "dirname": anything{many}, "realpath": anything{many}, "readlink": anything{many},
		"md5sum": anything{many}, "sha1sum": anything{many}, "sha224sum": anything{many}, "sha256sum": anything{many},
		"sha384sum": anything{many}, "sha512sum": anything{many}, "b2sum": anything{many}, "cksum": anything{many},
		"od": anything{many}, "hexdump": anything{many}, "du": anything{many}, "df": anything{many},
		"which":   anything{many},
		"whereis": anything{many}, "id": anything{many}, "groups": anything{many}, "whoami": anything{0},
		"uname": anything{many},
		"nproc": anything{many}, "uptime": anything{many},
		"free": options{flags: "bkmghtw", long: "human mega giga kibi mebi gibi total wide"},
		"arch": anything{0}, "hostname": options{flags: "fsdIiA"}, "type": anything{many},
		"command": options{flags: "vV", files: many}, "seq": seq,

		"tail": options{flags: "qvz", values: "cn", long: "lines= bytes= quiet silent verbose zero-terminated",
			number: true, files: many},
		"sort": options{flags: "bdfghiMnRrVcCmsuz", values: "kt", long: "key= field-separator= reverse unique " +
			"numeric-sort human-numeric-sort version-sort ignore-case stable check=? zero-terminated", files: many},
		"uniq": options{flags: "cdDiuz", values: "fsw", long: "count repeated unique ignore-case skip-fields= " +
			"skip-chars=", files: 1},
		"base64":  options{flags: "di", values: "w", long: "decode wrap= ignore-garbage", files: 1},
		"xxd":     checked(xxd),
		"strings": options{flags: "a", values: "nt", long: "all bytes= radix=", files: many, check: noResponseFiles},
		"column": options{flags: "txe", values: "scN", long: "table separator= output-separator= table-columns=",
			files: many},
		"date": options{flags: "uRI", values: "dr", long: "utc date= iso-8601=? rfc-3339= rfc-email reference= " +
			"universal", files: 1, check: formats},
		"file": options{flags: "bihLkr0", long: "brief mime mime-type mime-encoding dereference no-dereference " +
			"keep-going", files: many},
		"tree": options{flags: "adfilsphugDtrCnJNQFv", values: "LIP", apart: true,
			long: "dirsfirst filelimit= noreport gitignore prune du si", files: many},
		"diff": options{flags: "uqrNabBwiEyscenptTdP", values: "UCxXIWF", long: "unified=? brief recursive new-file " +
			"ignore-all-space ignore-space-change ignore-blank-lines ignore-case side-by-side color=? exclude= text suppress-common-lines width= minimal report-identical-files no-dereference strip-trailing-cr", files: many},
		"jq":     jq,
		"ps":     anything{many},
		"rg":     ripgrep,
		"fd":     fd,
		"fdfind": fd,
		"find":   checked(find),
		"sed":    checked(sed),
		"awk":    checked(awk),
		"gawk":   checked(awk),
		"mawk":   checked(awk),
		"git":    checked(git),
		"go":     checked(golang),
		"test":   checked(test),
		"[":      checked(bracket),
		"printf": checked(printf),
		"cd":     checked(cd),
		"exit":   checked(exit),
		"node":   exactly("--version", "-v"), "npm": exactly("--version", "-v"), "python": exactly("--version", "-V"),
		"python3": exactly("--version", "-V"),
		"pip":     exactly("--version", "-V"), "pip3": exactly("--version", "-V"), "gcc": version, "g++": version,
		"cc": version, "clang": version,
		"make": version, "cmake": version, "java": exactly("-version", "--version"),
		"javac": exactly("-version", "--version"),
		"ruby":  exactly("--version", "-v"), "perl": exactly("--version", "-v"), "docker": exactly("--version", "-v"),
		"curl": exactly("--version", "-V"),
		"psql": exactly("--version", "-V"), "sqlite3": exactly("--version", "-version"), "tar": version,
		"openssl": exactly("version"),
	}
}

// checked is a rule with a function of its own. The function gets no patterns.
type checked func(args []string) error

func (c checked) judge(args []word) error {
	for _, a := range args {
		if a.glob && (a.text == "" || strings.ContainsAny(a.text[:1], "*?[-")) {
			return fmt.Errorf("file names that match %.80q may be read as options", a.text)
		}
		if err := place(a); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(args, func(a word) bool { return a.glob }) {
		return errors.New("the files it is given are unknown")
	}
	return c(texts(args))
}

// exactly is the rule for programs that are harmless only with one of these
// arguments.
func exactly(allowed ...string) rule {
	return checked(func(args []string) error {
		if len(args) != 1 || !slices.Contains(allowed, args[0]) {
			return fmt.Errorf("only %s is known to be harmless", strings.Join(allowed, " or "))
		}
		return nil
	})
}

// version is the rule for programs that print their version. It must not be
// used for cargo, yarn, pnpm and others, which a file of the workspace can
// replace before they print it.
var version = exactly("--version")

var seq = options{flags: "w", values: "fs", number: true, files: 3, check: func(files []word) error {
	for _, f := range files {
		if !isNumber(strings.TrimPrefix(f.text, "-")) {
			return errors.New("numbers were expected")
		}
	}
	return nil
}}

// noResponseFiles refuses @FILE, from which binutils read more options.
func noResponseFiles(files []word) error {
	if slices.ContainsFunc(files, func(f word) bool { return strings.HasPrefix(f.text, "@") }) {
		return errors.New("it reads options from a file")
	}
	return nil
}

// formats refuses an argument without a plus, with which date sets the clock.
func formats(files []word) error {
	if len(files) > 0 && !strings.HasPrefix(files[0].text, "+") {
		return errors.New("it may set the clock")
	}
	return nil
}

// xxd parses its options in its own way, and writes to a second file.
func xxd(args []string) error {
	files := 0
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case (a == "-l" || a == "-s" || a == "-c" || a == "-g") && i+1 < len(args) && isNumber(args[i+1]):
			i++
		case a == "-p" || a == "-b" || a == "-u" || a == "-i":
		case strings.HasPrefix(a, "-"):
			return fmt.Errorf("the option %.80q is not known only to read", a)
		default:
			files++
		}
	}
	if files > 1 {
		return errors.New("it writes to its second file")
	}
	return nil
}

var jq = options{flags: "rcnsSeaMCjR", long: "raw-output compact-output null-input slurp sort-keys exit-status " +
	"ascii-output monochrome-output color-output join-output tab raw-input",
	files: many}

// ripgrep omits the options that run programs: --pre, --hostname-bin, -z.
var ripgrep = options{flags: "inlLcwvxFPSsUHINop0aqu.", values: "egtTABCmrdfjM", globs: true,
	long: "ignore-case line-number files-with-matches files-without-match count count-matches word-regexp invert-match fixed-strings pcre2 smart-case " +
		"case-sensitive multiline multiline-dotall with-filename no-filename no-line-number only-matching pretty heading no-heading hidden no-ignore " +
		"no-ignore-vcs follow text quiet files json stats column trim vimgrep version type-list no-messages sort= sortr= color= colors= regexp= glob= " +
		"iglob= type= type-not= after-context= before-context= context= max-count= max-depth= max-filesize= max-columns= replace= threads= file= passthru null",
	files: many}

// fd omits the options that run programs: -x, -X, -l.
var fd = options{flags: "HIuiFpL0aqgs1", values: "tedEScdj",
	long: "hidden no-ignore unrestricted ignore-case fixed-strings full-path follow print0 absolute-path quiet glob case-sensitive type= extension= " +
		"max-depth= min-depth= exact-depth= exclude= size= color= changed-within= changed-before= max-results= version",
	files: many}

// find evaluates a language of its own. The lists hold its allowed words, with
// and without an argument.
func find(args []string) error {
	with := strings.Fields(
		"-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -size -mtime " +
			"-mmin -ctime -cmin -atime -amin " +
			"-newer -anewer -cnewer -newermt -newerct -perm -user -group -uid -gid -links -inum -maxdepth -mindepth -printf -regextype -samefile -lname -ilname -fstype -used")
	without := strings.Fields("-empty -readable -writable -executable -depth -mount -xdev -follow -L -H -P -print " +
		"-print0 -ls -prune -quit -not ! " +
		"-a -and -o -or ( ) , -true -false -nouser -nogroup -daystart -noleaf -ignore_readdir_race -warn -nowarn --version")
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case slices.Contains(with, a):
			if i++; i >= len(args) {
				return fmt.Errorf("%s has no argument", a)
			}
		case slices.Contains(without, a):
		case strings.HasPrefix(a, "-") || a == "":
			return fmt.Errorf("%.80q is not known only to read", a)
		}
	}
	return nil
}

var (
	sedPrint      = regexp.MustCompile(`^([0-9]+|\$)(,([0-9]+|\$|\+[0-9]+))?[pdq=]$`)
	sedMatch      = regexp.MustCompile(`^/[^/\\\n]*/[pd=]$`)
	sedSubstitute = regexp.MustCompile(`^[0-9,$]*s([/|#,])(.*)$`)
	sedFlags      = regexp.MustCompile(`^[gpiI0-9]*$`)
)

// sed accepts scripts that print, delete and substitute in the output. It
// refuses running commands (e), writing files (w) and editing in place (-i).
func sed(args []string) error {
	var scripts, files []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-n" || a == "-E" || a == "-r" || a == "--quiet" || a == "--silent" || a == "--regexp-extended":
		case a == "-e" && i+1 < len(args):
			i++
			scripts = append(scripts, args[i])
		case strings.HasPrefix(a, "-"):
			return fmt.Errorf("the option %.80q is not known only to read", a)
		default:
			files = append(files, a)
		}
	}
	if len(scripts) == 0 {
		if len(files) == 0 {
			return errors.New("it has no script")
		}
		scripts, files = files[:1], files[1:]
	}
	if len(files) > 1 {
		return errors.New("more than one file")
	}
	for _, script := range scripts {
		if err := sedScript(script); err != nil {
			return err
		}
	}
	return nil
}

func sedScript(script string) error {
	unknown := fmt.Errorf("the script %.80q is not known only to read", script)
	if strings.Contains(script, "\n") {
		return unknown
	}
	if parts := sedSubstitute.FindStringSubmatch(script); parts != nil {
		// Demand exactly two more delimiters: a sed that counts differently,
		// within brackets, finds fewer of them and fails.
		rest := strings.ReplaceAll(parts[2], `\\`, "")
		rest = strings.ReplaceAll(rest, `\`+parts[1], "")
		fields := strings.Split(rest, parts[1])
		if len(fields) != 3 || !sedFlags.MatchString(fields[2]) {
			return unknown
		}
		return nil
	}
	for part := range strings.SplitSeq(script, ";") {
		part = strings.Trim(part, " ")
		if !sedPrint.MatchString(part) && !sedMatch.MatchString(part) {
			return unknown
		}
	}
	return nil
}

// awk accepts programs without the words and characters that reach beyond the
// input: pipes, redirections, system, getline, extensions.
func awk(args []string) error {
	for len(args) > 0 && strings.HasPrefix(args[0], "-F") {
		if args[0] != "-F" {
			args = args[1:]
			continue
		}
		if len(args) < 2 || strings.HasPrefix(args[1], "-") {
			return errors.New("the value of -F is unknown")
		}
		args = args[2:]
	}
	if len(args) == 0 {
		return errors.New("it has no program")
	}
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			return fmt.Errorf("the option %.80q is not known only to read", a)
		}
	}
	for _, word := range []string{"system", "getline", "|", ">", "@", "close", "\\\n"} {
		if strings.Contains(args[0], word) {
			return fmt.Errorf("its program has %q", word)
		}
	}
	return nil
}

var goVariable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// golang accepts version and env. Most other subcommands of go run other
// programs, or can be told to.
func golang(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "version":
		return nil
	case len(args) >= 1 && args[0] == "env":
		for _, a := range args[1:] {
			if a != "-json" && !goVariable.MatchString(a) {
				return fmt.Errorf("go env %.80q is not known only to read", a)
			}
		}
		return nil
	}
	return errors.New("only version and env are known only to read")
}

// test omits -v, for which some shells evaluate the argument, and comparisons
// of numbers, for which others do.
func test(args []string) error {
	if len(args) > 0 && args[0] == "!" {
		args = args[1:]
	}
	unary := strings.Fields("-e -f -d -r -w -x -s -L -h -n -z")
	switch {
	case len(args) == 1 && !strings.HasPrefix(args[0], "-"):
		return nil
	case len(args) == 2 && slices.Contains(unary, args[0]):
		return nil
	case len(args) == 3 && (args[1] == "=" || args[1] == "!="):
		return nil
	}
	return errors.New("the condition is not known to be harmless")
}

func bracket(args []string) error {
	if len(args) == 0 || args[len(args)-1] != "]" {
		return errors.New("it has no end")
	}
	return test(args[:len(args)-1])
}

var harmlessFormat = regexp.MustCompile(`^([^%]|%%|%-?[0-9]*(\.[0-9]+)?[sbc])*$`)

// printf refuses -v and %n, which set variables, and formats for numbers, which
// some shells evaluate.
func printf(args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || !harmlessFormat.MatchString(args[0]) {
		return errors.New("the format is not known to be harmless")
	}
	return nil
}

func cd(args []string) error {
	if len(args) > 1 || len(args) == 1 && strings.HasPrefix(args[0], "-") {
		return errors.New("one folder was expected")
	}
	return nil
}

func exit(args []string) error {
	if len(args) > 1 || len(args) == 1 && !isNumber(args[0]) {
		return errors.New("one number was expected")
	}
	return nil
}
