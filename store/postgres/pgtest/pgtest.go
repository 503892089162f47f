// Package pgtest gives tests a PostgreSQL server: the one that
// PARLEY_TEST_POSTGRES_URL names, or a throw-away one made from the programs
// that are installed, with nothing turned off that makes commits durable.
//
// A package that uses it calls Stop when its tests are over.
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

// Variable names the server to use, by the URL of a database whose user may
// create others.
const Variable = "PARLEY_TEST_POSTGRES_URL"

var (
	mu      sync.Mutex // guards the following
	started bool
	own     *Server // nil: there is none
	failed  error   // why there is none

	databases atomic.Int64
)

// Database makes an empty database and returns its URL. It is dropped when the
// test has ended. Where there is no server the test is skipped, saying why.
func Database(t testing.TB) string {
	t.Helper()
	if url := os.Getenv(Variable); url != "" {
		return database(t, url, "template0")
	}
	return Own(t).Database(t)
}

// Copy makes a database with the contents of another, to which nobody may be
// connected, and returns its URL. It is dropped when the test has ended.
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

// Own is the throw-away server of this process, for tests that harm it. They
// are skipped where it cannot be had.
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

// New is another throw-away server, for a test that harms it while others use
// the first. It ends with the test.
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

// Role makes a role that can log in, with options such as BYPASSRLS, and returns
// its name and the URL of the database for it. It is dropped, with what it owns
// there, when the test has ended.
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
