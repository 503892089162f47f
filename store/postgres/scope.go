package postgres

import (
	"github.com/jackc/pgx/v5"

	"parley"
)

// A scope is whose rows a transaction sees and writes. The database keeps it, in
// case a statement should not: see docs/adr/0012. It holds for one transaction;
// a connection that lies in the pool sees nobody's rows.
type scope struct{ setting, value string }

// maintenance finds work, tenants, tickets and revocations, whoever's they are,
// and shows nothing that anybody said.
var maintenance = scope{"parley.scope", "maintenance"}

// of is the scope of one tenant. The server's own has an empty name, and an empty
// setting is none; hence the sign before it.
func of(id parley.TenantID) scope { return scope{"parley.tenant", "=" + toColumn(string(id))} }

// enter makes what follows in a trip happen in the scope. Without a begin, a trip
// is one transaction.
func (s scope) enter(trip *pgx.Batch) {
	trip.Queue(`SELECT set_config($1, $2, true)`, s.setting, s.value)
}
