package access

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/port"
)

// maxVisitors is the maximum number of visitors that are remembered; about 15 MB.
const maxVisitors = 1 << 16

// GateConfig sets the limits for visitors. A zero rate is no limit.
type GateConfig struct {
	Connections   port.Rate
	Reconnections port.Rate
	Messages      port.Rate // per connection
	Most          int       // maximum number of open connections
	Each          int       // maximum number of open connections per visitor; zero: no limit
	Now           func() time.Time
}

// A Gate admits connections. A visitor is a principal if one is known, else a block of addresses. Each visitor has a
// bucket for connections and one for reconnections. A bucket holds N tries and fills at N per unit of time.
//
// A reconnection is a connection that a visitor opens within its rate's unit of time after an earlier one ended. It
// counts as a connection as well. So a visitor may open more windows side by side than it may reconnect in a loop.
type Gate struct {
	c GateConfig

	mu      sync.Mutex
	open    int
	unknown int // connections without a credential; see Unknown
	// recent and earlier are two generations of visitors. When recent holds
	// half of maxVisitors, earlier is forgotten. A visitor with many addresses
	// can push others out, but gains nothing by it.
	recent, earlier map[visitorKey]*visitor
}

type visitorKey struct {
	subject
	block netip.Prefix
}

type visitor struct {
	connections, reconnections *rate.Limiter
	messages, looks            *rate.Limiter // outside of connections
	open                       int           // number of connections
	unknown                    int           // number of connections without a credential
	left                       time.Time     // when a connection last ended
}

func NewGate(c GateConfig) *Gate {
	return &Gate{c: c, recent: map[visitorKey]*visitor{}}
}

// Connect admits a connection of a principal, or of an address if the principal is unknown. If it refuses, a *Denied
// says when to try again. The caller must call leave when the connection has ended.
func (g *Gate) Connect(who port.Principal, from netip.Addr) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v, err := g.room(who, from)
	if err != nil {
		return nil, err
	}
	now := g.c.Now()
	buckets := []*rate.Limiter{v.connections}
	if !v.left.IsZero() && now.Sub(v.left) < g.c.Reconnections.Per {
		buckets = append(buckets, v.reconnections)
	}
	if err := spend(now, buckets...); err != nil {
		return nil, err
	}
	return g.take(v, func() { v.left = g.c.Now() }), nil
}

// Stay admits a request whose answer may take long. The request takes up room like a connection; Request limits how
// often requests may come.
func (g *Gate) Stay(who port.Principal, from netip.Addr) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v, err := g.room(who, from)
	if err != nil {
		return nil, err
	}
	return g.take(v, func() {}), nil
}

// room returns the visitor if there is room for one more connection. The caller of room and take must hold g.mu.
func (g *Gate) room(who port.Principal, from netip.Addr) (*visitor, error) {
	if g.open >= g.c.Most {
		d := deny(TooMany, "")
		d.Retry = 5 * time.Second
		return nil, d
	}
	v := g.visitor(who, from)
	if g.c.Each > 0 && v.open >= g.c.Each {
		return nil, deny(TooMany, "")
	}
	return v, nil
}

func (g *Gate) take(v *visitor, left func()) (leave func()) {
	g.open++
	v.open++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.open--
		v.open--
		left()
	})
}

// Attempt counts a refused credential as a connection of the address, so that
// a client cannot try credentials without end.
func (g *Gate) Attempt(from netip.Addr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return spend(g.c.Now(), g.visitor(port.Principal{}, from).connections)
}

// readsPerMessage is how many reading requests a visitor may send for each message it may send.
const readsPerMessage = 20

// Request admits a request that is not a connection. A request that changes
// something counts as a message of the visitor. looks tells that it only reads.
func (g *Gate) Request(who port.Principal, from netip.Addr, looks bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.visitor(who, from)
	if v.messages == nil {
		v.messages = bucket(g.c.Messages)
		v.looks = bucket(port.Rate{N: readsPerMessage * g.c.Messages.N, Per: g.c.Messages.Per})
	}
	if looks {
		return spend(g.c.Now(), v.looks)
	}
	return spend(g.c.Now(), v.messages)
}

// Open returns the number of open connections.
func (g *Gate) Open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

func (g *Gate) visitor(who port.Principal, from netip.Addr) *visitor {
	key := visitorKey{subject: subjectOf(who)}
	if who.ID == "" {
		key.block = blockOf(from)
	}
	if v, ok := g.recent[key]; ok {
		return v
	}
	v, ok := g.earlier[key]
	if !ok {
		v = &visitor{connections: bucket(g.c.Connections), reconnections: bucket(g.c.Reconnections)}
	}
	if len(g.recent) >= maxVisitors/2 {
		g.earlier, g.recent = g.recent, map[visitorKey]*visitor{}
	}
	g.recent[key] = v
	return v
}

// bucket returns a full bucket, or nil if there is no limit.
func bucket(r port.Rate) *rate.Limiter {
	if r.N == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(r.N)/r.Per.Seconds()), r.N)
}

// spend takes one token from each bucket, or none at all if one of them is empty.
func spend(now time.Time, buckets ...*rate.Limiter) error {
	var wait time.Duration
	var taken []*rate.Reservation
	for _, b := range buckets {
		if b == nil {
			continue
		}
		r := b.ReserveN(now, 1)
		taken = append(taken, r)
		wait = max(wait, r.DelayFrom(now))
	}
	if wait == 0 {
		return nil
	}
	for _, r := range taken {
		r.CancelAt(now)
	}
	d := deny(TooOften, "")
	d.Retry = wait
	return d
}

// A Meter counts the messages of one connection. It is not safe for concurrent use.
type Meter struct {
	bucket *rate.Limiter
	now    func() time.Time
}

func (g *Gate) Meter() *Meter { return &Meter{bucket(g.c.Messages), g.c.Now} }

// Message admits another message; if it refuses, a *Denied says when to try again.
func (m *Meter) Message() error { return spend(m.now(), m.bucket) }
