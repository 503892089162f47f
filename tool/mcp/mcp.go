// Package mcp offers the tools of servers outside Parley, which speak the Model
// Context Protocol over the pipes of a process or over HTTP.
//
// Every tenant has a connection of its own to every server, which is made when
// an agent first has a use for it, ends when nobody had one for a while, and is
// made again, after longer and longer pauses, when it breaks. What a server says
// of its tools is not believed twice: the tenant's session knows what was
// accepted, and a tool that says something else now is not offered until a
// person accepts that.
//
// Goroutines: one keeper per connection and one per process, and one per call;
// Close and Perform wait for them. Locks: Servers.mu guards the links, link.mu
// one of them, conn.mu the calls that hear of progress; all are leaves and never
// held across I/O.
package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/sandbox"
)

// A Server is what an operator says of one. It has a Command or a URL.
type Server struct {
	Name     string            // parley.ValidServerName
	Tenants  []parley.TenantID // that may use it; nil: the home tenant alone
	Everyone bool              // every tenant may use it
	// Trust believes what its tools say of whether they only read, or may be
	// repeated. It does not make them run unasked.
	Trust   bool
	Timeout time.Duration // of a call; default two minutes
	Idle    time.Duration // after which the connection ends; default ten minutes
	// Missing are variables that it needs and that are not set: it is not
	// started.
	Missing []string

	Command     []string
	Env         []string // NAME=VALUE, in addition to what every command has
	Writes      bool     // it may change the workspace
	Read, Write []string // more folders
	Network     bool
	Bare        bool // without a sandbox

	URL     string
	Headers map[string]string
}

func (s Server) transport() string {
	if s.URL != "" {
		return "http"
	}
	return "stdio"
}

// Options are what servers are run with.
type Options struct {
	Servers   []Server
	Workspace string           // absolute; where processes of the home tenant are started
	Home      parley.TenantID  // whose the workspace is; processes of other tenants have none
	Sandbox   *sandbox.Sandbox // in which they are
	Barred    []uint16         // ports that no process of a server reaches: our own
	Screen    parley.Screen    // looks at what servers say of their tools; may be nil
	Log       *slog.Logger
	Backoff   time.Duration // before a server that broke is tried again; doubled each time; default 1 s
}

const (
	firstWait   = 2 * time.Second  // for tools of a server that was never met
	startWithin = 30 * time.Second // until it has listed its tools
	maxOpen     = 64               // connections of all tenants
	maxBackoff  = time.Minute
	steady      = time.Minute // one that ran for so long did not break at once
)

// Servers is a parley.TenantToolbox.
type Servers struct {
	Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex // guards the following; leaf
	links  map[key]*link
	open   int // connections, and those on their way
	closed bool
}

type key struct {
	tenant parley.TenantID
	server string
}

var _ parley.TenantToolbox = (*Servers)(nil)

// New starts nothing yet.
func New(o Options) *Servers {
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	o.Servers = slices.Clone(o.Servers)
	slices.SortFunc(o.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	for i := range o.Servers {
		o.Servers[i].Timeout = cmp.Or(o.Servers[i].Timeout, 2*time.Minute)
		o.Servers[i].Idle = cmp.Or(o.Servers[i].Idle, 10*time.Minute)
	}
	s := &Servers{Options: o, links: map[key]*link{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends all connections and processes, and returns when they are gone.
func (s *Servers) Close(context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	return nil
}

// enter takes a place for a connection, whose keeper is then s.wg's.
func (s *Servers) enter(keep func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return parley.Errorf(parley.CodeUnavailable, "The server is stopping.")
	case s.open >= maxOpen:
		return parley.Errorf(parley.CodeOverloaded, "Too many servers of tools are in use; try again when one is idle.")
	}
	s.open++
	s.wg.Go(func() {
		defer func() {
			s.mu.Lock()
			s.open--
			s.mu.Unlock()
		}()
		keep()
	})
	return nil
}

// find is the server of that name, if the tenant may use it.
func (s *Servers) find(tenant parley.TenantID, name string) (Server, bool) {
	for _, server := range s.Servers {
		if server.Name == name {
			return server, server.Everyone || slices.Contains(server.Tenants, tenant) || server.Tenants == nil &&
				tenant == s.Home
		}
	}
	return Server{}, false
}

// link is what is between a tenant and a server that it may use.
func (s *Servers) link(tenant parley.TenantID, server Server) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{tenant, server.Name}
	if s.links[k] == nil {
		s.links[k] = newLink(s, tenant, server)
	}
	return s.links[k]
}

// met is the same for who only looks.
func (s *Servers) met(tenant parley.TenantID, server string) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links[key{tenant, server}]
}

// Names lists the servers that there are.
func (s *Servers) Names() []string {
	var names []string
	for _, server := range s.Servers {
		names = append(names, server.Name)
	}
	return names
}

// List says how the servers of a tenant are, given what it has accepted.
func (s *Servers) List(tenant parley.TenantID, accepted map[string]map[string]string) []parley.ToolServer {
	list := []parley.ToolServer{}
	for _, server := range s.Servers {
		if _, ok := s.find(tenant, server.Name); !ok {
			continue
		}
		info := parley.ToolServer{Name: server.Name, Transport: server.transport(), Status: "stopped",
			Trusted: server.Trust, Tools: []parley.ServerTool{}}
		if l := s.met(tenant, server.Name); l != nil {
			var tools []offered
			info.Status, info.Problem, tools = l.status()
			for _, t := range tools {
				info.Tools = append(info.Tools, t.info(server.Name, accepted[server.Name]))
			}
		}
		list = append(list, info)
	}
	return list
}

// The tools that all tenants have are none.
func (s *Servers) Specs(parley.Agent) []parley.ToolSpec { return nil }

func (s *Servers) Judge(_ parley.Agent, name, _ string) parley.Verdict {
	return parley.Verdict{Kind: parley.VerdictBlock, Reason: noTool(name).Error()}
}

func (s *Servers) Perform(_ context.Context, _ parley.Agent, name, _ string, _ parley.Progress) (parley.ToolResult,
	error) {
	return parley.ToolResult{}, noTool(name)
}

func noTool(name string) error {
	return parley.Errorf(parley.CodeInvalid, "There is no tool %.80q for this agent right now.", name)
}

// Of is what the servers offer a tenant.
func (s *Servers) Of(ctx context.Context, ledger parley.ToolLedger) parley.Toolbox {
	return &box{ctx, s, ledger}
}
