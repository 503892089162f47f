package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAnAddressInUse checks that the error says whether a Parley uses the address.
// If its lock is found, the error also names its process and its data folder.
func TestAnAddressInUse(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	env := func(name string) (string, bool) { return state, name == "XDG_STATE_HOME" }
	sibling := filepath.Join(state, "parley", "elsewhere-123456")
	for _, data := range []string{sibling, t.TempDir()} {
		known := data == sibling
		addr, stop := serve(t, "--listen", "127.0.0.1:0", "--workspace", t.TempDir(), "--data", data)
		at := strings.TrimPrefix(addr, "http://")
		said := listenRefused(t, env, at)
		if want := fmt.Sprintf("; another Parley serves there: process %d, data folder %s (", os.Getpid(),
			sibling); strings.Contains(said, want) != known {
			t.Errorf("a Parley on %s: %s", data, said)
		}
		if !strings.Contains(said, "; another Parley serves there") {
			t.Errorf("a Parley on %s: %s", data, said)
		}
		_, port, _ := net.SplitHostPort(at)
		if said := listenRefused(t, env, "localhost:"+port); strings.Contains(said, sibling) != known {
			t.Errorf("by another name: %s", said)
		}
		stop()
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	const none = "; another program uses it, and does not answer like a Parley (choose another address with --listen)"
	if said := listenRefused(t, env, other.Listener.Addr().String()); !strings.Contains(said, none) {
		t.Errorf("another program: %s", said)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if said := listenRefused(t, env, silent.Addr().String()); !strings.Contains(said, none) {
		t.Errorf("a silent program: %s", said)
	}
}

// listenRefused returns the error of a server whose address is in use.
func listenRefused(t *testing.T, env func(string) (string, bool), address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := (&program{ctx: ctx, stdout: t.Output(), stderr: t.Output()}).run([]string{"serve", "--listen", address,
		"--workspace", t.TempDir(), "--data", t.TempDir()}, env)
	if err == nil {
		t.Fatal("the server started")
	}
	return describe(err)
}

// TestALockOfADeadProcess checks that the lock of a dead process is not taken for
// the user of an address.
func TestALockOfADeadProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]int{
		fmt.Sprintf("process %d, serving on 127.0.0.1:8080\n", os.Getpid()): os.Getpid(),
		"process 2147483646, serving on 127.0.0.1:8080\n":                   0,
		fmt.Sprintf("process %d, importing\n", os.Getpid()):                 0,
		"": 0,
	} {
		put(t, filepath.Join(dir, "parley.lock"), text)
		if pid, _ := serverOn(dir); pid != want {
			t.Errorf("%q: %d", text, pid)
		}
	}
}
