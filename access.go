package parley

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A UserRole is a set of permissions. Tokens name roles. A role that is none of
// these permits nothing.
type UserRole string

const (
	RoleLocal        UserRole = "local"     // the one principal of local mode; no token can name it
	RoleOrgAdmin     UserRole = "org_admin" // everything within its tenant
	RoleDeptHead     UserRole = "dept_head"
	RoleStandardUser UserRole = "standard_user"
	RoleReadOnly     UserRole = "read_only"
)

// ParseUserRole reads a role that a token can name. The error lists these roles.
func ParseUserRole(text string) (UserRole, error) {
	switch role := UserRole(text); role {
	case RoleOrgAdmin, RoleDeptHead, RoleStandardUser, RoleReadOnly:
		return role, nil
	}
	return "", fmt.Errorf("%.80s is not a role; use %s, %s, %s, %s", text,
		RoleOrgAdmin, RoleDeptHead, RoleStandardUser, RoleReadOnly)
}

// An Action is what a principal wants to do; an Authorizer knows who may.
type Action string

const (
	ActRead            Action = "agents:read"    // follow, list, look
	ActMessage         Action = "agents:message" // talk to an agent, answer it, stop it
	ActAdmin           Action = "agents:write"   // halt, reopen; implies agents:message
	ActSettings        Action = "tenant:write"   // change what holds for everybody of the tenant
	ActReadAudit       Action = "audit:read"
	ActReadUsers       Action = "users:read"
	ActWriteUsers      Action = "users:write"
	ActReadDepartments Action = "departments:read"
)

var (
	tenantPattern  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	sessionPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

func (t TenantID) Valid() bool { return tenantPattern.MatchString(string(t)) }

const maxPrincipal = 256 // bytes

// Valid wants text that looks different when it is different: a broken character is read as U+FFFD whatever it was.
func (p PrincipalID) Valid() bool {
	return p != "" && len(p) <= maxPrincipal && !strings.ContainsFunc(string(p), func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsPrint(r)
	})
}

// Valid reports whether the id is a UUID of version 4 in lower case.
func (s SessionID) Valid() bool { return sessionPattern.MatchString(string(s)) }
