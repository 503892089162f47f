package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/bus"
	"parley/config"
	"parley/dialect/native"
	"parley/feed"
	"parley/pacing"
	"parley/port"
)

// nodes are this process and the others that share its database. From Start to
// Close, differences between them are logged.
type nodes struct {
	port.Nodes // nil: the store cannot be shared
	bus        *bus.Bus
	mine       func() port.Node
	log        *slog.Logger

	ctx  context.Context // context of the background work
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func newNodes(c *config.Settings, s store, key []byte, at net.Addr, projects []*project, log *slog.Logger) (
	*nodes, error) {
	n := &nodes{Nodes: nodesOf(s), log: log}
	n.ctx, n.stop = context.WithCancel(context.Background())
	if n.Nodes == nil {
		return n, nil
	}
	address, since := c.Advertise, time.Now().UTC()
	if address == "" {
		address = at.String()
	}
	n.mine = func() port.Node {
		return port.Node{ID: n.Node(), Address: address, Version: version, Since: since, Agents: agentsMark(projects)}
	}
	o := bus.Options{Epoch: s.Epoch(), Key: key, Log: log}
	var err error
	if c.NATSURL != "" {
		n.bus, err = bus.NATS(string(c.NATSURL), o)
	} else {
		n.bus, err = bus.Postgres(string(c.DatabaseURL), o)
	}
	return n, err
}

// port returns the bus as an interface, which is nil if there is no bus.
func (n *nodes) port() port.Bus {
	if n.bus == nil {
		return nil
	}
	return n.bus
}

// connect connects followers to the events that other nodes commit.
func (n *nodes) connect(f *feed.Feed, s store) {
	if heads, ok := beneath(s).(feed.Heads); ok && n.bus != nil {
		f.Connect(feed.Nodes{Bus: n.bus, Heads: heads, Alone: func() bool { return len(n.Others()) == 0 }})
	}
}

// list returns this node and then the other live nodes, each with its differences
// from this one.
func (n *nodes) list(sessions int, roots []string) []native.Node {
	if n.Nodes == nil {
		return nil
	}
	mine := n.mine()
	mine.Sessions, mine.Projects = sessions, roots
	list := []native.Node{{Node: mine}}
	for _, other := range n.serving() {
		list = append(list, native.Node{Node: other, Differs: differs(mine, other)})
	}
	return list
}

// serving returns the other nodes that have announced their version. A starting
// process, and a command that opens the database, have not.
func (n *nodes) serving() []port.Node {
	return slices.DeleteFunc(slices.Clone(n.Others()), func(o port.Node) bool { return o.Version == "" })
}

// differs lists the properties in which another node differs from this one.
func differs(mine, other port.Node) (in []string) {
	if other.Version != mine.Version {
		in = append(in, "version")
	}
	if other.Agents != mine.Agents {
		in = append(in, "agents")
	}
	return in
}

// differ lists the nodes that differ from this one, and in which properties. The
// text is empty if there are none.
func (n *nodes) differ() string {
	if n.Nodes == nil {
		return ""
	}
	var list []string
	mine := n.mine()
	for _, other := range n.serving() {
		if in := differs(mine, other); len(in) > 0 {
			list = append(list, fmt.Sprintf("%s (%s)", other.Address, strings.Join(in, ", ")))
		}
	}
	return strings.Join(list, "; ")
}

// Start begins the background work. It must be called at most once.
func (n *nodes) Start() {
	if n.Nodes == nil {
		return
	}
	n.bus.Start()
	n.wg.Go(func() {
		said := ""
		for {
			if now := n.differ(); now != said {
				if said = now; now == "" {
					n.log.Info("all nodes have the same version and the same agent files")
				} else {
					n.log.Warn("nodes of this database differ from this one", "nodes", now)
				}
			}
			if !pacing.Sleep(n.ctx, time.Second) {
				return
			}
		}
	})
}

func (n *nodes) Close(ctx context.Context) error {
	n.stop()
	n.wg.Wait()
	if n.bus == nil {
		return nil
	}
	return n.bus.Close(ctx)
}

// agentsMark is a hash of the agents that the files of a node define.
func agentsMark(projects []*project) string {
	var lines []string
	for _, p := range projects {
		for _, a := range p.agents.List(p.Tenant) {
			lines = append(lines, p.about.Root+" "+a.Name+" "+a.Digest())
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:8])
}

// checkKey refuses a node whose server key differs from that of the other nodes: it
// could neither verify the audit nor open the secrets that they have sealed.
func checkKey(ctx context.Context, s store, key []byte) error {
	marked, ok := beneath(s).(interface {
		Mark(ctx context.Context, mark string) (bool, error)
	})
	if !ok {
		return nil
	}
	sum := sha256.Sum256(append([]byte("parley: mark of the server's key\n"), key...))
	same, err := marked.Mark(ctx, hex.EncodeToString(sum[:8]))
	if err == nil && !same {
		err = &parley.Error{Code: parley.CodeForbidden, Message: "The key of this server is not the one that the " +
			"database was first served with.",
			Hint: "give every server of a database the same PARLEY_SERVER_KEY, or the " + keyName +
				" of the first one's data folder; if that key is lost, empty the table key_mark while no server runs"}
	}
	return err
}

// busCounts returns a function with the counters of a bus, or nil if there is no
// bus.
func busCounts(b *bus.Bus) func() map[string]int64 {
	if b == nil {
		return nil
	}
	return func() map[string]int64 {
		s := b.Stats()
		return map[string]int64{"sent": s.Sent, "heard": s.Heard, "lost": s.Lost, "forged": s.Forged}
	}
}
