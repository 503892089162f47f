package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"parley"
	"parley/port"
	"parley/workspace"
)

// Agents are the agents that the Markdown files of a folder define. They belong
// to one tenant; other tenants have none. Agents implements port.Agents. Its
// methods may be called concurrently, except that only one goroutine may call
// Reload at a time.
type Agents struct {
	files   *workspace.Workspace
	dir     string
	tenant  parley.TenantID
	check   AgentCheck // nil: every readable file is accepted
	current atomic.Pointer[[]definition]
	wrong   atomic.Pointer[[]port.AgentProblem]
}

// An AgentCheck rejects an agent that this server cannot run. key is the key of the
// agent's file that the error is about.
type AgentCheck func(parley.Agent) (key string, err error)

var _ port.Agents = (*Agents)(nil)

// BuiltIn is the agent of a server without agent files.
var BuiltIn = parley.Agent{
	Name:        "helpful-assistant",
	Description: "answers questions and works on the files of the workspace",
	Tools:       []string{"*"},
	Autonomy:    parley.Autonomy{Enabled: true}, // if the server enables autonomy
	Instructions: `You are a helpful assistant who works in a person's project folder.

Look before you answer: read the files a question is about rather than guess at them. Do what was asked and no more; when
it is unclear what is wanted, ask. Say plainly what you did, what you did not do, and what you are unsure of. A person may
have to allow what you want to do; if they refuse, respect it and look for another way.`,
}

// LoadAgents reads the *.md files of a folder in order of their names. The first
// agent is the default. If the folder is missing or has no such file, the only
// agent is BuiltIn. A file that is wrong or fails the check is an error that names
// the line. In the workspace, a symbolic link is an error, too.
func LoadAgents(files *workspace.Workspace, dir string, tenant parley.TenantID, check AgentCheck) (*Agents, error) {
	a := &Agents{files: files, dir: dir, tenant: tenant, check: check}
	defs, _, err := a.read(nil)
	if err != nil {
		return nil, err
	}
	a.current.Store(&defs)
	return a, nil
}

// Reload reads the folder again. A file with a mistake keeps its last
// definition, if it had one; all other files take effect. The error describes
// every mistake.
func (a *Agents) Reload() error {
	defs, wrong, err := a.read(*a.current.Load())
	a.current.Store(&defs)
	a.wrong.Store(&wrong)
	return err
}

// Problems returns the mistakes that the last Reload found.
func (a *Agents) Problems(tenant parley.TenantID) []port.AgentProblem {
	if wrong := a.wrong.Load(); wrong != nil && tenant == a.tenant {
		return *wrong
	}
	return nil
}

// Agent finds an agent by name. An empty name means the default agent. If the
// tenant has no such agent, the error has CodeNotFound.
func (a *Agents) Agent(tenant parley.TenantID, name string) (parley.Agent, error) {
	agents := a.List(tenant)
	if len(agents) == 0 {
		return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There are no agents.")
	}
	if name == "" {
		return agents[0], nil
	}
	names := make([]string, len(agents))
	for i, agent := range agents {
		if agent.Name == name {
			return agent, nil
		}
		names[i] = agent.Name
	}
	broken := ""
	for _, p := range a.Problems(tenant) {
		if strings.HasPrefix(p.Text, name+".md:") {
			broken = " Its file has a mistake: " + p.Text
		}
	}
	return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There is no agent %.63q; there are: %s.%s", name,
		strings.Join(names, ", "), broken)
}

// List lists a tenant's agents, the default first.
func (a *Agents) List(tenant parley.TenantID) []parley.Agent {
	if tenant != a.tenant {
		return nil
	}
	defs := *a.current.Load()
	if len(defs) == 0 {
		return []parley.Agent{BuiltIn}
	}
	agents := make([]parley.Agent, len(defs))
	for i, def := range defs {
		agents[i] = def.agent
	}
	return agents
}

// Ignored lists the keys in files that have no effect on their agent, one line
// for each key.
func (a *Agents) Ignored() []string {
	var lines []string
	for _, def := range *a.current.Load() {
		lines = append(lines, def.ignored...)
	}
	return lines
}

// read reads the folder. last are the definitions of the previous read.
func (a *Agents) read(last []definition) ([]definition, []port.AgentProblem, error) {
	folder, err := a.files.Load(a.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	var names []string
	if err == nil {
		defer folder.Close()
		names, err = agentFiles(folder)
	}
	if err != nil {
		return last, []port.AgentProblem{{Text: "the folder of agents cannot be read"}}, err
	}
	var defs []definition
	var wrong []port.AgentProblem
	var errs []error
	for _, name := range names {
		path := filepath.Join(a.dir, name)
		def, err := readAgent(folder, name, path)
		if err == nil {
			err = nameTaken(defs, def)
		}
		if err == nil && a.check != nil {
			var key string
			if key, err = a.check(def.agent); err != nil {
				err = at(path, cmp.Or(def.lines[key], 1), "%w", err)
			}
		}
		if err != nil {
			errs = append(errs, err)
			// Clients need not know where the folder is.
			problem := port.AgentProblem{Text: strings.ReplaceAll(err.Error(), a.dir+string(filepath.Separator), "")}
			wrong = append(wrong, problem)
			i := slices.IndexFunc(last, func(d definition) bool { return d.path == path })
			if i < 0 || nameTaken(defs, last[i]) != nil {
				continue
			}
			def = last[i]
			wrong[len(wrong)-1].Agent = def.agent.Name
		}
		defs = append(defs, def)
	}
	return defs, wrong, errors.Join(errs...)
}

const maxAgentFiles = 10_000

func agentFiles(folder *workspace.Dir) (names []string, err error) {
	entries, more, err := folder.Entries(context.Background(), maxAgentFiles)
	if more {
		return nil, fmt.Errorf("the folder of agents has more than %d files", maxAgentFiles)
	}
	for _, e := range entries {
		// Editors give their lock and backup files names that begin with a dot.
		if name := e.Name(); filepath.Ext(name) == ".md" && name[0] != '.' && !e.IsDir() {
			names = append(names, name)
		}
	}
	return names, err
}

func nameTaken(defs []definition, def definition) error {
	for _, other := range defs {
		if other.agent.Name == def.agent.Name {
			return at(def.path, cmp.Or(def.lines["name"], 1), "the name %s is taken by %s; every agent needs its own",
				def.agent.Name, filepath.Base(other.path))
		}
	}
	return nil
}
