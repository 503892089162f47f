package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// TestAProcessThatDies: if the process dies during a call, the fate of the call
// is unknown, unless it only reads. The next call starts the server again.
func TestAProcessThatDies(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Servers[0].Trust = true })
	r.meet()
	_, err := r.call(t.Context(), "die", "")
	if !errors.Is(err, port.ErrFateUnknown) || parley.CodeOf(err) != parley.CodeInterrupted {
		t.Errorf("a call that may have had its effect: %v", err)
	}
	if _, err := r.call(t.Context(), "dieread", ""); err == nil || errors.Is(err, port.ErrFateUnknown) {
		t.Errorf("a call that only reads: %v", err)
	}
	if got, err := r.call(t.Context(), "echo", "again"); err != nil || got.Text != "again" {
		t.Errorf("%+v, %v", got, err)
	}
	if r.starts() != 3 {
		t.Errorf("it was started %d times", r.starts())
	}
	if !strings.Contains(r.log.String(), "signal 9") {
		t.Error("the log does not say how it ended")
	}
}

// TestAServerThatDoesNotStart: a server that does not start reports why, is not
// called, and is tried again.
func TestAServerThatDoesNotStart(t *testing.T) {
	r := newRig(t)
	broken := filepath.Join(r.folder, "broken")
	if err := os.WriteFile(broken, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if names := r.names(parley.Agent{}); len(names) != 0 {
		t.Errorf("on offer are %q", names)
	}
	_, err := r.call(t.Context(), "echo", "x")
	if parley.CodeOf(err) != parley.CodeUnavailable || errors.Is(err, port.ErrFateUnknown) ||
		!strings.Contains(parley.MessageOf(err), "exit code 3") {
		t.Errorf("%v", err)
	}
	if s := r.List("acme", nil)[0]; s.Status != "failed" || !strings.Contains(s.Problem, "exit code 3") {
		t.Errorf("%+v", s)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	r.meet()
	if got, err := r.call(t.Context(), "echo", "x"); err != nil || got.Text != "x" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestBackoff checks that the pauses between attempts grow.
func TestBackoff(t *testing.T) {
	l := newLink(newRig(t, func(o *Options) { o.Backoff = time.Second }).Servers, "acme", Server{Name: "test"})
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		before := time.Now()
		l.broke(errors.New("again"))
		if got := l.next.Sub(before).Round(time.Second); got != want*time.Second {
			t.Errorf("after %d failures the pause is %s, want %ds", l.failures, got, want)
		}
	}
}

func TestCancelReachesTheServer(t *testing.T) {
	r := newRig(t)
	r.meet()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var live []string
	_, err := r.box().Perform(ctx, parley.Agent{}, "test__slow", "{}", func(_ parley.Stream, text string) {
		if live = append(live, text); len(live) == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if want := []string{"1/3 part\n", "2/3 part\n", "3/3 part\n"}; !slices.Equal(live, want) {
		t.Errorf("heard were %q", live)
	}
	r.logged("it was cancelled")
	if got, err := r.call(t.Context(), "echo", "x"); err != nil || got.Text != "x" || r.starts() != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestACallThatTakesTooLong: the server is told to stop such a call, and the
// fate of the call is unknown.
func TestACallThatTakesTooLong(t *testing.T) {
	r := newRig(t)
	r.meet()
	quick := r.Servers
	quick.Servers[0].Timeout = time.Second
	if _, err := r.call(t.Context(), "slow", ""); !errors.Is(err, port.ErrFateUnknown) ||
		!strings.Contains(parley.MessageOf(err), "did not answer within") {
		t.Errorf("%v", err)
	}
	r.logged("it was cancelled")
}

// TestAServerThatListensNoMore: a server that no longer reads its input does
// not delay a cancelled call or Close.
func TestAServerThatListensNoMore(t *testing.T) {
	r := newRig(t)
	r.meet()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := r.call(ctx, "deaf", "")
		done <- err
	}()
	r.logged("it is deaf")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	// More than the pipe holds.
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.call(ctx, "echo", strings.Repeat("x", 1<<20)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestIdle: an idle server is stopped, its tools stay known, and a call starts
// it again.
func TestIdle(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Servers[0].Idle = 50 * time.Millisecond })
	r.meet()
	r.logged("is disconnected")
	if s := r.List("acme", nil)[0]; s.Status != "stopped" || s.Problem != "" || len(s.Tools) == 0 {
		t.Errorf("%+v", s)
	}
	if names := r.names(parley.Agent{}); !slices.Contains(names, "test__echo") {
		t.Errorf("on offer are %q", names)
	}
	if len(r.processes()) > 0 {
		t.Error("it was started to say what is known")
	}
	if got, err := r.call(t.Context(), "echo", "back"); err != nil || got.Text != "back" {
		t.Errorf("%+v, %v", got, err)
	}
	if r.starts() < 2 {
		t.Errorf("it was started %d times", r.starts())
	}
}

// TestClose: Close ends all connections, also during a call.
func TestClose(t *testing.T) {
	r := newRig(t)
	r.meet()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun, done := make(chan struct{}, 3), make(chan error, 1)
	go func() {
		_, err := r.box().Perform(ctx, parley.Agent{}, "test__slow", "{}",
			func(parley.Stream, string) { begun <- struct{}{} })
		done <- err
	}()
	<-begun
	_ = r.Close(t.Context())
	if err := <-done; !errors.Is(err, port.ErrFateUnknown) {
		t.Errorf("%v", err)
	}
	if left := r.processes(); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if _, err := r.call(t.Context(), "echo", "x"); parley.CodeOf(err) != parley.CodeUnavailable {
		t.Errorf("after the end: %v", err)
	}
}

// TestTenants: every tenant that may use a server has a process of its own.
func TestTenants(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Servers[0].Tenants = []parley.TenantID{"acme", "rival"} })
	r.meet()
	rival := &book{tenant: "rival", all: map[string]map[string]string{}}
	if got, err := r.Of(t.Context(), rival).Perform(t.Context(), parley.Agent{}, "test__echo", "{}",
		func(parley.Stream, string) {}); err == nil {
		t.Errorf("what one tenant has accepted another can call: %+v", got)
	}
	r.connect(rival)
	started := func() int { return strings.Count(r.log.String(), "an MCP server is connected") }
	for started() < 2 { // the start is logged after the tools are known
		time.Sleep(time.Millisecond)
	}
	if specs := r.Of(t.Context(), rival).Specs(parley.Agent{}); len(specs) == 0 || started() != 2 {
		t.Errorf("it was started %d times, and offers the rival %d tools", started(), len(specs))
	}
	other := &book{tenant: "other", all: map[string]map[string]string{}}
	if specs := r.Of(t.Context(), other).Specs(parley.Agent{}); len(specs) > 0 || len(r.List("other", nil)) > 0 {
		t.Errorf("%+v", specs)
	}
	if _, err := r.Of(t.Context(), other).Perform(t.Context(), parley.Agent{}, "test__echo", "{}",
		func(parley.Stream, string) {}); err == nil || started() != 2 {
		t.Errorf("somebody else's was called: %v", err)
	}
}

// TestServerEnvironment: a server gets only the configured variables, and writes
// only where it may.
func TestServerEnvironment(t *testing.T) {
	t.Setenv("PARLEY_TEST_SECRET", "very secret")
	r := newRig(t)
	r.meet()
	if got, err := r.call(t.Context(), "environment", ""); err != nil || !strings.Contains(got.Text, "GIVEN=yes") ||
		strings.Contains(got.Text, "very secret") {
		t.Errorf("%+v, %v", got, err)
	}
	outside := filepath.Join(t.TempDir(), "x")
	if got, err := r.call(t.Context(), "write", outside); err != nil || !got.Failed {
		t.Errorf("outside of the workspace: %+v, %v", got, err)
	}
	if got, err := r.call(t.Context(), "write", r.folder+"/x"); err != nil || got.Failed {
		t.Errorf("in the workspace: %+v, %v", got, err)
	}
	reader := newRig(t, func(o *Options) { o.Servers[0].Writes = false })
	reader.meet()
	if got, err := reader.call(t.Context(), "write", reader.folder+"/x"); err != nil || !got.Failed {
		t.Errorf("in a workspace that is only read: %+v, %v", got, err)
	}
}

func TestMissingVariables(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Servers[0].Missing = []string{"GITHUB_TOKEN"} })
	if names := r.names(parley.Agent{}); len(names) > 0 {
		t.Errorf("on offer are %q", names)
	}
	if s := r.List("acme", nil)[0]; s.Status != "failed" || !strings.Contains(s.Problem, "GITHUB_TOKEN") ||
		r.starts() > 0 {
		t.Errorf("%+v", s)
	}
}

