package postgres

import (
	"context"
	"testing"

	"parley"
	"parley/store/postgres/pgtest"
)

// TestHeads checks that another node sees how far logs have grown, each under
// its own tenant.
func TestHeads(t *testing.T) {
	url := pgtest.Database(t)
	writer, s := open(t, url), open(t, url)
	ctx := context.Background()
	const one, two = parley.SessionID("11111111-1111-4111-8111-111111111111"), parley.SessionID(
		"22222222-2222-4222-8222-222222222222")
	for _, x := range []struct {
		tenant parley.TenantID
		id     parley.SessionID
		n      int
	}{{acme, one, 3}, {acme, two, 1}, {"other", one, 2}} {
		for after := range parley.Seq(x.n) {
			b := batch(x.id, after)
			b.Tenant = x.tenant
			if res, err := writer.Append(ctx, b); err != nil || res.Fenced {
				t.Fatal(res, err)
			}
		}
	}
	positions, err := s.Positions(ctx, []parley.TenantID{acme, "other", "nobody"})
	if err != nil || len(positions) != 2 || positions[acme] < 4 || positions["other"] < 2 {
		t.Error(positions, err)
	}
	heads, err := s.SessionHeads(ctx, map[parley.TenantID][]parley.SessionID{acme: {one, two}, "other": {one, two}})
	if err != nil || heads[acme][one] != 3 || heads[acme][two] != 1 || heads["other"][one] != 2 ||
		len(heads["other"]) != 1 {
		t.Error(heads, err)
	}
}
