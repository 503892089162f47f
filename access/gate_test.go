package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/port"
)

var nobody port.Principal

func newGate(c *clock, change ...func(*GateConfig)) *Gate {
	config := GateConfig{
		Connections: port.Rate{N: 10, Per: time.Minute}, Reconnections: port.Rate{N: 5, Per: time.Minute},
		Messages: port.Rate{N: 60, Per: time.Minute},
		Most:     1000, Now: c.now,
	}
	for _, f := range change {
		f(&config)
	}
	return NewGate(config)
}

func retryOf(t *testing.T, err error) time.Duration {
	t.Helper()
	d, ok := errors.AsType[*Denied](err)
	if !ok || d.Reason != TooOften || parley.CodeOf(err) != parley.CodeLimited {
		t.Fatalf("want too often, got %v", err)
	}
	return d.Retry
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestTenConnectionsInAMinute(t *testing.T) {
	c := &clock{at: start}
	g := newGate(c)
	a := addr("192.0.2.1")
	for i := range 10 {
		if _, err := g.Connect(nobody, a); err != nil { // they stay open
			t.Fatalf("connection %d: %v", i+1, err)
		}
	}
	_, err := g.Connect(nobody, a)
	if wait := retryOf(t, err); wait != 6*time.Second {
		t.Errorf("come back in %v", wait)
	}
	if g.Open() != 10 {
		t.Errorf("%d are open", g.Open())
	}
	if _, err := g.Connect(nobody, addr("192.0.2.2")); err != nil {
		t.Errorf("another address: %v", err)
	}
	ann := port.Principal{ID: "ann", Tenant: "acme"}
	if _, err := g.Connect(ann, a); err != nil {
		t.Errorf("somebody who is known, from the same address: %v", err)
	}
	c.pass(6 * time.Second)
	if _, err := g.Connect(nobody, a); err != nil {
		t.Errorf("having come back: %v", err)
	}
	_, err = g.Connect(nobody, a)
	retryOf(t, err)
}

func TestPrincipalsAreLimitedWhereverTheyComeFrom(t *testing.T) {
	g := newGate(&clock{at: start})
	ann := port.Principal{ID: "ann", Tenant: "acme"}
	for i := range 10 {
		if _, err := g.Connect(ann, addr(fmt.Sprintf("192.0.2.%d", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	_, err := g.Connect(ann, addr("192.0.2.99"))
	retryOf(t, err)
	for _, other := range []port.Principal{{ID: "bob", Tenant: "acme"}, {ID: "ann", Tenant: "rival"}} {
		if _, err := g.Connect(other, addr("192.0.2.99")); err != nil {
			t.Errorf("%+v: %v", other, err)
		}
	}
}

func TestFiveReconnectionsInAMinute(t *testing.T) {
	c := &clock{at: start}
	g := newGate(c)
	a := addr("192.0.2.1")
	come := func() error {
		leave, err := g.Connect(nobody, a)
		if err == nil {
			leave()
		}
		return err
	}
	for i := range 6 { // the first one is new
		if err := come(); err != nil {
			t.Fatalf("connection %d: %v", i+1, err)
		}
	}
	if wait := retryOf(t, come()); wait != 12*time.Second {
		t.Errorf("come back in %v", wait)
	}
	// A refusal uses up no tokens: six of ten connections are used. The other
	// four are available once they are not reconnections.
	c.pass(time.Minute)
	for i := range 10 {
		if _, err := g.Connect(nobody, a); err != nil {
			t.Fatalf("connection %d after a minute: %v", i+1, err)
		}
	}
}

func TestAttemptsAreCounted(t *testing.T) {
	g := newGate(&clock{at: start})
	a := addr("192.0.2.1")
	for range 10 {
		if err := g.Attempt(a); err != nil {
			t.Fatal(err)
		}
	}
	retryOf(t, g.Attempt(a))
	if g.Open() != 0 {
		t.Error("an attempt is not a connection")
	}
}

func TestBlocksOfAddresses(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"2001:db8::1", "2001:db8::ffff:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"fe80::1%eth0", "fe80::2%eth1", true},
	} {
		if same := blockOf(parseAddr(c.a)) == blockOf(parseAddr(c.b)); same != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, same)
		}
	}
}

func TestMessages(t *testing.T) {
	c := &clock{at: start}
	g := newGate(c)
	m := g.Meter()
	for i := range 60 {
		if err := m.Message(); err != nil {
			t.Fatalf("message %d: %v", i+1, err)
		}
	}
	if wait := retryOf(t, m.Message()); wait != time.Second {
		t.Errorf("go on in %v", wait)
	}
	if err := g.Meter().Message(); err != nil {
		t.Errorf("another connection: %v", err)
	}
	c.pass(time.Second)
	if err := m.Message(); err != nil {
		t.Error(err)
	}
}

func TestZeroRatesAreNoLimit(t *testing.T) {
	g := newGate(&clock{at: start}, func(c *GateConfig) {
		c.Connections, c.Reconnections, c.Messages = port.Rate{}, port.Rate{}, port.Rate{}
	})
	m := g.Meter()
	for range 500 {
		leave, err := g.Connect(nobody, addr("192.0.2.1"))
		if err != nil {
			t.Fatal(err)
		}
		leave()
		if err := errors.Join(m.Message(), g.Attempt(addr("192.0.2.1"))); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMostConnections(t *testing.T) {
	g := newGate(&clock{at: start}, func(c *GateConfig) {
		c.Most, c.Connections, c.Reconnections = 7, port.Rate{},
			port.Rate{}
	})
	var in, out atomic.Int64
	var crowd sync.WaitGroup
	leaves := make(chan func(), 100)
	for i := range 100 {
		crowd.Go(func() {
			leave, err := g.Connect(nobody, addr(fmt.Sprintf("192.0.2.%d", i)))
			if err != nil {
				out.Add(1)
				d, ok := errors.AsType[*Denied](err)
				if !ok || parley.CodeOf(err) != parley.CodeOverloaded || d.Retry == 0 {
					t.Error(err)
				}
				return
			}
			in.Add(1)
			leaves <- leave
		})
	}
	crowd.Wait()
	close(leaves)
	if in.Load() != 7 || out.Load() != 93 || g.Open() != 7 {
		t.Errorf("%d in, %d out, %d open", in.Load(), out.Load(), g.Open())
	}
	for leave := range leaves {
		crowd.Go(leave)
	}
	crowd.Wait()
	if g.Open() != 0 {
		t.Errorf("%d are open", g.Open())
	}
}

// TestVisitorsAreForgotten: a client with a million addresses does not fill the
// memory, and a steady visitor is still limited meanwhile.
func TestVisitorsAreForgotten(t *testing.T) {
	c := &clock{at: start}
	g := newGate(c)
	steady := addr("192.0.2.1")
	refused := false
	for i := range 2 * maxVisitors {
		if i%5_000 == 0 {
			_, err := g.Connect(nobody, steady)
			refused = refused || err != nil
		}
		var a [16]byte
		a[0], a[4], a[5], a[6] = 0x20, byte(i>>16), byte(i>>8), byte(i)
		_ = g.Attempt(netip.AddrFrom16(a))
		if n := len(g.recent) + len(g.earlier); n > maxVisitors {
			t.Fatalf("%d are remembered", n)
		}
	}
	if !refused {
		t.Error("who came all the time was forgotten among the others")
	}
}

// A24: TestClient checks which address is believed.
func TestClient(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:5000", nil, "192.0.2.1"},
		{"[2001:db8::1]:5000", nil, "2001:db8::1"},
		{"192.0.2.1:5000", []string{"198.51.100.7"}, "192.0.2.1"}, // any client can send this header
		{"10.1.1.1:5000", []string{"198.51.100.7"}, "198.51.100.7"},
		{"[::ffff:10.1.1.1]:5000", []string{"198.51.100.7"}, "198.51.100.7"},
		{"10.1.1.1:5000", []string{"1.1.1.1, 198.51.100.7"}, "198.51.100.7"}, // the client wrote the first address
		{"10.1.1.1:5000", []string{"1.1.1.1", "198.51.100.7, 10.2.2.2"}, "198.51.100.7"},
		{"10.1.1.1:5000", []string{"10.9.9.9, 198.51.100.7"}, "198.51.100.7"}, // the proxy did not write the first
		{"10.1.1.1:5000", []string{"198.51.100.7:4711"}, "198.51.100.7"},
		{"[fd00::1]:5000", []string{"[2001:db8::2]:4711"}, "2001:db8::2"},
		{"10.1.1.1:5000", nil, "10.1.1.1"},
		{"10.1.1.1:5000", []string{""}, "10.1.1.1"},
		{"10.1.1.1:5000", []string{"198.51.100.7, unknown"}, "10.1.1.1"},
		{"10.1.1.1:5000", []string{"198.51.100.7, evil, 10.2.2.2"}, "10.2.2.2"},
		{"10.1.1.1:5000", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"@", []string{"198.51.100.7"}, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.forwarded,
			"X-Real-Ip": {"6.6.6.6"}, "Forwarded": {"for=6.6.6.6"}}}
		if got := Client(r, proxies).String(); got != c.want {
			t.Errorf("%s by %v: %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}

// TestAShareOfTheConnections: one visitor cannot take all connections, and gets
// another when one of its own has ended.
func TestAShareOfTheConnections(t *testing.T) {
	g := NewGate(GateConfig{Most: 100, Each: 2, Now: time.Now})
	from := netip.MustParseAddr("192.0.2.1")
	ann, bob := port.Principal{ID: "ann", Tenant: "acme"}, port.Principal{ID: "bob", Tenant: "acme"}
	var leave func()
	for range 2 {
		var err error
		if leave, err = g.Connect(ann, from); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Connect(ann, from); parley.CodeOf(err) != parley.CodeOverloaded {
		t.Errorf("a third: %v", err)
	}
	if _, err := g.Connect(bob, from); err != nil {
		t.Errorf("somebody else: %v", err)
	}
	leave()
	if _, err := g.Connect(ann, from); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

// TestLooksAreLimited: reading requests have a limit, which is higher than the
// limit of changing requests.
func TestLooksAreLimited(t *testing.T) {
	now := time.Now()
	g := NewGate(GateConfig{Messages: port.Rate{N: 2, Per: time.Minute}, Most: 1,
		Now: func() time.Time { return now }})
	ann, from := port.Principal{ID: "ann", Tenant: "acme"}, netip.MustParseAddr("192.0.2.1")
	for looks, most := range map[bool]int{false: 2, true: 2 * readsPerMessage} {
		n := 0
		for ; n <= most && g.Request(ann, from, looks) == nil; n++ {
		}
		if n != most {
			t.Errorf("looking %v: %d were let in, not %d", looks, n, most)
		}
	}
}

// TestAnswersTakeUpRoom: long answers take up room like connections, but do not
// count against the rate of connections.
func TestAnswersTakeUpRoom(t *testing.T) {
	c := &clock{at: start}
	g := newGate(c, func(g *GateConfig) { g.Each = 3 })
	ann, from := port.Principal{ID: "ann", Tenant: "acme"}, addr("192.0.2.1")
	for range 100 { // more than the connections of a minute
		leave, err := g.Stay(ann, from)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		leave()
	}
	if _, err := g.Connect(ann, from); err != nil {
		t.Errorf("a connection: %v", err)
	}
	var last func()
	for range 2 {
		var err error
		if last, err = g.Stay(ann, from); err != nil {
			t.Fatal(err)
		}
	}
	for name, come := range map[string]func(port.Principal, netip.Addr) (func(), error){"an answer": g.Stay,
		"a connection": g.Connect} {
		if _, err := come(ann, from); parley.CodeOf(err) != parley.CodeOverloaded {
			t.Errorf("%s without room: %v", name, err)
		}
	}
	last()
	if _, err := g.Stay(ann, from); err != nil || g.Open() != 3 {
		t.Errorf("%d are open, %v", g.Open(), err)
	}
}
