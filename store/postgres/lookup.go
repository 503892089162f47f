package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// lookUp finds out what became of a commit that nobody answered: nil if it
// happened, errAborted if it did not. Any other answer may change, because the
// server is still at it or the rows were looked for a moment too early; so it
// asks for longer than the server takes to give up on a client that is gone.
// Others do not wait that long: they are refused when it cannot be asked for more
// than a moment, or has not answered for long enough already.
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
		select {
		case <-ctx.Done():
			return fmt.Errorf("the commit was not answered and cannot be looked up (%q, %v): %w", status, err, cause)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("the commit was not answered, and nothing else is: %w", cause)
}

// status asks what the server says of the transaction, and whether the last
// event of each batch is there. The server's word alone would not do: one that
// took over from another may have given the same number to something else.
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
