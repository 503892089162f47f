package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"parley"
)

// CheckToolServers rejects MCP servers that must not be started as configured. A
// server is rejected if agents could replace its program and it has more rights
// than an agent. It is also rejected if it would show the workspace to another
// tenant.
func (s *Settings) CheckToolServers() error {
	var problems []error
	for _, server := range s.ToolServers {
		if key, err := s.CheckToolServer(server); err != nil {
			problems = append(problems, fmt.Errorf("%s: mcp.servers.%s.%s: %w", s.Config, server.Name, key, err))
		}
	}
	return errors.Join(problems...)
}

// CheckToolServer reports a mistake in an MCP server, and its key.
func (s *Settings) CheckToolServer(t ToolServer) (key string, err error) {
	if t.URL != "" {
		return "", nil
	}
	if key, err = s.checkReach(t); err != nil {
		return key, err
	}
	return "command", s.checkPlace(t)
}

// others reports whether tenants other than home may use the server.
func (t ToolServer) others(home parley.TenantID) bool {
	return t.Everyone || slices.ContainsFunc(t.Tenants, func(tenant parley.TenantID) bool { return tenant != home })
}

// checkReach rejects servers for other tenants whose processes could reach a
// project.
func (s *Settings) checkReach(t ToolServer) (key string, err error) {
	if !t.others(s.DefaultTenant) {
		return "", nil
	}
	if t.Bare {
		return "sandbox", fmt.Errorf("without a sandbox it could read the workspace of the tenant %s, "+
			"and tenants names others; remove sandbox: false, or leave tenants out", s.DefaultTenant)
	}
	for _, given := range []struct {
		key     string
		folders []string
	}{{"read", t.Read}, {"write", t.Write}} {
		for _, folder := range given.folders {
			for _, p := range s.Projects {
				root := leadsTo(p.Root)
				if to := leadsTo(folder); holds(to, root) || holds(root, to) {
					return given.key, fmt.Errorf("%s overlaps the project %s, which belongs to the tenant %s, "+
						"and tenants names others; name a folder elsewhere, or leave tenants out", folder, p.Root,
						p.Tenant)
				}
			}
		}
	}
	return "", nil
}

// checkPlace rejects a program that agents could replace, if it gets secrets, runs
// without a sandbox, or works for another tenant.
func (s *Settings) checkPlace(t ToolServer) error {
	var why string
	given := slices.Clone(t.Missing)
	for _, v := range t.Env {
		given = append(given, v.Name)
	}
	switch {
	case t.Bare:
		why = "it runs without a sandbox"
	case len(given) > 0:
		slices.Sort(given)
		why = "it is given " + strings.Join(given, ", ")
	case t.others(s.DefaultTenant):
		why = "it serves other tenants"
	default:
		return nil
	}
	var path []string
	for _, v := range t.Env {
		if v.Name == "PATH" {
			path = filepath.SplitList(v.Plain)
		}
	}
	where := s.replaceable(t.Command, path)
	if where == "" {
		return nil
	}
	return fmt.Errorf("%s, where agents can replace it, and %s; "+
		"move it out of there, for example to /opt/%s, and write the new path here "+
		"(and its folder under read, if the sandbox does not show it)",
		where, why, t.Name)
}

// replaceable returns the word of a command that leads into a folder that agents
// can write to, with that folder. It is empty if there is none. path are the
// folders in which programs are searched; nil means the sandbox's own.
func (s *Settings) replaceable(command, path []string) string {
	c := code{path: path}
	for _, p := range s.Projects {
		c.projects = append(c.projects, leadsTo(p.Root))
	}
	c.writable = slices.Clone(c.projects)
	for _, other := range s.ToolServers {
		for _, folder := range other.Write {
			c.writable = append(c.writable, leadsTo(folder))
		}
	}
	var word, folder string
	for _, c.started = range c.projects {
		if word, folder = c.find(command); folder != "" {
			break
		}
	}
	if folder == "" {
		return ""
	}
	what := "a folder under write"
	if slices.Contains(c.projects, folder) {
		what = "a project"
	}
	return fmt.Sprintf("%s leads into %s (%s)", word, folder, what)
}

// code finds the code that a command line runs, as far as possible without running
// it: the program, its interpreter, and the scripts that an interpreter gets.
type code struct {
	projects []string
	started  string   // the project in which the command is started
	writable []string // folders that agents can write to: the projects, and more
	path     []string // PATH of the process; nil: the sandbox's own
}

