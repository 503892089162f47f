package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"parley"
	"parley/client"
	"parley/port"
	"parley/tui"
)

// runCommand is for pipes, cron and CI: it sends one input and prints the answer to standard output and progress to
// standard error. The exit code tells how the run ended.
type runCommand struct {
	serverFlags
	Prompt  []string      `arg:"" optional:"" help:"Message to the agent. Standard input, if it is a pipe or a file, is added to it."`
	Agent   string        `placeholder:"NAME" help:"Agent to ask (default: the agent of the session, or the first one)."`
	Model   string        `placeholder:"NAME" help:"Model for this run, instead of the agent's. Needs the right to change the agent."`
	Project string        `placeholder:"DIR" help:"Project of the session: its folder on the server, or its id (default of a new session: the project of this folder, or the first)."`
	Session string        `placeholder:"ID" aliases:"thread" help:"Session to continue, by its id or the beginning of it (default: a new session)."`
	Timeout time.Duration `placeholder:"DURATION" help:"Cancel the run after this time, such as 10m (default: never)."`
	Approve string        `default:"never" enum:"never,safe,all" help:"Calls to approve: never (the command ends at the first), safe (edits of files in the workspace, as with approval: auto-edit) or all."`
	File    []string      `placeholder:"PATH" sep:"none" help:"File to send with the message: an image (PNG, JPEG, GIF, WebP), or text, which is added to the message. May be repeated."`
	JSON    bool          `name:"json" help:"Print the events of the log as JSON lines instead of the answer."`
}

// Help is printed below the usage.
func (*runCommand) Help() string {
	return `The answer goes to standard output while it arrives, progress to standard error.
If no server runs, the command starts one for its own time, on this folder.

Example:

  $ git diff | parley run --approve safe "Review this change, and fix the typos."

Exit codes:

  0    the run completed
  1    the message was not sent: no server, wrong token, refused, wrong flags
  3    the run failed: the model, a limit, or an interruption
  4    the run waits for a person; the command says how to answer
  5    a person cancelled, denied or halted the run
  124  --timeout was over; the run was cancelled
  130  Ctrl-C; the run was cancelled (143: SIGTERM)
  141  standard output was closed; the run was cancelled`
}

// Exit codes of parley run, besides 0 and 1. The last four are the usual ones of shells and timeout(1).
const (
	exitFailed      = 3
	exitWaiting     = 4
	exitStopped     = 5
	exitTimeout     = 124
	exitInterrupted = 130
	exitPipe        = 141
	exitTerminated  = 143
)

var outcomeCodes = map[parley.Outcome]int{parley.Completed: 0, parley.Failed: exitFailed,
	parley.Interrupted: exitFailed, parley.Cancelled: exitStopped, parley.Denied: exitStopped,
	parley.Halted: exitStopped}

func (c *runCommand) Run(p *program) error {
	content, images, err := c.content(p.stdin)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(p.ctx)
	defer stop(nil)
	defer c.watch(ctx, stop)()
	r := &oneRun{runCommand: c, program: p, request: "run-" + uuid.NewString(), stop: stop}
	err = r.begin(ctx, content, images)
	if err == nil {
		err = r.follow(ctx)
	}
	if cause := context.Cause(ctx); cause != nil && p.ctx.Err() == nil {
		if exit, ok := errors.AsType[*exitError](cause); ok {
			err = exit
			r.cancel()
		}
	}
	if r.connection != nil {
		r.connection.close()
	}
	return err
}

// watch cancels the run on a signal or at its timeout. end stops the watch.
func (c *runCommand) watch(ctx context.Context, stop context.CancelCauseFunc) (end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE) // makes a write to a closed pipe return an error
	var over <-chan time.Time
	timer := time.NewTimer(max(c.Timeout, time.Hour))
	if c.Timeout > 0 {
		timer.Reset(c.Timeout)
		over = timer.C
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			code := exitInterrupted
			if s == syscall.SIGTERM {
				code = exitTerminated
			}
			stop(&exitError{code, nil})
		case <-over:
			stop(&exitError{exitTimeout, fmt.Errorf("the run was cancelled after %s (--timeout)", c.Timeout)})
		case <-ctx.Done():
		}
		signal.Stop(signals) // a second signal ends the program at once
	}()
	return func() {
		cancel()
		<-done
		timer.Stop()
		signal.Stop(pipes)
	}
}

