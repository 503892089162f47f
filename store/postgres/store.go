// Package postgres stores logs in a PostgreSQL database, for one or more
// processes, here called nodes.
//
// A transaction belongs to one tenant. It takes the tenant's head row first and
// holds it until the commit. This orders positions, makes them visible in that
// order, whichever node commits, and prevents deadlocks between appends.
// Batches of a tenant that wait while a commit is under way go into the next
// one together; a commit costs two round trips for any number of batches.
//
// If the answer to a commit is lost with its connection, the store looks up the
// outcome on another connection. So Append reports an unknown outcome only if
// the database could not be asked.
//
// Two mechanisms separate tenants: every statement names its tenant, and
// row-level security requires each transaction to name its tenant first. See
// docs/adr/0012.
//
// Leases name nodes. A node shows that it is alive by its row in nodes; nothing
// depends on the clocks of the nodes themselves.
//
// The package needs PostgreSQL 13 or later and a database in UTF8. It uses
// session state (prepared statements, timeouts), so a pooler in between must
// pool sessions.
package postgres

import (
	"context"
	"crypto/rand"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley"
	"parley/store/rules"
)

// An Option changes how a store is opened.
type Option func(*Store)

// WithConnections sets how many connections the store may use, besides one for
// its heartbeat. The default is 8; half of them are for writing.
func WithConnections(n int) Option { return func(s *Store) { s.connections = max(n, 1) } }

// WithTimeout sets how long the database may take over one statement. The
// default is 5 s. Every call of the store ends within a small multiple of it.
func WithTimeout(d time.Duration) Option {
	return func(s *Store) { s.timeout = max(d, time.Millisecond) }
}

// WithLease sets how long a node counts as alive after its last beat. The
// default is 10 s. All nodes of a database should use the same value.
func WithLease(d time.Duration) Option { return func(s *Store) { s.lease = max(d, time.Millisecond) } }

// WithRelease sets the release of this program. The database records it for
// each migration that this program applies.
func WithRelease(name string) Option { return func(s *Store) { s.release = name } }

// WithVault sets the vault that encrypts secrets. Open encrypts all stored
// secrets with the first key of the vault.
func WithVault(v rules.Vault) Option { return func(s *Store) { s.vault = v } }

// maxWaiting is the maximum number of batches that wait for a commit.
const maxWaiting = 1024

// Store is a port.Store.
type Store struct {
	connections int
	timeout     time.Duration
	lease       time.Duration
	release     string // see WithRelease
	vault       rules.Vault

	epoch string
	node  string        // names this process in the due table
	pool  *pgxpool.Pool // for everything but the heartbeat
	pulse *pgxpool.Pool // one connection: a busy node must not look dead
	beats beats
	health

	folder   string                                                // of this node; empty: no folder
	held     *os.File                                              // nodeFile, if this process has its lock
	bypasses bool                                                  // see Bypasses
	observer atomic.Pointer[func(batches int, took time.Duration)] // nil: no observer
	key      rules.AuditKey

	slots   chan struct{}  // one for each waiting batch
	writers chan struct{}  // one for each commit under way
	writing sync.WaitGroup // the goroutines of lanes

	mu     sync.Mutex // guards the fields below; no other lock is taken under it
	closed bool
	lanes  map[parley.TenantID][]*waiting // the queue of each tenant that has a writer

	closing sync.Once
}

// Open connects to a database, given as a URL or in the form key=value, and
// migrates it. Nodes that open it at the same time migrate one after the other.
// A role that may not migrate can still open a database that is up to date.
func Open(ctx context.Context, url string, options ...Option) (_ *Store, err error) {
	s := newStore(options)
	config, err := s.parse(url)
	if err != nil {
		return nil, err
	}
	if s.epoch, _, err = migrate(ctx, config.ConnConfig.Copy(), s.release); err != nil {
		return nil, err
	}
	s.configure(config)
	defer func() {
		if err != nil {
			s.closePools()
		}
	}()
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, unavailable(ctx, err)
	}
	config = config.Copy()
	config.MaxConns = 1
	if s.pulse, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, unavailable(ctx, err)
	}
	if err := s.pulse.QueryRow(ctx, `SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(
		&s.bypasses); err != nil {
		return nil, unavailable(ctx, err)
	}
	if err := s.vault.Reseal(ctx, secrets{s.pool, s.vault}); err != nil {
		return nil, unavailable(ctx, err)
	}
	if err := s.succeed(ctx); err != nil {
		return nil, unavailable(ctx, err)
	}
	if err := s.join(ctx); err != nil {
		return nil, unavailable(ctx, err)
	}
	return s, nil
}

// Bypasses reports whether the role of this store bypasses row-level security,
// as a superuser or with BYPASSRLS. Then only the statements separate tenants.
func (s *Store) Bypasses() bool { return s.bypasses }

func newStore(options []Option) *Store {
	s := &Store{connections: 8, timeout: 5 * time.Second, lease: 10 * time.Second, node: rand.Text(),
		health: health{poked: make(chan struct{}, 1)}, beats: beats{turn: make(chan struct{}, 1)},
		slots: make(chan struct{}, maxWaiting), lanes: map[parley.TenantID][]*waiting{}}
	for _, o := range options {
		o(s)
	}
	s.writers = make(chan struct{}, max(s.connections/2, 1))
	return s
}

func (s *Store) parse(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// A URL that cannot be parsed cannot be redacted, so the error leaves
		// out the cause.
		return nil,
			&parley.Error{Code: parley.CodeInvalid, Message: "The address of the database cannot be understood.",
				Hint: "it has the form postgres://user:password@host:5432/database?sslmode=require"}
	}
	config.ConnConfig.ConnectTimeout = s.timeout
	return config, nil
}

// configure sets the parameters of every connection, whatever the database's
// own defaults are.
func (s *Store) configure(config *pgxpool.Config) {
	config.MaxConns = int32(s.connections)
	set := config.ConnConfig.RuntimeParams
	if set["application_name"] == "" {
		set["application_name"] = "parley"
	}
	// A statement that has waited for a tenant's head must see what was
	// committed meanwhile.
	set["default_transaction_isolation"] = "read committed"
	// A node that vanished during a transaction blocks its tenant until the
	// server ends the transaction.
	set["statement_timeout"] = milliseconds(s.timeout)
	set["lock_timeout"] = milliseconds(s.timeout / 2)
	set["idle_in_transaction_session_timeout"] = milliseconds(s.timeout)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		// What Append has acknowledged survives a loss of power. A stricter
		// setting than on (remote_apply) stays.
		_, err := conn.Exec(ctx, `SELECT set_config('synchronous_commit', 'on', false)
			WHERE current_setting('synchronous_commit') IN ('off', 'local')`)
		return err
	}
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}

// patience returns a context that limits a database call on the client side: a
// server that hangs cannot enforce its own timeouts. The limit is longer than
// those, so that a working server reports its timeout first.
func (s *Store) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.timeout+min(s.timeout/2, 500*time.Millisecond))
}

func (s *Store) Epoch() string { return s.epoch }

// Close commits the queued batches, releases what this node holds and closes
// the connections. It refuses later appends. It may be called more than once.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.writing.Wait()
		s.leave() // after the last commit, which may have taken a lease
		s.closePools()
	})
	return nil
}

func (s *Store) closePools() {
	for _, p := range []*pgxpool.Pool{s.pool, s.pulse} {
		if p != nil {
			p.Close()
		}
	}
	if s.held != nil {
		_ = s.held.Close() // this releases the lock; there is nothing left to write
	}
}
