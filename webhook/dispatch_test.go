package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// TestAWebhookIsTold checks that another implementation of the standard accepts
// the signature, and that the message describes the event without any text of
// the conversation.
func TestAWebhookIsTold(t *testing.T) {
	b := newBench(t)
	type request struct {
		header http.Header
		body   string
	}
	came := make(chan request, 10)
	addr := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != "POST" || r.URL.Path != "/hook" {
			t.Error(r.Method, r.URL, err)
		}
		came <- request{r.Header, string(body)}
	})
	secrets := []string{b.session(id(1), "http://"+addr+"/hook", false), b.session(id(2), "http://"+addr+"/hook", true)}
	b.start()
	b.expect("delivered", "delivered")
	for range 2 {
		got := <-came
		var m map[string]any
		if err := json.Unmarshal([]byte(got.body), &m); err != nil {
			t.Fatal(err)
		}
		data := m["data"].(map[string]any)
		n := int(data["session"].(string)[35] - '1')
		hook, err := standard.NewWebhook(secrets[n])
		if err != nil {
			t.Fatal(err)
		}
		if err := hook.VerifyIgnoringTimestamp([]byte(got.body), got.header); err != nil {
			t.Errorf("%v: %v", err, got.header)
		}
		if err := hook.VerifyIgnoringTimestamp([]byte(got.body+" "), got.header); err == nil {
			t.Error("a changed body is accepted")
		}
		if want := IDOf(b.store.Epoch(), acme, id(n+1), 6); got.header.Get("Webhook-Id") != want {
			t.Errorf("%v, want %s", got.header, want)
		}
		if m["type"] != "run_finished" || data["outcome"] != "completed" || data["agent"] != "coder" ||
			data["request"] != "r1" || data["run"] != string(id(n+1))+".3" ||
			data["links"].(map[string]any)["session"] != "https://parley.example/api/v1/sessions/"+string(id(n+1)) ||
			strings.Contains(got.body, "secret thing") {
			t.Error(got.body)
		}
	}
	for _, e := range b.effects() {
		if e.Status != port.EffectCompleted || e.Attempts != 1 {
			t.Errorf("%+v", e)
		}
	}
	if text := b.log.String(); strings.Contains(text, "whsec_") || strings.Contains(text, "/hook") {
		t.Errorf("the log tells secrets:\n%s", text)
	}
}

// TestRefusedDeliveriesAreRetried checks that a refused delivery is repeated with growing pauses, with the same id and
// body, and given up after a day.
func TestRefusedDeliveriesAreRetried(t *testing.T) {
	b := newBench(t)
	came := make(chan string, 100)
	addr := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- r.Header.Get("Webhook-Id") + string(body)
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "an inside secret")
	})
	b.session(mine, "http://"+addr+"/hook", false)
	b.start()
	first, last, tries := "", time.Duration(0), 0
	for ; ; tries++ {
		var outcome string
		select {
		case outcome = <-b.told:
		case <-time.After(30 * time.Second):
			t.Fatalf("after %d tries: %+v", tries, b.effects())
		}
		e := b.effects()[0]
		if outcome == "failed" {
			if e.Status != port.EffectFailed || e.Why != port.EffectExpired || b.clock().Sub(t0) != 24*time.Hour {
				t.Errorf("given up after %v: %+v", b.clock().Sub(t0), e)
			}
			break
		}
		if got := <-came; first == "" {
			first = got
		} else if got != first {
			t.Fatalf("once\n%s\nthen\n%s", first, got)
		}
		if e.Why != "the receiver answered 500" || e.Attempts != tries+1 {
			t.Fatalf("%+v", e)
		}
		_, next, err := b.store.DueHooks(t.Context(), b.clock(), port.HooksBusy{}, 10)
		pause := next.Sub(b.clock())
		if err != nil || pause < 5*time.Second || pause > maxPause*5/4 || tries < 5 && pause <= last {
			t.Fatalf("try %d: %v after %v, %v", tries, pause, last, err)
		}
		last = pause
		b.pass(pause - time.Millisecond) // too early
		b.pass(time.Millisecond)
	}
	if tries < 20 || tries > 60 {
		t.Errorf("%d tries in a day", tries)
	}
	b.pass(100 * time.Hour)
	b.stop()
	if len(came) > 0 || len(b.told) > 0 {
		t.Error("what was given up is tried again")
	}
}

