package access

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"parley"
)

// An Authenticator says who sends a request. The zero value lets nobody in. It
// may be used concurrently.
type Authenticator struct {
	local   *Identity // of local mode
	origins []string  // in local mode, of pages that may use the server beside its own
	jwt     *JWTConfig
}

// JWTConfig is what an Authenticator of jwt mode needs.
type JWTConfig struct {
	Verifier    *Verifier
	Tickets     *Tickets
	Revocations *Revocations
	Origins     []string  // of pages that may use the server; none: its own
	QueryToken  bool      // ?access_token= counts
	Sessions    *Verifier // of the tokens in cookies, which count where nothing else is sent; nil: they do not
}

// NewLocal makes the one of local mode: everybody who can connect is the same
// principal. It must be served on loopback only. Pages of the named origins may
// use the server, beside its own.
func NewLocal(tenant parley.TenantID, origins ...string) *Authenticator {
	return &Authenticator{local: &Identity{Principal: Local(tenant)}, origins: origins}
}

// NewJWT makes the one of jwt mode.
func NewJWT(c JWTConfig) (*Authenticator, error) {
	if c.Verifier == nil || c.Tickets == nil || c.Revocations == nil {
		return nil, errors.New("jwt mode needs a verifier, tickets and revocations")
	}
	return &Authenticator{jwt: &c}, nil
}

// Check says whether a request may be answered at all, whoever sends it. It is
// for every route, also those that need no credential.
func (a *Authenticator) Check(r *http.Request) error {
	switch {
	case a.local != nil:
		return checkLocal(r, a.origins)
	case a.jwt != nil:
		return checkOrigin(r, a.jwt.Origins)
	}
	return deny(NoCredential, "no authentication mode is configured")
}

// Authenticate says who sends a request that is about no agent in particular.
func (a *Authenticator) Authenticate(r *http.Request) (Identity, error) {
	return a.AuthenticateFor(r, "")
}

// AuthenticateFor says who sends a request about an agent. A ticket for another
// agent is not good for it.
func (a *Authenticator) AuthenticateFor(r *http.Request, agent string) (Identity, error) {
	if err := a.Check(r); err != nil {
		return Identity{}, err
	}
	if a.local != nil {
		return *a.local, nil
	}
	return a.jwt.unrevoked(a.jwt.identify(r, agent))
}

// unrevoked is an identity, unless it was revoked.
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

// Token says whose token a text is.
func (a *Authenticator) Token(ctx context.Context, text string) (Identity, error) {
	if a.jwt == nil {
		return Identity{}, deny(NoCredential, "there are no tokens in local mode")
	}
	return a.jwt.unrevoked(a.jwt.Verifier.Verify(ctx, text))
}

// credential reports whether a request has one, good or bad. In local mode none
// is needed.
func (a *Authenticator) credential(r *http.Request) bool {
	query := r.URL.Query()
	return a.local != nil || len(r.Header["Authorization"]) > 0 || query.Has("access_token") || query.Has("ticket") ||
		len(r.CookiesNamed(Cookie)) > 0
}
