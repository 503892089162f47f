package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley"
	"parley/port"
)

// This file has the functions for operators: everything they need besides
// serving.

// Versions returns has, the migration version of a database (0 if never
// migrated), and knows, the version of this release. It changes nothing.
func Versions(ctx context.Context, url string) (has, knows int64, err error) {
	if knows, err = known(); err != nil {
		return 0, 0, err
	}
	err = with(ctx, url, func(conn *pgx.Conn) error {
		has, err = version(ctx, conn)
		return err
	})
	return has, knows, err
}

// Migrate migrates a database to the version of this release.
func Migrate(ctx context.Context, url string, options ...Option) (from, to int64, err error) {
	s := newStore(options)
	config, err := s.parse(url)
	if err != nil {
		return 0, 0, err
	}
	if to, err = known(); err != nil {
		return 0, 0, err
	}
	_, from, err = migrate(ctx, config.ConnConfig, s.release)
	return from, to, err
}

// Renew gives a database a new epoch. Followers with a cursor of the old epoch
// get a resync; see port.Store.Epoch. A running node would keep using the old
// epoch, so Renew refuses if there is one.
func Renew(ctx context.Context, url string) (epoch string, err error) {
	err = with(ctx, url, func(conn *pgx.Conn) error {
		var alive int
		if err := conn.QueryRow(ctx, `SELECT count(*) FROM nodes WHERE seen_at > clock_timestamp() - $1::interval`,
			newStore(nil).lease).Scan(&alive); err != nil {
			return err
		}
		if alive > 0 {
			return &parley.Error{Code: parley.CodeUnavailable, Message: "A server is using this database.",
				Hint: "stop it first; one that died is forgotten after 10 s"}
		}
		epoch = newEpoch()
		_, err := conn.Exec(ctx, `UPDATE store SET epoch = $1`, epoch)
		return err
	})
	return epoch, err
}

// Facts describe a database server.
type Facts struct {
	Version           string
	ReadOnly          bool // a standby, or configured as read-only
	SynchronousCommit string
	Commit            time.Duration // duration of a small durable transaction; 0: read-only
	Ahead             time.Duration // how far the server's clock is ahead of this one's, give or take a round trip
}

// Examine queries the facts of a database server. Its only write is a message
// in the server's write-ahead log, which no program reads.
func Examine(ctx context.Context, url string) (f Facts, err error) {
	err = with(ctx, url, func(conn *pgx.Conn) error {
		if err := check(ctx, conn); err != nil {
			return err
		}
		asked := time.Now()
		var theirs time.Time
		if err := conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('synchronous_commit'),
			pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
			clock_timestamp()`).Scan(&f.Version, &f.SynchronousCommit, &f.ReadOnly, &theirs); err != nil {
			return err
		}
		f.Ahead = theirs.Sub(asked.Add(time.Since(asked) / 2))
		if f.ReadOnly {
			return nil
		}
		asked = time.Now()
		if _, err := conn.Exec(ctx,
			`SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'parley',
				'doctor')`); err != nil {
			return err
		}
		f.Commit = time.Since(asked)
		return nil
	})
	return f, err
}

// with calls do with a connection.
func with(ctx context.Context, url string, do func(*pgx.Conn) error) error {
	config, err := newStore(nil).parse(url)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return unavailable(ctx, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return unavailable(ctx, do(conn))
}

// A Reader reads a store that other nodes may be writing. It is not a node
// itself, and cannot write.
type Reader struct{ s *Store }

// OpenReader connects to a database for reading. The database must be up to
// date.
func OpenReader(ctx context.Context, url string, options ...Option) (_ *Reader, err error) {
	s := newStore(options)
	config, err := s.parse(url)
	if err != nil {
		return nil, err
	}
	s.configure(config)
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, unavailable(ctx, err)
	}
	if s.epoch, err = s.usable(ctx); err != nil {
		s.closePools()
		return nil, unavailable(ctx, err)
	}
	return &Reader{s}, nil
}

// usable returns the epoch of a database. It returns an error unless the
// database has the tables of this release.
func (s *Store) usable(ctx context.Context) (epoch string, err error) {
	knows, err := known()
	if err != nil {
		return "", err
	}
	has, err := version(ctx, s.pool)
	switch {
	case err != nil:
		return "", err
	case has > knows:
		return "", tooNew(ctx, s.pool, has, knows)
	case has < knows:
		return "", &parley.Error{Code: parley.CodeUnavailable, Hint: "stop the server and run parley migrate, or use " +
			"the release that wrote it",
			Message: fmt.Sprintf("The database is of an older release: it has version %d, and this release reads "+
				"version %d.", has, knows)}
	}
	err = s.pool.QueryRow(ctx, `SELECT epoch FROM store`).Scan(&epoch)
	return epoch, err
}

func (r *Reader) Epoch() string                                          { return r.s.epoch }
func (r *Reader) Tenant(id parley.TenantID) port.TenantStore             { return r.s.Tenant(id) }
func (r *Reader) Tenants(ctx context.Context) ([]parley.TenantID, error) { return r.s.Tenants(ctx) }

func (r *Reader) Close() error {
	r.s.closePools()
	return nil
}

// Nodes lists the living servers that use the database.
func (r *Reader) Nodes(ctx context.Context) ([]port.Node, error) {
	return list(ctx, r.s, maintenance, func(row pgx.CollectableRow) (n port.Node, err error) {
		err = row.Scan(&n.ID, &n.Address, &n.Version, &n.Agents, &n.Sessions, &n.Draining, &n.Projects, &n.Since)
		return n, err
	}, `SELECT id, address, version, agents, sessions, draining, projects, since FROM nodes
		WHERE seen_at > now() - $1::interval ORDER BY id`, r.s.lease)
}

const countDue = `SELECT count(*) FILTER (WHERE NOT alive AND at <= $1), count(*) FILTER (WHERE alive), min(at) FILTER
	(WHERE NOT alive AND at <= $1)
	FROM (SELECT at, lease IN (SELECT id FROM nodes WHERE seen_at > now() - $2::interval) AS alive FROM due) AS d`

// Due counts the due sessions that no living node has leased, and returns since
// when the first of them is due. held counts the due sessions that a living
// node has leased.
func (r *Reader) Due(ctx context.Context, now time.Time) (free, held int, since time.Time, err error) {
	_, _, err = one(ctx, r.s, maintenance, func(row pgx.CollectableRow) (first *time.Time, err error) {
		if err = row.Scan(&free, &held, &first); first != nil {
			since = first.UTC()
		}
		return first, err
	}, countDue, now, r.s.lease)
	return free, held, since, err
}
