package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A Lookup looks up a variable, like os.LookupEnv.
type Lookup func(name string) (value string, ok bool)

// Environment is the kong option with the environment variables that commands with
// a Store read. The help then shows the variables of each flag.
//
// kong's own tag env cannot be used. It bypasses any Lookup, and every resolver,
// also a file, takes precedence over it.
func Environment(env Lookup) kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		if err := kong.Bind(env).Apply(k); err != nil {
			return err
		}
		return kong.ValueFormatter(helpWithVariables).Apply(k)
	})
}

func helpWithVariables(v *kong.Value) string {
	names := variables(v)
	if len(names) == 0 {
		return v.Help
	}
	return fmt.Sprintf("%s ($%s)", v.Help, strings.Join(names, ", $"))
}

func variables(v *kong.Value) []string {
	return strings.FieldsFunc(v.Tag.Get("var"), func(r rune) bool { return r == ',' })
}

// BeforeResolve is called by kong after it has parsed the command line. It adds
// a resolver for the flags that the command line does not contain.
func (s *Store) BeforeResolve(ctx *kong.Context, command *kong.Path, env Lookup) error {
	return resolve(ctx, command, env)
}

// BeforeResolve does the same for commands that need no store.
func (s *Signing) BeforeResolve(ctx *kong.Context, command *kong.Path, env Lookup) error {
	return resolve(ctx, command, env)
}

func resolve(ctx *kong.Context, command *kong.Path, env Lookup) error {
	dotenv, err := readDotenv(".env")
	if err != nil {
		return err
	}
	from := sources{variables: []Lookup{env, dotenv}}
	var file fileSettings
	if path := from.configFile(ctx, command); path != "" {
		if file, err = readFile(path, settings(ctx.Model.Node), from.variable); err != nil {
			return err
		}
	}
	from.file = file.values
	ctx.Bind(file)
	ctx.AddResolver(from)
	return nil
}

// sources are the places of values after the command line.
type sources struct {
	variables []Lookup          // the first one that has a value counts
	file      map[string]string // values by the name of the flag
}

// configFile returns the value of --config, which is itself a flag with variables.
func (s sources) configFile(ctx *kong.Context, command *kong.Path) string {
	for _, flag := range command.Node().Flags {
		if flag.Name != "config" {
			continue
		}
		if path := ctx.FlagValue(flag).(string); path != "" {
			return path
		}
		if path, _ := s.find(flag); path != "" {
			return kong.ExpandPath(path)
		}
	}
	return ""
}

// variable looks up a variable that belongs to no flag.
func (s sources) variable(name string) (string, bool) {
	for _, lookup := range s.variables {
		if value, ok := lookup(name); ok {
			return value, true
		}
	}
	return "", false
}

func (s sources) find(flag *kong.Flag) (string, bool) {
	for _, lookup := range s.variables {
		for _, name := range variables(flag.Value) {
			if value, ok := lookup(name); ok {
				return value, true
			}
		}
	}
	for _, name := range append([]string{flag.Name}, flag.Aliases...) {
		if value, ok := s.file[name]; ok {
			return value, true
		}
	}
	return "", false
}

// Resolve implements kong.Resolver. An empty value means the default, but hides
// the places after it: MODEL= in the environment undoes a MODEL in .env.
func (s sources) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if value, _ := s.find(flag); value != "" {
		if flag.Value.IsSlice() && flag.Value.Tag.Sep == -1 { // several paths, separated like PATH
			var list []any
			for _, path := range filepath.SplitList(value) {
				list = append(list, path)
			}
			return list, nil
		}
		return value, nil
	}
	if flag.Name == "data" {
		working, err := os.Getwd()
		return defaultData(s.variable, working), err
	}
	return nil, nil
}

func (sources) Validate(*kong.Application) error { return nil }

// settings returns the names of all flags with variables, of every command. One
// file serves all commands, and each of them reads its own flags.
func settings(node *kong.Node) (names []string) {
	for _, flag := range node.Flags {
		if len(variables(flag.Value)) > 0 {
			names = append(append(names, flag.Name), flag.Aliases...)
		}
	}
	for _, child := range node.Children {
		names = append(names, settings(child)...)
	}
	return names
}

// fileSettings are the settings in the file of --config.
type fileSettings struct {
	values   map[string]string // values of flags
	servers  toolServers
	projects fileProjects
	quotas   Quotas

	retention Retention
}

// readFile reads the file of --config.
func readFile(path string, known []string, env Lookup) (file fileSettings, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return file, fmt.Errorf("--config: %w", err)
	}
	doc, err := parseYAML(path, raw)
	if err != nil {
		return file, err
	}
	values := map[string]string{}
	for _, e := range doc.entries {
		switch {
		case e.key == "mcp" || strings.HasPrefix(e.key, "mcp.") || e.key == "projects",
			e.key == "quotas" || strings.HasPrefix(e.key, "quotas."),
			e.key == "retention" || strings.HasPrefix(e.key, "retention."):
			continue // read below
		case e.key == "config":
			return file, at(path, e.line, "config cannot name another file")
		case !slices.Contains(known, e.key):
			return file, at(path, e.line, "unknown key %q; keys are the names of the flags of parley serve", e.key)
		case !e.scalar:
			if e.key == "project" {
				return file, at(path, e.line, "project takes one value; write projects: for a list")
			}
			return file, at(path, e.line, "%s takes one value", e.key)
		}
		values[e.key] = e.text
	}
	file.values = values
	if file.servers, err = readToolServers(doc, env); err == nil {
		file.projects, err = readProjects(doc)
	}
	if err == nil {
		file.quotas, err = readQuotas(doc)
	}
	if err == nil {
		file.retention, err = readRetention(doc)
	}
	return file, err
}
