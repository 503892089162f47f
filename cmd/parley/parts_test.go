package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// A fakePart records when it is started and closed.
type fakePart struct {
	name  string
	notes *[]string
	err   error
}

func (p fakePart) Start() { *p.notes = append(*p.notes, "start "+p.name) }

func (p fakePart) Close(ctx context.Context) error {
	if _, limited := ctx.Deadline(); !limited {
		return errors.New("no time limit")
	}
	*p.notes = append(*p.notes, "close "+p.name)
	return p.err
}

// TestPartsCloseInReverse checks that all parts are closed in reverse order, even
// if one fails.
func TestPartsCloseInReverse(t *testing.T) {
	var made parts
	var notes []string
	var log bytes.Buffer
	made.add("b", fakePart{"b", &notes, errors.New("stuck")})
	made.add("c", fakePart{"c", &notes, nil})
	made.add("a", fakePart{"a", &notes, nil})
	made.add("bell", onClose(func() { notes = append(notes, "bell") }))
	ordered := made.pick("a", "optional", "b", "bell", "c")
	if len(made) != 0 {
		t.Errorf("left: %v", made)
	}
	ordered.start()
	ordered.close(time.Minute, slog.New(slog.NewTextHandler(&log, nil)))
	want := []string{"start a", "start b", "start c", "close c", "bell", "close b", "close a"}
	if !slices.Equal(notes, want) {
		t.Errorf("got  %q\nwant %q", notes, want)
	}
	if !strings.Contains(log.String(), "part=b error=stuck") {
		t.Errorf("logged %q", &log)
	}
}

// TestStopOrder checks that a server stops its parts in the reverse order of
// their start. TestMain checks that no goroutine is left.
func TestStopOrder(t *testing.T) {
	var log bytes.Buffer
	env := func(name string) (string, bool) { return "http://127.0.0.1:1", name == "OTEL_EXPORTER_OTLP_ENDPOINT" }
	_, stop := serveLogged(t, env, &log, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--metrics-listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir(), "--log-level", "debug")
	stop()
	var stopped []string
	part := regexp.MustCompile(`msg="part stopped" part=(?:"([^"]*)"|(\S+))`)
	for _, m := range part.FindAllStringSubmatch(log.String(), -1) {
		stopped = append(stopped, m[1]+m[2])
	}
	want := slices.Concat(baseParts, workParts)
	slices.Reverse(want)
	if !slices.Equal(stopped, want) {
		t.Errorf("stopped %q\nwant    %q", stopped, want)
	}
	before := func(first, then string) {
		t.Helper()
		if slices.Index(stopped, first) > slices.Index(stopped, then) {
			t.Errorf("%s stops after %s", first, then)
		}
	}
	before("readiness", "engine") // load balancers send no new clients while runs reach a boundary
	before("files", "engine")     // files notifies the engine of changed files
	before("engine", "mcp servers")
	before("engine", "feed") // followers read the last events of runs
	before("feed", "http")   // streams end when their followers end
	before("http", "connections")
	before("connections", "store")
	before("entrance", "store") // the entrance records the last refusals
	before("webhooks", "store")
	before("engine", "traces") // the last runs are exported
	before("traces", "store")
}

// TestAFailedStartLeavesNothing checks that after a failed start, at any point,
// every port is free, the data folder is not locked, and no goroutine is left.
func TestAFailedStartLeavesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	takenBy := func(flag string) func(*testing.T, string) []string {
		return func(*testing.T, string) []string { return []string{flag, taken.Addr().String()} }
	}
	for name, test := range map[string]struct {
		plant func(t *testing.T, data string) (args []string)
		want  string
	}{
		"the port is taken":     {takenBy("--listen"), "--listen"},
		"the port for profiles": {takenBy("--admin-listen"), "--admin-listen"},
		"the port for metrics":  {takenBy("--metrics-listen"), "--metrics-listen"},
		"the store": {func(t *testing.T, data string) []string {
			put(t, filepath.Join(data, "parley.db"), strings.Repeat("no database", 500))
			return nil
		}, "not a database"},
		"an MCP server, after the store": {func(t *testing.T, data string) []string {
			file := filepath.Join(t.TempDir(), "p.yaml")
			put(t, file, fmt.Sprintf("mcp:\n  servers:\n    x: {command: ['true'], write: ['%s']}\n", data))
			return []string{"--config", file}
		}, "MCP server x"},
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			free := freeAddress(t)
			data := t.TempDir()
			args := []string{"serve", "--data", data, "--workspace", t.TempDir(), "--listen", free}
			refused(t, test.want, "", append(args, test.plant(t, data)...)...)
			if l, err := net.Listen("tcp", free); err != nil {
				t.Errorf("the port is still in use: %v", err)
			} else {
				l.Close()
			}
			if name != "the store" {
				mustRun(t, "", "migrate", "--data", data)
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// freeAddress returns an address on which no program listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
