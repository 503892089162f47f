// Command parley is a server for conversations with AI agents.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/alecthomas/kong"

	"parley"
	"parley/config"
	"parley/pdf"
	"parley/sandbox"
)

// version is set by the build.
var version = "dev"

func main() {
	sandbox.Main() // if this process is to run a command for parley, it does so and exits
	pdf.Main()     // likewise if it is to read a document
	p := &program{ctx: context.Background(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	err := p.run(os.Args[1:], os.LookupEnv)
	if err == nil {
		return
	}
	code := 1
	if exit, ok := errors.AsType[*exitError](err); ok {
		code, err = exit.code, exit.err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "parley:", describe(err))
	}
	os.Exit(code)
}

// An exitError ends the program with an exit code. If err is nil, nothing is left to print.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// describe returns an error with its hint and cause. It is for operators, who may see all details.
func describe(err error) string {
	e, ok := errors.AsType[*parley.Error](err)
	if !ok {
		return visible(err.Error())
	}
	s := e.Message
	if e.Hint != "" {
		s += " " + strings.ToUpper(e.Hint[:1]) + e.Hint[1:] + "."
	}
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	return visible(s)
}

// A program is the environment of a command, in main and in tests.
type program struct {
	ctx            context.Context // ends when the caller cancels the command
	stdin          io.Reader
	stdout, stderr io.Writer
	env            config.Lookup
}

// commands are the sub-commands of parley.
type commands struct {
	Serve        serveCommand        `cmd:"" help:"Start the server."`
	Chat         chatCommand         `cmd:"" help:"Talk to an agent in this terminal."`
	Run          runCommand          `cmd:"" help:"Send one message to an agent, print the answer, and exit with a code that says how the run ended."`
	Acp          acpCommand          `cmd:"" help:"Let an editor that speaks the Agent Client Protocol use a running server, over standard input and output."`
	Sessions     sessionsCommand     `cmd:"" help:"List, rename and delete sessions."`
	Search       searchCommand       `cmd:"" help:"Find messages by their words."`
	Log          logCommand          `cmd:"" help:"Print the log of a session, or follow it."`
	Approvals    approvalsCommand    `cmd:"" help:"List and answer everything that waits for a person."`
	Runs         runsCommand         `cmd:"" help:"List and cancel runs."`
	Grants       grantsCommand       `cmd:"" help:"List and revoke calls that were allowed for the rest of a session."`
	Fork         forkCommand         `cmd:"" help:"Open a session with the conversation of another one."`
	Replay       replayCommand       `cmd:"" help:"Run a recorded session again with another model, prompt or agent, and show the differences."`
	Eval         evalCommand         `cmd:"" help:"Run recorded sessions or inputs again, and check the answers."`
	Agents       agentsCommand       `cmd:"" help:"List, start and stop agents."`
	Missions     missionsCommand     `cmd:"" help:"List missions, and end one."`
	Models       modelsCommand       `cmd:"" help:"List the models of the configured vendors."`
	Nodes        nodesCommand        `cmd:"" help:"List the servers that share a database."`
	Usage        usageCommand        `cmd:"" help:"Print the usage of a day and the rest of the quotas."`
	Erase        eraseCommand        `cmd:"" help:"Erase the data of a user, with a proof in the audit log."`
	Export       exportCommand       `cmd:"" help:"Write a session as JSON lines or as a document. The server may be running."`
	Retain       retainCommand       `cmd:"" help:"Delete data that is older than the retention rules allow, or print how much there is."`
	Hold         holdCommand         `cmd:"" help:"List, set and release legal holds, which keep sessions from deletion."`
	Import       importCommand       `cmd:"" help:"Import a session that parley export wrote."`
	Backup       backupCommand       `cmd:"" help:"Copy the database to a file and verify the copy, once or on a schedule. The server may be running."`
	Migrate      migrateCommand      `cmd:"" help:"Migrate the database to this release, without starting the server."`
	UpgradeCheck upgradeCheckCommand `cmd:"" help:"List the changes that this version would make to the database, and make none. The server may be running."`
	Doctor       doctorCommand       `cmd:"" help:"Check the configuration, the database, the models and the machine, and say how to fix problems."`
	Health       healthCommand       `cmd:"" help:"Ask a running server whether it is well; the exit code is 0 or 1."`
	Token        tokenCommand        `cmd:"" help:"Print an access token, for a server with --auth jwt and PARLEY_JWT_SECRET."`
	Keys         keysCommand         `cmd:"" help:"List and rotate the master keys that encrypt stored secrets."`
	Audit        auditCommand        `cmd:"" help:"Check the audit log."`
	Timers       timersCommand       `cmd:"" help:"List timers (follow-ups). The server may be running."`
	Effects      effectsCommand      `cmd:"" help:"List effects: messages and webhooks that were promised, with their delivery. The server may be running."`
	Bench        benchCommand        `cmd:"" help:"Measure how fast a server is, and check that it loses nothing under load."`
	Completion   completionCommand   `cmd:"" help:"Print a script that completes commands, flags and names in a shell."`
	Complete     completeCommand     `cmd:"" hidden:"" help:"List the words that complete a command line; for the scripts of parley completion."`
	Version      versionCommand      `cmd:"" help:"Print the version."`

	PrintVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

// A runner is a sub-command whose flags and arguments are set.
type runner interface {
	Run(p *program) error
}

func (p *program) run(args []string, env config.Lookup) error {
	p.env = env
	command, err := p.parse(args) // the parser, a megabyte, is garbage while a server runs
	if err != nil || command == nil {
		return err
	}
	return command.Run(p)
}

// parse returns the sub-command of a command line, or nil if help or the version was printed.
func (p *program) parse(args []string) (runner, error) {
	var cli commands
	exited := false
	k, err := p.parser(&cli, kong.Exit(func(int) { exited = true }))
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := k.Parse(args)
	if exited {
		return nil, nil
	}
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok && !strings.Contains(err.Error(), "did you mean") {
		return nil, fmt.Errorf("%w; parley%s --help describes the flags and arguments", err, commandOf(wrong.Context))
	}
	if err != nil {
		return nil, err
	}
	selected, ok := command.Selected().Target.Addr().Interface().(runner)
	if !ok {
		return nil, fmt.Errorf("parley%s does nothing by itself", commandOf(command))
	}
	return selected, nil
}

func (p *program) parser(cli *commands, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(cli, append(options, kong.Name("parley"),
		kong.Description("A server for conversations with AI agents."), kong.UsageOnError(), kong.Help(printHelp),
		kong.Writers(p.stdout, p.stderr), kong.Vars{"version": about()}, config.Environment(p.env))...)
}

// printHelp prints the help of a command. If a command has a default sub-command, the flags, the arguments and the
// example of that one are included.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if node := ctx.Selected(); node != nil && node.DefaultCmd != nil {
		node.Flags = append(node.Flags, node.DefaultCmd.Flags...)
		node.Detail, node.Positional = node.DefaultCmd.Detail, node.DefaultCmd.Positional
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

// commandOf returns the command in an incomplete command line, with a blank before each word.
func commandOf(ctx *kong.Context) (words string) {
	for _, step := range ctx.Path {
		if step.Command != nil {
			words += " " + step.Command.Name
		}
	}
	return words
}

type versionCommand struct{}

func (versionCommand) Run(p *program) error {
	_, err := fmt.Fprintln(p.stdout, about())
	return err
}

// about describes this binary: its version, the version of Go, and the platform.
func about() string {
	return fmt.Sprintf("parley %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
