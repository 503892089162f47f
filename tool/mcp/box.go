package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/port"
)

// A box holds the tools that servers offer one tenant, until ctx ends.
type box struct {
	ctx     context.Context
	servers *Servers
	ledger  port.ToolLedger
}

// may reports whether an agent may call a tool. An empty tool stands for any
// tool of the server.
func may(agent parley.Agent, server, tool string) bool {
	if agent.Tools == nil {
		return true
	}
	prefix := server + parley.ServerSeparator
	return slices.ContainsFunc(agent.Tools, func(name string) bool {
		return name == "*" || name == prefix+"*" || name == prefix+tool || tool == "" && strings.HasPrefix(name, prefix)
	})
}

// Specs returns the tools an agent may call. It waits up to two seconds for a
// server that has never connected, so that the first message of a user can use
// its tools. The tools of a slower server are offered from a later turn on.
// Specs does not wait for servers that have connected before: the last list of
// their tools is valid until they send another.
func (b *box) Specs(agent parley.Agent) []parley.ToolSpec {
	ctx, cancel := context.WithTimeout(b.ctx, firstWait)
	defer cancel()
	var links []*link
	for _, server := range b.servers.of(b.ledger.Tenant()) {
		if may(agent, server.Name, "") {
			l := b.servers.link(b.ledger.Tenant(), server)
			l.rouse()
			links = append(links, l)
		}
	}
	var specs []parley.ToolSpec
	for _, l := range links {
		select {
		case <-l.tried:
		case <-ctx.Done():
		}
		tools := l.known()
		accepted := b.accept(l, tools)
		for _, t := range tools {
			if t.availableAs(accepted) && may(agent, l.server.Name, t.name) {
				specs = append(specs, parley.ToolSpec{Name: t.full(l.server.Name), Description: t.shown(),
					Parameters: t.schema, ReadOnly: t.class(l.server.Trust) == parley.Pure})
			}
		}
	}
	return specs
}

// accept returns the digests that the tenant has accepted of a server. If there
// are none, it accepts the current tools, except unusable and suspicious ones.
func (b *box) accept(l *link, tools []offered) map[string]string {
	all, err := b.ledger.Accepted(b.ctx)
	if accepted := all[l.server.Name]; err == nil && accepted == nil {
		first := map[string]string{}
		for _, t := range tools {
			if t.unusable == "" && t.suspect == "" {
				first[t.name] = t.digest
			}
		}
		if len(first) == 0 {
			return nil
		}
		if err = b.ledger.AcceptFirst(b.ctx, l.server.Name, first); err == nil {
			all, err = b.ledger.Accepted(b.ctx) // another session may have been the first
		}
	}
	if err != nil {
		l.log.Warn("the accepted tools of an MCP server cannot be read; none is offered", "error", err)
		return nil
	}
	return all[l.server.Name]
}

// find returns a tool as currently known, if the agent may call it.
func (b *box) find(agent parley.Agent, name string) (*link, offered, error) {
	server, tool, _ := strings.Cut(name, parley.ServerSeparator)
	s, ok := b.servers.find(b.ledger.Tenant(), server)
	if !ok || !may(agent, server, tool) {
		return nil, offered{}, noTool(name)
	}
	l := b.servers.link(b.ledger.Tenant(), s)
	t, err := b.current(l, tool)
	return l, t, err
}

// current returns a tool as its server last listed it, if that version was
// accepted.
func (b *box) current(l *link, tool string) (offered, error) {
	tools := l.known()
	i := slices.IndexFunc(tools, func(t offered) bool { return t.name == tool })
	if i < 0 {
		return offered{}, noTool(l.server.Name + parley.ServerSeparator + tool)
	}
	all, err := b.ledger.Accepted(b.ctx)
	if err != nil {
		return offered{}, err
	}
	if accepted := all[l.server.Name]; !tools[i].availableAs(accepted) {
		return offered{}, parley.Errorf(parley.CodeInvalid, "The tool %s cannot be called: %s.",
			tools[i].full(l.server.Name), tools[i].why(accepted))
	}
	return tools[i], nil
}

