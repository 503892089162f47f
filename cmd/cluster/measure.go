package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"parley"
	"parley/client"
	"parley/pacing"
)

// takeover repeatedly kills the node that holds many streaming sessions. It
// measures how long it takes until other nodes continue them.
func takeover(ctx context.Context, o options, args []string) error {
	flags := flag.NewFlagSet("takeover", flag.ExitOnError)
	rounds := flags.Int("rounds", 20, "how often a node is killed")
	sessions := flags.Int("sessions", 50, "number of sessions that it holds")
	_ = flags.Parse(args) // a mistake ends the process
	o.port = 0
	return with(ctx, o, func(c *cluster) error {
		var cuts, tokens []time.Duration
		defer func() {
			fmt.Printf("%d takeovers: p50 %v, p99 %v, max %v\n", len(cuts), quantile(cuts, 0.5), quantile(cuts, 0.99),
				quantile(cuts, 1))
			fmt.Printf("the next token: p50 %v, p99 %v, max %v\n", quantile(tokens, 0.5), quantile(tokens, 0.99),
				quantile(tokens, 1))
		}()
		for round := range *rounds {
			victim := c.nodes[round%len(c.nodes)]
			cut, token, err := c.takenOver(ctx, victim, *sessions)
			if err != nil {
				return fmt.Errorf("round %d: %w", round+1, err)
			}
			cuts, tokens = append(cuts, cut...), append(tokens, token...)
			fmt.Printf("round %d: node %d was killed; %d sessions go on, the last one after %v\n", round+1,
				victim.number, len(cut), slices.Max(cut).Round(time.Millisecond))
		}
		return nil
	})
}

func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[min(len(list)-1, int(q*float64(len(list))))].Round(time.Millisecond)
}

// takenOver kills a node in the middle of answers. It starts the node again when
// the answers have ended on other nodes. For each session it returns the time from
// the kill to the takeover, and to the next token.
func (c *cluster) takenOver(ctx context.Context, victim *node, sessions int) (cuts, tokens []time.Duration, err error) {
	v, err := newVisitors(c)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); v.wg.Wait() }()
	direct := v.doors[slices.Index(c.nodes, victim)+1] // the first one is the balancer's
	for range sessions {
		t, err := v.open(ctx, direct, v.doors[0])
		if err != nil {
			return nil, nil, err
		}
		t.followers[0].name += ", on the node that is killed"
	}
	if err := v.ask(ctx, direct, "count slowly to 60"); err != nil {
		return nil, nil, err
	}
	for _, t := range v.talks {
		if err := t.followers[1].await(ctx, time.Minute, func(e parley.Event) bool {
			b, is := e.Body.(parley.OutputAppended)
			return is && b.Offset > 5
		}); err != nil {
			return nil, nil, err
		}
	}
	killed := time.Now()
	victim.stop(syscall.SIGKILL)
	for _, t := range v.talks {
		if err := t.followers[1].await(ctx, time.Minute, func(e parley.Event) bool {
			_, is := e.Body.(parley.RunFinished)
			return is
		}); err != nil {
			return nil, nil, err
		}
		cut, token := t.followers[1].resumed(killed)
		if cut == 0 {
			return nil, nil, fmt.Errorf("session %s had ended before the node was killed", t.id)
		}
		cuts, tokens = append(cuts, cut), append(tokens, token)
	}
	err = victim.starts(ctx)
	return cuts, tokens, errors.Join(err, v.settle(ctx), v.faults.err())
}

