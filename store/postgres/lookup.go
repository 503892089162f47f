package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/pacing"
)

// lookUp finds the outcome of a commit that got no answer. It returns nil if
// the transaction committed, and errAborted if it did not.
//
// Any other status may still change, because the server is still working on the
// transaction, or the rows were read a moment too early. So lookUp keeps asking
// for longer than the server takes to give up on a lost client. If the server
// cannot be asked for more than a moment, other appends are refused meanwhile.
// If appends are already refused and the commit itself timed out, lookUp gives
// up at once.
func (t *transaction) lookUp(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*t.store.timeout)
	defer cancel()
	moment := time.Now().Add(t.store.timeout / 10)
	for t.store.refusing() == nil || !slow(cause) {
		status, there, err := t.status(ctx)
		switch {
		case err == nil && status == "committed" && there:
			return nil
		case err == nil && status == "aborted":
			return errAborted
		}
		if err != nil && t.store.refusing() == nil && time.Now().After(moment) {
			t.store.suspend(cause)
		}
		if !pacing.Sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("the commit was not answered and cannot be looked up (%q, %v): %w", status, err, cause)
		}
	}
	return fmt.Errorf("the commit was not answered, and nothing else is: %w", cause)
}

// status returns the server's status of the transaction, and whether the last
// event of each batch is stored. The status alone is not enough: after a
// failover, the new server may have given the same id to another transaction.
func (t *transaction) status(ctx context.Context) (status string, there bool, err error) {
	var sessions []text
	var seqs, positions []int64
	var at []time.Time
	position := t.first
	for i, w := range t.group {
		position += int64(len(w.Events))
		if n := len(w.Events); n > 0 && t.moved[i] {
			last := w.Events[n-1]
			sessions, seqs, positions, at = append(sessions, text(w.Session)), append(seqs, int64(last.Seq)),
				append(positions, position-1), append(at, last.At)
		}
	}
	found, _, err := one(ctx, t.store, of(t.group[0].Tenant), func(row pgx.CollectableRow) (n int, err error) {
		return n, row.Scan(&status, &n)
	}, `SELECT coalesce(pg_xact_status($1::text::xid8), 'forgotten'),
		(SELECT count(*) FROM events e JOIN unnest($3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[]) AS w
		(session, seq, position, at)
			ON e.tenant = $2 AND e.session = w.session AND e.seq = w.seq AND e.position = w.position AND e.at = w.at)`,
		t.id, text(t.group[0].Tenant), sessions, seqs, positions, at)
	return status, found == len(sessions), err
}
