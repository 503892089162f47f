package access

import (
	"errors"
	"fmt"
	"slices"

	"parley"
	"parley/port"
)

// A Mapping turns the claims of an issuer about a user into a principal.
type Mapping struct {
	User   string                     // claim with the user id: sub, or email if it is verified
	Tenant string                     // claim with the tenant; empty: every user belongs to Home
	Home   parley.TenantID            // tenant of all users if Tenant is empty
	Roles  string                     // claim with the roles or groups of the user
	Names  map[string]parley.UserRole // role for each value of that claim; empty: the values are role names
	Else   parley.UserRole            // role of users without any known role; empty: they are refused
}

// principal maps claims to a principal. It fails for a user without a valid id,
// tenant or role.
func (m Mapping) principal(claims object) (port.Principal, error) {
	var who, tenant string
	if !claims.text(m.User, &who) || !parley.PrincipalID(who).Valid() {
		return port.Principal{}, fmt.Errorf("the claim %s is missing, too long or not printable", m.User)
	}
	if m.User == "email" && string(claims["email_verified"]) != "true" {
		return port.Principal{}, errors.New("the email address is not verified")
	}
	p := port.Principal{ID: parley.PrincipalID(who), Tenant: m.Home}
	if m.Tenant != "" {
		if !claims.text(m.Tenant, &tenant) || !parley.TenantID(tenant).Valid() {
			return port.Principal{}, fmt.Errorf("the claim %s is not a valid tenant id", m.Tenant)
		}
		p.Tenant = parley.TenantID(tenant)
	}
	listed := claims.list(m.Roles)
	var one string
	if listed == nil && claims.text(m.Roles, &one) && one != "" {
		listed = []string{one}
	}
	for _, name := range listed {
		if len(m.Names) > 0 {
			name = string(m.Names[name])
		}
		if role, err := parley.ParseUserRole(name); err == nil && !slices.Contains(p.Roles, role) {
			p.Roles = append(p.Roles, role)
		}
	}
	if len(p.Roles) == 0 && m.Else != "" {
		p.Roles = []parley.UserRole{m.Else}
	}
	if len(p.Roles) == 0 {
		return port.Principal{}, fmt.Errorf("the claim %s names no known role", m.Roles)
	}
	slices.Sort(p.Roles)
	return p, nil
}
