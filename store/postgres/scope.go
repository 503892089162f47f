package postgres

import (
	"github.com/jackc/pgx/v5"

	"parley"
)

// A scope limits the rows that a transaction sees and writes. The database
// enforces it, in case a statement does not: see docs/adr/0012. It holds for
// one transaction; an idle connection in the pool sees no rows of any tenant.
type scope struct{ setting, value string }

// maintenance is the scope that finds work, tenants, tickets and revocations of
// all tenants, but no content of sessions.
var maintenance = scope{"parley.scope", "maintenance"}

// of returns the scope of one tenant. The server's own tenant has an empty
// name, but an empty setting means no scope; hence the "=".
func of(id parley.TenantID) scope { return scope{"parley.tenant", "=" + toColumn(string(id))} }

// enter sets the scope for the rest of a trip. Without a begin, the trip is one
// transaction.
func (s scope) enter(trip *pgx.Batch) {
	trip.Queue(`SELECT set_config($1, $2, true)`, s.setting, s.value)
}
