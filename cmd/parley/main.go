// Command parley is a server for conversations with AI agents.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/alecthomas/kong"

	"parley/config"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "parley:", err)
		os.Exit(1)
	}
}

// run is the program, for main and for tests.
func run(ctx context.Context, args []string, env config.Lookup, stdout, stderr io.Writer) error {
	var cli struct {
		Serve   serveCommand   `cmd:"" help:"Serve conversations."`
		Version versionCommand `cmd:"" help:"Print the version."`
	}
	exited := false
	k, err := kong.New(&cli, kong.Name("parley"), kong.Description("A server for conversations with AI agents."),
		kong.UsageOnError(), kong.Writers(stdout, stderr), kong.Exit(func(int) { exited = true }), config.Environment(env))
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := k.Parse(args)
	if exited {
		return nil // help was asked for
	}
	if err != nil {
		return err
	}
	return command.Run(&program{ctx, stdout, stderr})
}

// A program is what commands run in.
type program struct {
	ctx            context.Context // ends when the program is asked to stop
	stdout, stderr io.Writer
}

type versionCommand struct{}

func (versionCommand) Run(p *program) error {
	_, err := fmt.Fprintf(p.stdout, "parley %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
