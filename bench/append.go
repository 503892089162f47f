package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
)

// runAppend measures only the store, in this process. 1 to 1,000 writers append one
// event at a time to a session each, and wait until it is durable. The raw limit of
// the disk is measured before each step.
func runAppend(t *trial) error {
	data, err := t.dir()
	if err != nil {
		return err
	}
	store, err := t.o.Open(t.ctx, data, t.database)
	if err != nil {
		return err
	}
	err = t.appends(store)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if t.o.Postgres == "" {
		return nil
	}
	plain, err := plainInserts(t.ctx, t.o.Postgres, 16, t.during())
	if err != nil {
		return err
	}
	t.record("postgres_16_plain_clients_per_s", plain)
	return nil
}

func (t *trial) during() time.Duration { return time.Duration(t.pick(1500, 30)) * time.Millisecond }

func (t *trial) appends(store port.Store) error {
	var one float64
	for _, writers := range []int{1, 16, 64, 256, 1000} {
		if t.o.Short && writers > 64 {
			break
		}
		syncs, err := measureSync(t.temp, t.during()/3)
		if err != nil {
			return err
		}
		raw := float64(syncs.count()) / (t.during() / 3).Seconds()
		rate, err := t.appendWith(store, writers)
		if err != nil {
			return err
		}
		t.record(fmt.Sprintf("events_per_s_%d_writers", writers), rate)
		t.point("durable events per second, by writers", float64(writers), rate)
		switch writers {
		case 1:
			one = rate
			t.record("one_writer_per_raw_sync", rate/raw)
		case 256:
			t.record("256_writers_per_one", rate/one)
		}
	}
	return nil
}

// appendWith lets writers append until the time is over. It checks the logs and
// returns the number of appends per second.
func (t *trial) appendWith(store port.Store, writers int) (float64, error) {
	ids := make([]parley.SessionID, writers)
	for i := range ids {
		ids[i] = parley.SessionID(newID())
	}
	heads := make([]parley.Seq, writers)
	var total atomic.Int64
	from := time.Now()
	deadline := from.Add(t.during())
	if err := together(writers, writers, func(i int) error {
		for seq := parley.Seq(0); time.Now().Before(deadline); seq++ {
			res, err := store.Append(t.ctx, oneEvent(ids[i], seq))
			if err != nil || res.Fenced {
				return errors.Join(err, fmt.Errorf("append %d (fenced: %v)", seq, res.Fenced))
			}
			heads[i] = seq + 1
			total.Add(1)
		}
		return nil
	}); err != nil {
		return 0, err
	}
	rate := float64(total.Load()) / time.Since(from).Seconds()
	for i, id := range ids {
		if heads[i] == 0 {
			continue // the time was over before its first append
		}
		if err := contiguous(t.ctx, store.Tenant("default"), id, heads[i]); err != nil {
			return 0, err
		}
	}
	return rate, nil
}

func oneEvent(id parley.SessionID, after parley.Seq) port.Batch {
	at := time.Now().UTC()
	var body parley.EventBody = parley.InputReceived{Content: fmt.Sprint("input ", after), Busy: parley.Queue}
	if after == 0 {
		body = parley.SessionOpened{Owner: "local", Agent: "bench"}
	}
	return port.Batch{Tenant: "default", Session: id, Epoch: 1, After: after,
		Events: []parley.Event{{Session: id, Seq: after + 1, Root: id, At: at, By: "local", Body: body}},
		Summary: port.Summary{ID: id, Root: id, Owner: "local", Agent: "bench", Status: parley.StatusIdle,
			Head: after + 1, OpenedAt: at, UpdatedAt: at}}
}

// contiguous checks that a log contains the events 1 to head, each once.
func contiguous(ctx context.Context, logs port.TenantStore, id parley.SessionID, head parley.Seq) error {
	var count tally
	for parley.Seq(count.seq) < head {
		events, err := logs.Events(ctx, id, parley.Seq(count.seq), 1000)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return fmt.Errorf("a log ends at event %d, and %d were appended", count.seq, head)
		}
		for _, e := range events {
			count.sequence(int64(e.Seq))
		}
		if count.err != nil {
			return count.err
		}
	}
	if parley.Seq(count.seq) != head {
		return fmt.Errorf("a log has %d events, and %d were appended", count.seq, head)
	}
	return nil
}

// plainInserts measures the rows per second that clients insert into PostgreSQL
// with one commit each.
func plainInserts(ctx context.Context, url string, clients int, during time.Duration) (float64, error) {
	first, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer first.Close(ctx)
	if _, err := first.Exec(ctx, `CREATE TABLE IF NOT EXISTS parley_bench_plain (id bigserial PRIMARY KEY,
		session text NOT NULL, body jsonb NOT NULL)`); err != nil {
		return 0, err
	}
	var total atomic.Int64
	from := time.Now()
	err = together(clients, clients, func(int) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		for deadline := time.Now().Add(during); time.Now().Before(deadline); total.Add(1) {
			if _, err := conn.Exec(ctx, `INSERT INTO parley_bench_plain (session, body) VALUES ($1, $2)`,
				"bench", `{"type":"InputReceived","content":"`+padding[:100]+`"}`); err != nil {
				return err
			}
		}
		return nil
	})
	rate := float64(total.Load()) / time.Since(from).Seconds()
	_, dropErr := first.Exec(ctx, `DROP TABLE parley_bench_plain`)
	return rate, errors.Join(err, dropErr)
}

// fresh creates a database for the trial, if it uses PostgreSQL.
func (t *trial) fresh() error {
	if t.o.Store != "postgres" {
		return nil
	}
	return t.newDatabase()
}

// newDatabase creates a database for the servers that are started after it.
func (t *trial) newDatabase() error {
	conn, err := pgx.Connect(t.ctx, t.o.Postgres)
	if err != nil {
		return err
	}
	defer conn.Close(t.ctx)
	name := "parley_bench_" + newID()[:8]
	if _, err := conn.Exec(t.ctx, "CREATE DATABASE "+name); err != nil {
		return err
	}
	t.databases = append(t.databases, name)
	config := conn.Config()
	t.database = fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", config.User, config.Password, config.Host,
		config.Port, name)
	if config.Host != "" && config.Host[0] == '/' {
		t.database = fmt.Sprintf("postgres:///%s?host=%s&port=%d&user=%s", name, config.Host, config.Port, config.User)
	}
	return nil
}

// dropDatabases removes the databases of the trial. Their servers must have ended.
func (t *trial) dropDatabases() error {
	if len(t.databases) == 0 {
		return nil
	}
	ctx := context.Background() // also after an interruption
	conn, err := pgx.Connect(ctx, t.o.Postgres)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, name := range t.databases {
		_, dropErr := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		err = errors.Join(err, dropErr)
	}
	return err
}
