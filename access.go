package parley

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A UserRole is a set of permissions. Tokens name roles. An unknown role
// permits nothing.
type UserRole string

const (
	RoleLocal        UserRole = "local"     // the one principal of local mode; no token can name it
	RoleOrgAdmin     UserRole = "org_admin" // every action within its tenant
	RoleDeptHead     UserRole = "dept_head"
	RoleStandardUser UserRole = "standard_user"
	RoleReadOnly     UserRole = "read_only"
)

// ParseUserRole parses a role that a token can name. Its error lists these roles.
func ParseUserRole(text string) (UserRole, error) {
	switch role := UserRole(text); role {
	case RoleOrgAdmin, RoleDeptHead, RoleStandardUser, RoleReadOnly:
		return role, nil
	}
	return "", fmt.Errorf("%.80s is not a role; use %s, %s, %s, %s", text,
		RoleOrgAdmin, RoleDeptHead, RoleStandardUser, RoleReadOnly)
}

// An Action is an operation on which access is decided. An Authorizer decides whether a principal may perform it.
type Action string

const (
	ActRead            Action = "agents:read"    // follow, list, read
	ActMessage         Action = "agents:message" // send to an agent, answer its cards, stop it
	ActAdmin           Action = "agents:write"   // halt, reopen; implies agents:message
	ActSettings        Action = "tenant:write"   // change settings of the whole tenant
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

// Valid accepts only printable text, so that ids that differ also look different. It rejects U+FFFD because every
// invalid byte decodes to it.
func (p PrincipalID) Valid() bool {
	return p != "" && len(p) <= maxUser && !strings.ContainsFunc(string(p), func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsPrint(r)
	})
}

// Valid reports whether the id is a UUID of version 4 in lower case.
func (s SessionID) Valid() bool { return sessionPattern.MatchString(string(s)) }
