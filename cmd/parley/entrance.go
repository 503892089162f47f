package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/access"
	"parley/config"
	"parley/dialect"
	"parley/store/postgres"
)

// An entrance decides which requests are admitted, according to the settings. From
// Start to Close it updates revocations, and writes the counts of refusals and the
// records of commands to the audit.
type entrance struct {
	*access.Entrance
	signIn  *access.SignIn  // nil: there is no sign-in with a provider
	cookies *access.Cookies // nil in local mode
	inbox   string          // folder of the audit records that commands leave
	store   store
	log     *slog.Logger

	ctx  context.Context // context of the background work
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func newEntrance(ctx context.Context, c *config.Settings, store store, key []byte, at net.Addr, log *slog.Logger) (
	*entrance, error) {
	if pg, ok := store.(*postgres.Store); ok && pg.Bypasses() {
		if c.Auth == "jwt" {
			return nil, &parley.Error{Code: parley.CodeForbidden, Message: "The role in --database-url is not bound " +
				"by row-level security, which stands between tenants.",
				Hint: "create a role that is not a superuser, run parley migrate --grant ROLE with this role, " +
					"and start the server with the new one"}
		}
		log.Warn("the database role is a superuser; parley migrate --grant makes one that can do less")
	}
	if err := takeRecords(ctx, inboxOf(&c.Store), store, log); err != nil {
		return nil, err
	}
	revoked, err := access.NewRevocations(ctx, store, time.Now)
	if err != nil {
		return nil, err
	}
	connections, messages, reconnections := c.Limits()
	each := 0 // in local mode all requests have the same principal
	if c.Auth == "jwt" {
		each = max(c.MaxConnections/20, 1)
	}
	e := &entrance{inbox: inboxOf(&c.Store), store: store, log: log, Entrance: &access.Entrance{
		Auth: access.NewLocal(c.DefaultTenant, c.AllowOrigin...),
		Gate: access.NewGate(access.GateConfig{Connections: connections, Messages: messages,
			Reconnections: reconnections,
			Most:          c.MaxConnections, Each: each, Now: time.Now}),
		Revocations: revoked,
		Proxies:     c.TrustedProxies,
		Record:      access.NewRecorder(store, time.Now, log),
	}}
	if c.Auth == "jwt" {
		verifier, err := access.NewVerifier(access.TokenConfig{Secret: string(c.JWTSecret), JWKSURL: c.JWKSURL,
			Issuer: c.JWTIssuer, Audience: c.JWTAudience, Log: log, Now: time.Now})
		if err != nil {
			return nil, err
		}
		if err := verifier.Warm(ctx); err != nil {
			log.Warn("the keys that verify tokens cannot be fetched yet; every token is refused until they are",
				"error", err)
		}
		secret := sessionSecret(key)
		sessions, err := access.NewVerifier(access.TokenConfig{Secret: secret, Issuer: c.JWTIssuer,
			Audience: c.JWTAudience, Log: log, Now: time.Now})
		if err != nil {
			return nil, err
		}
		e.cookies = access.NewCookies(access.CookieConfig{Secret: secret, Issuer: c.JWTIssuer, Audience: c.JWTAudience,
			Secure: strings.HasPrefix(c.Public(at.String()), "https://"), Log: log, Now: time.Now}, e.Entrance)
		e.Tickets = access.NewTickets(store, time.Now)
		if e.Auth, err = access.NewJWT(access.JWTConfig{Verifier: verifier, Tickets: e.Tickets, Revocations: revoked,
			Origins: c.AllowOrigin, QueryToken: c.QueryToken == "on", Sessions: sessions}); err != nil {
			return nil, err
		}
		if e.signIn, err = newSignIn(ctx, c, at, e.cookies, e.Entrance, log); err != nil {
			return nil, err
		}
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e, nil
}

// Start begins the background work. It must be called at most once.
func (e *entrance) Start() {
	e.wg.Go(func() { e.Revocations.Keep(e.ctx, time.Second, e.log) })
	e.wg.Go(func() { e.Record.Keep(e.ctx) })
	e.wg.Go(func() { keepRecords(e.ctx, e.inbox, e.store, e.log) })
}

// Close ends the background work and records the last counts of refusals.
func (e *entrance) Close(context.Context) error {
	e.stop()
	e.wg.Wait()
	return nil
}

// admit checks a request before any other handler. If it refuses the request,
// it writes the answer and returns false.
func (e *entrance) admit(w http.ResponseWriter, r *http.Request) bool {
	err := e.Admit(r)
	if err != nil {
		dialect.Refuse(w, err)
	}
	return err == nil
}
