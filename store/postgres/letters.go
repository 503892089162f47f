package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"parley/port"
)

var _ port.Nodes = (*Store)(nil)

const (
	postLetter = `INSERT INTO inbox (tenant, session, command, node, body) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING RETURNING command`
	endLetter = `DELETE FROM inbox WHERE tenant = $1 AND session = $2 AND command = $3`
	// After a minute, no node waits for an answer any more.
	endOldLetters = `DELETE FROM inbox WHERE answer IS NOT NULL AND at < now() - interval '1 minute' RETURNING command`
	// A draining node may have stopped answering.
	letters = `SELECT tenant, session, command, node, body FROM inbox WHERE answer IS NULL AND (node = $1 OR NOT EXISTS
		(SELECT FROM nodes n WHERE n.id = inbox.node AND n.seen_at > clock_timestamp() - $2::interval
		AND NOT (n.draining AND inbox.at < now() - interval '1 second'))) ORDER BY at LIMIT $3`
	redirectLetter = `UPDATE inbox SET node = $4 WHERE tenant = $1 AND session = $2 AND command = $3 AND answer IS NULL
		RETURNING command`
	replyLetter = `UPDATE inbox SET answer = $4 WHERE tenant = $1 AND session = $2 AND command = $3 RETURNING command`
)

func (s *Store) Post(ctx context.Context, l port.Letter) error {
	return s.letter(ctx, l, postLetter, l.Node, l.Body)
}

func (s *Store) Redirect(ctx context.Context, l port.Letter, node string) error {
	return s.letter(ctx, l, redirectLetter, node)
}

func (s *Store) Reply(ctx context.Context, l port.Letter, answer []byte) error {
	return s.letter(ctx, l, replyLetter, answer)
}

func (s *Store) Withdraw(ctx context.Context, l port.Letter) error {
	return s.letter(ctx, l, endLetter+` RETURNING command`)
}

func (s *Store) letter(ctx context.Context, l port.Letter, statement string, more ...any) error {
	_, err := list(ctx, s, of(l.Tenant), pgx.RowTo[string], statement,
		append([]any{text(l.Tenant), text(l.Session), text(l.Command)}, more...)...)
	return err
}

// Letters also removes answers that no node has fetched.
func (s *Store) Letters(ctx context.Context, limit int) ([]port.Letter, error) {
	if _, err := list(ctx, s, maintenance, pgx.RowTo[string], endOldLetters); err != nil {
		return nil, err
	}
	return list(ctx, s, maintenance, func(row pgx.CollectableRow) (l port.Letter, err error) {
		return l, row.Scan((*text)(&l.Tenant), (*text)(&l.Session), (*text)(&l.Command), &l.Node, &l.Body)
	}, letters, s.node, s.lease, limit)
}

func (s *Store) Replied(ctx context.Context, l port.Letter) (answer []byte, there bool, err error) {
	return one(ctx, s, of(l.Tenant), pgx.RowTo[[]byte],
		`SELECT answer FROM inbox WHERE tenant = $1 AND session = $2 AND command = $3`, text(l.Tenant), text(l.Session),
		text(l.Command))
}
