package dialect

import (
	"context"
	"net/http"

	"parley"
	"parley/port"
)

// A Guard admits connections and requests.
type Guard interface {
	// Enter admits a connection, which may be about one agent.
	Enter(r *http.Request, agent string) (port.Visit, error)
	// Who admits a request that is answered at once.
	Who(*http.Request) (port.Principal, error)
}

// An AgentGuard also admits requests about one agent.
type AgentGuard interface {
	Guard
	// Ask admits a request about an agent. Its visit ends with the answer.
	Ask(r *http.Request, agent string) (port.Visit, error)
}

// An AnswerGuard also admits requests whose body tells whether the answer takes long.
type AnswerGuard interface {
	Guard
	// Begin admits a request. stay turns it into a visit, for a long answer.
	Begin(r *http.Request, agent string) (who port.Principal, stay func() (port.Visit, error), err error)
}

// EnterReader admits the connection of a principal that may read sessions. If
// ok is false, it has already answered the request.
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

// Attend returns the context of a long answer, which ends with the visit. leave
// ends the context and the visit.
func Attend(ctx context.Context, visit port.Visit) (_ context.Context, leave func()) {
	ctx, done := visit.Watch(ctx)
	return ctx, func() {
		done()
		visit.Leave()
	}
}
