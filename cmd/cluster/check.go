package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/checker"
	"parley/pacing"
)

// check runs a cluster under a nemesis, once for each seed. Then it compares the
// logs with the events that clients have received.
func check(ctx context.Context, o options, args []string) error {
	flags := flag.NewFlagSet("check", flag.ExitOnError)
	first := flags.Uint64("seed", 0, "the first seed")
	seeds := flags.Int("seeds", 1, "number of seeds")
	seconds := flags.Int("seconds", 30, "how long each one rages")
	sessions := flags.Int("sessions", 6, "number of sessions")
	_ = flags.Parse(args) // a mistake ends the process
	o.proxied, o.port = true, 0
	folder := o.folder
	var failed []error
	for seed := *first; seed < *first+uint64(*seeds) && ctx.Err() == nil; seed++ {
		o.folder = filepath.Join(folder, fmt.Sprint("seed", seed))
		begun := time.Now()
		err := with(ctx, o, func(c *cluster) error { return c.survive(ctx, seed, *seconds, *sessions) })
		if err == nil {
			fmt.Printf("seed %d: everything held, in %v\n\n", seed, time.Since(begun).Round(time.Second))
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("seed %d was interrupted", seed)
		}
		err = fmt.Errorf("seed %d: %w\nIts logs are in %s. To run it again:\n"+
			"  make cluster-check CHECK='-seed %d -seconds %d -sessions %d'", seed, err, o.folder, seed, *seconds,
			*sessions)
		fmt.Println(err)
		failed = append(failed, err)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d seeds failed", len(failed), *seeds)
	}
	return ctx.Err()
}

// patience is how long a healed cluster may take to finish all open work.
const patience = 90 * time.Second

func (c *cluster) survive(ctx context.Context, seed uint64, seconds, sessions int) error {
	v, err := newVisitors(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); v.wg.Wait() }()
	v.followAll(ctx)
	for range sessions {
		if _, err := v.open(ctx, v.doors...); err != nil {
			return err
		}
	}
	talking, hush := context.WithCancel(ctx)
	defer hush()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.talkAll(ctx, talking, seed)
	}()
	length := time.Duration(seconds) * time.Second
	n := &nemesis{cluster: c, random: rand.New(rand.NewPCG(seed, 1)), longest: min(14*time.Second, length)}
	raged := n.rage(ctx, length)
	hush()
	<-ended
	return errors.Join(raged, v.settle(ctx), v.faults.err())
}

// talkAll sends inputs to every session until talking ends. The last input of each
// session is repeated until it is accepted.
func (v *visitors) talkAll(ctx, talking context.Context, seed uint64) {
	done := make(chan struct{})
	for i, t := range v.talks {
		random := rand.New(rand.NewPCG(seed, uint64(100+i)))
		go func() {
			defer func() { done <- struct{}{} }()
			for n := 0; talking.Err() == nil; n++ {
				inTime, cancel := context.WithTimeout(ctx, 2*time.Minute)
				v.submit(inTime, t, random, fmt.Sprintf("s%d-%d", i, n), something(random))
				if inTime.Err() != nil && ctx.Err() == nil {
					v.faults.add("input s%d-%d was not accepted for two minutes", i, n)
				}
				cancel()
				if random.IntN(8) == 0 {
					v.cancel(ctx, t, random)
				}
				pacing.Sleep(talking, time.Duration(random.Int64N(int64(3*time.Second))))
			}
		}()
	}
	for range v.talks {
		<-done
	}
}

func something(random *rand.Rand) string {
	switch random.IntN(4) {
	case 0:
		return fmt.Sprint("count slowly to ", 3+random.IntN(20))
	case 1:
		return "think about failure"
	case 2:
		return "list files"
	}
	return fmt.Sprint("count to ", 10+random.IntN(100))
}

