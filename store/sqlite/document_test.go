package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"parley/store/storetest"
)

// TestDocumentedQueries checks that the SQL queries of document 002 work
// while a server has the database open.
func TestDocumentedQueries(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s, err := Open(ctx, dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := open(filepath.Join(dir, "parley.db"), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	storetest.Documented(t, s, func(statement string) (list []map[string]any) {
		rows, err := db.QueryContext(ctx, statement)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		defer rows.Close()
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, into, row := make([]any, len(names)), make([]any, len(names)), map[string]any{}
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for i, name := range names {
				row[name] = values[i]
			}
			list = append(list, row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return list
	})
}
