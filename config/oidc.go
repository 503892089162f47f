package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"parley"
)

// OIDC contains the settings of the OpenID provider for sign-in with a browser, and
// how its claims become users.
type OIDC struct {
	OIDCIssuer       string        `name:"oidc-issuer" var:"PARLEY_OIDC_ISSUER" placeholder:"URL" help:"With --auth jwt: OpenID provider for sign-in to the console (default: none; users paste a token)."`
	OIDCClientID     string        `name:"oidc-client-id" var:"PARLEY_OIDC_CLIENT_ID" placeholder:"TEXT" help:"Client id of Parley at the OpenID provider."`
	OIDCClientSecret Secret        `name:"oidc-client-secret" var:"PARLEY_OIDC_CLIENT_SECRET" placeholder:"TEXT" help:"Client secret of Parley at the OpenID provider (default: none, a public client). Prefer the variable."`
	OIDCUserClaim    string        `name:"oidc-user-claim" var:"PARLEY_OIDC_USER_CLAIM" default:"sub" help:"Claim with the user id. The claim email counts only if it is verified."`
	OIDCTenantClaim  string        `name:"oidc-tenant-claim" var:"PARLEY_OIDC_TENANT_CLAIM" placeholder:"NAME" help:"Claim with the tenant of the user (default: every user belongs to --default-tenant)."`
	OIDCRolesClaim   string        `name:"oidc-roles-claim" var:"PARLEY_OIDC_ROLES_CLAIM" default:"roles" help:"Claim with the roles or groups of the user."`
	OIDCRoles        RoleNames     `name:"oidc-roles" var:"PARLEY_OIDC_ROLES" placeholder:"LIST" help:"Role for each value of that claim, such as parley-admins=org_admin,staff=standard_user (default: the values are the names of roles)."`
	OIDCDefaultRole  string        `name:"oidc-default-role" var:"PARLEY_OIDC_DEFAULT_ROLE" placeholder:"ROLE" help:"Role of users without a role in that claim (default: none; they cannot sign in)."`
	OIDCLife         time.Duration `name:"oidc-life" var:"PARLEY_OIDC_LIFE" default:"1h" help:"How long a sign-in lasts."`
	PublicURL        string        `name:"public-url" var:"PARLEY_PUBLIC_URL" placeholder:"URL" group:"Address" help:"Address of this server for browsers, such as https://parley.example.com. The OpenID provider redirects to /auth/callback there, and links in webhooks start with it (default: the address of --listen, if it is a loopback address)."`
}

// RoleNames map the provider's names of roles or groups to roles.
type RoleNames map[string]parley.UserRole

func (n *RoleNames) UnmarshalText(text []byte) error {
	*n = nil
	for _, pair := range commas(text) {
		theirs, ours, _ := strings.Cut(pair, "=")
		role, err := parley.ParseUserRole(ours)
		switch {
		case theirs == "" || ours == "":
			return fmt.Errorf("%q is not THEIRS=ROLE", pair)
		case err != nil:
			return fmt.Errorf("%q: %w", pair, err)
		}
		if *n == nil {
			*n = RoleNames{}
		}
		(*n)[theirs] = role
	}
	return nil
}

// validateOIDC reports the first mistake. It does not repeat secrets.
func (a *Access) validateOIDC(listen string) error {
	if a.OIDCIssuer == "" {
		if a.OIDCClientID != "" || a.OIDCClientSecret != "" {
			return fmt.Errorf("an OIDC client is set without a provider; set PARLEY_OIDC_ISSUER, or remove the client")
		}
		return nil
	}
	own, err := url.Parse(a.Public(listen))
	_, badRole := parley.ParseUserRole(a.OIDCDefaultRole)
	switch {
	case a.Auth != "jwt":
		return fmt.Errorf("--oidc-issuer is set, but --auth %s has no sign-in; set PARLEY_AUTH=jwt", a.Auth)
	case a.JWTSecret == "":
		return fmt.Errorf(
			"--oidc-issuer needs PARLEY_JWT_SECRET, at least 32 bytes: the server signs with it what it " +
				"hands to browsers. With --jwks-url it only knows how others sign")
	case !safeURL(a.OIDCIssuer):
		return fmt.Errorf("--oidc-issuer must be https without a password in it, or http on this machine: " +
			"a party that can change its answers can sign in as any user")
	case a.OIDCClientID == "":
		return fmt.Errorf("--oidc-issuer needs --oidc-client-id: the id under which the provider knows this server")
	case a.Public(listen) == "":
		return fmt.Errorf("--oidc-issuer needs --public-url, since --listen %s does not say how browsers reach "+
			"this server", listen)
	case err != nil || !safeURL(a.Public(listen)) || own.Path != "" && own.Path != "/" || own.RawQuery != "" ||
		own.Fragment != "":
		return fmt.Errorf("--public-url must be like https://parley.example.com, or http on this machine, without a " +
			"path: browsers would otherwise send credentials unencrypted")
	case a.OIDCDefaultRole != "" && badRole != nil:
		return fmt.Errorf("--oidc-default-role %w", badRole)
	case a.OIDCUserClaim == "" || a.OIDCRolesClaim == "":
		return fmt.Errorf("--oidc-user-claim and --oidc-roles-claim name claims; leave them out for sub and roles")
	case a.OIDCLife < time.Minute || a.OIDCLife > 24*time.Hour:
		return fmt.Errorf("--oidc-life %s is not between a minute and a day", a.OIDCLife)
	}
	return nil
}

// Public returns the server's address for browsers, or an empty text if it is
// unknown.
func (a *Access) Public(listen string) string {
	if a.PublicURL != "" {
		return strings.TrimSuffix(a.PublicURL, "/")
	}
	if host, _, ok := strings.Cut(listen, ":"); ok && loopback(host) {
		return "http://" + listen
	}
	return ""
}