// ask submits an input to all sessions at once.
func (v *visitors) ask(ctx context.Context, door *client.Client, content string) error {
	var wg sync.WaitGroup
	errs := make([]error, len(v.talks))
	for i, t := range v.talks {
		wg.Go(func() {
			t.accepted["count"], errs[i] = door.Submit(ctx, t.id, client.Input{Content: content, Request: "count"})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// await waits until the listener has received an event.
func (l *listener) await(ctx context.Context, within time.Duration, is func(parley.Event) bool) error {
	for deadline := time.Now().Add(within); ; pacing.Sleep(ctx, 10*time.Millisecond) {
		seen, _ := l.events()
		if slices.ContainsFunc(seen, is) {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%s waits in vain after event %d", l.name, len(seen))
		}
	}
}

// resumed returns the time from a kill until the open turn was recorded as cut, and
// until the next token.
func (l *listener) resumed(killed time.Time) (cut, token time.Duration) {
	seen, times := l.events()
	for i, e := range seen {
		if times[i].Before(killed) {
			continue
		}
		switch e.Body.(type) {
		case parley.TurnFinished:
			if cut == 0 {
				cut = times[i].Sub(killed)
			}
		case parley.OutputAppended:
			if cut != 0 {
				return cut, times[i].Sub(killed)
			}
		}
	}
	return cut, token
}

// rolling restarts one node after the other while clients talk through the balancer.
func rolling(ctx context.Context, o options, args []string) error {
	flags := flag.NewFlagSet("rolling", flag.ExitOnError)
	rounds := flags.Int("rounds", 10, "how often all nodes are restarted")
	sessions := flags.Int("sessions", 20, "number of sessions")
	_ = flags.Parse(args) // a mistake ends the process
	o.port = 0
	return with(ctx, o, func(c *cluster) error {
		v, err := newVisitors(c)
		if err != nil {
			return err
		}
		v.doors = v.doors[:1] // only the balancer's
		ctx, cancel := context.WithCancel(ctx)
		defer func() { cancel(); v.wg.Wait() }()
		for range *sessions {
			if _, err := v.open(ctx, v.doors...); err != nil {
				return err
			}
		}
		talking, hush := context.WithCancel(ctx)
		defer hush()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			v.talkAll(ctx, talking, rand.Uint64())
		}()
		var stops []time.Duration
		var failed error
		for round := range *rounds {
			for _, n := range c.nodes {
				begun := time.Now()
				if !n.end(syscall.SIGTERM, stopsWithin) {
					failed = errors.Join(failed, fmt.Errorf("node %d did not stop within %v", n.number, stopsWithin))
				}
				stops = append(stops, time.Since(begun))
				failed = errors.Join(failed, n.starts(ctx))
			}
			fmt.Printf("round %d: %d requests answered with 503, %d connections lost\n", round+1, v.failed.Load(),
				v.lost.Load())
		}
		hush()
		<-ended
		settled := v.settle(ctx)
		silence, cuts := v.silence(), v.cuts()
		fmt.Printf("%d restarts; a node stopped within p50 %v, max %v; the longest silence of a stream: %v\n",
			len(stops),
			quantile(stops, 0.5), quantile(stops, 1), silence.Round(time.Millisecond))
		if n := v.failed.Load(); n > 0 {
			failed = errors.Join(failed, fmt.Errorf("%d requests were refused", n))
		}
		if cuts > 0 {
			failed = errors.Join(failed, fmt.Errorf("%d answers were cut and not handed over", cuts))
		}
		if silence > maxSilence {
			failed = errors.Join(failed, fmt.Errorf("a stream was silent for %v; the limit is %v", silence, maxSilence))
		}
		return errors.Join(failed, settled, v.faults.err())
	})
}

// maxSilence is how long a stream may be silent because a node stops.
const maxSilence = 3 * time.Second

// cuts returns how many turns were cut without being handed over.
func (v *visitors) cuts() (n int) {
	for _, t := range v.talks {
		seen, _ := t.followers[0].events()
		for _, e := range seen {
			if end, is := e.Body.(parley.TurnFinished); is && end.Stop == parley.StopCut && !end.Handed {
				n++
			}
		}
	}
	return n
}

// silence returns the longest time between two events of one answer at a follower.
func (v *visitors) silence() (longest time.Duration) {
	for _, t := range v.talks {
		for _, f := range t.followers {
			seen, times := f.events()
			for i := 1; i < len(seen); i++ {
				if seen[i].Run != 0 && seen[i].Run == seen[i-1].Run {
					longest = max(longest, times[i].Sub(times[i-1]))
				}
			}
		}
	}
	return longest
}
