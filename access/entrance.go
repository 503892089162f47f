package access

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"parley"
	"parley/port"
)

// An Entrance is what a connection passes, in the right order: who is it, and
// do they come too often?
type Entrance struct {
	Auth        *Authenticator
	Gate        *Gate
	Revocations *Revocations
	Proxies     []netip.Prefix // whose X-Forwarded-For is believed
	Tickets     *Tickets       // nil: none are given
	Record      *Recorder      // nil: nothing is put on record

	callers sync.Map // net.Conn -> *caller
}

// Enter lets a connection in, or says with a *Denied why not and when to come
// back. agent is the one it is about, if it is about one. A refusal of a
// credential counts against the address it came from, and is not told once that
// is too often.
func (e *Entrance) Enter(r *http.Request, agent string) (port.Visit, error) {
	from := Client(r, e.Proxies)
	id, err := e.identify(r, from, agent)
	if err != nil {
		return port.Visit{}, err
	}
	admit := e.Gate.Connect
	if id.Ticket {
		admit = e.Gate.Stay // it was paid for as a message, when it was given
	}
	leave, err := admit(id.Principal, from)
	if err != nil {
		return port.Visit{}, e.refuse(r.Context(), err, from)
	}
	return port.Visit{
		Who: id.Principal,
		Watch: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return e.Revocations.Watch(ctx,
				id)
		},
		Message: e.Gate.Meter().Message,
		Leave:   leave,
	}, nil
}

// Who lets a request in that is not a connection: it is answered, and that is
// all.
func (e *Entrance) Who(r *http.Request) (port.Principal, error) {
	who, _, err := e.Begin(r, "")
	return who, err
}

// Ask lets a request in that is about one agent and whose answer may take its
// time: it counts as a message, and ends like a connection when the visitor is no
// longer who they were.
func (e *Entrance) Ask(r *http.Request, agent string) (port.Visit, error) {
	_, stay, err := e.Begin(r, agent)
	if err != nil {
		return port.Visit{}, err
	}
	return stay()
}

// Begin lets a request in, which may be about one agent. Only its body may say
// whether the answer takes its time; stay then makes a visit of the request, as
// Ask does.
func (e *Entrance) Begin(r *http.Request, agent string) (who port.Principal, stay func() (port.Visit, error),
	err error) {
	from := Client(r, e.Proxies)
	id, err := e.identify(r, from, agent)
	if err != nil {
		return port.Principal{}, nil, err
	}
	looks := r.Method == http.MethodGet || r.Method == http.MethodHead
	if err := e.Gate.Request(id.Principal, from, looks); err != nil {
		return port.Principal{}, nil, e.refuse(r.Context(), err, from)
	}
	return id.Principal, func() (port.Visit, error) {
		leave, err := e.Gate.Stay(id.Principal, from)
		if err != nil {
			return port.Visit{}, e.refuse(r.Context(), err, from)
		}
		return port.Visit{
			Who: id.Principal,
			Watch: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return e.Revocations.Watch(ctx, id)
			},
			Message: func() error { return nil }, // it is one, and was counted
			Leave:   leave,
		}, nil
	}, nil
}

// Ticket gives who sends a request a ticket for a connection to come. What the
// ticket is for is asked once it is known who wants it.
func (e *Entrance) Ticket(r *http.Request, wanted func() (agent string, err error)) (ticket string, expires time.Time,
	err error) {
	from := Client(r, e.Proxies)
	id, err := e.identify(r, from, "")
	if err != nil {
		return "", time.Time{}, err
	}
	if e.Tickets == nil {
		return "", time.Time{}, parley.Errorf(parley.CodeNotFound,
			"This server needs no tickets: authentication is off (local mode).")
	}
	if err := e.Gate.Request(id.Principal, from, false); err != nil {
		return "", time.Time{}, e.refuse(r.Context(), err, from)
	}
	agent, err := wanted()
	if err != nil {
		return "", time.Time{}, err
	}
	origin, _ := originOf(r)
	if ticket, expires, err = e.Tickets.Issue(r.Context(), id, agent, origin); err != nil || e.Record == nil {
		return ticket, expires, err
	}
	// One that is not on record is not handed out; nobody can guess it.
	if err := e.Record.Did(r.Context(), id.Principal, port.AuditTicket, "agent", agent,
		map[string]any{"origin": origin}); err != nil {
		return "", time.Time{}, err
	}
	return ticket, expires, nil
}

// Revoke ends the tokens of a user of the same tenant, open connections included,
// once that is on record. Tokens with a role above those of the person who
// revokes stay good; which these are, is returned. The server cannot ask what
// roles a user has: tokens say it, and it is compared when they are used.
func (e *Entrance) Revoke(ctx context.Context, by port.Principal,
	who parley.PrincipalID) (spared []parley.UserRole, err error) {
	now := e.Revocations.now()
	v := Revocation{Tenant: by.Tenant, Principal: who, Before: now.Add(RevokeUntil), SparesAdmins: !Administers(by)}
	more := map[string]any{}
	if v.SparesAdmins {
		spared = []parley.UserRole{parley.RoleOrgAdmin}
		more["spared_roles"] = spared
	}
	return spared, e.Revocations.Revoke(ctx, v, didOf(now, by, port.AuditRevoked, "user", string(who), more))
}

// Admit says whether a request may be answered at all; see Authenticator.Check.
// Until the request has shown a credential, its connection counts as unknown. If
// there are too many of those, a request that has a credential goes on, and its
// route finds out whether it is a good one.
func (e *Entrance) Admit(r *http.Request) error {
	from := Client(r, e.Proxies)
	err := e.unknown(r, from)
	if err == nil || e.Auth.credential(r) {
		err = e.Auth.Check(r)
	}
	if err != nil {
		return e.refuse(r.Context(), err, from)
	}
	return nil
}

func (e *Entrance) identify(r *http.Request, from netip.Addr, agent string) (Identity, error) {
	id, err := e.Auth.AuthenticateFor(r, agent)
	if err != nil {
		// Who sends none tries none; a page asks once, to learn that it has to.
		denied, ok := errors.AsType[*Denied](err)
		if none := ok && denied.Reason == NoCredential; !none {
			if often := e.Gate.Attempt(from); often != nil {
				err = often
			}
		}
		return Identity{}, e.refuse(r.Context(), err, from)
	}
	known(r)
	return id, nil
}

// refuse puts a refusal on record before it is told.
func (e *Entrance) refuse(ctx context.Context, err error, from netip.Addr) error {
	if denied, ok := errors.AsType[*Denied](err); ok && e.Record != nil {
		if err := e.Record.Denied(ctx, denied.Reason, from); err != nil {
			return err
		}
	}
	return err
}
