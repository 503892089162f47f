package main

import (
	"context"
	"fmt"
	"log/slog"

	"parley"
	"parley/config"
	"parley/port"
	"parley/remote/acp"
	"parley/sandbox"
)

// newPrograms runs remote agents that are local programs. They run without a
// sandbox, and when one ends, all processes that it started end too.
func newPrograms(projects []*project, env config.Lookup, log *slog.Logger) *acp.Programs {
	return acp.New(acp.Options{Log: log, Env: env, Version: version,
		Run: func(ctx context.Context, l acp.Launch) (string, error) {
			for _, p := range projects {
				if p.Root == l.Root {
					return runProgram(ctx, p.commands, l)
				}
			}
			return "", fmt.Errorf("there is no project %s", l.Root)
		}})
}

func runProgram(ctx context.Context, box *sandbox.Sandbox, l acp.Launch) (string, error) {
	ended, err := box.Run(ctx, sandbox.Command{Argv: l.Argv, Dir: l.Root, Env: l.Env, Bare: true, Input: l.Input,
		Reply: l.Reply, Output: l.Stderr})
	switch {
	case err != nil:
		return "", err
	case ended.Killed:
		return "", nil // this server has killed it
	case ended.Exit > 128:
		return fmt.Sprintf("signal %d", ended.Exit-128), nil
	}
	return fmt.Sprintf("exit code %d", ended.Exit), nil
}

// Ask passes a conversation to a remote agent. See port.Remotes.
func (r remoteAgents) Ask(ctx context.Context, q port.RemoteRequest) (port.RemoteAnswer, error) {
	if len(q.Agent.Command) > 0 {
		return r.programs.Ask(ctx, q)
	}
	return r.Pool.Ask(ctx, q)
}

// Unreachable returns why a remote agent cannot be called now. See port.Remotes.
func (r remoteAgents) Unreachable(tenant parley.TenantID, a parley.Agent) error {
	if len(a.Command) > 0 {
		return r.programs.Unreachable(tenant, a)
	}
	return r.Pool.Unreachable(tenant, a)
}

// Close ends all programs and closes all connections.
func (r remoteAgents) Close(ctx context.Context) error {
	_ = r.programs.Close(ctx) // never fails
	return r.Pool.Close(ctx)
}
