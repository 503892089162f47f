// Package mcp offers the tools of MCP servers. It speaks the Model Context
// Protocol over the pipes of a process or over HTTP.
//
// Every tenant has its own connection to every server. The connection is made
// when an agent first needs it, and ends when it has been idle for a while. If
// it breaks, it is made again, after growing pauses. Descriptions of tools are
// not trusted after they change: the tenant's session records the accepted
// digests. A tool whose description differs now is not offered until a person
// accepts the new one.
//
// Each connection has a goroutine that keeps it and one that waits for the
// session to end. Each process and each call has one more. Close and Perform
// wait for them. Servers.mu guards the links, link.mu guards one link, and
// conn.mu guards the calls that receive progress. Servers.mu may be taken under
// link.mu, never the reverse. No lock is held across I/O.
package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/port"
	"parley/sandbox"
)

// A Server is an MCP server as configured. It has a Command or a URL.
type Server struct {
	Name     string            // parley.ValidServerName
	Tenants  []parley.TenantID // tenants that may use it; nil: the home tenant alone
	Everyone bool              // every tenant may use it
	// Trust makes Parley believe the server's hints that a tool only reads or
	// may be repeated. Its tools still ask before they run.
	Trust   bool
	Timeout time.Duration // of a call; default two minutes
	Idle    time.Duration // time without calls after which the connection ends; default ten minutes
	// Missing lists variables that the server needs but that are not set. If
	// there are any, it is not started.
	Missing []string

	Command     []string
	Env         []string // NAME=VALUE, in addition to the variables of every command
	Writes      bool     // the process may change the workspace
	Read, Write []string // additional folders
	Network     bool
	Bare        bool // without a sandbox

	URL     string
	Headers map[string]string
	// Guarded servers are reached by Options.Dial, because a person other than the operator chose the address.
	Guarded bool
}

func (s Server) transport() string {
	if s.URL != "" {
		return "http"
	}
	return "stdio"
}

// Options configure Servers.
type Options struct {
	Servers   []Server
	Workspace string           // absolute; the folder in which processes of the home tenant start
	Home      parley.TenantID  // the owner of the workspace; processes of other tenants have no workspace
	Sandbox   *sandbox.Sandbox // in which the processes run
	Barred    []uint16         // ports of this server, which no process of an MCP server may reach
	Screen    port.Screen      // scans descriptions of tools; may be nil
	Log       *slog.Logger
	// Dial returns a function that connects to the address of a guarded server, or refuses to.
	Dial    func(to *url.URL) func(ctx context.Context, network, address string) (net.Conn, error)
	Backoff time.Duration // pause before a broken server is tried again; doubled each time; default 1 s
}

const (
	firstWait   = 2 * time.Second  // how long to wait for the tools of a server that has never connected
	startWithin = 30 * time.Second // time for connecting and listing the tools
	maxOpen     = 64               // connections of all tenants
	maxBackoff  = time.Minute
	steady      = time.Minute // a connection that lasted this long did not break at once
)

// Servers implements port.TenantToolbox.
type Servers struct {
	Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex // guards the following; leaf
	links  map[key]*link
	added  map[parley.TenantID][]Server // set by Set
	open   int                          // number of connections, including those being made
	closed bool
}

type key struct {
	tenant parley.TenantID
	server string
}

var _ port.TenantToolbox = (*Servers)(nil)

