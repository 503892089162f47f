package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/bench"
)

// TestBenchSmoke runs every scenario with small numbers, for exactness and not for
// speed, and the reports that follow from it.
func TestBenchSmoke(t *testing.T) {
	t.Parallel()
	for _, scenario := range bench.Names() {
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
	if err := p.run([]string{"bench", "check", report}, noEnv); err != nil ||
		!strings.Contains(out.String(), "moonshot") {
		t.Errorf("check: %v\n%s", err, &out)
	}
}

// TestBenchRefusesMistakes: mistakes are told before anything is measured.
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