// find returns the first word that leads to code in a writable folder, and that
// folder.
func (c code) find(argv []string) (word, folder string) {
	program := argv[0]
	if !strings.Contains(program, "/") {
		var in string
		if program, in = c.look(program); in != "" {
			return "PATH, by which " + argv[0] + " is found,", in
		}
	}
	if in := c.lies(program); in != "" {
		return program, in
	}
	if word, in := c.shebang(program); in != "" {
		return word, in
	}
	return c.arguments(program, argv)
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// look finds a program like a process does. If agents can write to a folder
// that is searched before, they could put another program there, so that folder
// is returned.
func (c code) look(name string) (program, folder string) {
	search := c.path
	if search == nil {
		search = filepath.SplitList(systemPath + ":" + os.Getenv("PATH"))
	}
	for _, dir := range search {
		if !filepath.IsAbs(dir) {
			continue // relative to a folder that is not known here
		}
		in := c.lies(dir)
		if slices.Contains(c.projects, in) && c.path == nil {
			continue // the sandbox hides projects from PATH
		}
		if in != "" {
			return "", in
		}
		program := filepath.Join(dir, name)
		if info, err := os.Stat(program); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return program, ""
		}
	}
	return name, ""
}

// lies returns the writable folder through which an absolute path leads, if any:
// the folder contains the file, a parent folder or a symbolic link on the way.
func (c code) lies(path string) string {
	at, rest := "/", strings.Split(filepath.Clean(path), "/")
	if !filepath.IsAbs(path) {
		return ""
	}
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		for _, folder := range c.writable {
			if holds(folder, next) {
				return folder
			}
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > 4096 {
			at = next
			continue
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(filepath.Clean(to), "/"), rest...)
	}
	return ""
}

// shebang checks the interpreter in the first line of a script.
func (c code) shebang(program string) (word, folder string) {
	f, err := os.Open(program)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	line, ok := strings.CutPrefix(line, "#!")
	words := strings.Fields(line)
	if !ok || len(words) == 0 {
		return "", ""
	}
	if in := c.lies(words[0]); in != "" {
		return "the interpreter of " + program, in
	}
	if filepath.Base(words[0]) == "env" && len(words) > 1 {
		if _, in := c.look(words[len(words)-1]); in != "" {
			return "PATH, by which the interpreter of " + program + " is found,", in
		}
	}
	return "", ""
}

// A launcher is a program that runs code named by its arguments.
type launcher struct {
	values string // options that take the next word as a value
	first  bool   // the first word that is no option names the code, which need not be a file
}

// launchers are indexed by the names of programs. Programs with the same options
// are in one group.
var launchers = byName(map[string]launcher{
	"node": {values: "-r --require --import --loader --experimental-loader --env-file -C --conditions " +
		"--input-type --title --icu-data-dir"},
	"deno":         {values: "-c --config --import-map --lock --cert --seed"},
	"bun":          {values: "-r --preload --config --cwd --env-file"},
	"tsx ts-node":  {values: "--tsconfig -P --project -r --require --import -C --compiler"},
	"python pypy":  {values: "-X -W -Q"},
	"ruby":         {values: "-I -r -C -E -x"},
	"perl":         {values: "-I"},
	"php":          {values: "-c -d -z -f"},
	"lua luajit":   {values: "-l"},
	"julia":        {values: "-J -L --project"},
	"dotnet":       {values: "--additionalprobingpath --fx-version"},
	"pwsh":         {values: "-File -WorkingDirectory"},
	"wasmtime":     {values: "--dir"},
	"rscript mono": {},
	"make":         {values: "-C -f --directory --file"},
	"go":           {values: "-C -modfile"},
	"java": {
		first: true, values: "-cp -classpath --class-path -p --module-path -jar --add-modules --source"},
	"docker podman":                     {first: true},
	"sh bash dash zsh ksh fish busybox": {values: "-o -O +o --rcfile --init-file"},
	"env timeout nice nohup setsid stdbuf sudo doas xvfb-run dotenv": {
		values: "-u -C --chdir --unset -n -k -s --signal --kill-after -o"},
	"npx bunx uvx uv pipx npm pnpm yarn poetry bundle cargo": {
		first: true,
		values: "-p --package --from --with --with-editable --with-requirements --python --directory --project --prefix " +
			"--cwd -C --registry --index --index-url --extra-index-url --spec --env-file --cache --userconfig --globalconfig"},
})

