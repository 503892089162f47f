package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"parley"
	"parley/checker"
	"parley/store/postgres/pgtest"
)

// TestKilledAgainAndAgain kills a server under load, as often as PARLEY_KILLS
// says. Then the checker compares the logs with what clients got: no accepted
// input is lost or run twice, nothing is stuck, and every follower has seen
// exactly the log.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); killedAgainAndAgain(t, options{}, 10*time.Second) })
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		// The sessions of a killed server are taken over when its lease has
		// expired.
		killedAgainAndAgain(t, options{env: []string{"PARLEY_DATABASE_URL=" + pgtest.Database(t)}}, 20*time.Second)
	})
}

const writers, followers = 6, 2 // clients, and followers of each session

func killedAgainAndAgain(t *testing.T, o options, readyWithin time.Duration) {
	kills := 5
	if n, err := strconv.Atoi(os.Getenv("PARLEY_KILLS")); err == nil {
		kills = n
	}
	s := startServer(t, o)
	s.o.listen = s.address
	load, stopLoad := context.WithCancel(context.Background())
	defer stopLoad()
	watch, stopWatching := context.WithCancel(context.Background())
	defer stopWatching()
	var loading, watching sync.WaitGroup
	clients := make([]*client, writers)
	for i := range clients {
		c := &client{t: t, url: "http://" + s.address + "/api/v1/sessions", session: uuid.NewString(),
			seen: make([][]string, followers)}
		clients[i] = c
		loading.Go(func() { c.write(load) })
		for f := range followers {
			watching.Go(func() { c.follow(watch, f) })
		}
	}

	slowest := time.Duration(0)
	for range kills {
		select { // long enough for some work to be under way
		case <-time.After(100*time.Millisecond + rand.N(400*time.Millisecond)):
		case <-s.exited:
			t.Fatal("the server ended by itself")
		}
		s.kill()
		began := time.Now()
		s = s.again()
		slowest = max(slowest, time.Since(began))
	}
	if slowest > readyWithin {
		t.Errorf("it took up to %v to serve again", slowest)
	}
	stopLoad()
	loading.Wait()

	accepted, events := 0, 0
	for _, c := range clients {
		log := c.settled(s)
		accepted, events = accepted+len(c.accepted), events+len(log)
		c.check(log)
	}
	stopWatching()
	watching.Wait()
	for _, c := range clients {
		c.compare(s)
	}
	t.Logf("%d kills, %d inputs accepted, %d events; serving again within %v", kills, accepted, events, slowest)
}

// A client writes one session, and has followers that remember what they saw.
type client struct {
	t        *testing.T
	url      string
	session  string
	accepted []string   // keys that were answered with a receipt
	seen     [][]string // lines, by follower
}

// write sends one command after another, and repeats each until it is accepted.
func (c *client) write(ctx context.Context) {
	c.post(ctx, "", "open", fmt.Sprintf(`{"id":%q}`, c.session))
	contents := []string{"count to 12", "think about it", "say hello", "lorem 15", "read nothing", "fail midway"}
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprint("k", n)
		if c.post(ctx, "/"+c.session+"/inputs", key, fmt.Sprintf(`{"content":%q}`, contents[n%len(contents)])) {
			c.accepted = append(c.accepted, key)
		}
	}
}

// post repeats a command under its key until the server has accepted it.
func (c *client) post(ctx context.Context, path, key, body string) bool {
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, strings.NewReader(body))
		if err != nil {
			c.t.Error(err)
			return false
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {key}}
		if response, err := browser.Do(r); err == nil {
			status := response.StatusCode
			response.Body.Close()
			switch {
			case status < 300:
				return true
			case status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests:
				c.t.Errorf("%s %s: %d", path, key, status)
				return false
			}
		}
		select { // while the server is down, it is asked again
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return false
}

// follow reads the log from its cursor, whenever there is a server.
func (c *client) follow(ctx context.Context, f int) {
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/%s/log?follow=1&after=%d", c.url,
			c.session, len(c.seen[f])), nil)
		if err != nil {
			c.t.Error(err)
			return
		}
		if response, err := browser.Do(r); err == nil {
			if response.StatusCode == http.StatusOK {
				for lines := bufio.NewReader(response.Body); ; {
					line, err := lines.ReadString('\n')
					if err != nil {
						break // a partial line does not count
					}
					c.seen[f] = append(c.seen[f], line)
				}
			}
			response.Body.Close()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// settled follows the log until everything in it has ended. Every accepted
// input is in it already.
func (c *client) settled(s *server) (log []parley.Event) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	accepted := len(c.log(s))
	response := s.request(ctx, http.MethodGet, "/api/v1/sessions/"+c.session+"/log?follow=1", nil, "")
	defer response.Body.Close()
	count := map[string]int{}
	for lines := bufio.NewReader(response.Body); ; {
		if len(log) >= accepted && count["RunFinished"] == count["InputReceived"] && count["InputReceived"] > 0 {
			return log
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			c.t.Fatalf("%d inputs, %d of them answered: %v", count["InputReceived"], count["RunFinished"], err)
		}
		var e parley.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			c.t.Fatal(err)
		}
		log = append(log, e)
		count[parley.TypeOf(e.Body)]++
	}
}

func (c *client) log(s *server) (lines []string) {
	status, body := s.get("/api/v1/sessions/"+c.session+"/log", nil)
	if status != http.StatusOK {
		c.t.Fatalf("the log: %d %s", status, body)
	}
	for line := range strings.Lines(body) {
		lines = append(lines, line)
	}
	return lines
}

func (c *client) check(log []parley.Event) {
	for _, err := range append(checker.Check(log), checker.Settled(log)...) {
		c.t.Errorf("session %s: %v", c.session, err)
	}
	times := map[parley.CommandID]int{}
	for _, e := range log {
		if in, ok := e.Body.(parley.InputReceived); ok {
			times[in.Command]++
		}
	}
	for _, key := range c.accepted {
		if times[parley.CommandID(key)] == 0 {
			c.t.Errorf("session %s: %s was accepted and is lost", c.session, key)
		}
	}
	for key, n := range times {
		if n > 1 {
			c.t.Errorf("session %s: %s is there %d times", c.session, key, n)
		}
	}
}

// compare compares the lines of the followers, byte for byte, with the stored
// log.
func (c *client) compare(s *server) {
	log := c.log(s)
	for f, seen := range c.seen {
		if len(seen) > len(log) {
			c.t.Errorf("session %s: follower %d saw %d events of %d", c.session, f, len(seen), len(log))
			continue
		}
		for i, line := range seen {
			if line != log[i] {
				c.t.Errorf("session %s: follower %d saw as event %d\n%snot\n%s", c.session, f, i+1, line, log[i])
				break
			}
		}
	}
}
