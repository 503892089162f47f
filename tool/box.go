// Package tool holds the tools an agent may call and says which calls need a
// person's approval.
//
// A call is first understood, then judged, then performed. Understanding turns
// the arguments, checked against the very schema the model was given, into an
// action; it touches nothing. Judging and performing both start from there, so
// what is performed is what was judged. Every action reaches files through an
// os.Root of the workspace and answers through one bounded output.
package tool

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley"
	"parley/policy"
	"parley/sandbox"
)

// A Box is the tools over one workspace. It may be used concurrently.
type Box struct {
	workspace string   // absolute, without symbolic links
	protected []string // folders no tool touches; in the same form
	kept      []string // folders no tool writes to; likewise, as far as they exist
	artifacts string   // folder of long outputs; empty: they are not kept
	sandbox   *sandbox.Sandbox
	slots     chan struct{}         // taken by commands that run
	skills    func() []parley.Skill // nil: there are none
	servers   parley.TenantToolbox  // whose tools it offers as well; may be nil
}

var _ parley.Toolbox = (*Box)(nil)

// New fails unless workspace is a directory. No tool touches what is in the
// protected folders, wherever in the workspace they are: the server's own data
// belongs there.
func New(workspace string, protected ...string) (*Box, error) {
	b := &Box{}
	for i, name := range append([]string{workspace}, protected...) {
		path, err := filepath.Abs(name)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", name, err)
		}
		if i == 0 {
			b.workspace = path
		} else {
			b.protected = append(b.protected, path)
		}
	}
	root, err := os.OpenRoot(b.workspace)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", workspace, err)
	}
	return b, root.Close()
}

// Keep has no tool write to a folder, which need not exist: what agents are is
// not for agents to say.
func (b *Box) Keep(folder string) error {
	path, err := filepath.Abs(folder)
	if err == nil {
		b.kept = append(b.kept, leadsTo(path))
	}
	return err
}

// The tools, in the order models are told of them.
var tools = []tool{reads(listFiles), reads(findFiles), reads(searchFiles), reads(readFile), writeFile, editFile, applyPatch, shell, anywhere(reads(askUser)), anywhere(reads(updatePlan)), reads(skill), anywhere(delegate), anywhere(scheduleFollowUp), anywhere(cancelFollowUps), anywhere(finalizeTask)}

// reads says that a tool changes nothing, whatever its arguments.
func reads(t tool) tool {
	t.ReadOnly = true
	return t
}

// anywhere says that a tool touches neither the workspace nor anything else that
// is there once.
func anywhere(t tool) tool {
	t.Anywhere = true
	return t
}

type tool struct {
	parley.ToolSpec
	understand func(arguments string) (action, error)
}

// An action is a call that was understood.
type action struct {
	class       parley.ToolClass
	edits       bool              // files of the workspace
	path        string            // of the workspace that it is about; empty: none
	paths       []string          // likewise, where there may be several
	show        string            // exactly what will be done
	questions   []parley.Question // to a person, whose answer is the result
	agent       string            // that the task is for
	task        string            // for another agent, whose answer is the result
	plan        *parley.PlanUpdate
	followUp    *parley.FollowUp
	command     *command        // to be run
	skill       *skillArguments // to be read
	artifact    bool            // it is about those, not about the workspace
	source      parley.Source   // of its result; empty: the conversation
	noFollowUps bool            // it cancels them all
	// rest says how to get lines of a long result that were left out, counted
	// from 1; nil: in no way.
	rest func(from, to int) string
	// One of the two carries it out; a question has neither.
	look    func(ctx context.Context, v view, out io.Writer) error // it only reads
	perform func(ctx context.Context, workspace *os.Root, out io.Writer) error
}

// define makes a tool whose arguments are an A.
func define[A any](name, description, parameters string, understand func(A) (action, error)) tool {
	s := mustSchema(parameters)
	spec := parley.ToolSpec{Name: name, Description: strings.TrimSpace(description), Parameters: parameters}
	return tool{spec, func(arguments string) (action, error) {
		var a A
		if err := s.decode(arguments, &a); err != nil {
			return action{}, err
		}
		return understand(a)
	}}
}

// Specs lists the tools the agent may call.
func (b *Box) Specs(agent parley.Agent) []parley.ToolSpec {
	var specs []parley.ToolSpec
	for _, t := range tools {
		if b.has(agent, t.Name) {
			specs = append(specs, t.ToolSpec)
		}
	}
	return specs
}

// Judge blocks what cannot be understood or is not the agent's to call. Edits
// ask a person unless the agent's approval mode says that they need not; a mode
// nobody knows counts as the strictest. Files that make other machines or people's
// tools run something always ask.
func (b *Box) Judge(agent parley.Agent, name, arguments string) parley.Verdict {
	a, err := b.understand(agent, name, arguments)
	if err != nil {
		return parley.Verdict{Kind: parley.VerdictBlock, Reason: err.Error()}
	}
	v := parley.Verdict{Kind: parley.VerdictRun, Class: a.class, Show: a.show, Questions: a.questions, Agent: a.agent, Task: a.task}
	v.Digest = digest(name, arguments, b.workspace)
	v.Source = a.source
	switch {
	case len(a.questions) > 0:
		v.Kind = parley.VerdictCard
	case a.task != "":
		v.Kind = parley.VerdictChild
	case a.plan != nil:
		v.Kind, v.Plan = parley.VerdictPlan, *a.plan
	case a.followUp != nil:
		v.Kind, v.FollowUp = parley.VerdictFollowUp, *a.followUp
	case a.noFollowUps:
		v.Kind = parley.VerdictNoFollowUps
	case a.command != nil:
		b.judgeCommand(agent, a.command, &v)
	case a.edits && slices.ContainsFunc(append(a.paths, a.path), runsElsewhere):
		v.Kind = parley.VerdictAsk
	case a.edits:
		v.Kind = policy.Edit(agent.Approval)
	}
	return v
}

