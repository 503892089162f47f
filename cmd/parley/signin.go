package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"

	"parley"
	"parley/access"
	"parley/config"
	"parley/port"
)

// newSignIn returns the sign-in with a browser, or nil if no issuer is configured.
func newSignIn(ctx context.Context, c *config.Settings, at net.Addr, cookies *access.Cookies, e *access.Entrance,
	log *slog.Logger) (*access.SignIn, error) {
	if c.OIDCIssuer == "" {
		return nil, nil
	}
	s, err := access.NewSignIn(access.SignInConfig{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: string(c.OIDCClientSecret),
		PublicURL: c.Public(at.String()), Life: c.OIDCLife,
		Mapping: access.Mapping{User: c.OIDCUserClaim, Tenant: c.OIDCTenantClaim, Home: c.DefaultTenant,
			Roles: c.OIDCRolesClaim, Names: c.OIDCRoles, Else: parley.UserRole(c.OIDCDefaultRole)},
		Cookies: cookies, Secret: string(c.JWTSecret), Log: log, Now: time.Now,
	}, e)
	if err != nil {
		return nil, err
	}
	if err := s.Warm(ctx); err != nil {
		log.Warn("the issuer of sign-ins cannot be reached yet; people sign in once it can", "issuer", c.OIDCIssuer,
			"error", err)
	}
	return s, nil
}

// sessionSecret returns the secret that signs the tokens in cookies. It is derived from the server's key, which all
// nodes share. So sign-in also works on servers that cannot create other tokens.
func sessionSecret(key []byte) string {
	return port.Digest("parley: session cookies", string(key))
}

// signInRoutes returns the same routes whether or not sign-in is configured, so
// that a page can ask.
func signInRoutes(s *access.SignIn, cookies *access.Cookies) map[string]http.Handler {
	ways := map[string]any{"oidc": s != nil}
	if s != nil {
		ways["issuer"] = s.Issuer()
	}
	answer, err := json.Marshal(ways)
	if err != nil {
		panic(err) // strings and booleans cannot fail
	}
	all := s.Routes()
	if s == nil {
		for pattern := range all {
			all[pattern] = http.NotFoundHandler()
		}
	}
	for pattern, handler := range cookies.Routes() {
		if all[pattern] = handler; cookies == nil {
			all[pattern] = http.NotFoundHandler()
		}
	}
	all["GET /auth/options"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // the client has gone
	})
	return all
}