// settle waits until all runs have ended and all followers have received every
// event. Then it compares the logs with the clients' records.
func (v *visitors) settle(ctx context.Context) error {
	var wrong []error
	outcomes := map[string]int{}
	for _, t := range v.talks {
		patience := patience
		if wrong != nil { // the check has failed already; the rest only adds details
			patience /= 10
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		log, lines, err := v.settled(ctx, t)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		for _, err := range append(checker.Check(log), checker.Settled(log)...) {
			wrong = append(wrong, fmt.Errorf("session %s: %w", t.id, err))
		}
		for _, e := range log {
			if b, is := e.Body.(parley.RunFinished); is {
				outcomes[strings.TrimSpace(string(b.Outcome)+" "+string(b.Code))]++
			}
		}
		wrong = append(wrong, t.inputs(log)...)
		wrong = append(wrong, t.numbers(log)...)
		for _, f := range append(t.followers, v.whole...) {
			if err := f.saw(ctx, t.id, lines); err != nil {
				wrong = append(wrong, err)
			}
		}
	}
	accepted, events, lost := 0, 0, 0
	for _, t := range v.talks {
		accepted += len(t.accepted)
		for _, f := range t.followers {
			seen, _ := f.events()
			events, lost = events+len(seen), lost+f.lost
		}
	}
	fmt.Printf("%d inputs accepted, runs %v, %d events delivered, %d reconnects of followers; requests answered with "+
		"503: %d, lost: %d\n", accepted, outcomes, events, lost, v.failed.Load(), v.lost.Load())
	return errors.Join(wrong...)
}

// settled reads the log of a session when it has no open work.
func (v *visitors) settled(ctx context.Context, t *talk) (log []parley.Event, lines [][]byte, err error) {
	var open []error
	for i := 0; ctx.Err() == nil; i++ {
		log, lines, err = nil, nil, nil
		for u, e := range v.doors[i%len(v.doors)].Read(ctx, t.id, 0) {
			if e != nil {
				err = e
				break
			}
			log, lines = append(log, u.Event), append(lines, u.Line)
		}
		if open = checker.Settled(log); err == nil && len(open) == 0 {
			return log, lines, nil
		}
		pacing.Sleep(ctx, 300*time.Millisecond)
	}
	return nil, nil, fmt.Errorf("session %s does not come to an end after everything was healed, at event %d: %w",
		t.id, len(log), errors.Join(append(open, err)...))
}

// inputs checks that every accepted input is in the log once, at the seq in its
// receipt.
func (t *talk) inputs(log []parley.Event) (wrong []error) {
	at := map[string][]parley.Seq{}
	for _, e := range log {
		if in, ok := e.Body.(parley.InputReceived); ok {
			at[in.Request] = append(at[in.Request], e.Seq)
		}
	}
	for request, receipt := range t.accepted {
		if len(at[request]) != 1 || at[request][0] != receipt.First {
			wrong = append(wrong, fmt.Errorf("session %s: %s was accepted as event %d and is at %v in the log", t.id,
				request, receipt.First, at[request]))
		}
	}
	for request, seqs := range at {
		if len(seqs) > 1 {
			wrong = append(wrong, fmt.Errorf("session %s: %s is in the log %d times", t.id, request, len(seqs)))
		}
	}
	return wrong
}

// numbers checks that every completed run that counts has every number once, in
// order.
func (t *talk) numbers(log []parley.Event) (wrong []error) {
	asked, said := map[parley.InputID]string{}, map[parley.RunID]*strings.Builder{}
	goal := map[parley.RunID]int{}
	for _, e := range log {
		switch b := e.Body.(type) {
		case parley.InputReceived:
			asked[parley.InputID(e.Seq)] = b.Content
		case parley.RunStarted:
			words := strings.Fields(asked[b.Input])
			if len(words) > 0 && words[0] == "count" {
				n, _ := strconv.Atoi(words[len(words)-1])
				goal[e.Run], said[e.Run] = n, &strings.Builder{}
			}
		case parley.OutputAppended:
			if s := said[e.Run]; s != nil {
				s.WriteString(b.Text)
			}
		case parley.RunFinished:
			s := said[e.Run]
			if s == nil || b.Outcome != parley.Completed {
				continue
			}
			var want []string
			for i := range goal[e.Run] {
				want = append(want, fmt.Sprint(i+1))
			}
			if got := s.String(); got != strings.Join(want, " ") {
				wrong = append(wrong, fmt.Errorf("session %s: run %d counted to %d so: %q", t.id, e.Run, goal[e.Run],
					got))
			}
		}
	}
	return wrong
}

// saw checks that the follower has received these events.
func (l *listener) saw(ctx context.Context, session parley.SessionID, lines [][]byte) error {
	for {
		raw := l.of(session)
		if len(raw) >= len(lines) {
			for i, line := range lines {
				if !bytes.Equal(raw[i], line) {
					return fmt.Errorf("%s was shown another event %d than the log has:\n%s\n%s", l.name, i+1, raw[i],
						line)
				}
			}
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s is shown only %d of %d events after everything was healed", l.name,
				len(raw), len(lines))
		}
		pacing.Sleep(ctx, 50*time.Millisecond)
	}
}
