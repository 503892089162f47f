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

// An Entrance admits connections and requests: it identifies the principal,
// then checks the rate limits.
type Entrance struct {
	Auth        *Authenticator
	Gate        *Gate
	Revocations *Revocations
	Proxies     []netip.Prefix // trusted for X-Forwarded-For
	Tickets     *Tickets       // nil: tickets are off
	Record      *Recorder      // nil: nothing is written to the audit log

	callers sync.Map // net.Conn -> *caller
}

// Enter admits a connection. If it refuses, a *Denied says why and when to try
// again. agent is the agent that the connection is about, or empty. A refused
// credential counts against the address it came from. Once there are too many,
// the client gets the rate limit instead of the reason.
func (e *Entrance) Enter(r *http.Request, agent string) (port.Visit, error) {
	from := Client(r, e.Proxies)
	id, err := e.identify(r, from, agent)
	if err != nil {
		return port.Visit{}, err
	}
	admit := e.Gate.Connect
	if id.Ticket {
		admit = e.Gate.Stay // the ticket was counted as a message when it was issued
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

// Who admits an ordinary request, which gets one answer, and returns its
// principal.
func (e *Entrance) Who(r *http.Request) (port.Principal, error) {
	who, _, err := e.Begin(r, "")
	return who, err
}

// Ask admits a request about one agent whose answer may take long. It counts as a message and, like a connection, ends
// when the identity expires or is revoked.
func (e *Entrance) Ask(r *http.Request, agent string) (port.Visit, error) {
	_, stay, err := e.Begin(r, agent)
	if err != nil {
		return port.Visit{}, err
	}
	return stay()
}

// Begin admits a request, which may be about one agent. Only the body of the
// request tells whether the answer takes long. If it does, the caller calls
// stay, which returns a visit as Ask does.
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
			Message: func() error { return nil }, // the request is the message, and was counted
			Leave:   leave,
		}, nil
	}, nil
}

// Ticket issues a ticket for a later connection to the sender of a request. It
// calls wanted, which returns the agent of the ticket, after it has identified
// the sender.
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
	// A ticket that is not in the audit log is not handed out. It stays in the
	// store, but its value cannot be guessed.
	if err := e.Record.Did(r.Context(), id.Principal, port.AuditTicket, "agent", agent,
		map[string]any{"origin": origin}); err != nil {
		return "", time.Time{}, err
	}
	return ticket, expires, nil
}

// Revoke ends the tokens of a user of the same tenant, open connections included, once the revocation is in the audit
// log. Tokens with a role above those of by stay valid; Revoke returns these roles. The server cannot look up the roles
// of a user: it compares the roles in a token when the token is used.
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

// Admit reports whether a request may be answered at all; see Authenticator.Check. Until the request has shown a valid
// credential, its connection counts as unknown. If there are too many unknown connections, Admit still lets a request
// with a credential pass, and its route verifies the credential.
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
		// A request without a credential is not an attempt: a page sends one to
		// learn that it needs a credential.
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

// refuse writes a refusal to the audit log before the client sees it.
func (e *Entrance) refuse(ctx context.Context, err error, from netip.Addr) error {
	if denied, ok := errors.AsType[*Denied](err); ok && e.Record != nil {
		if err := e.Record.Denied(ctx, denied.Reason, from); err != nil {
			return err
		}
	}
	return err
}
