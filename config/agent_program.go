package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"parley"
)

// Agents that are programs have runtime acp, a command, and the names of variables
// that the program gets.

const maxProgramWords = 256

// place reads where a remote agent runs: at an address, or as a program.
func (f *frontMatter) place(doc document, agent *parley.Agent) error {
	bad := func(key, format string, args ...any) error { return at(doc.path, doc.line(key), format, args...) }
	switch {
	case !slices.Contains([]string{"", "loop", "frames", "acp"}, f.Runtime):
		return bad("runtime", "runtime is loop, frames or acp, not %q", f.Runtime)
	case f.Runtime == "frames" && f.Address == "":
		return bad("runtime", "runtime: frames needs an address: tcp://host:port or unix:///path")
	case f.Runtime != "frames" && f.Address != "":
		return bad("address", "address is only for agents with runtime: frames; add the runtime, or remove the address")
	case f.Runtime == "acp" && len(f.Command) == 0:
		return bad("runtime", "runtime: acp needs a command: [program, argument, …]")
	case f.Runtime != "acp" && f.Command != nil:
		return bad("command", "command is only for agents with runtime: acp; add the runtime, or remove the command")
	case f.Runtime != "acp" && f.Env != nil:
		return bad("env", "env is only for agents with runtime: acp; add the runtime, or remove env")
	}
	switch f.Runtime {
	case "frames":
		agent.Address = f.Address
	case "acp":
		if key, err := f.program(); err != nil {
			return bad(key, "%s: %w", key, err)
		}
		agent.Command, agent.Env = f.Command, f.Env
	}
	return nil
}

// program reports a mistake in the command or the variables of a program, and its
// key.
func (f *frontMatter) program() (key string, err error) {
	switch {
	case len(f.Command) > maxProgramWords:
		return "command", fmt.Errorf("it has %d words; at most %d are possible", len(f.Command), maxProgramWords)
	case parley.IsBlank(f.Command[0]):
		return "command", fmt.Errorf("the program is empty")
	case strings.Contains(f.Command[0], "/") && !filepath.IsAbs(f.Command[0]):
		return "command", fmt.Errorf("%.80q is relative; write the whole path, or a name that is found in PATH",
			f.Command[0])
	}
	for _, word := range f.Command {
		if strings.ContainsRune(word, 0) {
			return "command", fmt.Errorf("%.80q holds a NUL", word)
		}
	}
	for _, name := range f.Env {
		if err := checkProgramVariable(name); err != nil {
			return "env", err
		}
	}
	return "", nil
}

// checkProgramVariable rejects the name of a variable that no program may be given.
func checkProgramVariable(name string) error {
	switch {
	case !variableName.MatchString(name):
		return fmt.Errorf("%.80q is no name of a variable; only names stand here, values come from the "+
			"environment", name)
	case strings.HasPrefix(name, "PARLEY_"):
		return fmt.Errorf("%s is for Parley alone", name)
	}
	return nil
}

// CheckProgram rejects an agent whose program other agents could replace, because
// it runs without a sandbox.
func (s *Settings) CheckProgram(agent parley.Agent) error {
	if len(agent.Command) == 0 {
		return nil
	}
	if where := s.replaceable(agent.Command, nil); where != "" {
		return fmt.Errorf("agent %s: %s, where agents can replace it, and it runs without a sandbox; move it out of "+
			"there, for example to /opt/%s, and write the new path here", agent.Name, where, agent.Name)
	}
	return nil
}

// ProgramSecrets returns the values of variables that programs of agents get, if
// the name sounds like that of a secret.
func ProgramSecrets(agents []parley.Agent, env Lookup) (list []string) {
	for _, a := range agents {
		for _, name := range a.Env {
			if value, ok := env(name); ok && newVariable(name, value).Secret != "" {
				list = append(list, SecretForms(value)...)
			}
		}
	}
	return list
}
