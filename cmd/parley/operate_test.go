package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"parley"
	"parley/config"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// Helpers for tests of commands and servers.

// run runs a command as main does.
func run(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	p := &program{ctx: ctx, stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs}
	err = p.run(args, noEnv)
	if errs.Len() > 0 && err == nil {
		t.Errorf("parley %s complained: %s", strings.Join(args, " "), errs.String())
	}
	return out.String(), err
}

func mustRun(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := run(t, stdin, args...)
	if err != nil {
		t.Fatalf("parley %s: %s", strings.Join(args, " "), describe(err))
	}
	return out
}

// refused runs a command that must fail with an error that contains words.
func refused(t *testing.T, words, stdin string, args ...string) {
	t.Helper()
	if _, err := run(t, stdin, args...); err == nil || !strings.Contains(describe(err), words) {
		t.Errorf("parley %s: %v; want %q", strings.Join(args, " "), err, words)
	}
}

// kinds create an empty store of each kind and return the flags that name it.
var kinds = map[string]func(*testing.T) []string{
	"sqlite": func(t *testing.T) []string { return []string{"--data", storetest.Dir(t)} },
	"postgres": func(t *testing.T) []string {
		return []string{"--data", storetest.Dir(t), "--database-url", pgtest.Database(t)}
	},
}

// onBoth runs a test on each kind of store.
func onBoth(t *testing.T, test func(t *testing.T, store []string)) {
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, empty(t))
		})
	}
}

// A conversation is a session on a server in this process. It uses the native
// protocol.
type conversation struct {
	t       *testing.T
	addr    string
	session string
}

var plainHTTP = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

func (c *conversation) post(path, body string) {
	c.t.Helper()
	res, err := plainHTTP.Post(c.addr+path, "application/json", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	if raw, _ := io.ReadAll(res.Body); res.StatusCode >= 300 {
		c.t.Fatalf("%s: %s", path, raw)
	}
}

// open opens a session.
func open(t *testing.T, addr string) *conversation {
	t.Helper()
	c := &conversation{t, addr, uuid.NewString()}
	c.post("/api/v1/sessions", `{"id":"`+c.session+`"}`)
	return c
}

func (c *conversation) say(content string) {
	c.t.Helper()
	c.post("/api/v1/sessions/"+c.session+"/inputs", `{"content":"`+content+`"}`)
}

// until follows the log until it contains times events of a type, and returns
// the last of them.
func (c *conversation) until(kind string, times int) parley.Event {
	c.t.Helper()
	res, err := plainHTTP.Get(c.addr + "/api/v1/sessions/" + c.session + "/log?follow=1")
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e parley.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			c.t.Fatal(err)
		}
		if parley.TypeOf(e.Body) == kind {
			if times--; times == 0 {
				return e
			}
		}
	}
	c.t.Fatalf("the log ended before %s", kind)
	return parley.Event{}
}

// approve allows the call of the times-th approval.
func (c *conversation) approve(times int) {
	c.t.Helper()
	card := c.until("ApprovalRequested", times)
	c.post("/api/v1/approvals/"+parley.Ref(card.Session, card.Seq), `{"decision":"allow"}`)
}

// served runs a server on a store, calls do, and stops the server.
func served(t *testing.T, store []string, do func(addr, workspace string)) {
	t.Helper()
	workspace := t.TempDir()
	addr, stop := serve(t, slices.Concat(store, []string{"--listen", "127.0.0.1:0", "--workspace", workspace, "--drain",
		"1ms"})...)
	defer stop()
	do(addr, workspace)
}

// reading opens the store that the flags name for reading.
func reading(t *testing.T, store []string) reader {
	t.Helper()
	s := &config.Store{DatabasePool: 2, DefaultTenant: "default"}
	for i, flag := range store {
		switch flag {
		case "--data":
			s.Data = store[i+1]
		case "--database-url":
			s.DatabaseURL = config.SecretURL(store[i+1])
		}
	}
	r, err := openReader(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func with(store []string, command string, args ...string) []string {
	return slices.Concat([]string{command}, args, store)
}