func byName(groups map[string]launcher) map[string]launcher {
	all := map[string]launcher{}
	for group, l := range groups {
		for name := range strings.FieldsSeq(group) {
			all[name] = l
		}
	}
	return all
}

var (
	subcommands = []string{"run", "exec", "x", "dlx", "tool"}
	version     = regexp.MustCompile(`[-0-9.]+$`)
	// codeOption matches options that are followed by code, as in bash -lc, node
	// -pe, python3 -m.
	codeOption = regexp.MustCompile(`^(-[A-Za-z]*[cem]|-E|--eval|--print|--call|--command)$`)
	scriptName = regexp.MustCompile(
		`(?i)\.([cm]?[jt]sx?|py[cz]?|rb|pl|php|lua|(ba|z|fi)?sh|jar|wasm|dll|exe|jl|r|ps1|go)$`)
)

// launcherOf finds a launcher by the name of a program, or of the file that it
// links to.
func launcherOf(program string) (launcher, bool) {
	for _, name := range []string{program, leadsTo(program)} {
		name = strings.TrimSuffix(version.ReplaceAllString(strings.ToLower(filepath.Base(name)), ""), ".exe")
		if name == "nodejs" {
			name = "node"
		}
		if l, ok := launchers[name]; ok {
			return l, true
		}
	}
	return launcher{}, false
}

// arguments checks the words that name code. Words after the script are arguments
// of the script, and may name any file.
func (c code) arguments(program string, argv []string) (word, folder string) {
	l, known := launcherOf(program)
	values := strings.Fields(l.values)
	first, isValue := true, false
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		option := strings.HasPrefix(w, "-") && w != "-" || strings.HasPrefix(w, "+o")
		value := isValue
		isValue = option && slices.Contains(values, w)
		path, exists, dir := c.leads(w)
		in := c.lies(path)
		switch {
		case !known: // it may still be an interpreter
			if option {
				continue
			}
			if in != "" && exists && !dir && (scriptName.MatchString(w) || isExecutable(path)) {
				return w, in
			}
			return "", ""
		case option:
			if codeOption.MatchString(w) && !value && i+1 < len(argv) {
				return argv[i+1], c.mentions(argv[i+1])
			}
			if in := c.mentions(w); in != "" && !strings.HasPrefix(w, "--allow-") {
				return w, in
			}
		case dir && in != "" && (first || value):
			return w, in
		case dir:
		case in != "" && (exists || filepath.IsAbs(w)):
			return w, in
		case c.mentions(w) != "" && (value || strings.Contains(w, "=")): // as in NODE_OPTIONS=--require=…
			return w, c.mentions(w)
		case value:
		case l.first && !slices.Contains(subcommands, w):
			return "", ""
		case exists:
			if _, again := launcherOf(path); again {
				return c.find(argv[i:])
			}
			return "", ""
		}
		if !option && !value {
			if _, again := launcherOf(w); again { // as in env node …
				return c.find(argv[i:])
			}
			first = false
		}
	}
	return "", ""
}

// leads returns the path that a word names. A relative path counts if it looks
// like a path and the project has such a file.
func (c code) leads(word string) (path string, exists, dir bool) {
	if filepath.IsAbs(word) {
		info, err := os.Stat(word)
		return word, err == nil, err == nil && info.IsDir()
	}
	path = filepath.Join(c.started, word)
	isPath := strings.Contains(word, "/") || scriptName.MatchString(word)
	if info, err := os.Stat(path); err != nil || info.IsDir() || !isPath {
		return "", false, false
	}
	return path, true, false
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}

// mentions finds the path of a writable folder in an option or in code.
func (c code) mentions(text string) string {
	for _, folder := range c.writable {
		for rest := text; ; {
			i := strings.Index(rest, folder)
			if i < 0 {
				break
			}
			rest = rest[i+len(folder):]
			if rest == "" || strings.ContainsRune("/'\" :;,)]}&|", rune(rest[0])) {
				return folder
			}
		}
	}
	return ""
}

// holds reports whether a path is the folder or is in it.
func holds(folder, path string) bool {
	inside, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(inside)
}

// leadsTo resolves the symbolic links of a path, as far as the path exists.
func leadsTo(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil:
		return real
	case path == "/":
		return path
	}
	return filepath.Join(leadsTo(filepath.Dir(path)), filepath.Base(path))
}
