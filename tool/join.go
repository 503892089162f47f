package tool

import (
	"context"
	"strings"

	"parley"
	"parley/port"
)

var _ port.TenantToolbox = (*Box)(nil)

// Of returns the toolbox of a tenant. Without MCP servers there is only one
// box, because only the tenant of the workspace has results to keep.
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

// A joined box combines the tools over a workspace and those of MCP servers.
type joined struct {
	*Box
	servers port.Toolbox
}

// ofServer reports whether a name is that of a server's tool. Names of other
// tools have no separator.
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
	if err != nil { // the text is not used
		return result, err
	}
	server, _, _ := strings.Cut(name, parley.ServerSeparator)
	whole := &output{whole: j.spool(parley.ServerSource(server))}
	whole.Write([]byte(result.Text))
	result.Text = whole.String()
	return result, err
}
