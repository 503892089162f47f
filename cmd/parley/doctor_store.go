package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/port"
	"parley/store/postgres"
	"parley/store/sqlite"
)

// Checks of the database and of the stored sessions.

const (
	lookAtSessions = 50              // number of sessions to check, most recent first
	lookAtEvents   = 100_000         // in all checked sessions together
	integrityTakes = time.Minute     // the longest time for the integrity check
	clocksDiffer   = 5 * time.Second // a larger difference is a warning
	late           = time.Minute
)

// database reports whether later checks can use the database. It also returns true
// if there is none yet.
func (d *doctor) database() bool {
	const name = "database"
	if err := d.Store.Check(); err != nil {
		return false // settings reports why
	}
	if d.DatabaseURL != "" {
		return d.postgres(name)
	}
	d.clock(0)
	if err := sqlite.CheckLog(d.Data); err != nil { // must run before SQLite reads the file and the log as one database
		d.fail(name, err, "")
		return false
	}
	if has, _, err := versions(d.ctx, &d.Store); err == nil && has == 0 {
		if err := lost(&d.Store, d.New, has); err != nil {
			d.fail(name, err, "")
			return false
		}
		return true // migrations reports this
	}
	ctx, cancel := d.within(integrityTakes)
	defer cancel()
	switch bytes, err := sqlite.Integrity(ctx, d.Data); {
	case errors.Is(err, context.DeadlineExceeded):
		d.say(name, warning, "run PRAGMA quick_check on a copy made by parley backup", "SQLite, %s; not all of it was "+
			"checked within %v", size(uint64(bytes)), integrityTakes)
	case err != nil:
		d.fail(name, err, "restore it from a backup")
		return false
	default:
		d.say(name, fine, "", "SQLite, %s, not damaged", size(uint64(bytes)))
	}
	return true
}

func (d *doctor) postgres(name string) bool {
	ctx, cancel := d.within(patience)
	defer cancel()
	f, err := postgres.Examine(ctx, string(d.DatabaseURL))
	switch {
	case err != nil:
		d.fail(name, err, "see that PostgreSQL is up and can be reached under the configured address")
		return false
	case f.ReadOnly:
		d.say(name, problem, "name the primary with --database-url, or make it writable", "PostgreSQL %s, read-only",
			f.Version)
	case f.Commit > slowSync:
		d.say(name, warning, "look at its disk and the network between: every answer waits for it",
			"PostgreSQL %s, a durable write takes %v", f.Version, f.Commit.Round(10*time.Microsecond))
	default:
		d.say(name, fine, "", "PostgreSQL %s, a durable write takes %v", f.Version, f.Commit.Round(10*time.Microsecond))
	}
	switch f.SynchronousCommit {
	case "off", "local":
		d.say("synchronous_commit", fine, "", "%s here, and on for the connections of Parley, which sets it",
			f.SynchronousCommit)
	default:
		d.say("synchronous_commit", fine, "", "%s", f.SynchronousCommit)
	}
	d.clock(f.Ahead)
	return true
}

// clock compares this machine's clock with the calendar and, for PostgreSQL,
// with the clock of the database.
func (d *doctor) clock(ahead time.Duration) {
	const name = "clock"
	switch now := time.Now(); {
	case now.Year() < 2025 || now.Year() > 2100:
		d.say(name, problem, "set it, for instance with timedatectl set-ntp true", "the clock of this machine says %v",
			now.Format(time.DateTime))
	case ahead.Abs() > clocksDiffer:
		d.say(name, warning, "set both by NTP", "the clock of the database differs from this machine's by %v",
			ahead.Round(time.Millisecond))
	case d.DatabaseURL != "":
		d.say(name, fine, "", "the same as the database's within %v",
			ahead.Abs().Round(time.Millisecond)+time.Millisecond)
	default:
		d.say(name, fine, "", "%s", now.UTC().Format(time.RFC3339))
	}
}

// masterKey reports whether the settings contain the master keys that stored
// secrets need.
func (d *doctor) masterKey() {
	const name = "master key"
	ctx, cancel := d.within(patience)
	defer cancel()
	vault, err := vaultOf(&d.Store)
	if err != nil {
		return // settings reports why
	}
	needed, err := neededKeys(ctx, &d.Store)
	if err != nil {
		d.fail(name, err, "see the finding about the database")
		return
	}
	for _, id := range needed {
		if !slices.Contains(vault.Keys(), id) {
			d.fail(name, vault.Missing(id), "")
			return
		}
	}
	switch {
	case len(needed) > 0:
		d.say(name, fine, "", "%s is needed and given", strings.Join(needed, " and "))
	case len(vault.Keys()) > 0:
		d.say(name, fine, "", "%s is given; parley serve will use it", vault.Keys()[0])
	default:
		d.say(name, fine, "", "none is needed, and none is given")
	}
}

