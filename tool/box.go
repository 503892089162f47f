// Package tool implements the tools that agents may call, and decides which
// calls need a person's approval.
//
// A call is first understood, then judged, then performed. Understanding checks
// the arguments against the same schema that the model was given. It turns them
// into an action and touches nothing. Judging and performing both start from
// that action, so the call performed is the call judged. Every action accesses
// files through package workspace and writes to one bounded output.
package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"parley"
	"parley/policy"
	"parley/port"
	"parley/sandbox"
	"parley/workspace"
)

// A Box holds the tools over one workspace. It is safe for concurrent use.
type Box struct {
	files     *workspace.Workspace
	artifacts string // folder of long outputs; empty: they are not kept
	tenant    parley.TenantID
	sandbox   *sandbox.Sandbox
	slots     chan struct{}       // one for each running command
	skills    func() []port.Skill // nil: there are no skills
	servers   port.TenantToolbox  // MCP servers, whose tools are offered as well; may be nil
}

var _ port.Toolbox = (*Box)(nil)

// Options are the dependencies of a Box.
type Options struct {
	Files *workspace.Workspace // with the rules that the tools obey
	// Sandbox makes the box offer shell; nil: it does not. If the sandbox does
	// not work, commands ask a person, or are refused.
	Sandbox *sandbox.Sandbox
	// Artifacts is the folder in which long outputs are kept; the first one
	// creates it. If it is empty, they are not kept.
	Artifacts string
	// Skills returns the skills. The box offers the tool skill while there are
	// any; nil: there are none.
	Skills func() []port.Skill
	// Servers are the MCP servers whose tools are offered as well; may be nil.
	// Their results have the same limit as all others.
	Servers port.TenantToolbox
}

// New returns a box with the tools over a workspace.
func New(o Options) *Box {
	return &Box{files: o.Files, sandbox: o.Sandbox, slots: make(chan struct{}, maxCommands), artifacts: o.Artifacts,
		skills: o.Skills, servers: o.Servers}
}

// The tools, in the order in which models get them.
var tools = []tool{reads(listFiles), reads(findFiles), reads(searchFiles), reads(readFile), writeFile, editFile,
	applyPatch, shell, anywhere(reads(askUser)), anywhere(reads(updatePlan)), reads(skill), anywhere(delegate),
	anywhere(scheduleFollowUp), anywhere(cancelFollowUps), anywhere(finalizeTask)}

// reads marks a tool that changes nothing, whatever its arguments.
func reads(t tool) tool {
	t.ReadOnly = true
	return t
}

// anywhere marks a tool that touches neither the workspace nor any other
// resource of which there is only one.
func anywhere(t tool) tool {
	t.Anywhere = true
	return t
}

type tool struct {
	parley.ToolSpec
	understand func(arguments string) (action, error)
}

// An action is a call whose arguments were understood.
type action struct {
	class       parley.ToolClass
	edits       bool              // it edits files of the workspace
	path        string            // the path of the workspace that it is about; empty: none
	paths       []string          // likewise, if there may be several
	show        string            // for the person: exactly what the call will do
	questions   []parley.Question // to a person; the answer is the result
	agent       string            // that gets the task
	task        string            // for another agent; its answer is the result
	plan        *parley.PlanUpdate
	followUp    *parley.FollowUp
	command     *command        // to run
	skill       *skillArguments // the skill to read
	artifact    bool            // it reads an artifact, not the workspace
	source      parley.Source   // of the result; empty: the conversation
	noFollowUps bool            // it cancels all follow-ups
	// rest describes how to read the lines that a long result omits. The
	// numbers start from 1. If rest is nil, there is no way to read them.
	rest func(from, to int) string
	// Either look or perform carries out the action; a question has neither.
	look func(ctx context.Context, v *workspace.View, out io.Writer) error // it only reads
	// exact replaces look for agents that are programs, which may write the
	// text back.
	exact   func(ctx context.Context, v *workspace.View, out io.Writer) error
	perform func(ctx context.Context, e *workspace.Edit, out io.Writer) error
}

// define returns a tool whose arguments have type A.
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

