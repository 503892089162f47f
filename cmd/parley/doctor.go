package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/config"
	"parley/sandbox"
	"parley/workspace"
)

type doctorCommand struct {
	config.Settings
	JSON bool `name:"json" help:"Print JSON."`
}

// A finding is the result of one check.
type finding struct {
	Name    string `json:"name"`
	Status  status `json:"status"`
	Message string `json:"message"`
	Do      string `json:"do,omitempty"` // what to do about it
}

type status string

const (
	fine    status = "ok"
	warning status = "warning"
	problem status = "problem"
)

// Help is printed below the usage.
func (*doctorCommand) Help() string {
	return `It looks at what parley serve would use if it started here: flags, the variables of this terminal, .env and
--config. If a server runs, it says which settings of that server are others.

Example:

  $ parley doctor`
}

// Run checks everything that a server needs, whether or not one is running, and
// changes nothing.
func (c *doctorCommand) Run(p *program) error {
	env := p.env
	d := &doctor{Settings: &c.Settings, ctx: p.ctx, env: env}
	d.examine()
	count := map[status]int{}
	for _, f := range d.found {
		count[f.Status]++
	}
	if c.JSON {
		out := json.NewEncoder(p.stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(map[string]any{"checks": d.found, "problems": count[problem],
			"warnings": count[warning]}); err != nil {
			return err
		}
	} else {
		for _, f := range d.found {
			line := fmt.Sprintf("%-8s %s: %s", f.Status, f.Name, f.Message)
			if f.Do != "" {
				line += " → " + f.Do
			}
			if _, err := fmt.Fprintln(p.stdout, strings.ReplaceAll(visible(line), "\n", "; ")); err != nil {
				return err
			}
		}
	}
	if n := count[problem]; n > 0 {
		return fmt.Errorf("the doctor found problems: %d", n)
	}
	return nil
}

// A doctor runs its checks in the order in which they depend on each other. A
// check that needs an earlier one to succeed is skipped if that one failed.
type doctor struct {
	*config.Settings
	ctx   context.Context
	env   config.Lookup
	found []finding

	answers bool // a Parley answers on --listen

	// The folders of the projects, and the sandbox for the first project's
	// commands, as parley serve would set them up.
	folders []folder
	box     *sandbox.Sandbox
	noBox   error // why there is no sandbox
}

// A folder is a project as the doctor found it.
type folder struct {
	config.Project
	files   *workspace.Workspace
	noFiles error // why it cannot be used
}

func (d *doctor) examine() {
	for i, p := range d.Projects {
		f := folder{Project: p}
		if f.files, f.noFiles = newWorkspace(d.Settings, p); f.noFiles == nil && i == 0 {
			d.box, d.noBox = newSandbox(d.Settings, p, f.files)
		}
		d.folders = append(d.folders, f)
	}
	d.settings()
	d.dataFolder()
	d.port()
	d.server()
	if d.database() {
		d.masterKey()
		if d.migrations() {
			d.sessions()
		}
	}
	for _, f := range d.folders {
		d.agents(f)
	}
	d.models()
	d.sandbox()
	d.toolServers()
	d.descriptors()
}

func (d *doctor) say(name string, s status, do, format string, args ...any) {
	d.found = append(d.found, finding{Name: name, Status: s, Message: strings.TrimSuffix(fmt.Sprintf(format, args...),
		"."), Do: do})
}

// fail reports an error as a problem.
func (d *doctor) fail(name string, err error, do string) {
	if e, ok := err.(*parley.Error); ok {
		cause := ""
		if e.Err != nil {
			cause = ": " + e.Err.Error()
		}
		if e.Hint != "" {
			do = e.Hint
		}
		d.say(name, problem, do, "%s%s", strings.TrimSuffix(e.Message, "."), cause)
		return
	}
	d.say(name, problem, do, "%v", err)
}

func (d *doctor) within(t time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(d.ctx, t)
}

func (d *doctor) settings() {
	if err := d.Check(); err != nil {
		d.say("settings", problem, "correct it; parley serve would not start", "%v", err)
		return
	}
	d.say("settings", fine, "", "valid")
}