// Perform carries out a call. Its errors are safe to show; what was not
// understood is CodeInvalid.
func (b *Box) Perform(ctx context.Context, agent parley.Agent, name, arguments string, progress func(string)) (parley.ToolResult, error) {
	a, err := b.understand(agent, name, arguments)
	switch {
	case err != nil:
		return parley.ToolResult{}, parley.Errorf(parley.CodeInvalid, "%s", err)
	case a.perform == nil && a.look == nil && a.command == nil && a.skill == nil:
		return parley.ToolResult{}, parley.Errorf(parley.CodeInvalid, "%s is not performed: a person answers it, or the log takes it in.", name)
	case ctx.Err() != nil:
		return parley.ToolResult{}, ctx.Err()
	case a.command != nil:
		return b.run(ctx, agent, a.command, progress)
	case a.skill != nil:
		text, err := b.useSkill(*a.skill)
		if err != nil {
			return parley.ToolResult{}, parley.Errorf(parley.CodeInvalid, "%s", err)
		}
		return parley.ToolResult{Text: text}, nil
	}
	folder, hides := b.workspace, b.hides
	if a.artifact {
		folder, hides = b.artifacts, func(string) bool { return false }
	}
	root, err := os.OpenRoot(folder)
	switch {
	case err != nil && a.artifact:
		return parley.ToolResult{}, &parley.Error{Code: parley.CodeNotFound, Message: "There is no such artifact.", Err: err}
	case err != nil:
		return parley.ToolResult{}, &parley.Error{Code: parley.CodeUnavailable, Message: "The workspace cannot be opened.", Err: err}
	}
	defer root.Close()
	out := output{rest: a.rest}
	if a.look != nil {
		err = a.look(ctx, view{root, hides}, &out)
	} else {
		err = a.perform(ctx, root, &out)
	}
	if err != nil {
		return parley.ToolResult{}, err
	}
	return parley.ToolResult{Text: out.String()}, nil
}

func (b *Box) understand(agent parley.Agent, name, arguments string) (action, error) {
	i := slices.IndexFunc(tools, func(t tool) bool { return t.Name == name })
	if i < 0 || !b.has(agent, name) {
		return action{}, fmt.Errorf("there is no tool %.80q for this agent; it has: %s", name, b.names(agent))
	}
	a, err := tools[i].understand(arguments)
	if err != nil {
		return action{}, fmt.Errorf("the arguments of %s are not valid: %w", name, err)
	}
	if a.skill != nil { // it is part of what agents are told, like their instructions
		_, err = b.useSkill(*a.skill)
		return a, err
	}
	if a.source == "" && !tools[i].Anywhere {
		a.source = parley.SourceWorkspace
	}
	for _, name := range append(a.paths, a.path) {
		switch {
		case name == "":
		case b.isProtected(name):
			return action{}, fmt.Errorf("%q is not for tools: it holds the server's own data or secrets", name)
		case a.edits && within(b.kept, leadsTo(filepath.Join(b.workspace, filepath.FromSlash(name)))):
			return action{}, fmt.Errorf("%q is not for tools to write: it says what agents are", name)
		}
	}
	return a, nil
}

// isProtected judges a path by where it leads, as far as it exists, and by its
// words: .env files hold keys.
func (b *Box) isProtected(name string) bool {
	return isSecret(name) || b.hides(leadsTo(filepath.Join(b.workspace, filepath.FromSlash(name))))
}

// hides judges an absolute path without symbolic links.
func (b *Box) hides(path string) bool { return isSecret(path) || within(b.protected, path) }

// Hides reports whether what is at an absolute path is not for agents, nor for
// who is told what they did.
func (b *Box) Hides(path string) bool { return b.hides(path) || b.hides(leadsTo(path)) }

// leadsTo is where an absolute path leads, as far as it exists.
func leadsTo(path string) string {
	leads, rest := path, ""
	for range 255 {
		if real, err := filepath.EvalSymlinks(leads); err == nil {
			return filepath.Join(real, rest)
		}
		if to, err := os.Readlink(leads); err == nil { // to something that is not there
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(leads), to)
			}
			leads = to
			continue
		}
		leads, rest = filepath.Dir(leads), filepath.Join(filepath.Base(leads), rest)
	}
	return path
}

// within reports whether a path is one of the folders, or in one. Case does not
// count: to some file systems it is nothing.
func within(folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		inside, err := filepath.Rel(strings.ToLower(folder), strings.ToLower(path))
		return err == nil && filepath.IsLocal(inside)
	})
}

func (b *Box) names(agent parley.Agent) string {
	var names []string
	for _, s := range b.Specs(agent) {
		names = append(names, s.Name)
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (b *Box) has(agent parley.Agent, name string) bool {
	if name == shell.Name && b.sandbox == nil || unasked(name) && !agent.Autonomy.Enabled {
		return false
	}
	if name == skill.Name && len(b.callable()) == 0 {
		return false
	}
	return agent.Tools == nil || slices.Contains(agent.Tools, "*") || slices.Contains(agent.Tools, name)
}

// digest names what an approval covers. Each part goes in behind its length, so
// that no two calls become one by moving bytes between parts.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		io.WriteString(h, p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
