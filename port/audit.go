package port

import (
	"encoding/json"
	"time"

	"parley"
)

// Actions that are put on record without an event, or besides the events of what they are about.
const (
	AuditAccessDenied    = "access.denied"
	AuditAuthDenied      = "auth.denied"
	AuditSessionRead     = "session.read" // by somebody else than its owner
	AuditSessionExported = "session.exported"
	AuditFileRead        = "file.read" // of the workspace, by a person
	AuditTokenMinted     = "token.minted"
	AuditTicket          = "ticket.issued"
	auditErasureBegan    = "user.erasure_began"
	auditUserErased      = "user.erased"
	auditHoldSet         = "hold.set"
	auditHoldReleased    = "hold.released"
	auditRetention       = "retention.applied"
	AuditRevoked         = "principal.revoked"
	AuditSignedIn        = "user.signed_in" // with a browser
	AuditSignedOut       = "user.signed_out"
	AuditContext         = "context.applied"
	AuditSealed          = "audit.sealed"  // rows before this one were written without a key
	AuditTrimmed         = "audit.trimmed" // retention has deleted the oldest rows, see AuditCut
	AuditWebhookTested   = "webhook.tested"
	AuditModelKeySet     = "model_key.set" // in the console
	AuditModelKeyRemoved = "model_key.removed"
	AuditModelKeyTested  = "model_key.tested"
	AuditServerSet       = "mcp_server.set" // in the console
	AuditServerRemoved   = "mcp_server.removed"
	AuditServerTested    = "mcp_server.tested"
)

// An AuditQuery narrows a list of records. What is empty does not.
type AuditQuery struct {
	By                       parley.PrincipalID
	Action, Resource, Source string
	Session                  parley.SessionID // that the record is about, or in which it happened
	After, Before            time.Time
	BeforeNo                 int64 // the number of the last record of the page before
	Limit                    int
}

// An AuditRow is a record in the chain of its tenant; the chain of the server
// itself has no tenant. Rows are numbered 1, 2, 3…
type AuditRow struct {
	Tenant parley.TenantID
	No     int64
	parley.Audit
	Hash string // of the row and of the one before it; see package rules
}

// An AuditCut says where retention has cut a chain: its first row follows on the last one that was deleted. It is the
// metadata of a record AuditTrimmed of the same chain.
type AuditCut struct {
	No   int64     `json:"no"`   // of the last deleted row
	Hash string    `json:"hash"` // of that
	Rows int64     `json:"rows"` // how many rows this cut deleted
	From time.Time `json:"from"` // of the first of them
	To   time.Time `json:"to"`   // of the last
}

// Record is the audit record of a cut.
func (c AuditCut) Record(at time.Time, by parley.PrincipalID) parley.Audit {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err) // numbers and times
	}
	return parley.Audit{At: at, By: by, Action: AuditTrimmed, Resource: "audit", Source: sourceOf(by), Metadata: raw}
}

// Cut is what a record AuditTrimmed says; zero for any other row.
func (r AuditRow) Cut() (c AuditCut) {
	if r.Action != AuditTrimmed || json.Unmarshal(r.Metadata, &c) != nil {
		return AuditCut{}
	}
	return c
}

// sourceOf is the source of a record that a person has asked for, or else the clock.
func sourceOf(by parley.PrincipalID) string {
	if by == "" {
		return "system"
	}
	return parley.ViaHTTP
}
