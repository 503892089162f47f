// Package access says who somebody is and what they may do. Whatever no rule
// permits is denied.
package access

import "parley"

// RoleLocal is the role of the one principal of local mode. It permits
// everything within its tenant.
const RoleLocal = "local"

// Local is who everybody is in local mode, where only this machine can connect.
func Local(tenant parley.TenantID) parley.Principal {
	return parley.Principal{ID: "local", Tenant: tenant, Roles: []string{RoleLocal}}
}

// permissions is the table of roles. A role that is not in it permits nothing.
var permissions = map[string][]parley.Action{
	RoleLocal: {parley.ActRead, parley.ActMessage, parley.ActAdmin},
}

// Rules is a parley.Authorizer.
type Rules struct{}

// Permit denies across tenants as if nothing were there, and within a tenant
// unless one of the principal's roles permits the action.
func (Rules) Permit(who parley.Principal, action parley.Action, on parley.Resource) error {
	if who.Tenant == "" || who.Tenant != on.Tenant {
		return parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	for _, role := range who.Roles {
		for _, permitted := range permissions[role] {
			if permitted == action {
				return nil
			}
		}
	}
	return parley.Errorf(parley.CodeForbidden, "You may not do this: it needs %s.", action)
}
