package main

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"parley/config"
	"parley/dialect"
	"parley/dialect/eventbus"
	"parley/dialect/native"
	"parley/server"
)

// scrape reads the metrics as Prometheus does.
func scrape(t *testing.T, url, auth string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(scrapeText(t, url, "Authorization", auth)))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// scrapeText sends one header with the request.
func scrapeText(t *testing.T, url, header, value string) string {
	t.Helper()
	r, err := http.NewRequest("GET", url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if value != "" {
		r.Header.Set(header, value)
	}
	res, err := plainHTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", res.Status, err)
	}
	return string(text)
}

// value returns the sum of the series with these labels, which are given as
// names and values in turn. Of a histogram it counts the observations.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) (sum float64) {
	if families[name] == nil {
		return -1
	}
	for _, m := range families[name].Metric {
		fits := true
		for i := 0; i < len(labels); i += 2 {
			fits = fits && slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool {
				return l.GetName() == labels[i] &&
					l.GetValue() == labels[i+1]
			})
		}
		if fits {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// TestMetrics checks the metrics of a conversation with a tool call that waits for
// approval, on both stores. The table in the docs lists every metric.
func TestMetrics(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	onBoth(t, func(t *testing.T, store []string) {
		served(t, store, func(addr, workspace string) {
			c := open(t, addr)
			c.say("write some text to note.txt")
			c.until("ApprovalRequested", 1)
			waiting := scrape(t, addr, "")
			if n := value(waiting, "parley_due_sessions", "state", "held"); n != 1 {
				t.Errorf("%v sessions are waited for", n)
			}
			c.approve(1)
			c.until("RunFinished", 1)
			socket, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(addr, "http")+
				"/api/chat/ws?threadId="+uuid.NewString(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer socket.CloseNow()
			wants := []struct {
				n      float64
				name   string
				labels []string
			}{
				{1, "parley_build_info", nil},
				{1, "parley_sockets", []string{"dialect", "threadchat"}},
				{1, "parley_runs_started_total", nil},
				{1, "parley_runs_finished_total", []string{"outcome", "completed"}},
				{1, "parley_cards_opened_total", []string{"kind", "approval"}},
				{1, "parley_tool_calls_total", []string{"tool", "write_file", "outcome", "succeeded"}},
				{1, "parley_tool_call_duration_seconds", []string{"tool", "write_file"}},
				{1, "parley_model_calls_total", []string{"model", "demo", "outcome", "tools"}},
				{1, "parley_model_calls_total", []string{"model", "demo", "outcome", "end"}},
				{1, "parley_backlog_up", nil},
				{1, "parley_http_requests_total", []string{"route", "POST /api/v1/sessions", "code", "201"}},
				{1, "parley_http_requests_total", []string{"route", "GET /api/chat/ws", "code", "101"}},
				{0, "parley_http_request_duration_seconds", []string{"route", "GET /api/chat/ws"}},
				{0, "parley_appends_total", []string{"outcome", "failed"}},
			}
			var got map[string]*dto.MetricFamily
			var wrong []string
			for deadline := time.Now().Add(time.Minute); ; { // other goroutines count, after clients have seen the events
				got, wrong = scrape(t, addr, ""), nil
				for _, want := range wants {
					if n := value(got, want.name, want.labels...); n != want.n {
						wrong = append(wrong, fmt.Sprintf("%s %v is %v, want %v", want.name, want.labels, n, want.n))
					}
				}
				if len(wrong) == 0 || time.Now().After(deadline) {
					break
				}
			}
			for _, each := range wrong {
				t.Error(each)
			}
			exemplar := regexp.MustCompile(`parley_runs_finished_total{outcome="completed"} 1.0 # {run_id="(` + c.session +
				`\.\d+)"}`).FindStringSubmatch(scrapeText(t, addr, "Accept", "application/openmetrics-text"))
			if exemplar == nil {
				t.Error("a scraper that accepts OpenMetrics gets no id of the run")
			} else if run := get(t, addr+"/api/v1/runs/"+exemplar[1]); !strings.Contains(run, exemplar[1]) {
				t.Errorf("the run %s of the exemplar: %s", exemplar[1], run)
			}
			if events, appends, commits := value(got, "parley_events_total"), value(got, "parley_appends_total"),
				value(got, "parley_commit_batches"); events < 10 || appends < 5 || commits < 5 ||
				value(got, "parley_sessions_loaded") < 1 {
				t.Errorf("%v events in %v appends and %v commits", events, appends, commits)
			}
			for name, f := range got {
				if strings.HasPrefix(name, "parley_") && !strings.Contains(string(doc), "`"+name+"`") {
					t.Errorf("%s is not in docs/operating.md", name)
				}
				if strings.HasPrefix(name, "parley_") && riddles.MatchString(f.GetHelp()) {
					t.Errorf("%s: %q", name, f.GetHelp())
				}
				for _, m := range f.Metric {
					for _, l := range m.Label {
						if strings.Contains(l.GetValue(), c.session) || strings.Contains(l.GetValue(), "default") {
							t.Errorf("%s names somebody: %v", name, l)
						}
					}
				}
			}
			for _, name := range regexp.MustCompile("`(parley_[a-z_]+)`").FindAllStringSubmatch(string(doc), -1) {
				if got[name[1]] == nil && !sometimes[name[1]] {
					t.Errorf("docs/operating.md promises %s", name[1])
				}
			}
		})
	})
}

// sometimes are metrics that exist only after a first observation.
var sometimes = map[string]bool{"parley_model_cost_dollars_total": true, "parley_effect_delivery_seconds": true}

// TestMetricsOfTenants: the metrics cover all tenants, so no user's token gives
// access to them.
func TestMetricsOfTenants(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	aside := l.Addr().String()
	l.Close()
	const secret = "a token of many bytes"
	env := func(name string) (string, bool) {
		value, ok := map[string]string{"PARLEY_JWT_SECRET": testSecret, "PARLEY_METRICS_TOKEN": secret,
			"PARLEY_METRICS_LISTEN": aside}[name]
		return value, ok
	}
	addr, stop := serveLogged(t, env, io.Discard, "--listen", "127.0.0.1:0", "--auth", "jwt", "--data", t.TempDir(),
		"--workspace", t.TempDir(), "--drain", "1ms")
	defer stop()
	ask := func(url, auth string) int {
		t.Helper()
		r, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", auth)
		res, err := plainHTTP.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	admin := "Bearer " + token(t, "default", "ann", time.Minute, "org_admin")
	if status := ask(addr+"/metrics", admin); status != http.StatusNotFound {
		t.Errorf("an admin of a tenant is answered %d", status)
	}
	if status := ask("http://"+aside+"/metrics", admin); status != http.StatusUnauthorized {
		t.Errorf("an admin of a tenant is answered %d at the address of the metrics", status)
	}
	if status := ask("http://"+aside+"/healthz", "Bearer "+secret); status != http.StatusNotFound {
		t.Errorf("there is more than metrics: %d", status)
	}
	if n := value(scrape(t, "http://"+aside, "Bearer "+secret), "parley_http_requests_total", "route", "none", "code",
		"404"); n != 1 {
		t.Errorf("%v requests came to nothing", n)
	}
}

// TestEverySocketHasADialect checks that every WebSocket route is counted under the
// name of its dialect.
func TestEverySocketHasADialect(t *testing.T) {
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir(),
		"--drain", "1ms")
	defer stop()
	r := newRoutes(handlerDeps{conns: dialect.NewConns()}, &eventbus.Handler{}, &native.Handler{})
	want := map[string]int{}
	for _, pattern := range append(slices.Collect(maps.Keys(r.handlers)), server.Root) {
		path, ok := strings.CutPrefix(pattern, "GET ")
		if !ok {
			continue
		}
		path = strings.NewReplacer("{$}", "", "{id}", config.BuiltIn.Name).Replace(path)
		url := "ws" + strings.TrimPrefix(addr, "http") + path + "?threadId=" + uuid.NewString()
		socket, _, err := websocket.Dial(t.Context(), url, nil)
		if err != nil {
			continue // not a WebSocket route
		}
		defer socket.CloseNow()
		want[r.dialects[pattern]]++
	}
	if len(want) < 5 || want["agentloop"] != 2 || want[""] != 0 {
		t.Fatalf("sockets: %v", want)
	}
	deadline := time.Now().Add(time.Minute)
	for { // a socket is counted in another goroutine
		got := map[string]int{}
		for _, m := range scrape(t, addr, "")["parley_sockets"].Metric {
			if n := int(m.GetGauge().GetValue()); n > 0 {
				got[m.Label[0].GetValue()] = n
			}
		}
		if maps.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("counted %v, opened %v", got, want)
		}
	}
}

// TestRouteWithoutDialect checks that sockets of a route without a dialect are
// counted under its pattern.
func TestRouteWithoutDialect(t *testing.T) {
	r := routes{dialects: map[string]string{"GET /a": "a"}}
	got := r.sockets(map[string]int{"GET /a": 1, "GET /b": 2})
	if !maps.Equal(got, map[string]int{"a": 1, "GET /b": 2}) {
		t.Errorf("%v", got)
	}
}
