package main

import (
	"encoding"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"parley/config"
)

// docs/configuration.md and .env.example are generated from the flags of the commands. The tags of a flag contain its
// sentence, its variables, its default and its subject. The subjects below are in the order of the page.

var update = flag.Bool("update", false, "write docs/configuration.md and .env.example")

// subjects are the groups of flags, each with an introduction.
var subjects = []struct{ group, about string }{
	{"Models",
		"Without a key the scripted demo answers. [models.md](models.md) explains how a model finds its vendor."},
	{"Agents and files", "Where agents are defined and where they work: [agents.md](agents.md), [tools.md](tools.md)."},
	{"Address", "Where the server listens, and which pages may use it: [operating.md](operating.md)."},
	{"Access",
		"Local mode needs no sign-in. To serve other machines, use `--auth jwt`: [SECURITY.md](../SECURITY.md)."},
	{"Sign-in with OpenID Connect", "For people who use the console with `--auth jwt`: [operating.md](operating.md)."},
	{"Data", "Where sessions are kept, and for how long: [operating.md](operating.md)."},
	{"Several nodes", "For several servers on one PostgreSQL database: [cluster.md](cluster.md)."},
	{"Autonomous agents", "Follow-ups and idle prompts: [autonomy.md](autonomy.md), [missions.md](missions.md)."},
	{"Prompt injection", "Which texts are checked, and how: [screen.md](screen.md)."},
	{"Webhooks", "Messages to other servers: [webhooks.md](webhooks.md)."},
	{"Limits", "Requests above a limit are refused; they are not queued."},
	{"Logs, metrics and shutdown", "[operating.md](operating.md) has the table of metrics, [observe.md](observe.md) a dashboard and traces."},
	{"Configuration file", "Values in the file are the lowest in order: a flag or a variable overrides them."},
}

// needed are the settings at the top of .env.example.
var needed = []string{"anthropic-api-key", "openai-api-key", "gemini-api-key", "openai-base-url", "model", "listen",
	"workspace", "auth", "jwt-secret", "autonomy-enabled"}

const configurationHead = `<!-- Written from the flags by the tests of cmd/parley; "go generate ./cmd/parley" writes it again. -->
# Configuration

    $ ANTHROPIC_API_KEY=… parley serve --listen 127.0.0.1:9000

Parley needs no configuration. This page lists every setting of ` + "`parley serve`" + `. A value is taken from the first of
these places that has it:

| place | example |
|---|---|
| the command line | ` + "`--drain 10s`" + ` |
| the environment | ` + "`PARLEY_DRAIN=10s`" + ` |
| ` + "`.env`" + ` in the folder the server is started in | ` + "`PARLEY_DRAIN=10s`" + ` |
| the YAML file that ` + "`--config`" + ` names | ` + "`drain: 10s`" + ` |
| the default | |

- If a setting has several variables, the first one that is set counts.
- An empty variable stands for the default and hides the places below it.
- Relative paths start at the folder the server is started in.
- [.env.example](../.env.example) has every variable, commented out: copy it to ` + "`.env`" + `.
- Give keys and secrets as variables: other users of the machine can see flags.
- ` + "`parley doctor`" + ` checks the settings and says how to fix problems.
`

const configurationTail = `
The file also describes [MCP servers](mcp.md), under the key ` + "`mcp`" + `, which has no flag.

## Variables that are not settings

| variable | meaning |
|---|---|
| ` + "`PARLEY_SERVER`" + ` | Address of the server for [commands that use one](terminal.md), if ` + "`--server`" + ` is not given. |
| ` + "`PARLEY_TOKEN`" + ` | Access token for these commands, if ` + "`--token`" + ` is not given. |
| ` + "`NO_COLOR`" + ` | Turns off colours in these commands, whatever its value. |
| ` + "`XDG_STATE_HOME`" + ` | State folder below which the default data folder is made (default: ` + "`~/.local/state`" + `). |
| ` + "`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`" + ` | Proxy for calls to models, MCP servers, JWKS and OpenID. Webhooks use none. |
| ` + "`OTEL_…`" + ` | The standard variables of OpenTelemetry: where runs are exported as [traces](observe.md#traces). |
| named in ` + "`secret_env`" + ` of an agent's file | Secret that signs the [webhooks](webhooks.md) of this agent. |
| named in ` + "`env` or `headers_env`" + ` of an MCP server | Value that Parley hands to this [MCP server](mcp.md). |

Commands that use a server read flags and the environment only. The last three rows are also read from ` + "`.env`" + `.

## Other commands

Every command that reads sessions takes the flags of [Data](#data) that say where they are, and ` + "`--config`" + `;
` + "`parley doctor`" + ` takes all flags of ` + "`parley serve`" + ` but ` + "`--open`" + `. The commands and their own flags:

`

