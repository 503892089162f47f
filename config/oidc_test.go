package config

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var withoutOIDC = OIDC{OIDCUserClaim: "sub", OIDCRolesClaim: "roles", OIDCLife: time.Hour}

func TestOIDC(t *testing.T) {
	inDir(t, nil)
	good := map[string]string{"PARLEY_AUTH": "jwt", "PARLEY_JWT_SECRET": jwtSecret,
		"PARLEY_OIDC_ISSUER": "https://id.example.com", "PARLEY_OIDC_CLIENT_ID": "parley",
		"PARLEY_OIDC_CLIENT_SECRET": "between the two of them",
		"PARLEY_OIDC_ROLES":         "admins=org_admin, staff=standard_user", "PARLEY_OIDC_LIFE": "8h"}
	got, err := parse([]string{"serve"}, good)
	if err != nil {
		t.Fatal(err)
	}
	want := OIDC{OIDCIssuer: "https://id.example.com", OIDCClientID: "parley",
		OIDCClientSecret: "between the two of them", OIDCUserClaim: "sub", OIDCRolesClaim: "roles",
		OIDCRoles: RoleNames{"admins": "org_admin", "staff": "standard_user"}, OIDCLife: 8 * time.Hour}
	if diff := cmp.Diff(want, got.OIDC); diff != "" {
		t.Error(diff)
	}
	if at := got.Public("127.0.0.1:8080"); at != "http://127.0.0.1:8080" {
		t.Errorf("its address is %q", at)
	}
	for _, test := range []struct {
		change map[string]string
		want   string
	}{
		{map[string]string{"PARLEY_JWT_SECRET": "", "PARLEY_JWKS_URL": "https://id.example.com/keys"},
			"needs PARLEY_JWT_SECRET"},
		{map[string]string{"PARLEY_AUTH": "local", "PARLEY_JWT_SECRET": ""}, "set PARLEY_AUTH=jwt"},
		{map[string]string{"PARLEY_OIDC_ISSUER": "http://id.example.com"}, "must be https"},
		{map[string]string{"PARLEY_OIDC_ISSUER": ""}, "set PARLEY_OIDC_ISSUER"},
		{map[string]string{"PARLEY_OIDC_CLIENT_ID": ""}, "--oidc-client-id"},
		{map[string]string{"PARLEY_OIDC_ROLES": "admins=king"}, "admins=king"},
		{map[string]string{"PARLEY_OIDC_ROLES": "org_admin"}, "THEIRS=ROLE"},
		{map[string]string{"PARLEY_OIDC_DEFAULT_ROLE": "king"}, "--oidc-default-role king"},
		{map[string]string{"PARLEY_OIDC_LIFE": "48h"}, "--oidc-life"},
		{map[string]string{"PARLEY_LISTEN": "0.0.0.0:8080"}, "--public-url"},
		{map[string]string{"PARLEY_PUBLIC_URL": "http://parley.example.com"}, "--public-url"},
		{map[string]string{"PARLEY_PUBLIC_URL": "https://parley.example.com/console"}, "--public-url"},
	} {
		env := maps.Clone(good)
		maps.Copy(env, test.change)
		switch _, err := parse([]string{"serve"}, env); {
		case err == nil:
			t.Errorf("%v is accepted", test.change)
		case !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "between the two"):
			t.Errorf("%v: %v", test.change, err)
		}
	}
	env := maps.Clone(good)
	env["PARLEY_LISTEN"], env["PARLEY_PUBLIC_URL"] = "0.0.0.0:8080", "https://parley.example.com/"
	if got, err := parse([]string{"serve"}, env); err != nil || got.Public(got.Listen) != "https://parley.example.com" {
		t.Errorf("%v", err)
	}
}
