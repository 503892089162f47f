package access

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"parley"
)

// An Authenticator identifies the principal that sends a request. The zero
// value refuses every request. It is safe for concurrent use.
type Authenticator struct {
	local   *Identity // set in local mode only
	origins []string  // local mode: origins whose pages may use the server, besides its own
	jwt     *JWTConfig
}

// JWTConfig configures an Authenticator in jwt mode.
type JWTConfig struct {
	Verifier    *Verifier
	Tickets     *Tickets
	Revocations *Revocations
	Origins     []string  // origins whose pages may use the server; none: only its own
	QueryToken  bool      // accept tokens in ?access_token=
	Sessions    *Verifier // verifies the tokens in cookies, used if no other credential is sent; nil: no cookies
}

// NewLocal returns an Authenticator for local mode: every client that can
// connect is the same principal. It must be served on loopback only. Pages of
// the given origins may use the server, besides its own pages.
func NewLocal(tenant parley.TenantID, origins ...string) *Authenticator {
	return &Authenticator{local: &Identity{Principal: Local(tenant)}, origins: origins}
}

// NewJWT returns an Authenticator for jwt mode.
func NewJWT(c JWTConfig) (*Authenticator, error) {
	if c.Verifier == nil || c.Tickets == nil || c.Revocations == nil {
		return nil, errors.New("jwt mode needs a verifier, tickets and revocations")
	}
	return &Authenticator{jwt: &c}, nil
}

// Check reports whether a request may be answered at all, regardless of the
// sender: it checks the Origin and, in local mode, the Host. Every route calls
// it, also routes that need no credential.
func (a *Authenticator) Check(r *http.Request) error {
	switch {
	case a.local != nil:
		return checkLocal(r, a.origins)
	case a.jwt != nil:
		return checkOrigin(r, a.jwt.Origins)
	}
	return deny(NoCredential, "no authentication mode is configured")
}

// Authenticate identifies the sender of a request that is not about one agent.
func (a *Authenticator) Authenticate(r *http.Request) (Identity, error) {
	return a.AuthenticateFor(r, "")
}

// AuthenticateFor identifies the sender of a request about an agent. It refuses
// a ticket for another agent.
func (a *Authenticator) AuthenticateFor(r *http.Request, agent string) (Identity, error) {
	if err := a.Check(r); err != nil {
		return Identity{}, err
	}
	if a.local != nil {
		return *a.local, nil
	}
	return a.jwt.unrevoked(a.jwt.identify(r, agent))
}

// unrevoked returns the identity unless it was revoked.
func (c *JWTConfig) unrevoked(id Identity, err error) (Identity, error) {
	if err == nil {
		err = c.Revocations.Check(id)
	}
	if err != nil {
		return Identity{}, err
	}
	return id, nil
}

func (c *JWTConfig) identify(r *http.Request, agent string) (Identity, error) {
	query := r.URL.Query()
	header, tokens, tickets := r.Header["Authorization"], query["access_token"], query["ticket"]
	if len(header)+len(tokens)+len(tickets) > 1 {
		return Identity{}, deny(TwoCredentials, "")
	}
	switch {
	case len(header) == 1:
		scheme, token, _ := strings.Cut(header[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return Identity{}, deny(TokenInvalid, "the Authorization header does not use the Bearer scheme")
		}
		return c.Verifier.Verify(r.Context(), strings.TrimLeft(token, " "))
	case len(tokens) == 1 && tokens[0] != "" && c.QueryToken:
		return c.Verifier.Verify(r.Context(), tokens[0])
	case len(tickets) == 1:
		origin, _ := originOf(r)
		return c.Tickets.take(r.Context(), tickets[0], agent, origin)
	case len(tokens) == 0 && c.Sessions != nil:
		return c.byCookie(r)
	}
	return Identity{}, deny(NoCredential, "")
}

// Token returns the identity that a token proves.
func (a *Authenticator) Token(ctx context.Context, text string) (Identity, error) {
	if a.jwt == nil {
		return Identity{}, deny(NoCredential, "there are no tokens in local mode")
	}
	return a.jwt.unrevoked(a.jwt.Verifier.Verify(ctx, text))
}

// credential reports whether a request has a credential, valid or not. Local
// mode needs none.
func (a *Authenticator) credential(r *http.Request) bool {
	query := r.URL.Query()
	return a.local != nil || len(r.Header["Authorization"]) > 0 || query.Has("access_token") || query.Has("ticket") ||
		len(r.CookiesNamed(Cookie)) > 0
}
