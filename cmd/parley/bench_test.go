package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"parley/bench"
	"parley/store/postgres/pgtest"
)

// TestBenchSmoke runs every scenario with small numbers and makes the reports. It
// checks correctness, not speed.
func TestBenchSmoke(t *testing.T) {
	t.Parallel()
	if racing {
		t.Skip("the servers are processes of this program, and slow under the race detector")
	}
	for _, scenario := range bench.Names() {
		if scenario == "nodes" {
			continue // TestBenchOnPostgres runs it
		}
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			smoke(t, scenario, "ws")
		})
	}
	for _, scenario := range []string{"runs", "first", "stream", "fan", "start", "slow", "idle"} {
		t.Run(scenario+" over sse", func(t *testing.T) {
			t.Parallel()
			smoke(t, scenario, "sse")
		})
	}
}

func smoke(t *testing.T, scenario, transport string) {
	dir := t.TempDir()
	report, html := filepath.Join(dir, "report.json"), filepath.Join(dir, "report.html")
	var out, progress bytes.Buffer
	p := &program{ctx: t.Context(), stdout: &out, stderr: &progress}
	if err := p.run([]string{"bench", "run", "--short", "--scenario", scenario, "--transport", transport, "--json",
		report,
		"--html", html, "--folder", dir}, noEnv); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if !strings.Contains(out.String(), "\n"+scenario+"\n") || !strings.Contains(progress.String(), scenario) {
		t.Errorf("printed:\n%s\n%s", &out, &progress)
	}
	if page, err := os.ReadFile(html); err != nil || !bytes.Contains(page, []byte("<h3>"+scenario+"</h3>")) {
		t.Errorf("the page: %v", err)
	}
	read, err := bench.ReadReport(report)
	if err != nil || len(read.Results) != 1 || len(read.Results[0].Values) == 0 {
		t.Fatalf("the report: %+v, %v", read, err)
	}
	out.Reset()
	p = &program{ctx: context.Background(), stdout: &out, stderr: &progress}
	markdown := filepath.Join(dir, "report.md")
	if err := p.run([]string{"bench", "check", report, "--markdown", markdown}, noEnv); err != nil ||
		!strings.Contains(out.String(), "moonshot") {
		t.Errorf("check: %v\n%s", err, &out)
	}
	raw, err := os.ReadFile(markdown)
	if err != nil || !bytes.Contains(raw, []byte("\n### "+scenario+"\n")) {
		t.Errorf("the Markdown page: %v", err)
	}
	plots := regexp.MustCompile(`\]\((images/bench/.*)\)`).FindAllSubmatch(raw, -1)
	if len(plots) != len(read.Results[0].Curves) {
		t.Errorf("the Markdown page has %d plots of %d", len(plots), len(read.Results[0].Curves))
	}
	for _, m := range plots {
		if plot, err := os.ReadFile(filepath.Join(dir, string(m[1]))); err != nil || !bytes.HasPrefix(plot, []byte("<svg ")) {
			t.Errorf("the plot %s: %v", m[1], err)
		}
	}
}

// TestBenchOnPostgres checks that each scenario has its own database, which is
// deleted afterwards.
func TestBenchOnPostgres(t *testing.T) {
	t.Parallel()
	if racing {
		t.Skip("the servers are processes of this program, and slow under the race detector")
	}
	url := pgtest.Database(t)
	var out, progress bytes.Buffer
	p := &program{ctx: t.Context(), stdout: &out, stderr: &progress}
	if err := p.run([]string{"bench", "run", "--short", "--scenario", "runs,append,crash,nodes", "--store", "postgres",
		"--database", url, "--folder", t.TempDir()}, noEnv); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if !strings.Contains(out.String(), "store postgres") ||
		!strings.Contains(out.String(), "postgres_16_plain_clients_per_s") ||
		!strings.Contains(out.String(), "appends_per_s_2_nodes") {
		t.Errorf("printed:\n%s", &out)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var left int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_database WHERE datname LIKE 'parley_bench_%'`).
		Scan(&left); err != nil || left > 0 {
		t.Errorf("%d databases are left, %v", left, err)
	}
}

// TestBenchAgainstARunningServer checks that the server calls the mock model of the
// bench, and that scenarios that need their own server say so.
func TestBenchAgainstARunningServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	model := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	addr, stop := serveLogged(t, func(name string) (string, bool) {
		value, ok := map[string]string{"OPENAI_BASE_URL": "http://" + model + "/v1", "OPENAI_API_KEY": "bench",
			"MODEL": "bench"}[name]
		return value, ok
	}, io.Discard, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir())
	defer stop()
	var out, progress bytes.Buffer
	p := &program{ctx: t.Context(), stdout: &out, stderr: &progress}
	if err := p.run([]string{"bench", "run", "--short", "--scenario", "runs,memory", "--server", addr, "--model-listen",
		model, "--folder", t.TempDir()}, noEnv); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if !strings.Contains(out.String(), "closed_loop_runs_per_s") ||
		!strings.Contains(out.String(), "it needs a server of its own") {
		t.Errorf("printed:\n%s", &out)
	}
}

// TestBenchRefusesMistakes checks that mistakes are reported before the first
// measurement.
func TestBenchRefusesMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--scenario", "nonsense"}, `there is no scenario "nonsense"`},
		{[]string{"--store", "postgres"}, "--database"},
		{[]string{"--server", "https://example.org"}, "write it like http://127.0.0.1:8080"},
	} {
		p := &program{ctx: t.Context(), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
		if err := p.run(append([]string{"bench", "run"}, test.args...), noEnv); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v", test.args, err)
		}
	}
}