func commandTree(t *testing.T, cli *commands, env config.Lookup) *kong.Kong {
	t.Helper()
	k, err := kong.New(cli, kong.Name("parley"), config.Environment(env))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A setting is a flag of parley serve, as the page shows it.
type setting struct {
	flag      *kong.Flag
	variables []string
	meaning   string // the help without the default
	standard  string // the default, as Markdown
}

// hasDefault matches the default in a help text.
var hasDefault = regexp.MustCompile(` \(default: ([^)]*)\)| Default: (.*)\.$`)

func settingOf(f *kong.Flag) setting {
	s := setting{flag: f, variables: strings.Split(f.Tag.Get("var"), ",")}
	s.meaning = hasDefault.ReplaceAllString(f.Help, "")
	switch m := hasDefault.FindStringSubmatch(f.Help); {
	case m != nil && m[1]+m[2] != f.Default:
		s.standard = m[1] + m[2]
	case f.HasDefault:
		s.standard = code(f.Default)
	}
	if !strings.HasSuffix(s.meaning, ".") {
		s.meaning += "."
	}
	if repeatable(f) && !strings.Contains(s.meaning, "repeat") {
		s.meaning += " The flag may be repeated."
	}
	return s
}

// repeatable reports whether a flag can be repeated, each use adding a value. kong appends to slices; a type that
// parses its own text needs the tag repeat.
func repeatable(f *kong.Flag) bool {
	_, own := f.Target.Addr().Interface().(encoding.TextUnmarshaler)
	return f.Target.Kind() == reflect.Slice && !own || f.Tag.Has("repeat")
}

// variable returns the recommended variable: if there is one, a name that other tools use, too.
func (s setting) variable() string {
	for _, name := range s.variables {
		if !strings.HasPrefix(name, "PARLEY_") {
			return name
		}
	}
	return s.variables[0]
}

func (s setting) name() string {
	return strings.TrimSpace("--" + s.flag.Name + " " + s.flag.PlaceHolder)
}

func code(text string) string { return "`" + text + "`" }

func codes(names []string) string { return code(strings.Join(names, "`, `")) }

// row returns a line of a table.
func row(cells ...string) string {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	return strings.Join(append(append([]string{"|"}, strings.Join(cells, " | ")), "|"), " ") + "\n"
}

// item returns an entry of a list, in lines of at most 120 characters.
func item(mark, name, text string) string {
	var entry strings.Builder
	line := mark + code(name) + ":"
	for _, word := range strings.Fields(text) {
		if utf8.RuneCountInString(line+" "+word) > 120 {
			entry.WriteString(line + "\n")
			line = strings.Repeat(" ", len(mark)-1)
		}
		line += " " + word
	}
	return entry.String() + line + "\n"
}

func serveNode(k *kong.Kong) *kong.Node {
	i := slices.IndexFunc(k.Model.Children, func(n *kong.Node) bool { return n.Name == "serve" })
	return k.Model.Children[i]
}

// settingsBySubject groups the settings. The test fails for a flag that has no subject from the list.
func settingsBySubject(t *testing.T, serve *kong.Node) map[string][]setting {
	t.Helper()
	known := map[string]bool{}
	for _, s := range subjects {
		known[s.group] = true
	}
	all := map[string][]setting{}
	for _, f := range serve.Flags {
		if f.Group == nil || !known[f.Group.Key] {
			t.Errorf("--%s has no subject; give it the tag group, and one of the subjects of this file", f.Name)
			continue
		}
		all[f.Group.Key] = append(all[f.Group.Key], settingOf(f))
	}
	return all
}

func configurationPage(t *testing.T, k *kong.Kong) string {
	t.Helper()
	var page strings.Builder
	page.WriteString(configurationHead)
	serve := serveNode(k)
	all := settingsBySubject(t, serve)
	for _, subject := range subjects {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n", subject.group, subject.about)
		page.WriteString(row("flag", "variable", "key in the file", "default", "meaning") + row("---", "---", "---",
			"---", "---"))
		for _, s := range all[subject.group] {
			keys := codes(append([]string{s.flag.Name}, s.flag.Aliases...))
			if s.flag.Name == "config" {
				keys = "" // a file cannot name another file
			}
			page.WriteString(row(code(s.name()), codes(s.variables), keys, s.standard, s.meaning))
		}
	}
	page.WriteString(configurationTail)
	for _, command := range k.Model.Leaves(true) {
		if command == serve {
			continue
		}
		usage := strings.TrimSuffix(strings.TrimSpace(command.Summary()), " [flags]")
		page.WriteString(item("- ", "parley "+usage, command.Help))
		for _, p := range command.Positional {
			page.WriteString(item("  - ", p.Summary(), p.Help))
		}
		for _, f := range command.Flags {
			if f.Tag.Get("var") == "" {
				text := f.Help
				s := settingOf(f)
				if f.HasDefault && !f.IsBool() && !hasDefault.MatchString(text) {
					text += " Default: " + s.standard + "."
				}
				page.WriteString(item("  - ", s.name(), text))
			}
		}
	}
	return page.String()
}

// dotenvExample returns every variable of parley serve, commented out, with the value of its default.
func dotenvExample(t *testing.T, k *kong.Kong) string {
	t.Helper()
	var file strings.Builder
	file.WriteString("# Settings of parley serve. Copy this file to .env and remove the # of the lines you want.\n" +
		"# docs/configuration.md explains each of them. Written from the flags by: go generate ./cmd/parley\n")
	write := func(s setting) {
		sentence := s.meaning
		if m := regexp.MustCompile(`\. [A-Z]`).FindStringIndex(sentence); m != nil {
			sentence = sentence[:m[0]+1]
		}
		value := s.flag.Default
		if strings.HasPrefix(s.standard, "forever") {
			value = ""
		}
		fmt.Fprintf(&file, "\n# %s\n#%s=%s\n", sentence, s.variable(), value)
	}
	all := settingsBySubject(t, serveNode(k))
	file.WriteString("\n## Needed most\n")
	for _, name := range needed {
		found := false
		for _, list := range all {
			for _, s := range list {
				if s.flag.Name == name {
					write(s)
					found = true
				}
			}
		}
		if !found {
			t.Errorf("--%s is listed as needed, and is no flag", name)
		}
	}
	for _, subject := range subjects {
		file.WriteString("\n## " + subject.group + "\n")
		for _, s := range all[subject.group] {
			if !slices.Contains(needed, s.flag.Name) {
				write(s)
			}
		}
	}
	return file.String()
}

//go:generate go test -run ^(TestConfigurationIsDocumented|TestManPages)$ . -update

// TestConfigurationIsDocumented checks that the page and the example match the flags.
func TestConfigurationIsDocumented(t *testing.T) {
	k := commandTree(t, &commands{}, noEnv)
	for path, want := range map[string]string{
		"docs/configuration.md": configurationPage(t, k), ".env.example": dotenvExample(t, k)} {
		file := filepath.Join("..", "..", path)
		if *update && !t.Failed() {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what the flags say (%v); write it again with: go generate ./cmd/parley\n%s", path, err,
				cmp.Diff(strings.Split(string(got), "\n"), strings.Split(want, "\n")))
		}
	}
}

