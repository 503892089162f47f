package parley

import (
	"maps"
	"regexp"
)

// Tools of MCP servers are accepted by the digest of their description. If a
// server later describes a tool or its arguments differently, it is a different
// tool, which a person must accept first. The tools that a server offers a
// tenant at the first use are accepted without a person.

// ServerSeparator is between the name of a server and the name of its tool.
const ServerSeparator = "__"

var (
	serverPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)
	toolPattern   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// ValidServerName reports whether the name is valid for an MCP server. It
// contains no underscore, so that the name of a tool identifies its server.
func ValidServerName(name string) bool { return serverPattern.MatchString(name) }

// ValidServerTool reports whether model vendors accept the name of a tool with
// its server's name.
func ValidServerTool(server, tool string) bool {
	return toolPattern.MatchString(tool) && len(server)+len(ServerSeparator)+len(tool) <= maxToolName
}

// ToolsAccepted: agents may call these tools of an MCP server, as long as the
// server's descriptions of them have these digests.
type ToolsAccepted struct {
	Server string            `json:"server"`
	Tools  map[string]string `json:"tools"`
	First  bool              `json:"first,omitempty"` // first use of the server; no person was asked
}

// AcceptTools lets agents call tools of a server whose descriptions have these
// digests.
type AcceptTools struct {
	Server string
	Tools  map[string]string
	First  bool // do nothing if a tool of the server was accepted before
}

// withTools returns the accepted tools including more. It does not modify was.
func withTools(was map[string]map[string]string, more ToolsAccepted) map[string]map[string]string {
	now := maps.Clone(was)
	if now == nil {
		now = map[string]map[string]string{}
	}
	tools := maps.Clone(now[more.Server])
	if tools == nil {
		tools = map[string]string{}
	}
	maps.Copy(tools, more.Tools)
	now[more.Server] = tools
	return now
}

func (b ToolsAccepted) fold(s State, _ Event) State {
	s.Facts.Accepted = withTools(s.Facts.Accepted, b)
	return s
}

func (do AcceptTools) Rules() Rules {
	r := Rules{Action: ActAdmin, Tenant: true, Limits: []limit{{"name of a server", len(do.Server), MaxName}}}
	if do.First {
		r.Wrong = Errorf(CodeInvalid, "Only the server accepts the tools of a new tool server.")
	}
	return r
}

func (do AcceptTools) decide(d *decision, _ Command) error {
	known := d.s.Facts.Accepted[do.Server]
	switch {
	case !ValidServerName(do.Server):
		return Errorf(CodeInvalid, "Name the tool server.")
	case len(do.Tools) == 0 || len(do.Tools) > MaxServerTools:
		return Errorf(CodeInvalid, "Name 1 to %d tools, each with its digest.", MaxServerTools)
	case do.First && known != nil:
		return nil
	}
	news := map[string]string{}
	for tool, digest := range do.Tools {
		if !ValidServerTool(do.Server, tool) || !digestPattern.MatchString(digest) {
			return Errorf(CodeInvalid, "A tool needs its name, and the digest under which the server lists it.")
		}
		if known[tool] != digest {
			news[tool] = digest
		}
	}
	if len(news) > 0 {
		d.emitTenant(ToolsAccepted{Server: do.Server, Tools: news, First: do.First})
	}
	return nil
}
