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
)

// newSignIn is how people sign in with a browser; nil if they cannot.
func newSignIn(ctx context.Context, c *config.Settings, at net.Addr, e *access.Entrance, log *slog.Logger) (
	*access.SignIn, error) {
	if c.OIDCIssuer == "" {
		return nil, nil
	}
	s, err := access.NewSignIn(access.SignInConfig{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: string(c.OIDCClientSecret),
		PublicURL: c.Public(at.String()), Life: c.OIDCLife,
		Mapping: access.Mapping{User: c.OIDCUserClaim, Tenant: c.OIDCTenantClaim, Home: c.DefaultTenant,
			Roles: c.OIDCRolesClaim, Names: c.OIDCRoles, Else: parley.UserRole(c.OIDCDefaultRole)},
		Secret: string(c.JWTSecret), As: c.JWTIssuer, Audience: c.JWTAudience, Log: log, Now: time.Now,
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

// signInRoutes are the same whether people can sign in or not, so that a page can
// ask which.
func signInRoutes(s *access.SignIn) map[string]http.Handler {
	ways := map[string]any{"oidc": s != nil}
	if s != nil {
		ways["issuer"] = s.Issuer()
	}
	answer, err := json.Marshal(ways)
	if err != nil {
		panic(err) // it is texts
	}
	all := s.Routes()
	if s == nil {
		for pattern := range all {
			all[pattern] = http.NotFoundHandler()
		}
	}
	all["GET /auth/options"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // nobody left to tell
	})
	return all
}