// Judge lets calls of server tools run without asking only under full-auto. An
// approval covers the exact call, and the tool in its current version.
func (b *box) Judge(agent parley.Agent, name, arguments string) parley.Verdict {
	l, t, err := b.find(agent, name)
	if err == nil {
		arguments, err = object(arguments)
	}
	if err != nil {
		return parley.Verdict{Kind: parley.VerdictBlock, Reason: parley.MessageOf(err)}
	}
	v := parley.Verdict{Kind: parley.VerdictAsk, Class: t.class(l.server.Trust),
		Source: parley.ServerSource(l.server.Name),
		Digest: port.Digest("mcp", l.server.Name, t.name, arguments, t.digest),
		Show:   fmt.Sprintf("Call the tool %s of the server %s with:\n\n%s", t.name, l.server.Name, arguments)}
	if agent.Approval == parley.ApprovalFullAuto {
		v.Kind = parley.VerdictRun
	}
	return v
}

// object checks that the arguments are a JSON object.
func object(arguments string) (string, error) {
	arguments = strings.TrimSpace(arguments)
	if arguments == "" {
		return "{}", nil
	}
	if !strings.HasPrefix(arguments, "{") || !json.Valid([]byte(arguments)) {
		return "", parley.Errorf(parley.CodeInvalid, "The arguments are not a JSON object.")
	}
	return arguments, nil
}

// Perform carries out a call. It starts the server if it is not running.
func (b *box) Perform(ctx context.Context, agent parley.Agent, name, arguments string, progress port.Progress) (
	port.ToolResult, error) {
	server, tool, _ := strings.Cut(name, parley.ServerSeparator)
	s, ok := b.servers.find(b.ledger.Tenant(), server)
	if !ok || !may(agent, server, tool) {
		return port.ToolResult{}, noTool(name)
	}
	arguments, err := object(arguments)
	if err != nil {
		return port.ToolResult{}, err
	}
	l := b.servers.link(b.ledger.Tenant(), s)
	limited, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		c, err := l.acquire(limited)
		if err != nil {
			return port.ToolResult{}, unlessEnded(ctx, err)
		}
		// A server that was just started may have listed other tools.
		t, err := b.current(l, tool)
		if err != nil {
			l.release()
			return port.ToolResult{}, err
		}
		result, err := c.call(limited, t.name, arguments, progress)
		l.release()
		said, answered := refusal(err)
		switch {
		case err == nil:
			return result, nil
		case ctx.Err() != nil:
			return port.ToolResult{}, ctx.Err()
		case answered:
			if isRefused(err) { // a refusal over HTTP ends the session
				l.lost(c)
			}
			return port.ToolResult{}, parley.Errorf(parley.CodeInvalid, "The server %s did not take the call: %s",
				s.Name, said)
		case limited.Err() != nil:
			return port.ToolResult{},
				fate(err, t.class(s.Trust), fmt.Sprintf("The server %s did not answer within %s, and was told to stop.",
					s.Name, s.Timeout))
		}
		l.lost(c)
		if isForgotten(err) && attempt == 0 { // the server was restarted and has not carried out the call
			continue
		}
		return port.ToolResult{},
			fate(err, t.class(s.Trust), fmt.Sprintf("The server %s was lost while this ran.", s.Name))
	}
}

func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// fate returns the error of a call that was sent but not answered: a call with
// effects may have had them.
func fate(err error, class parley.ToolClass, message string) error {
	if class == parley.Effectful {
		return &parley.Error{Code: parley.CodeInterrupted, Message: message + " Nobody knows whether it happened.",
			Err: fmt.Errorf("%w: %w", port.ErrFateUnknown, err)}
	}
	return &parley.Error{Code: parley.CodeUnavailable, Message: message + " It can be called again.", Err: err}
}
