package feed

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"parley"
	"parley/bus"
	"parley/port"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
)

// BenchmarkNodes appends events to sessions on one node and waits until
// followers on another node have them. It compares messages that carry events
// with messages that only say that there are some. The CPU time is that of both
// nodes and, with NATS, of its server, which run in this process. That of
// PostgreSQL is not included.
func BenchmarkNodes(b *testing.B) {
	defer pgtest.Stop()
	for _, wire := range []string{"nats", "postgres"} {
		for _, wakes := range []bool{false, true} {
			for _, tree := range []bool{false, true} {
				name := fmt.Sprintf("%s/wakeups=%v/tail=%v", wire, wakes, tree)
				b.Run(name, func(b *testing.B) { benchmarkNodes(b, wire, wakes, tree) })
			}
		}
	}
}

// wakeUps makes the followers of a session read the store after every message.
// A tail does that by itself.
type wakeUps struct {
	port.Bus
	feed *Feed
}

func (w wakeUps) Listen(topic string, hear func([]byte)) func() {
	return w.Bus.Listen(topic, func([]byte) {
		if session, ok := strings.CutPrefix(topic, "e."+string(acme)+"."); ok {
			w.feed.Reread(acme, parley.SessionID(session))
		} else {
			hear(nil)
		}
	})
}

func (w wakeUps) Publish(topic string, _ []byte) {
	w.Bus.Publish(topic, []byte(rand.Text())) // PostgreSQL merges messages that are equal
}

func benchmarkNodes(b *testing.B, wire string, wakes, tree bool) {
	const sessions, followers = 4, 10
	url := pgtest.Database(b)
	var nats *server.Server
	if wire == "nats" {
		var err error
		if nats, err = server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true,
			NoSigs: true}); err != nil {
			b.Fatal(err)
		}
		nats.Start()
		defer nats.Shutdown()
		if !nats.ReadyForConnections(10 * time.Second) {
			b.Fatal("NATS does not start")
		}
	}
	node := func() (*Feed, *postgres.Store) {
		store, err := postgres.Open(context.Background(), url)
		if err != nil {
			b.Fatal(err)
		}
		o := bus.Options{Epoch: store.Epoch(), Key: []byte("key")}
		var between *bus.Bus
		if nats != nil {
			between, err = bus.NATS(nats.ClientURL(), o)
		} else {
			between, err = bus.Postgres(url, o)
		}
		if err != nil {
			b.Fatal(err)
		}
		f := New(store)
		f.Connect(Nodes{Bus: between, Heads: store})
		if wakes {
			f.Connect(Nodes{Bus: wakeUps{between, f}, Heads: store})
		}
		between.Start()
		f.Start()
		b.Cleanup(func() {
			_ = f.Close(context.Background())
			_ = between.Close(context.Background())
			store.Close()
		})
		return f, store
	}
	f, store := node()
	holder := &bench{Feed: f, t: b, store: store}
	other, _ := node()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	got := make(chan struct{}, 1000)
	for i := range sessions * followers {
		follower := other.Session(acme, id(1+i%sessions), 0)
		if tree {
			follower = other.Tree(acme, id(1+i%sessions), 0)
		}
		wg.Go(func() {
			defer follower.Close()
			for {
				items, err := follower.Next(ctx)
				if err != nil {
					return
				}
				for range items {
					got <- struct{}{}
				}
			}
		})
	}
	round := func() {
		for s := 1; s <= sessions; s++ {
			holder.write(s, s, 1, "some twenty bytes ok", false)
			for range followers {
				<-got
			}
		}
	}
	round()
	round()
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	var slowest time.Duration
	for b.Loop() {
		from := time.Now()
		round()
		slowest = max(slowest, time.Since(from))
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	n := float64(b.N) * sessions
	b.ReportMetric(float64(b.Elapsed().Microseconds())/n, "µs/append+delivery")
	b.ReportMetric(float64(cpu.Microseconds())/n/followers, "cpu-µs/delivery")
	b.ReportMetric(float64(slowest.Milliseconds())/sessions, "slowest-ms")
	cancel()
	wg.Wait()
}
