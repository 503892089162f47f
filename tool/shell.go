package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/policy"
	"parley/port"
	"parley/sandbox"
	"parley/workspace"
)

//go:embed shell.md
var shellDescription string

//go:embed shell.json
var shellSchema string

type shellArguments struct {
	Command []string `json:"command"`
	Workdir string   `json:"workdir"`
	Timeout int      `json:"timeout_ms"`
}

const defaultTimeout = 120 * time.Second

// A command is the request of a shell call.
type command struct {
	argv    []string
	dir     string // relative to the workspace
	timeout time.Duration
}

var shell = define("shell", shellDescription, shellSchema, func(args shellArguments) (action, error) {
	c := command{argv: args.Command, dir: ".", timeout: time.Duration(args.Timeout) * time.Millisecond}
	if args.Workdir != "" {
		dir, err := workspace.Clean(args.Workdir)
		if err != nil {
			return action{}, fmt.Errorf("workdir: %w", err)
		}
		c.dir = dir
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	if parley.IsBlank(c.argv[0]) {
		return action{}, errors.New("command[0]: it is blank")
	}
	for i, word := range c.argv {
		if strings.ContainsRune(word, 0) {
			return action{}, fmt.Errorf("command[%d]: it holds a NUL", i)
		}
	}
	return action{class: parley.Effectful, path: c.dir, command: &c}, nil
})

const maxCommands = 32 // running at the same time; further ones wait

// judgeCommand completes the verdict on a command. A command that only reads
// can be repeated after a crash; the sandbox ensures that it only reads.
func (b *Box) judgeCommand(agent parley.Agent, c *command, v *parley.Verdict) {
	missing := b.sandbox.Missing()
	j := b.judged(c)
	kind, why := policy.Command(agent.Approval, j, missing)
	v.Kind = kind
	switch kind {
	case parley.VerdictBlock:
		v.Reason = why
		return
	case parley.VerdictAsk:
		v.Show = c.show(j, why)
		if limits := b.sandbox.Shortcomings(); limits != "" && !j.Reads {
			v.Show += "\n\n" + limits
		}
		v.Similar = b.similar(c, missing)
	default:
		v.Show = c.show(j, "")
	}
	place := "sandbox"
	if missing != nil {
		place = "bare" // an approval for the sandbox is not one for running outside
	}
	v.Digest = port.Digest("shell", v.Digest, place)
	v.Source = sourceOfCommand(j, missing)
	if j.Reads && missing == nil {
		v.Class = parley.Pure
	}
}

// sourceOfCommand returns the source of a command's output. The sandbox has no
// network. Without a sandbox, only a command that is known to read files stays
// offline.
func sourceOfCommand(j policy.Judgement, missing error) parley.Source {
	if missing != nil && !j.Reads {
		return parley.SourceNetwork
	}
	return parley.SourceWorkspace
}

// similar returns the rule that covers a command and similar ones. Without a
// sandbox there is no rule: outside, arguments can reach every file of the
// server.
func (b *Box) similar(c *command, missing error) (rule parley.SimilarRule) {
	found := policy.Similar(c.argv, b.place(c))
	if found.Name == "" || missing != nil {
		return rule
	}
	rule.Text = found.String()
	if c.dir != "." {
		rule.Text += fmt.Sprintf(", in the folder %q", c.dir)
	}
	rule.Digest = port.Digest("shell", "similar", found.Name, b.files.Root(), c.dir)
	return rule
}

// judged returns the judgement of policy on a command.
func (b *Box) judged(c *command) policy.Judgement { return policy.Judge(c.argv, b.place(c)) }

// place returns where a command would run. Folders that tools must not write to
// contain more than a project's own files, also in their history.
func (b *Box) place(c *command) policy.Place {
	at := policy.Place{Workspace: b.files.Root(), Dir: c.dir}
	for _, p := range b.files.Protected() {
		at.Protected = append(at.Protected, strings.ToLower(path.Base(p.Path)))
	}
	return at
}

// show returns the exact command for the approval, and remarks about it.
func (c *command) show(j policy.Judgement, why string) string {
	var b strings.Builder
	b.WriteString("Run in the workspace")
	if c.dir != "." {
		fmt.Fprintf(&b, ", in %q", c.dir)
	}
	fmt.Fprintf(&b, ", for at most %s:\n\n%s", c.timeout, quoted(c.argv))
	if len(j.Commands) > 1 {
		b.WriteString("\n\nThese commands are in it:")
		for _, part := range j.Commands {
			b.WriteString("\n  " + quoted(part))
		}
	}
	if why != "" {
		b.WriteString("\n\nThis asks because " + why + ".")
	}
	if len(j.Risks) > 0 {
		b.WriteString("\nNote that it " + strings.Join(j.Risks, ", ") + ".")
	}
	return b.String()
}

// quoted quotes words so that a word cannot look like several, or like none.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		if w != "" &&
			strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+") == "" {
			all[i] = w
		} else {
			all[i] = strconv.Quote(w)
		}
	}
	return strings.Join(all, " ")
}

