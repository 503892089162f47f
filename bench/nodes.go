package bench

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"parley/port"
)

// runNodes measures several nodes on one PostgreSQL database, with NATS if it is
// available and with PostgreSQL alone. It measures the delay of tokens on another
// node, the cost of a delivery with one, two and three nodes, and the cost of
// forwarding a command.
func runNodes(t *trial) error {
	if t.o.Postgres == "" {
		t.r.Missing = "it needs --database"
		return nil
	}
	if t.database == "" { // the other scenarios use SQLite
		if err := t.newDatabase(); err != nil {
			return err
		}
	}
	buses := []string{"postgres"}
	if t.o.NATS != "" {
		buses = []string{"nats", "postgres"}
	}
	for _, bus := range buses {
		for _, measure := range []func(*trial, string) error{(*trial).lagAcross, (*trial).passedOn} {
			if err := errors.Join(measure(t, bus), t.anew()); err != nil {
				return fmt.Errorf("%s: %w", bus, err)
			}
		}
	}
	for n := 1; n <= t.pick(3, 2); n++ {
		if err := errors.Join(t.deliveriesOn(n, buses[0]), t.anew()); err != nil {
			return fmt.Errorf("%d nodes: %w", n, err)
		}
	}
	for n := 1; n <= t.pick(3, 2); n++ {
		if err := errors.Join(t.appendsOf(n), t.anew()); err != nil {
			return fmt.Errorf("appends of %d nodes: %w", n, err)
		}
	}
	return nil
}

// anew stops the servers and creates a new database.
func (t *trial) anew() error {
	t.stopServers()
	return t.newDatabase()
}

// nodes starts n servers on one database, and waits until they know each other.
func (t *trial) nodes(n int, bus string) (list []*process, err error) {
	env := []string{"PARLEY_SERVER_KEY=" + padding[:32]}
	if bus == "nats" {
		env = append(env, "PARLEY_NATS_URL="+t.o.NATS)
	}
	for range n {
		data, err := t.dir()
		if err != nil {
			return nil, err
		}
		if err := t.startOn(data, "127.0.0.1:0", env...); err != nil {
			return nil, err
		}
		list = append(list, t.server)
	}
	t.server = list[0]
	if n > 1 && !t.pace.until(t.ctx, clock()+int64(t.pick(3000, 100))*int64(time.Millisecond)) {
		return nil, t.ctx.Err()
	}
	return list, nil
}

// spread opens a client that writes to a session on the first node, and others that
// follow it, distributed over all nodes.
func (t *trial) spread(list []*process, n int, token func(node int, lag int64)) (clients []*client, err error) {
	id := ""
	for i := range n {
		node := i % len(list)
		t.server = list[node]
		c, err := t.open(id, func(now int64, _ *answer, _ int, stamp int64) { token(node, now-stamp) })
		if err != nil {
			return clients, err
		}
		id = c.id
		clients = append(clients, c)
	}
	t.server = list[0]
	return clients, nil
}

// lagAcross measures one stream at 50 tokens per second, on the node that holds the
// session and on another one.
func (t *trial) lagAcross(bus string) error {
	list, err := t.nodes(2, bus)
	if err != nil {
		return err
	}
	lags := []*histogram{{}, {}}
	clients, err := t.spread(list, 2, func(node int, lag int64) { lags[node].record(lag) })
	defer closeAll(clients)
	if err != nil {
		return err
	}
	for _, tokens := range []int{t.pick(50, 5), t.pick(500, 20)} { // the first tokens warm up the connections
		*lags[0], *lags[1] = histogram{}, histogram{}
		gap := 20 * time.Millisecond
		if err := t.askAll(clients, answer{tokens: tokens, gap: gap, size: 24}); err != nil {
			return err
		}
		if err := t.waitAll(clients, time.Duration(tokens)*gap+time.Minute); err != nil {
			return err
		}
	}
	t.latency("lag_"+bus+"_holder", lags[0], nil)
	t.latency("lag_"+bus, lags[1], t.model.lateness())
	return t.checkLogs(clients[:1])
}

// deliveriesOn measures one session with followers on all nodes, at 50 tokens per
// second. The cost is the sum of all nodes.
func (t *trial) deliveriesOn(n int, bus string) error {
	list, err := t.nodes(n, bus)
	if err != nil {
		return err
	}
	h := &histogram{}
	followers, tokens, gap := t.size(198, 6), t.pick(250, 10), 20*time.Millisecond
	clients, err := t.spread(list, followers, func(_ int, lag int64) { h.record(lag) })
	defer closeAll(clients)
	if err != nil {
		return err
	}
	cpu := func() (sum time.Duration) {
		for _, p := range list {
			u, _ := usageOf(p.cmd.Process.Pid)
			sum += u.cpu
		}
		return sum
	}
	before := cpu()
	if err := t.askAll(clients, answer{tokens: tokens, gap: gap, size: 24}); err != nil {
		return err
	}
	if err := t.waitAll(clients, time.Duration(tokens)*gap+time.Minute); err != nil {
		return err
	}
	cost := micros(cpu()-before) / float64(h.count())
	t.record(fmt.Sprintf("cpu_us_per_delivery_%d_nodes", n), cost)
	t.point("CPU per delivery, µs by nodes", float64(n), cost)
	return t.checkLogs(clients[:1])
}

// passedOn measures commands to a busy session on the first node: sent to that
// node, and sent to the second node, which forwards them.
func (t *trial) passedOn(bus string) error {
	list, err := t.nodes(2, bus)
	if err != nil {
		return err
	}
	c, err := t.open("", nil)
	if err != nil {
		return err
	}
	defer c.close()
	times := []*histogram{{}, {}}
	commands := t.pick(200, 5)
	if err := c.ask(t.model.add(answer{tokens: commands * 5, gap: 20 * time.Millisecond})); err != nil {
		return err
	}
	for i := range 2 * commands {
		t.server = list[i%2]
		from := clock()
		status, body, err := t.do("PATCH", "/api/v1/sessions/"+c.id, fmt.Sprintf(`{"title":"title %d"}`, i))
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("a command was answered %d %.200s", status, body)
		}
		if err != nil {
			return err
		}
		if i >= 10 { // the first ones open the connections
			times[i%2].record(clock() - from)
		}
	}
	t.latency("command_"+bus+"_holder", times[0], nil)
	t.latency("command_"+bus+"_passed_on", times[1], nil)
	t.server = list[0]
	return t.waitAll([]*client{c}, 2*time.Minute)
}

// appendsOf measures 64 writers of one tenant that are distributed over n nodes.
// Each node is a store of its own.
func (t *trial) appendsOf(n int) error {
	const writers = 64
	stores := make([]port.Store, n)
	defer func() {
		for _, s := range stores {
			if s != nil {
				_ = s.Close()
			}
		}
	}()
	for i := range stores {
		data, err := t.dir()
		if err != nil {
			return err
		}
		if stores[i], err = t.o.Open(t.ctx, data, t.database); err != nil {
			return err
		}
	}
	rates := make([]float64, n)
	if err := together(n, n, func(i int) (err error) {
		rates[i], err = t.appendWith(stores[i], writers/n)
		return err
	}); err != nil {
		return err
	}
	sum := 0.0
	for rate := range slices.Values(rates) {
		sum += rate
	}
	t.record(fmt.Sprintf("appends_per_s_%d_nodes", n), sum)
	t.point("durable events per second, by nodes", float64(n), sum)
	return nil
}