// content returns the message: the arguments, then standard input if it is a pipe or a file, then text files. Other
// files are images.
func (c *runCommand) content(stdin io.Reader) (_ string, images [][]byte, err error) {
	parts := []string{}
	if prompt := strings.Join(c.Prompt, " "); prompt != "" {
		parts = append(parts, prompt)
	}
	if isPiped(stdin) {
		raw, err := io.ReadAll(io.LimitReader(stdin, parley.MaxContent+1))
		if err != nil {
			return "", nil, fmt.Errorf("standard input cannot be read: %w", err)
		}
		if text := strings.TrimRight(string(raw), "\n"); text != "" {
			parts = append(parts, text)
		}
	}
	for _, path := range c.File {
		text, image, err := readFile(path)
		if err != nil {
			return "", nil, fmt.Errorf("--file: %w", err)
		}
		if image != nil {
			images = append(images, image)
		} else {
			parts = append(parts, path+":\n\n"+strings.TrimRight(text, "\n"))
		}
	}
	content := strings.Join(parts, "\n\n")
	switch {
	case parley.IsBlank(content):
		return "", nil, errors.New("there is no message; give one as an argument, or on standard input: " +
			`parley run "Say hello."`)
	case len(content) > parley.MaxContent:
		return "", nil, fmt.Errorf("the message is longer than %d bytes", parley.MaxContent)
	}
	return content, images, nil
}

// readFile reads a file that contains text, an image or a PDF.
func readFile(path string) (text string, image []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 512))
	if err != nil {
		return "", nil, err
	}
	if kind := http.DetectContentType(head); strings.HasPrefix(kind, "image/") || kind == parley.TypePDF {
		image, err = tui.ReadImage(path)
		return "", image, err
	}
	rest, err := io.ReadAll(io.LimitReader(f, parley.MaxContent+1))
	if text = string(head) + string(rest); err == nil && (!utf8.ValidString(text) || strings.Contains(text, "\x00")) {
		err = fmt.Errorf("%s is neither text, an image nor a PDF", path)
	}
	return text, nil, err
}

// isPiped reports whether standard input has content for the command, which a terminal and /dev/null do not.
func isPiped(stream io.Reader) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return stream != nil
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

// edits are the tools whose calls --approve safe allows. They change only files of the workspace.
var edits = []string{"write_file", "edit_file", "apply_patch"}

// approves reports whether a value of --approve allows a call. The value safe never allows calls that follow untrusted
// content.
func approves(flag string, b parley.ApprovalRequested) bool {
	switch flag {
	case "all":
		return true
	case "safe":
		return slices.Contains(edits, b.Name) && b.Why == ""
	}
	return false
}

// settingsFor returns the flags for a server that a command starts, given its --project.
func settingsFor(project string) (flags []string) {
	if info, err := os.Stat(project); err == nil && info.IsDir() {
		flags = append(flags, "--workspace", project)
	}
	return flags
}

// open finds the session, or opens a new one.
func (c *runCommand) open(ctx context.Context, to *connection) (s port.Summary, elsewhere string, err error) {
	n := client.NewSession{Agent: c.Agent}
	if c.Session != "" {
		if n.ID, err = sessionNamed(ctx, to.Client, c.Session); err == nil {
			s, err = to.Session(ctx, n.ID)
		}
		return s, "", err
	}
	if n.Project, elsewhere, err = to.projectHere(ctx, c.Project); err != nil {
		return s, "", err
	}
	s, err = to.Open(ctx, n)
	return s, elsewhere, err
}