// run carries out a command that was judged, and approved if necessary. It
// returns when all its processes are gone.
func (b *Box) run(ctx context.Context, agent parley.Agent, c *command, progress port.Progress) (port.ToolResult,
	error) {
	missing := b.sandbox.Missing()
	j := b.judged(c)
	if kind, why := policy.Command(agent.Approval, j, missing); kind == parley.VerdictBlock {
		return port.ToolResult{}, parley.Errorf(parley.CodeInvalid, "This was not run: %s.", why)
	}
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-ctx.Done():
		return port.ToolResult{}, ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	out := &output{live: progress, whole: b.spool(sourceOfCommand(j, missing))}
	ended, err := b.sandbox.Run(limited, sandbox.Command{
		Argv: c.argv, Dir: filepath.Join(b.files.Root(), filepath.FromSlash(c.dir)), ReadOnly: j.Reads &&
			missing == nil, Output: out, Stderr: out.errors(),
	})
	switch {
	case ctx.Err() != nil:
		out.whole.discard() // no result names it
		return port.ToolResult{}, ctx.Err()
	case err != nil:
		out.whole.discard()
		return port.ToolResult{},
			&parley.Error{Code: parley.CodeInvalid, Message: fmt.Sprintf("Running it failed: %v.", err), Err: err}
	}
	text := out.String()
	switch {
	case ended.Flood:
		return port.ToolResult{Text: fmt.Sprintf("stopped: it printed more than %d bytes\n%s", sandbox.MaxOutput,
			text), Failed: true}, nil
	case ended.Unpausable:
		return port.ToolResult{Text: "stopped: it could not be paused while another command was set up\n" + text,
			Failed: true}, nil
	case ended.Killed:
		return port.ToolResult{Text: fmt.Sprintf("stopped: it took longer than %s\n%s", c.timeout, text),
			Failed: true}, nil
	}
	if ended.Exit != 0 && looksForbidden(text) {
		if rules := b.sandbox.Rules(j.Reads && missing == nil); rules != "" {
			text = strings.TrimRight(text, "\n") + "\n[" + rules + "]\n"
		}
	}
	return port.ToolResult{Text: parley.ExitLine(ended.Exit) + text, Exit: &ended.Exit, Failed: ended.Exit != 0}, nil
}

// forbidden lists phrases of programs to which access was denied. They do not
// tell what denied it.
var forbidden = []string{
	"permission denied", "operation not permitted", "read-only file system", "device or resource busy",
	"network is unreachable",
	"temporary failure in name resolution", "could not resolve host", "invalid cross-device link", "eacces", "eperm",
	"erofs", "ebusy", "exdev",
}

// looksForbidden reports whether the end of a command's output may be about a
// rule of the sandbox.
func looksForbidden(text string) bool {
	const tail = 4096
	text = strings.ToLower(text[max(0, len(text)-tail):])
	return slices.ContainsFunc(forbidden, func(words string) bool { return strings.Contains(text, words) })
}
