package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley"
	"parley/port"
	"parley/store/sqlite"
	"parley/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var t0 = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

const (
	acme = parley.TenantID("acme")
	mine = parley.SessionID("00000000-0000-4000-8000-000000000001")
)

// receiver starts a real server on a real port. It stops at the end of the test.
func receiver(t *testing.T, h http.HandlerFunc) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return l.Addr().String()
}

// A bench is a dispatcher with a real store, and a clock that the test sets.
type bench struct {
	t     *testing.T
	store *sqlite.Store
	seal  Sealer
	allow Allow
	d     *Dispatcher
	told  chan string
	log   lines

	mu  sync.Mutex
	now time.Time
}

// lines has the log output.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newBench(t *testing.T) *bench {
	t.Helper()
	store, err := sqlite.Open(t.Context(), storetest.Dir(t), "a test")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, store: store, told: make(chan string, 1000), now: t0.Add(time.Minute)}
	if b.seal, err = NewSealer([]byte("a server key of thirty-two bytes")); err != nil {
		t.Fatal(err)
	}
	if b.allow, err = ParseAllow([]string{"127.0.0.0/8"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.stop()
		store.Close()
	})
	return b
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// pass moves the clock, and pokes the dispatcher.
func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	b.now = b.now.Add(d)
	b.mu.Unlock()
	b.d.Poke()
}

func (b *bench) start() { b.startOn(b.store) }

func (b *bench) startOn(store Store) {
	env := func(name string) (string, bool) { return secretOfAgent, name == "HOOK" }
	b.d = New(Config{Store: store, Sealer: b.seal, Allow: b.allow, Env: env, Public: "https://parley.example",
		Version: "1", Now: b.clock,
		Log: slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Told: func(
			outcome string, _ time.Duration) {
			b.told <- outcome
		}})
	b.d.Start()
}

func (b *bench) stop() {
	if b.d != nil {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = b.d.Close(over)
		b.d = nil
	}
}

func (b *bench) expect(outcomes ...string) {
	b.t.Helper()
	for _, want := range outcomes {
		select {
		case got := <-b.told:
			if got != want {
				b.t.Fatalf("it was %s, want %s; %+v", got, want, b.effects())
			}
		case <-time.After(30 * time.Second):
			b.t.Fatalf("it was not %s; %+v", want, b.effects())
		}
	}
}

func (b *bench) effects() []port.EffectInfo {
	b.t.Helper()
	list, err := b.store.Tenant(acme).Effects(b.t.Context(), port.EffectQuery{Limit: 1000})
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

const secretOfAgent = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// session creates a session with a run that has ended, for which its webhook, or that of its agent, is due.
func (b *bench) session(id parley.SessionID, url string, ofAgent bool) (secret string) {
	b.t.Helper()
	return b.sessionOf(acme, id, url, ofAgent)
}

func (b *bench) sessionOf(tenant parley.TenantID, id parley.SessionID, url string, ofAgent bool) (secret string) {
	b.t.Helper()
	target, err := b.allow.Check(url)
	if err != nil {
		b.t.Fatal(err)
	}
	secret, sealed, err := b.seal.Seal(tenant, id, "")
	if err != nil {
		b.t.Fatal(err)
	}
	batch := port.Batch{Tenant: tenant, Session: id, Epoch: 1, Summary: port.Summary{ID: id, Root: id, Owner: "ann",
		Head: 6, OpenedAt: t0, UpdatedAt: t0},
		Webhook: &port.StoredWebhook{URL: url, Sealed: sealed, Hook: parley.HookOf(target, nil), At: t0}}
	ref := parley.HookRef{Hook: parley.Hook{Target: target}, Session: id}
	agent := parley.AgentRef{Name: "coder"}
	if ofAgent {
		def := parley.Agent{Name: "coder", Webhook: &parley.AgentWebhook{URL: url, SecretEnv: "HOOK", Target: target}}
		batch.Agent, batch.Webhook, agent = &def, nil, def.Ref()
		ref = parley.HookRef{Hook: parley.Hook{Target: target}, Agent: def.Digest()}
		secret = secretOfAgent
	}
	for i, body := range []parley.EventBody{
		parley.SessionOpened{Owner: "ann"}, parley.InputReceived{Content: "a secret thing", Agent: agent},
		parley.RunStarted{Input: 2, Agent: agent, Request: "r1"},
		parley.InputAdopted{Input: 2}, parley.RunFinished{Outcome: parley.Completed, Usage: parley.Usage{Input: 3}},
		parley.EffectEnqueued{Type: parley.Webhook, Hook: &parley.HookPromise{Event: parley.HookFinished, About: 5,
			Run: 3, HookRef: ref}},
	} {
		e := parley.Event{Session: id, Seq: parley.Seq(i + 1), Root: id, At: t0, Body: body}
		if i == 2 || i == 3 || i == 4 {
			e.Run = 3
		}
		batch.Events = append(batch.Events, e)
	}
	if res, err := b.store.Append(b.t.Context(), batch); err != nil || res.Fenced {
		b.t.Fatal(res, err)
	}
	return secret
}

// again makes the same delivery of a session due once more.
func (b *bench) again(id parley.SessionID, url string) {
	b.t.Helper()
	target, _ := b.allow.Check(url)
	e := parley.Event{Session: id, Seq: 7, Root: id, At: t0, Body: parley.EffectEnqueued{Type: parley.Webhook,
		Hook: &parley.HookPromise{Event: parley.HookFinished, About: 5, Run: 3,
			HookRef: parley.HookRef{Hook: parley.Hook{Target: target}, Session: id}}}}
	if res, err := b.store.Append(b.t.Context(), port.Batch{Tenant: acme, Session: id, Epoch: 1, After: 6,
		Events:  []parley.Event{e},
		Summary: port.Summary{ID: id, Root: id, Owner: "ann", Head: 7, OpenedAt: t0, UpdatedAt: t0}}); err != nil ||
		res.Fenced {
		b.t.Fatal(res, err)
	}
	b.d.Poke()
}

func id(n int) parley.SessionID {
	return parley.SessionID(fmt.Sprintf("00000000-0000-4000-8000-%012x", n))
}