// migrations reports whether later checks can read sessions.
func (d *doctor) migrations() bool {
	const name = "migrations"
	ctx, cancel := d.within(patience)
	defer cancel()
	has, knows, err := versions(ctx, &d.Store)
	switch {
	case err != nil:
		d.fail(name, err, "see the finding about the database")
	case has == 0:
		d.say(name, fine, "", "there is no database yet; parley serve makes it")
	case has > knows:
		d.say(name, problem, "use the release that migrated it, or a later one", "the database has version %d, of a "+
			"newer release; this one knows up to %d", has, knows)
	case has < knows:
		d.say(name, warning, "stop the server and run parley migrate; parley serve does it too",
			"the database has version %d; this release makes it %d", has, knows)
	default:
		d.say(name, fine, "", "up to date, at version %d", has)
		return true
	}
	return false
}

func (d *doctor) sessions() {
	ctx, cancel := d.within(patience)
	defer cancel()
	store, err := openReader(ctx, &d.Store)
	if err != nil {
		d.fail("sessions", err, "see the finding about the database")
		return
	}
	defer store.Close()
	d.logs(ctx, store.Tenant(d.DefaultTenant))
	d.work(ctx, store)
	d.erasures(ctx, store)
	if shared, ok := store.(interface {
		Nodes(context.Context) ([]port.Node, error)
	}); ok {
		d.nodes(ctx, shared.Nodes)
	}
}

// nodes reports which servers share the database, and how they differ.
func (d *doctor) nodes(ctx context.Context, alive func(context.Context) ([]port.Node, error)) {
	const name = "nodes"
	list, err := alive(ctx)
	var addresses []string
	alike := true
	for _, n := range list {
		addresses = append(addresses, fmt.Sprintf("%s (%s, %s in memory)", n.Address, n.Version, sessions(n.Sessions)))
		alike = alike && len(differs(list[0], n)) == 0
	}
	switch {
	case err != nil:
		d.fail(name, err, "see the finding about the database")
	case len(list) == 0:
		d.say(name, fine, "", "no server uses the database")
	case !alike:
		d.say(name, warning, "update them all, and give them the same agent files; parley nodes shows which differ",
			"%s; their versions or agent files differ", strings.Join(addresses, ", "))
	default:
		d.say(name, fine, "", "%s", strings.Join(addresses, ", "))
	}
}

// logs reads the most recent sessions, as a server would.
func (d *doctor) logs(ctx context.Context, logs port.TenantStore) {
	const name = "sessions"
	list, err := logs.Sessions(ctx, port.SessionQuery{Transient: true, Limit: lookAtSessions})
	if err != nil {
		d.fail(name, err, "see the finding about the database")
		return
	}
	looked, events, bad := 0, 0, 0
	for _, m := range list {
		if events > lookAtEvents || ctx.Err() != nil {
			break
		}
		state := parley.NewState(d.DefaultTenant, m.ID)
		err := eachEvent(ctx, logs, m.ID, m.Head, func(e parley.Event) error {
			state = parley.Fold(state, e)
			events++
			return nil
		})
		if ctx.Err() != nil {
			break
		}
		looked++
		if err == nil && state.Status() != m.Status {
			err = fmt.Errorf("its log says %s, its row %s", state.Status(), m.Status)
		}
		if err != nil {
			bad++
			d.fail("session "+string(m.ID), err, "restore it from a backup; the others are not affected")
		}
	}
	if bad == 0 {
		d.say(name, fine, "", "the most recent of tenant %s can be read (%d of them, %d events)", d.DefaultTenant,
			looked, events)
	} else {
		d.say(name, warning, "see above", "%d of the %d most recent of tenant %s cannot be read", bad, looked,
			d.DefaultTenant)
	}
}

// erasures reports erasures that have begun and not ended.
func (d *doctor) erasures(ctx context.Context, store reader) {
	if err := eachBegunErasure(ctx, store, func(tenant parley.TenantID, b port.BegunErasure) {
		d.say("erasure of "+string(b.User), warning, "run parley erase --user "+string(b.User),
			"it began at %s in tenant %s and has not ended", b.At.Format(time.RFC3339), tenant)
	}); err != nil {
		d.fail("erasures", err, "see the finding about the database")
	}
}

func (d *doctor) work(ctx context.Context, store reader) {
	const name = "work"
	now := time.Now()
	free, held, since, err := store.Due(ctx, now)
	waited := now.Sub(since).Round(time.Second)
	switch {
	case err != nil:
		d.fail(name, err, "see the finding about the database")
	case free > 0 && d.answers && waited > late:
		d.say(name, warning, "look into the server's log", "%s due, and the server has not taken them up for %v",
			sessions(free), waited)
	case free > 0:
		d.say(name, fine, "", "%s due, the first for %v; they go on when a server runs", sessions(free), waited)
	case held > 0 && !d.answers:
		d.say(name, fine, "", "%s in the hands of a server; if it has died, they go on when the next one starts",
			sessions(held))
	default:
		d.say(name, fine, "", "nothing is late; %s in the hands of a server", sessions(held))
	}
}

func sessions(n int) string {
	if n == 1 {
		return "1 session is"
	}
	return fmt.Sprintf("%d sessions are", n)
}
