package dialect

import (
	"context"
	"net/http"

	"parley"
	"parley/port"
)

// A Guard lets people in.
type Guard interface {
	// Enter lets in a connection, which may be about one agent.
	Enter(r *http.Request, agent string) (port.Visit, error)
	// Who lets in a request that is answered at once.
	Who(*http.Request) (port.Principal, error)
}

// EnterReader lets in the connection of a principal that may read sessions. If
// ok is false, the request was answered.
func EnterReader(w http.ResponseWriter, r *http.Request, guard Guard, door port.Door) (visit port.Visit, ok bool) {
	visit, err := guard.Enter(r, "")
	if err != nil {
		Refuse(w, err)
		return visit, false
	}
	own := port.Resource{Kind: port.OwnSessions, Tenant: visit.Who.Tenant}
	if err := door.May(r.Context(), visit.Who, parley.ActRead, own); err != nil {
		visit.Leave()
		Refuse(w, err)
		return visit, false
	}
	return visit, true
}

// Attend makes the context of an answer that lasts. leave ends the context and
// the visit.
func Attend(ctx context.Context, visit port.Visit) (_ context.Context, leave func()) {
	ctx, done := visit.Watch(ctx)
	return ctx, func() {
		done()
		visit.Leave()
	}
}
