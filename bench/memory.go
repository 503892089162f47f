package bench

import (
	"fmt"
	"time"
)

// Scenarios for memory and for the start of the server.

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// settle waits until the server has finished its work, before its memory is
// measured.
func (t *trial) settle() {
	d := 1500 * time.Millisecond
	if t.o.Short {
		d = 20 * time.Millisecond
	}
	t.pace.until(t.ctx, clock()+int64(d))
}

// runMemory measures a fresh server, and the same server after 500 sessions with 4
// runs each.
func runMemory(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	t.settle()
	t.record("idle_mb", mib(t.usage().rss))
	t.record("idle_private_mb", mib(privateMemory(t.server.cmd.Process.Pid)))
	sessions, runs := t.size(500, 10), 4
	if err := together(sessions, 50, func(int) error {
		c, err := t.open("", nil)
		if err != nil {
			return err
		}
		defer c.close()
		for range runs {
			if err := c.ask(t.model.add(answer{tokens: 20})); err != nil {
				return err
			}
			if err := t.waitAll([]*client{c}, time.Minute); err != nil {
				return err
			}
		}
		return t.checkLogs([]*client{c})
	}); err != nil {
		return err
	}
	t.settle()
	t.record("after_sessions_mb", mib(t.usage().rss))
	t.record("after_sessions_private_mb", mib(privateMemory(t.server.cmd.Process.Pid)))
	return nil
}

// runIdle measures connections that each follow a session and send nothing.
func runIdle(t *trial) error {
	n := t.size(10_000, 200)
	steps := []int{n / 10, n / 2, n}
	if t.peer != nil {
		return t.idleRelay(steps)
	}
	if err := t.start(); err != nil {
		return err
	}
	var all []*client
	defer func() { closeAll(all) }()
	return t.idleSteps(steps, func(n int) error {
		more, err := t.openMany(n, nil)
		all = append(all, more...)
		return err
	}, func() error {
		for _, c := range all {
			if c.gone != nil {
				return c.gone
			}
		}
		return nil
	})
}

// idleSteps opens connections in steps and records the cost of each connection.
func (t *trial) idleSteps(steps []int, open func(n int) error, check func() error) error {
	t.settle()
	empty, opened := t.usage().rss, 0
	for _, n := range steps {
		if err := open(n - opened); err != nil {
			return fmt.Errorf("after %d connections: %w", opened, err)
		}
		opened = n
		t.settle()
		kb := float64(t.usage().rss-empty) / 1024 / float64(n)
		t.record(fmt.Sprintf("kb_per_connection_at_%d", n), kb)
		t.point("memory of idle connections, KB by number", float64(n), kb*float64(n))
	}
	return check()
}

// runSessions measures idle sessions with 100 events each and without
// connections.
func runSessions(t *trial) error {
	n := t.size(3000, 6)
	plots := make([]plot, n)
	for i := range plots {
		plots[i] = plot{id: newID(), runs: 4, chunks: 15, size: 30}
	}
	if err := t.startSeeded(plots, "PARLEY_IDLE=1s"); err != nil {
		return err
	}
	visit := func(id string) error {
		c, err := t.open(id, nil)
		if err != nil {
			return err
		}
		defer c.close()
		if c.sse {
			return nil // opening it has read the log
		}
		if err := c.ask(t.model.add(answer{tokens: 1})); err != nil {
			return err
		}
		return t.waitAll([]*client{c}, time.Minute)
	}
	warm := n / 3 // fills the caches of the store, which do not grow with the number of sessions
	if err := together(warm, 16, func(i int) error { return visit(plots[i].id) }); err != nil {
		return err
	}
	pause := func() { t.pace.until(t.ctx, clock()+int64(t.pick(4000, 20))*int64(time.Millisecond)) }
	pause()
	before := t.usage().rss
	if err := together(n-warm, 16, func(i int) error { return visit(plots[warm+i].id) }); err != nil {
		return err
	}
	pause()
	t.record("kb_per_idle_session", float64(t.usage().rss-before)/1024/float64(n-warm))
	return nil
}

// runCold measures the time from the start of the process to the first session,
// with an empty store and with up to 10,000 stored sessions.
func runCold(t *trial) error {
	if t.peer != nil {
		return t.coldPeer()
	}
	rounds := t.pick(7, 1)
	empty, err := t.coldStarts(rounds, nil)
	if err != nil {
		return err
	}
	t.record("empty_first_session_ms", empty.first.ms(0.5))
	t.record("empty_ready_ms", empty.ready.ms(0.5))
	for _, n := range []int{t.pick(100, 5), t.pick(1000, 10), t.size(10_000, 50)} {
		plots := make([]plot, n)
		for i := range plots {
			plots[i] = plot{id: newID(), runs: 1, chunks: 2, size: 30}
		}
		stored, err := t.coldStarts(min(rounds, 3), plots)
		if err != nil {
			return err
		}
		t.record("stored_first_session_ms", stored.first.ms(0.5)) // the last, largest number counts
		t.point("start to first session, ms by stored sessions", float64(n), stored.first.ms(0.5))
	}
	return nil
}

type coldTimes struct{ ready, first *histogram }

func (t *trial) coldStarts(rounds int, plots []plot) (times coldTimes, err error) {
	times = coldTimes{&histogram{}, &histogram{}}
	data := ""
	for range rounds {
		if data == "" || plots == nil { // a new folder for each round, or one filled folder for all
			if data, err = t.dir(); err != nil {
				return times, err
			}
			if err := t.fresh(); err != nil {
				return times, err
			}
			if err := t.seeded(data, plots); plots != nil && err != nil {
				return times, err
			}
		}
		if err := t.startOn(data, "127.0.0.1:0"); err != nil {
			return times, err
		}
		if err := t.openSession(newID()); err != nil {
			return times, err
		}
		times.first.record(int64(time.Since(t.server.begun)))
		times.ready.record(int64(t.server.ready))
		if len(plots) > 0 {
			if err := t.hasSessions(len(plots)); err != nil {
				return times, err
			}
		}
		t.stopServers()
	}
	return times, nil
}

// hasSessions checks that the server lists the stored sessions.
func (t *trial) hasSessions(n int) error {
	var list struct{ Sessions []struct{ ID string } }
	if err := t.get("/api/v1/sessions?limit=200", &list); err != nil {
		return err
	}
	if len(list.Sessions) < min(n, 200) {
		return fmt.Errorf("the server lists %d sessions of %d", len(list.Sessions), n)
	}
	return nil
}
