package access

import (
	"errors"
	"fmt"
	"slices"

	"parley"
	"parley/port"
)

// A Mapping says what is made of what an issuer says of a person.
type Mapping struct {
	User   string                     // the claim that names them: sub, or email where it is verified
	Tenant string                     // the claim that names their tenant; empty: Home
	Home   parley.TenantID            // of everybody, without such a claim
	Roles  string                     // the claim that lists what they are
	Names  map[string]parley.UserRole // what it lists, and the role that is; empty: roles by their own names
	Else   parley.UserRole            // role of who has none by that; empty: they do not come in
}

// principal is who somebody is here. Who belongs to no tenant or has no role is
// nobody.
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
