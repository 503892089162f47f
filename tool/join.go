package tool

import (
	"context"
	"strings"

	"parley"
	"parley/port"
)

var _ port.TenantToolbox = (*Box)(nil)

// Of is the box of a tenant. Without servers there is only one that has results
// to keep: the tenant of the workspace.
func (b *Box) Of(ctx context.Context, ledger port.ToolLedger) port.Toolbox {
	if b.servers == nil {
		return b
	}
	own := *b
	if ledger != nil {
		own.tenant = ledger.Tenant()
	}
	return &joined{&own, b.servers.Of(ctx, ledger)}
}

// A joined box is the tools over a workspace, and those of servers.
type joined struct {
	*Box
	servers port.Toolbox
}

// ofServer: no tool over the workspace is called like that.
func ofServer(name string) bool { return strings.Contains(name, parley.ServerSeparator) }

func (j *joined) Specs(agent parley.Agent) []parley.ToolSpec {
	return append(j.Box.Specs(agent), j.servers.Specs(agent)...)
}

func (j *joined) Judge(agent parley.Agent, name, arguments string) parley.Verdict {
	if ofServer(name) {
		return j.servers.Judge(agent, name, arguments)
	}
	return j.Box.Judge(agent, name, arguments)
}

func (j *joined) Perform(ctx context.Context, agent parley.Agent, name, arguments string, progress port.Progress) (
	port.ToolResult, error) {
	if !ofServer(name) {
		return j.Box.Perform(ctx, agent, name, arguments, progress)
	}
	live := &output{live: progress}
	result, err := j.servers.Perform(ctx, agent, name, arguments, func(stream parley.Stream, text string) {
		live.write(stream, []byte(text))
	})
	server, _, _ := strings.Cut(name, parley.ServerSeparator)
	whole := &output{whole: j.spool(parley.ServerSource(server))}
	whole.Write([]byte(result.Text))
	result.Text = whole.String()
	return result, err
}