// overHTTP returns a rig whose server is reached over HTTP.
func overHTTP(t *testing.T, handle http.Handler) (*rig, *httptest.Server) {
	web := httptest.NewServer(handle)
	t.Cleanup(web.Close)
	r := newRig(t, func(o *Options) {
		o.Servers = []Server{{Name: "test", URL: web.URL, Headers: map[string]string{"Authorization": "Bearer x"}}}
	})
	return r, web
}

func TestHTTP(t *testing.T) {
	noted := make(chan string, 1)
	inner := handler(t, func(text string) { noted <- text })
	r, _ := overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "Bearer x" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, q)
	}))
	r.meet()
	if got, err := r.call(t.Context(), "echo", "hello"); err != nil || got.Text != "hello" {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := 0
	_, err := r.box().Perform(ctx, parley.Agent{}, "test__slow", "{}", func(parley.Stream, string) {
		if heard++; heard == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || heard != 3 {
		t.Errorf("%v, heard %d times", err, heard)
	}
	<-noted
	if s := r.List("acme", nil)[0]; s.Transport != "http" || s.Status != "running" {
		t.Errorf("%+v", s)
	}
	_ = r.Close(t.Context())
}

// TestHTTPThatBreaks: after a refusal the call is known not to have happened;
// after a broken connection it is not. A restarted server has not carried out
// the call either, and is asked again.
func TestHTTPThatBreaks(t *testing.T) {
	for mode, check := range map[string]func(*testing.T, error){
		"refuse": func(t *testing.T, err error) {
			if err == nil || errors.Is(err, port.ErrFateUnknown) || !strings.Contains(parley.MessageOf(err), "403") {
				t.Errorf("%v", err)
			}
		},
		"break": func(t *testing.T, err error) {
			if !errors.Is(err, port.ErrFateUnknown) {
				t.Errorf("%v", err)
			}
		},
		"forget": func(t *testing.T, err error) {
			if err != nil {
				t.Errorf("%v", err)
			}
		},
	} {
		t.Run(mode, func(t *testing.T) {
			var now atomic.Pointer[string]
			var inner atomic.Pointer[http.Handler]
			set := func(mode string) { now.Store(&mode) }
			restart := func() { h := handler(t, func(string) {}); inner.Store(&h) }
			set("")
			restart()
			r, _ := overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				switch mode := *now.Load(); {
				case q.Method == http.MethodPost && mode == "refuse":
					w.WriteHeader(http.StatusForbidden)
				case q.Method == http.MethodPost && mode == "break":
					panic(http.ErrAbortHandler)
				default:
					(*inner.Load()).ServeHTTP(w, q)
				}
			}))
			r.meet()
			if set(mode); mode == "forget" {
				restart()
			}
			_, err := r.call(t.Context(), "put", "")
			check(t, err)
			set("")
			if got, err := r.call(t.Context(), "echo", "x"); err != nil || got.Text != "x" {
				t.Errorf("it is not back: %+v, %v", got, err)
			}
		})
	}
}

// TestHeadersDoNotFollowRedirections: a redirection is not followed, because the headers are for
// the configured server.
func TestHeadersDoNotFollowRedirections(t *testing.T) {
	leaked := make(chan string, 10)
	thief := httptest.NewServer(
		http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { leaked <- q.Header.Get("Authorization") }))
	defer thief.Close()
	r, _ := overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, thief.URL, http.StatusTemporaryRedirect)
	}))
	r.names(parley.Agent{})
	r.logged("did not start")
	if len(leaked) > 0 {
		t.Errorf("the thief got %q", <-leaked)
	}
}
