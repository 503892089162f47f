package access

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/port"
)

// maxVisitors is how many are remembered, at most; about 15 MB.
const maxVisitors = 1 << 16

// GateConfig says how often people may come. A zero rate is no limit.
type GateConfig struct {
	Connections   port.Rate
	Reconnections port.Rate
	Messages      port.Rate // of one connection
	Most          int       // connections open at the same time
	Each          int       // the same, of one visitor; zero: no limit
	Now           func() time.Time
}

// A Gate admits connections. Each visitor, a principal where one is known and
// else the block of addresses it comes from, has a bucket for connections and
// one for reconnections. A bucket holds N tries and fills at N per unit of time.
//
// A reconnection is a connection opened within the unit of time of its rate
// after an earlier one of the same visitor ended. It counts as a connection as
// well. So somebody may open more windows beside each other than they may come
// back in a loop.
type Gate struct {
	c GateConfig

	mu      sync.Mutex
	open    int
	unknown int // connections without a credential; see Unknown
	// Visitors of late, and those before: when the first are half of all that
	// may be remembered, the others are forgotten. Who has many addresses
	// pushes others out, and gets nothing by it that they did not have.
	recent, earlier map[visitorKey]*visitor
}

type visitorKey struct {
	subject
	block netip.Prefix
}

type visitor struct {
	connections, reconnections *rate.Limiter
	messages, looks            *rate.Limiter // outside of connections
	open                       int           // connections
	unknown                    int           // connections without a credential
	left                       time.Time     // when a connection last ended
}

func NewGate(c GateConfig) *Gate {
	return &Gate{c: c, recent: map[visitorKey]*visitor{}}
}

// Connect admits a connection of a principal, or of an address if nobody is
// known, or refuses it with a *Denied that says when to come back. leave must be
// called when the connection has ended.
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

// Stay admits the answer to a request, which may take its time. It takes up room
// like a connection, and how often one may come is up to Request.
func (g *Gate) Stay(who port.Principal, from netip.Addr) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v, err := g.room(who, from)
	if err != nil {
		return nil, err
	}
	return g.take(v, func() {}), nil
}

// room finds a visitor for whom there is room. It needs g.mu, as does take.
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

// Attempt is for who was not let in. It counts as a connection of the address,
// so that credentials cannot be tried without end.
func (g *Gate) Attempt(from netip.Addr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return spend(g.c.Now(), g.visitor(port.Principal{}, from).connections)
}

// readsPerMessage is how many requests that only look somebody may make for each
// message they may send.
const readsPerMessage = 20

// Request admits a request that is not a connection. One that changes something
// is a message of the visitor, whichever way it comes.
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

// Open is how many connections there are.
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

// bucket is full at first; nil if there is no limit.
func bucket(r port.Rate) *rate.Limiter {
	if r.N == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(r.N)/r.Per.Seconds()), r.N)
}

// spend takes one from each bucket, or from none of them.
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

// A Meter counts the messages of one connection. It is for one goroutine.
type Meter struct {
	bucket *rate.Limiter
	now    func() time.Time
}

func (g *Gate) Meter() *Meter { return &Meter{bucket(g.c.Messages), g.c.Now} }

// Message says whether another message may be sent now; a *Denied says when.
func (m *Meter) Message() error { return spend(m.now(), m.bucket) }
