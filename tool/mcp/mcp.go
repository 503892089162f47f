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
	// Guarded: it is reached by Options.Dial, because somebody other than the operator has named its address.
	Guarded bool
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
	Screen    port.Screen      // looks at what servers say of their tools; may be nil
	Log       *slog.Logger
	// Dial connects to an address of a guarded server, or refuses to.
	Dial    func(to *url.URL) func(ctx context.Context, network, address string) (net.Conn, error)
	Backoff time.Duration // before a server that broke is tried again; doubled each time; default 1 s
}

const (
	firstWait   = 2 * time.Second  // for tools of a server that was never met
	startWithin = 30 * time.Second // until it has listed its tools
	maxOpen     = 64               // connections of all tenants
	maxBackoff  = time.Minute
	steady      = time.Minute // one that ran for so long did not break at once
)

// Servers is a port.TenantToolbox.
type Servers struct {
	Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex // guards the following; leaf
	links  map[key]*link
	added  map[parley.TenantID][]Server // by Set
	open   int                          // connections, and those on their way
	closed bool
}

type key struct {
	tenant parley.TenantID
	server string
}

var _ port.TenantToolbox = (*Servers)(nil)

// New starts nothing yet.
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

// Set gives a tenant servers of its own besides those of the options, in place of those of the last call. A server with
// the name of one of the options is left out. Connections to servers that are gone or have changed end; a call that
// runs is lost.
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

// of lists the servers that a tenant may use, by name.
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

// Try starts a server, lists its tools and ends it. What its process writes to stderr is returned, and not logged: the
// secrets that it was given are not known to the screen yet.
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
	<-done // within startWithin and grace
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
	list := s.of(tenant)
	i := slices.IndexFunc(list, func(server Server) bool { return server.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return list[i], true
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

// The tools that all tenants have are none.
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

// Of is what the servers offer a tenant.
func (s *Servers) Of(ctx context.Context, ledger port.ToolLedger) port.Toolbox {
	return &box{ctx, s, ledger}
}
