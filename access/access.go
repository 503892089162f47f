// Package access authenticates requests, limits their rate, and decides what a
// principal may do. Whatever no rule permits is denied.
//
// A request passes through it in this order. The Authenticator checks the page
// that sends the request and identifies the principal. The Gate limits how
// often a visitor may come. Rules, behind the door, check the permission.
// Revocations end connections and runs whose identity is no longer valid.
package access

import (
	"slices"

	"parley"
	"parley/port"
)

// Local is the principal of every client in local mode, where only this machine
// can connect.
func Local(tenant parley.TenantID) port.Principal {
	return port.Principal{ID: "local", Tenant: tenant, Roles: []parley.UserRole{parley.RoleLocal}}
}

type role struct {
	actions []parley.Action
	// everybody: the role acts on all sessions of its tenant, and no agent's
	// allow list excludes it. Other roles act only on the principal's own
	// sessions.
	everybody bool
}

var everything = []parley.Action{
	parley.ActRead, parley.ActMessage, parley.ActAdmin, parley.ActSettings,
	parley.ActReadAudit, parley.ActReadUsers, parley.ActWriteUsers, parley.ActReadDepartments,
}

var roles = map[parley.UserRole]role{
	parley.RoleLocal:    {actions: everything, everybody: true},
	parley.RoleOrgAdmin: {actions: everything, everybody: true},
	parley.RoleDeptHead: {actions: []parley.Action{parley.ActRead, parley.ActMessage, parley.ActAdmin,
		parley.ActReadAudit, parley.ActReadUsers, parley.ActWriteUsers, parley.ActReadDepartments}},
	parley.RoleStandardUser: {actions: []parley.Action{parley.ActRead, parley.ActMessage}},
	parley.RoleReadOnly:     {actions: []parley.Action{parley.ActRead}},
}

func (r role) permits(action parley.Action) bool {
	return slices.Contains(r.actions, action) ||
		action == parley.ActMessage && slices.Contains(r.actions, parley.ActAdmin)
}

// Rules is a port.Authorizer.
type Rules struct{}

// Permit answers "not found" for another tenant, as if nothing existed there. Within a tenant, it requires a role that
// permits the action. Without such a role it answers "forbidden" for every resource, so the answer does not tell what
// exists. With such a role, the sessions of other users are "not found", unless the role covers everybody's sessions.
func (Rules) Permit(who port.Principal, action parley.Action, on port.Resource) error {
	if who.ID == "" || who.Tenant == "" || who.Tenant != on.Tenant {
		return parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	permitted, everybody := false, false
	for _, name := range who.Roles {
		if r := roles[name]; r.permits(action) {
			permitted = true
			everybody = everybody || r.everybody
		}
	}
	if !permitted {
		return parley.Errorf(parley.CodeForbidden, "You may not do this: it needs %s.", action)
	}
	switch on.Kind {
	case port.OwnSessions, port.WholeTenant:
		return nil
	case port.OneSession:
		if everybody || on.Owner == who.ID {
			return nil
		}
		return parley.Errorf(parley.CodeNotFound, "There is no such session.")
	case port.EverySession:
		if everybody {
			return nil
		}
		return parley.Errorf(parley.CodeForbidden, "You may do this only with your own sessions.")
	case port.OneAgent:
		if everybody || action == parley.ActRead || admits(on.Allow, who) {
			return nil
		}
		return parley.Errorf(parley.CodeForbidden, "You may not talk to the agent %s.", on.Agent)
	}
	return parley.Errorf(parley.CodeForbidden, "You may not do this.")
}

// Administers reports whether a principal has a role that covers everybody's
// sessions (local or org_admin).
func Administers(who port.Principal) bool {
	return slices.ContainsFunc(who.Roles, func(name parley.UserRole) bool { return roles[name].everybody })
}

// Permissions lists the actions that the roles of a principal permit on at
// least some resource.
func Permissions(who port.Principal) []parley.Action {
	list := []parley.Action{}
	for _, action := range everything {
		if slices.ContainsFunc(who.Roles, func(name parley.UserRole) bool { return roles[name].permits(action) }) {
			list = append(list, action)
		}
	}
	return list
}

// admits reports whether an agent's allow list names the principal or one of its roles.
func admits(allow *parley.AgentAllow, who port.Principal) bool {
	return allow == nil || slices.Contains(allow.Users, who.ID) || overlap(allow.Roles, who.Roles)
}

// overlap reports whether a known role is in both lists.
func overlap(a, b []parley.UserRole) bool {
	return slices.ContainsFunc(a, func(name parley.UserRole) bool {
		_, known := roles[name]
		return known && slices.Contains(b, name)
	})
}

// subject identifies a principal as a map key.
type subject struct {
	tenant parley.TenantID
	id     parley.PrincipalID
}

func subjectOf(who port.Principal) subject { return subject{who.Tenant, who.ID} }