// Specs returns the tools that the agent may call.
func (b *Box) Specs(agent parley.Agent) []parley.ToolSpec {
	var specs []parley.ToolSpec
	for _, t := range tools {
		if b.has(agent, t.Name) {
			specs = append(specs, t.ToolSpec)
		}
	}
	return specs
}

// Judge blocks calls that cannot be understood or that the agent may not make.
// Edits ask a person unless the agent's approval mode allows them; an unknown
// mode counts as the strictest. Edits of files that make other machines or the
// programs of people run code always ask.
func (b *Box) Judge(agent parley.Agent, name, arguments string) parley.Verdict {
	a, err := b.understand(agent, name, arguments)
	if err != nil {
		return parley.Verdict{Kind: parley.VerdictBlock, Reason: err.Error()}
	}
	v := parley.Verdict{Kind: parley.VerdictRun, Class: a.class, Show: a.show, Questions: a.questions, Agent: a.agent,
		Task: a.task}
	v.Digest = port.Digest(name, arguments, b.files.Root())
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

// Perform carries out a call. Its errors are safe to show. If the call was not
// understood, the error has CodeInvalid.
func (b *Box) Perform(ctx context.Context, agent parley.Agent, name, arguments string, progress port.Progress) (
	port.ToolResult, error) {
	a, err := b.understand(agent, name, arguments)
	switch {
	case err != nil:
		return port.ToolResult{}, parley.Errorf(parley.CodeInvalid, "%s", err)
	case a.perform == nil && a.look == nil && a.command == nil && a.skill == nil:
		return port.ToolResult{}, parley.Errorf(parley.CodeInvalid,
			"%s is not run as a tool: a person or the server itself answers it.", name)
	case ctx.Err() != nil:
		return port.ToolResult{}, ctx.Err()
	case a.command != nil:
		return b.run(ctx, agent, a.command, progress)
	case a.skill != nil:
		text, err := b.useSkill(*a.skill)
		if err != nil {
			return port.ToolResult{}, parley.Errorf(parley.CodeInvalid, "%s", err)
		}
		return port.ToolResult{Text: text}, nil
	case a.exact != nil && len(agent.Command) > 0:
		return b.lookExactly(ctx, a)
	}
	out := output{rest: a.rest}
	if a.look != nil {
		err = b.look(ctx, a, &out)
	} else {
		err = b.edit(ctx, a, &out)
	}
	if err != nil {
		return port.ToolResult{}, err
	}
	return port.ToolResult{Text: out.String()}, nil
}

// look carries out an action that only reads the workspace or an artifact.
func (b *Box) look(ctx context.Context, a action, out io.Writer) error {
	if a.artifact {
		return b.lookAtArtifact(ctx, a, out)
	}
	return lookIn(ctx, b.files, a, out)
}

// lookExactly carries out an action whose result is the exact bytes of a file,
// or an error.
func (b *Box) lookExactly(ctx context.Context, a action) (port.ToolResult, error) {
	var out strings.Builder
	a.look = a.exact
	if err := lookIn(ctx, b.files, a, &out); err != nil {
		return port.ToolResult{}, err
	}
	return port.ToolResult{Text: out.String(), Exact: true}, nil
}

func lookIn(ctx context.Context, files *workspace.Workspace, a action, out io.Writer) error {
	view, err := files.For(workspace.AgentReads)
	if err != nil {
		return err
	}
	defer view.Close()
	return a.look(ctx, view, out)
}

func (b *Box) edit(ctx context.Context, a action, out io.Writer) error {
	e, err := b.files.Edit()
	if err != nil {
		return err
	}
	defer e.Close()
	return a.perform(ctx, e, out)
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
	if a.skill != nil { // a skill counts as instructions, so it has no source
		_, err = b.useSkill(*a.skill)
		return a, err
	}
	if a.source == "" && !tools[i].Anywhere {
		a.source = parley.SourceWorkspace
	}
	purpose := workspace.AgentReads
	if a.edits {
		purpose = workspace.AgentWrites
	}
	for _, name := range append(a.paths, a.path) {
		if name == "" {
			continue
		}
		if err := b.files.Check(name, purpose); err != nil {
			return action{}, errors.New(strings.TrimSuffix(parley.MessageOf(err), "."))
		}
	}
	return a, nil
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
