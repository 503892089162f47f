package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/checker"
)

// TestThreeNodesUnderANemesis lets clients talk to any of three nodes. Meanwhile nodes crash, drain, lose their lease
// for a while and come back, and the bus loses, repeats and delays messages. Each accepted input is in the log once and
// comes to an end, and every log is one that a single server could have written. PARLEY_NEMESIS=100 tries 100 seeds.
func TestThreeNodesUnderANemesis(t *testing.T) {
	seeds := 5
	if s := os.Getenv("PARLEY_NEMESIS"); s != "" {
		var err error
		if seeds, err = strconv.Atoi(s); err != nil || seeds < 1 {
			t.Fatalf("PARLEY_NEMESIS=%s is no number of seeds", s)
		}
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { underANemesis(t, uint64(seed)) })
	}
}

func underANemesis(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	bus := newBus(seed)
	bus.loses, bus.repeats, bus.delay = 0.2, 0.2, 10*time.Millisecond
	c := newCluster(t, bus)
	c.lease = time.Second
	var mu sync.Mutex // guards the following
	nodes := []*rig{c.node(), c.node(), c.node()}
	for _, r := range nodes {
		r.noHang, r.puppet.noHang = true, true
	}
	c.know(nodes...)
	some := func(r *rand.Rand) *rig {
		mu.Lock()
		defer mu.Unlock()
		return nodes[r.IntN(len(nodes))]
	}

	const sessions, inputs = 4, 12
	var ids []parley.SessionID
	accepted := make([]map[string]bool, sessions)
	var clients sync.WaitGroup
	for i := range sessions {
		id := nodes[i%3].open()
		ids = append(ids, id)
		accepted[i] = map[string]bool{}
		mine := rand.New(rand.NewPCG(seed, uint64(10+i)))
		clients.Go(func() {
			for n := range inputs {
				request := fmt.Sprintf("s%d-%d", i, n)
				content := []string{"say a; think b; say c", "call read x | say done",
					"call put x; say d | say e"}[mine.IntN(3)]
				// A client that gets no answer retries at another node, under the same id.
				for try := 0; try < 200; try++ {
					_, err := some(mine).Submit(context.Background(), ann, parley.Command{ID: parley.CommandID(request),
						Session: id, Do: parley.SubmitInput{Content: content, Request: request}})
					if err == nil {
						accepted[i][request] = true
						break
					}
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { clients.Wait(); close(done) }()
	for going := true; going; {
		select {
		case <-done:
			going = false
			continue
		case <-time.After(time.Duration(random.IntN(300)) * time.Millisecond):
		}
		i := random.IntN(len(nodes))
		mu.Lock()
		r := nodes[i]
		mu.Unlock()
		switch what := random.IntN(3); what {
		case 0: // it drains, and another takes its place
			fresh := c.node()
			fresh.noHang, fresh.puppet.noHang = true, true
			mu.Lock()
			nodes[i] = fresh
			mu.Unlock()
			r.kill()
		case 1: // it crashes
			fresh := c.node()
			fresh.noHang, fresh.puppet.noHang = true, true
			mu.Lock()
			nodes[i] = fresh
			mu.Unlock()
			c.cutOff(r)
		case 2: // the others take a live node for dead
			c.exec(`UPDATE nodes SET seen_at = 'epoch' WHERE id = $1`, r.Nodes.Node())
		}
	}
	for i, id := range ids {
		if len(accepted[i]) < inputs {
			t.Errorf("only %d of %d inputs were taken", len(accepted[i]), inputs)
		}
		eachEndsOnce(t, nodes[0], id, accepted[i])
	}
}

// eachEndsOnce waits until a session has nothing left to do, and checks its log: every accepted input is there once.
func eachEndsOnce(t *testing.T, r *rig, id parley.SessionID, accepted map[string]bool) {
	t.Helper()
	var log []parley.Event
	await(t, "everything has ended", func() bool { // on any of the nodes
		log = r.log(id)
		return len(all[parley.RunFinished](log)) >= len(accepted) && fold(parley.NewState(acme, id), log).Run == nil
	})
	for _, err := range append(checker.Check(log), checker.Settled(log)...) {
		t.Errorf("%v\n%s", err, story(log))
	}
	count := map[string]int{}
	for _, in := range all[parley.InputReceived](log) {
		count[in.Request]++
	}
	for request := range accepted {
		if count[request] != 1 {
			t.Errorf("%s was accepted and is there %d times", request, count[request])
		}
	}
}
