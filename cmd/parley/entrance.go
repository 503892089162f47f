package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"parley"
	"parley/access"
	"parley/config"
	"parley/dialect"
	"parley/store/postgres"
)

// An entrance is who may come in, as the settings say, and what has to go on for
// as long as somebody may.
type entrance struct {
	*access.Entrance
	signIn *access.SignIn // nil: nobody signs in with a browser
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

func newEntrance(ctx context.Context, c *config.Settings, store store, at net.Addr, log *slog.Logger) (*entrance, error) {
	if pg, ok := store.(*postgres.Store); ok && pg.Bypasses() {
		if c.Auth == "jwt" {
			return nil, &parley.Error{Code: parley.CodeForbidden, Message: "The role in --database-url is not bound by row-level security, which stands between tenants.",
				Hint: "make a role for the server that is no superuser, run parley migrate --grant ROLE as this one, and serve as that one"}
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
	each := 0 // in local mode everybody is the same principal
	if c.Auth == "jwt" {
		each = max(c.MaxConnections/20, 1)
	}
	e := &entrance{Entrance: &access.Entrance{
		Auth: access.NewLocal(c.DefaultTenant, c.AllowOrigin...),
		Gate: access.NewGate(access.GateConfig{Connections: connections, Messages: messages, Reconnections: reconnections,
			Most: c.MaxConnections, Each: each, Now: time.Now}),
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
			log.Warn("keys cannot be fetched yet; nobody gets in until they can", "error", err)
		}
		e.Tickets = access.NewTickets(store, time.Now)
		if e.Auth, err = access.NewJWT(access.JWTConfig{Verifier: verifier, Tickets: e.Tickets, Revocations: revoked,
			Origins: c.AllowOrigin, QueryToken: c.QueryToken == "on", Cookies: c.OIDCIssuer != ""}); err != nil {
			return nil, err
		}
		if e.signIn, err = newSignIn(ctx, c, at, e.Entrance, log); err != nil {
			return nil, err
		}
	}
	ctx, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.wg.Go(func() { e.Revocations.Keep(ctx, 2*time.Second, log) })
	e.wg.Go(func() { e.Record.Keep(ctx) })
	e.wg.Go(func() { keepRecords(ctx, inboxOf(&c.Store), store, log) })
	return e, nil
}

// Close writes down what is still to be said of refusals.
func (e *entrance) Close() {
	e.stop()
	e.wg.Wait()
}

// admit is asked before anything else, and answers if the request goes no
// further.
func (e *entrance) admit(w http.ResponseWriter, r *http.Request) bool {
	err := e.Admit(r)
	if err != nil {
		dialect.Refuse(w, err)
	}
	return err == nil
}
