package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A lockedBuffer can be written and read by several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex // guards buf; leaf
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestRepeatedMessages checks that of each message a few lines are logged and
// the others counted. Other messages, and those below a warning, are not
// affected.
func TestRepeatedMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer // a timer writes the numbers of suppressed lines
		limiter := newLogLimiter(slog.NewTextHandler(&out, nil))
		log := slog.New(limiter)
		count := func(words string) int { return strings.Count(out.String(), words) }
		for range 1000 {
			log.With("session", "x").Error("request failed", "error", "no room")
			log.Info("harmless")
		}
		log.Warn("something else")
		if count("error=") != maxLines || count("harmless") != 1000 || count("something else") != 1 ||
			count("suppressed") != 0 {
			t.Errorf("%d lines, %d harmless", count("error="), count("harmless"))
		}
		time.Sleep(logWindow + time.Second)
		synctest.Wait()
		if count(`level=ERROR msg="request failed" suppressed=980`) != 1 {
			t.Errorf("no number: %s", out.String())
		}
		for range 30 { // the next window
			log.Error("request failed", "error", "no room")
		}
		if count("error=") != 2*maxLines {
			t.Errorf("%d lines in two windows", count("error="))
		}
		limiter.Close()
		if count("suppressed=10\n") != 1 {
			t.Error("what was suppressed at the end is not said")
		}
		time.Sleep(2 * logWindow)
		if log.Error("request failed"); count("suppressed=") != 2 {
			t.Errorf("%d numbers", count("suppressed="))
		}
	})
}

// TestRefusalsDoNotFloodTheLog sends many requests to a server whose database is
// gone.
func TestRefusalsDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	dir := t.TempDir()
	addr, stop := serveLogged(t, noEnv, &log, "--data", dir, "--listen", "127.0.0.1:0", "--workspace", t.TempDir())
	if err := os.Remove(filepath.Join(dir, "parley.db")); err != nil {
		t.Fatal(err)
	}
	const requests = 300
	began := time.Now()
	for range requests {
		res, err := plainHTTP.Post(addr+"/api/v1/sessions", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("status %d", res.StatusCode)
		}
	}
	stop()
	// A few messages are repeated, each up to its limit. On a busy machine the requests take several windows.
	windows := int(time.Since(began)/logWindow) + 1
	if lines, most := strings.Count(log.String(), "\n"), 20+3*(maxLines+1)*windows; lines > most {
		t.Errorf("%d lines for %d refusals, more than %d", lines, requests, most)
	}
	if windows < 10 && !strings.Contains(log.String(), "suppressed=") {
		t.Error("the log does not say how many refusals it leaves out")
	}
}