// New returns Servers. It does not start any server yet.
func New(o Options) *Servers {
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	o.Servers = slices.Clone(o.Servers)
	slices.SortFunc(o.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	for i := range o.Servers {
		o.Servers[i] = o.Servers[i].complete()
	}
	s := &Servers{Options: o, links: map[key]*link{}, added: map[parley.TenantID][]Server{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

func (s Server) complete() Server {
	s.Timeout = cmp.Or(s.Timeout, 2*time.Minute)
	s.Idle = cmp.Or(s.Idle, 10*time.Minute)
	return s
}

// Set replaces the servers that a tenant has in addition to those of the options. It skips a server with the name of
// one in the options. Connections to removed or changed servers end, and calls that run on them are lost.
func (s *Servers) Set(tenant parley.TenantID, servers []Server) {
	var list []Server
	for _, one := range servers {
		if !slices.ContainsFunc(s.Servers, func(own Server) bool { return own.Name == one.Name }) {
			list = append(list, one.complete())
		}
	}
	s.mu.Lock()
	var gone []*link
	for _, was := range s.added[tenant] {
		same := slices.ContainsFunc(list, func(now Server) bool { return reflect.DeepEqual(was, now) })
		if k := (key{tenant, was.Name}); !same && s.links[k] != nil {
			gone = append(gone, s.links[k])
			delete(s.links, k)
		}
	}
	s.added[tenant] = list
	s.mu.Unlock()
	for _, l := range gone {
		l.retire()
	}
}

// of returns the servers that a tenant may use, sorted by name.
func (s *Servers) of(tenant parley.TenantID) (list []Server) {
	for _, server := range s.Servers {
		if server.Everyone || slices.Contains(server.Tenants, tenant) || server.Tenants == nil && tenant == s.Home {
			list = append(list, server)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list = append(list, s.added[tenant]...)
	slices.SortFunc(list, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Try starts a server, lists its tools and ends it. It returns what the process writes to stderr and does not log it:
// the screen does not know the secrets of the server yet.
func (s *Servers) Try(tenant parley.TenantID, server Server) (trial port.ServerTrial) {
	l := newLink(s, tenant, server.complete())
	l.log, l.tail = slog.New(slog.DiscardHandler), &tail{}
	done := make(chan struct{})
	trial.Tools = []port.ServerTool{}
	var tools []offered
	err := s.enter(func() {
		defer close(done)
		var c *conn
		var err error
		if c, tools, err = l.connect(); err == nil {
			c.close()
			trial.Works = true
			return
		}
		trial.Reason = parley.MessageOf(err)
	})
	if err != nil {
		trial.Reason = parley.MessageOf(err)
		return trial
	}
	<-done // takes at most startWithin plus grace
	for _, t := range tools {
		trial.Tools = append(trial.Tools, t.info(server.Name, nil))
	}
	if !trial.Works {
		trial.Output = l.tail.String()
	}
	return trial
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

// enter reserves a place for a connection and starts its keeper as a goroutine of s.wg.
func (s *Servers) enter(keep func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return parley.Errorf(parley.CodeUnavailable, "The server is stopping.")
	case s.open >= maxOpen:
		return parley.Errorf(parley.CodeOverloaded, "Too many MCP servers are in use; try again when one is idle.")
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

// find returns the server with that name, if the tenant may use it.
func (s *Servers) find(tenant parley.TenantID, name string) (Server, bool) {
	list := s.of(tenant)
	i := slices.IndexFunc(list, func(server Server) bool { return server.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return list[i], true
}

// link returns the link between a tenant and a server, and makes it if there is none.
func (s *Servers) link(tenant parley.TenantID, server Server) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{tenant, server.Name}
	if s.links[k] == nil {
		s.links[k] = newLink(s, tenant, server)
	}
	return s.links[k]
}

// met returns the link if there is one. It never makes one.
func (s *Servers) met(tenant parley.TenantID, server string) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links[key{tenant, server}]
}

// Names returns the names of the servers in the options.
func (s *Servers) Names() []string {
	var names []string
	for _, server := range s.Servers {
		names = append(names, server.Name)
	}
	return names
}

// List describes the servers of a tenant and the state of their tools, given the accepted digests.
func (s *Servers) List(tenant parley.TenantID, accepted map[string]map[string]string) []port.ToolServer {
	list := []port.ToolServer{}
	for _, server := range s.of(tenant) {
		info := port.ToolServer{Name: server.Name, Transport: server.transport(), Status: "stopped",
			Trusted: server.Trust, Tools: []port.ServerTool{}}
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

// Specs returns no tools, because no tool is common to all tenants.
func (s *Servers) Specs(parley.Agent) []parley.ToolSpec { return nil }

func (s *Servers) Judge(_ parley.Agent, name, _ string) parley.Verdict {
	return parley.Verdict{Kind: parley.VerdictBlock, Reason: noTool(name).Error()}
}

func (s *Servers) Perform(_ context.Context, _ parley.Agent, name, _ string, _ port.Progress) (port.ToolResult,
	error) {
	return port.ToolResult{}, noTool(name)
}

func noTool(name string) error {
	return parley.Errorf(parley.CodeInvalid, "There is no tool %.80q for this agent right now.", name)
}

// Of returns the toolbox of a tenant.
func (s *Servers) Of(ctx context.Context, ledger port.ToolLedger) port.Toolbox {
	return &box{ctx, s, ledger}
}
