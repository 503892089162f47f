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

// A box is the tools that servers offer one tenant, for as long as ctx lasts.
type box struct {
	ctx     context.Context
	servers *Servers
	ledger  port.ToolLedger
}

// may reports whether an agent is meant to call a tool; an empty tool stands for
// any of the server.
func may(agent parley.Agent, server, tool string) bool {
	if agent.Tools == nil {
		return true
	}
	prefix := server + parley.ServerSeparator
	return slices.ContainsFunc(agent.Tools, func(name string) bool {
		return name == "*" || name == prefix+"*" || name == prefix+tool || tool == "" && strings.HasPrefix(name, prefix)
	})
}

// Specs lists the tools an agent may call. A server that was never met is given
// two seconds, so that the first thing somebody says can use it; one that takes
// longer is on offer from a later turn on. Whoever was met is not waited for:
// what it listed last stands until it lists something else.
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

// accept is what the tenant has accepted of a server. If that is nothing at all,
// what it offers now is, but for what somebody had better look at.
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
			all, err = b.ledger.Accepted(b.ctx) // maybe somebody else's were first
		}
	}
	if err != nil {
		l.log.Warn("what was accepted of it is not known; its tools are not offered", "error", err)
		return nil
	}
	return all[l.server.Name]
}

// find is a tool as it is known now, if it may be called.
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

// current is a tool as its server last listed it, if that was accepted.
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

// Judge lets nothing of a server run unasked but under full-auto. What an
// approval covers is the call to the byte, and the tool as it is.
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

// object checks that arguments can be those of a call.
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

// Perform carries out a call. It starts the server if that is not running.
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
		// Who starts a server may have been told of other tools than before.
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
			if isRefused(err) { // what is refused over HTTP ends the session
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
		if isForgotten(err) && attempt == 0 { // it was restarted, and did nothing of this
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

// fate is the end of a call that was sent and not answered: what has effects may
// have had them.
func fate(err error, class parley.ToolClass, message string) error {
	if class == parley.Effectful {
		return &parley.Error{Code: parley.CodeInterrupted, Message: message + " Nobody knows whether it happened.",
			Err: fmt.Errorf("%w: %w", port.ErrFateUnknown, err)}
	}
	return &parley.Error{Code: parley.CodeUnavailable, Message: message + " It can be called again.", Err: err}
}
