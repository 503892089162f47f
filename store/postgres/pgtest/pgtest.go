// Package pgtest gives tests a PostgreSQL server. This is the server that
// PARLEY_TEST_POSTGRES_URL names, or a throw-away server made from the
// installed programs, with all durability settings on.
//
// A package that uses it must call Stop after its tests.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Variable names the environment variable with the URL of a database whose user
// may create others.
const Variable = "PARLEY_TEST_POSTGRES_URL"

var (
	mu      sync.Mutex // guards the fields below
	started bool
	own     *Server // nil: there is no throw-away server
	failed  error   // why there is none

	databases atomic.Int64
)

// Database creates an empty database and returns its URL. The end of the test
// drops it. Without a server, Database skips the test with the reason.
func Database(t testing.TB) string {
	t.Helper()
	if url := os.Getenv(Variable); url != "" {
		return database(t, url, "template0")
	}
	return Own(t).Database(t)
}

// Copy creates a copy of another database, which must have no connections, and
// returns its URL. The end of the test drops the copy.
func Copy(t testing.TB, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	template := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	if base := os.Getenv(Variable); base != "" {
		return database(t, base, template)
	}
	return database(t, u.String(), template)
}

func database(t testing.TB, base, template string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(Variable, "is not a URL")
	}
	name := fmt.Sprintf("parley_test_%d_%d", os.Getpid(), databases.Add(1))
	administer(t, base, `CREATE DATABASE `+name+` ENCODING 'UTF8' TEMPLATE `+template)
	t.Cleanup(func() { administer(t, base, `DROP DATABASE `+name+` WITH (FORCE)`) })
	u.Path = "/" + name
	return u.String()
}

// Own returns the throw-away server of this process, for tests that harm it. If
// there is none, Own skips the test.
func Own(t testing.TB) *Server {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if !started {
		started = true
		own, failed = start()
	}
	switch {
	case errors.Is(failed, errNoPrograms):
		t.Skipf("no PostgreSQL: %v; set %s", failed, Variable)
	case failed != nil:
		t.Fatal("PostgreSQL does not start:", failed)
	}
	return own
}

// New starts another throw-away server, for a test that harms it while other
// tests use the first. It stops with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := start()
	switch {
	case errors.Is(err, errNoPrograms):
		t.Skip("no PostgreSQL:", err)
	case err != nil:
		t.Fatal("PostgreSQL does not start:", err)
	}
	t.Cleanup(s.stop)
	return s
}

// Stop stops the throw-away server, if one was started, and removes its data.
func Stop() {
	mu.Lock()
	defer mu.Unlock()
	if own != nil {
		own.stop()
		own = nil
	}
}

func administer(t testing.TB, address, statement string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Role creates a role that can log in, with options such as BYPASSRLS. It
// returns the name of the role and the URL of the database for it. The end of
// the test drops the role and its objects.
func Role(t testing.TB, address, options string) (name, as string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name = fmt.Sprintf("parley_test_%d_%d", os.Getpid(), databases.Add(1))
	administer(t, address, `CREATE ROLE `+name+` LOGIN PASSWORD 'secret' `+options)
	t.Cleanup(func() {
		administer(t, address, `DROP OWNED BY `+name+` CASCADE`)
		administer(t, address, `DROP ROLE `+name)
	})
	u.User = url.UserPassword(name, "secret")
	return name, u.String()
}
