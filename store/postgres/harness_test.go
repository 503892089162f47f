package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
)

const acme = parley.TenantID("acme")

var t0 = time.Date(2026, 3, 1, 9, 0, 0, 123456000, time.UTC)

// open opens a store and closes it at the end of the test at the latest.
func open(t testing.TB, url string, options ...Option) *Store {
	t.Helper()
	s, err := Open(context.Background(), url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// connect opens a connection of the test's own.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, statement string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// await repeats a query until its answer is true.
func await(t testing.TB, conn *pgx.Conn, question string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for yes := false; !yes; {
		if err := conn.QueryRow(ctx, question).Scan(&yes); err != nil {
			t.Fatalf("%s: %v", question, err)
		}
	}
}

// batch returns a batch of one input. The first batch of a session opens the
// session instead.
func batch(id parley.SessionID, after parley.Seq) port.Batch {
	var body parley.EventBody = parley.InputReceived{Content: fmt.Sprint("input ", after+1), Busy: parley.Queue}
	if after == 0 {
		body = parley.SessionOpened{Owner: "ann"}
	}
	return port.Batch{Tenant: acme, Session: id, Epoch: 1, After: after,
		Events: []parley.Event{{Session: id, Seq: after + 1, Root: id,
			At: t0.Add(time.Duration(after) * time.Microsecond), Body: body}},
		Summary: port.Summary{ID: id, Root: id, Owner: "ann", Head: after + 1, OpenedAt: t0, UpdatedAt: t0}}
}

func mustAppend(t testing.TB, s *Store, b port.Batch) {
	t.Helper()
	if res, err := s.Append(context.Background(), b); err != nil || res.Fenced {
		t.Fatalf("append after %d: %+v, %v", b.After, res, err)
	}
}

// log returns a whole log and checks that it has no gaps.
func log(t testing.TB, s *Store, id parley.SessionID) (events []parley.Event) {
	t.Helper()
	for {
		page, err := s.Tenant(acme).Events(context.Background(), id, parley.Seq(len(events)), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return events
		}
		events = append(events, page...)
	}
}