// TestTheExampleStatesTheDefaults checks that a .env with all values of the example changes no setting.
func TestTheExampleStatesTheDefaults(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", ".env.example"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	parse := func(dotenv string) config.Settings {
		if err := os.WriteFile(".env", []byte(dotenv), 0o600); err != nil {
			t.Fatal(err)
		}
		var cli commands
		if _, err := commandTree(t, &cli, noEnv).Parse([]string{"doctor"}); err != nil {
			t.Fatal(err)
		}
		return cli.Doctor.Settings
	}
	lines := regexp.MustCompile(`(?m)^#([A-Z_]+=.+)$`)
	if n := len(lines.FindAllString(string(raw), -1)); n < 20 {
		t.Fatalf("the example has only %d values", n)
	}
	if diff := cmp.Diff(parse(""), parse(lines.ReplaceAllString(string(raw), "$1"))); diff != "" {
		t.Error(diff)
	}
}

// TestDocsNameVariablesThatExist checks that every PARLEY_ variable in a page belongs to a setting, or is in the list
// below.
func TestDocsNameVariablesThatExist(t *testing.T) {
	known := map[string]bool{"PARLEY_SERVER": true, "PARLEY_TOKEN": true, // used by parley chat
		"PARLEY_RACE_TIME": true} // used by tests
	for _, f := range serveNode(commandTree(t, &commands{}, noEnv)).Flags {
		for name := range strings.SplitSeq(f.Tag.Get("var"), ",") {
			known[name] = true
		}
	}
	seen := 0
	for _, pattern := range []string{"README.md", "SECURITY.md", "docs/*.md", "docs/dialects/*.md"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			raw, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`PARLEY_[A-Z_]*[A-Z]`).FindAllString(string(raw), -1) {
				if seen++; !known[name] {
					t.Errorf("%s names %s, which is no variable of Parley", page, name)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d variables were found", seen)
	}
}