// TestSlowReceiverDelaysNoOther checks that a slow receiver does not delay others, and that it gets few concurrent
// deliveries.
func TestSlowReceiverDelaysNoOther(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	under, most := 0, 0
	release := make(chan struct{})
	slow := receiver(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		under++
		most = max(most, under)
		mu.Unlock()
		<-release
		mu.Lock()
		under--
		mu.Unlock()
	})
	quick := receiver(t, func(http.ResponseWriter, *http.Request) {})
	for n := range 100 {
		b.session(id(n+1), "http://"+slow+"/", false)
	}
	for n := range 20 {
		b.session(id(1000+n), "http://"+quick+"/", false)
	}
	b.start()
	for range 20 {
		b.expect("delivered")
	}
	done := 0
	for _, e := range b.effects() {
		if e.Status == port.EffectCompleted {
			done++
			if e.Hook.Target != quick {
				t.Errorf("%+v", e)
			}
		}
	}
	if done != 20 {
		t.Errorf("%d were told", done)
	}
	close(release)
	for range 100 {
		b.expect("delivered")
	}
	if most != perHost {
		t.Errorf("the slow one had %d on its hands at once", most)
	}
}

// TestBusyTenantDelaysNoOther covers a tenant with many slow receivers.
func TestBusyTenantDelaysNoOther(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	under, most := 0, 0
	release := make(chan struct{})
	slow := func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		under++
		most = max(most, under)
		mu.Unlock()
		<-release
		mu.Lock()
		under--
		mu.Unlock()
	}
	for r := range flying / perHost {
		addr := receiver(t, slow)
		for n := range 2 * perHost { // more than one query lists
			b.session(id(1+r*2*perHost+n), "http://"+addr+"/", false)
		}
	}
	quick := receiver(t, func(http.ResponseWriter, *http.Request) {})
	b.sessionOf("rival", id(1000), "http://"+quick+"/", false)
	b.start()
	b.expect("delivered")
	close(release)
	for range 2 * flying {
		b.expect("delivered")
	}
	if most > perTenant {
		t.Errorf("one tenant had %d under way", most)
	}
}

// TestGoneTurnsWebhookOff checks that 410 turns a webhook off until it is set again. For
// an agent's webhook, it does so for a day, or until its file names another
// URL.
func TestGoneTurnsWebhookOff(t *testing.T) {
	b := newBench(t)
	asked := make(chan string, 10)
	addr := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		w.WriteHeader(http.StatusGone)
	})
	b.session(mine, "http://"+addr+"/s", false)
	b.start()
	b.expect("failed")
	if row, ok, err := b.store.Tenant(acme).Webhook(t.Context(), mine); err != nil || !ok ||
		!row.Gone.Equal(b.clock()) {
		t.Errorf("%+v %v %v", row, ok, err)
	}
	b.again(mine, "http://"+addr+"/s")
	b.expect("failed")
	b.session(id(2), "http://"+addr+"/a", true)
	b.d.Poke()
	b.expect("failed")
	b.session(id(3), "http://"+addr+"/a", true) // the same agent
	b.d.Poke()
	b.expect("failed")
	b.session(id(4), "http://"+addr+"/other", true)
	b.d.Poke()
	b.expect("failed")
	close(asked)
	var paths []string
	for p := range asked {
		paths = append(paths, p)
	}
	if fmt.Sprint(paths) != "[/s /a /other]" {
		t.Errorf("asked were %v", paths)
	}
}

