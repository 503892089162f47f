package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// TestDocumentedQueries checks the SQL queries of document 002, with a role
// that may see all rows.
func TestDocumentedQueries(t *testing.T) {
	url := pgtest.Database(t)
	conn := connect(t, url)
	storetest.Documented(t, open(t, url), func(statement string) []map[string]any {
		rows, err := conn.Query(context.Background(), statement)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowToMap)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		return list
	})
}