// TestDeliveriesWithoutReceiver checks that a delivery is given up at once, with a reason,
// if no attempt can succeed.
func TestDeliveriesWithoutReceiver(t *testing.T) {
	b := newBench(t)
	addr := receiver(t, func(http.ResponseWriter, *http.Request) { t.Error("somebody was told") })
	url := "http://" + addr + "/"
	drop := func(id parley.SessionID, w *port.StoredWebhook) {
		if res, err := b.store.Append(t.Context(), port.Batch{Tenant: acme, Session: id, Epoch: 1, After: 6,
			Summary: port.Summary{ID: id, Root: id, Owner: "ann", Head: 6, UpdatedAt: t0}, Webhook: w}); err != nil ||
			res.Fenced {
			t.Fatal(res, err)
		}
	}
	b.session(id(1), url, false)
	drop(id(1), &port.StoredWebhook{})
	b.session(id(2), url, false)
	drop(id(2), &port.StoredWebhook{URL: "https://other.example", Hook: parley.HookOf("other.example:443", nil),
		Sealed: []byte{}, At: t0})
	b.session(id(3), url, false)
	drop(id(3), &port.StoredWebhook{URL: url, Hook: parley.HookOf(addr, nil),
		Sealed: []byte("sealed by somebody else, as it seems"), At: t0})
	b.start()
	for range 3 {
		<-b.told
	}
	for _, e := range b.effects() {
		want := map[parley.SessionID]string{
			id(1): "cancelled: the session has no webhook any more",
			id(2): "cancelled: the session has another webhook now", id(3): "failed: " + errSealed.Error(),
		}[e.Session]
		if got := string(e.Status) + ": " + e.Why; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestCrashBeforeOutcomeIsStored covers a server that dies after a delivery, before it stores the outcome. Its
// claim runs out, or is known to be void, and the same message is sent again with the same id.
func TestCrashBeforeOutcomeIsStored(t *testing.T) {
	b := newBench(t)
	ids := make(chan string, 10)
	addr := receiver(t, func(_ http.ResponseWriter, r *http.Request) { ids <- r.Header.Get("Webhook-Id") })
	b.session(mine, "http://"+addr+"/", false)
	due, _, err := b.store.DueHooks(t.Context(), b.clock(), port.HooksBusy{}, 10)
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	until := b.clock().Add(claimFor)
	if ok, err := b.store.ClaimHook(t.Context(), due[0], b.clock(), until); !ok || err != nil { // then its process dies
		t.Fatal(ok, err)
	}
	if ok, err := b.store.ClaimHook(t.Context(), due[0], b.clock(), until.Add(1)); ok || err != nil {
		t.Fatalf("it was claimed twice: %v", err)
	}
	b.start()
	b.pass(claimFor - time.Millisecond)
	b.pass(time.Millisecond)
	b.expect("delivered")
	if got := <-ids; got != IDOf(b.store.Epoch(), acme, mine, 6) || b.effects()[0].Attempts != 2 {
		t.Errorf("%s; %+v", got, b.effects())
	}
	// The old process is alive after all and reports a failure. The delivery is still made.
	if err := b.store.SettleHook(t.Context(), due[0], until, port.HookFate{Status: port.EffectFailed,
		At: b.clock()}); err != nil {
		t.Fatal(err)
	}
	if e := b.effects()[0]; e.Status != port.EffectCompleted {
		t.Errorf("%+v", e)
	}
}

// TestClockSetBackDelaysNoDelivery checks that a clock that is set back
// delays no delivery: neither a retry that was scheduled by the old time, nor a
// delivery of a session whose events have the old time.
func TestClockSetBackDelaysNoDelivery(t *testing.T) {
	if maxPause*5/4 >= rules.HookFar {
		t.Error("what is put off for long is due at once")
	}
	b := newBench(t)
	var well atomic.Bool
	addr := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if !well.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b.session(id(1), "http://"+addr+"/", false)
	b.start()
	b.expect("retried")
	well.Store(true)
	b.pass(-20 * time.Hour)
	b.expect("delivered")
	for n, ahead := range []time.Duration{20 * time.Hour, time.Hour} { // of the clock and the events
		b.pass(t0.Add(-ahead).Sub(b.clock()))
		b.session(id(2+n), "http://"+addr+"/", false)
		b.d.Poke()
		b.expect("delivered")
	}
}

// A disk is a store on a full disk: reads work, but no delivery can be claimed.
type disk struct {
	Store
	full   atomic.Bool
	claims atomic.Int32
}

func (d *disk) ClaimHook(ctx context.Context, due port.HookDue, now, until time.Time) (bool, error) {
	if d.claims.Add(1); d.full.Load() {
		return false, errors.New("the disk is full")
	}
	return d.Store.ClaimHook(ctx, due, now, until)
}

// TestAStoreThatFailsIsLeftAlone checks that the dispatcher pauses after an
// error of the store, despite pokes, and logs it once. When the store works
// again, everything is delivered.
func TestAStoreThatFailsIsLeftAlone(t *testing.T) {
	b := newBench(t)
	addr := receiver(t, func(http.ResponseWriter, *http.Request) {})
	for n := range perHost {
		b.session(id(n+1), "http://"+addr+"/", false)
	}
	store := &disk{Store: b.store}
	store.full.Store(true)
	b.startOn(store)
	said := func() int { return strings.Count(b.log.String(), "the disk is full") }
	for limit := time.Now().Add(30 * time.Second); said() == 0 && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	for range 1000 { // rounds of the dispatcher
		b.d.poked <- struct{}{}
	}
	if claims := store.claims.Load(); claims > perHost || said() != 1 {
		t.Errorf("%d claims, of which the log speaks %d times", claims, said())
	}
	store.full.Store(false)
	for told := 0; told < perHost; {
		b.pass(retryStore)
		select {
		case <-b.told:
			told++
		case <-time.After(100 * time.Millisecond): // a late failure has caused another pause
		}
		if b.clock().Sub(t0) > time.Hour {
			t.Fatalf("%d were told: %+v", told, b.effects())
		}
	}
}

// TestAnswersAreNotTrusted checks that redirects are not followed, and that an
// answer is not read to its end and not kept.
func TestAnswersAreNotTrusted(t *testing.T) {
	b := newBench(t)
	inner := receiver(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	addr := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "http://"+inner+"/", http.StatusTemporaryRedirect)
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		case "/busy":
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	s := newSender(b.allow, "test")
	defer s.close()
	send := func(path string) verdict {
		return s.send(t.Context(), "http://"+addr+path, make([]byte, 32), "msg_1", t0, []byte("{}"))
	}
	if v := send("/redirect"); v.done || !strings.Contains(v.why, "redirects are not followed") {
		t.Errorf("%+v", v)
	}
	if v := send("/endless"); !v.done {
		t.Errorf("%+v", v)
	}
	if v := send("/busy"); v.done || v.after != 10*time.Minute {
		t.Errorf("%+v", v)
	}
}

// TestSuspendedServerDeliversNothing covers a server that is suspended after it has claimed a delivery and wakes up
// after the end of its lease. Another server may have made the delivery.
func TestSuspendedServerDeliversNothing(t *testing.T) {
	b := newBench(t)
	var came, term atomic.Int64
	addr := receiver(t, func(http.ResponseWriter, *http.Request) { came.Add(1) })
	b.session(mine, "http://"+addr+"/hook", false)
	asleep := &sleepy{Store: b.store, sleep: func() { term.CompareAndSwap(0, 1) }}
	b.d = New(Config{Store: asleep, Sealer: b.seal, Allow: b.allow, Now: b.clock, Log: slog.New(slog.DiscardHandler),
		Term: func(context.Context) (int64, error) { return term.Load(), nil }})
	for want := range int64(2) {
		due, _, err := b.store.DueHooks(t.Context(), b.clock(), port.HooksBusy{}, 10)
		if err != nil || len(due) != 1 {
			t.Fatalf("%+v is due, %v", due, err)
		}
		if err := b.d.deliver(t.Context(), due[0]); err != nil || came.Load() != want {
			t.Fatalf("it was told %d times, want %d, %v", came.Load(), want, err)
		}
		b.pass(claimFor + time.Second)
	}
}

// sleepy is a store that is slow to read what to tell.
type sleepy struct {
	Store
	sleep func()
}

func (s *sleepy) Tenant(id parley.TenantID) port.TenantStore {
	s.sleep()
	return s.Store.Tenant(id)
}
