package port

import (
	"encoding/json"
	"time"

	"parley"
)

// Actions of records that are written without an event, or in addition to events.
const (
	AuditAccessDenied    = "access.denied"
	AuditAuthDenied      = "auth.denied"
	AuditSessionRead     = "session.read" // by a principal other than the owner
	AuditSessionExported = "session.exported"
	AuditFileRead        = "file.read" // of the workspace, by a person
	AuditTokenMinted     = "token.minted"
	AuditTicket          = "ticket.issued"
	auditErasureBegan    = "user.erasure_began"
	AuditUserErased      = "user.erased"
	auditHoldSet         = "hold.set"
	auditHoldReleased    = "hold.released"
	AuditRetention       = "retention.applied"
	AuditRevoked         = "principal.revoked"
	AuditSignedIn        = "user.signed_in" // with a browser
	AuditSignedOut       = "user.signed_out"
	AuditContext         = "context.applied"
	AuditSealed          = "audit.sealed"  // earlier rows were written without a key
	AuditTrimmed         = "audit.trimmed" // retention has deleted the oldest rows, see AuditCut
	AuditWebhookTested   = "webhook.tested"
	AuditModelKeySet     = "model_key.set" // in the console
	AuditModelKeyRemoved = "model_key.removed"
	AuditModelKeyTested  = "model_key.tested"
	AuditServerSet       = "mcp_server.set" // in the console
	AuditServerRemoved   = "mcp_server.removed"
	AuditServerTested    = "mcp_server.tested"
)

// An AuditQuery filters a list of records. Empty fields do not filter.
type AuditQuery struct {
	By                       parley.PrincipalID
	Action, Resource, Source string
	Session                  parley.SessionID // the subject of the record, or the session in which it happened
	After, Before            time.Time
	BeforeNo                 int64 // number of the last record on the previous page
	Limit                    int
}

// An AuditRow is a record in the chain of its tenant. The chain of the server
// itself has no tenant. Rows are numbered 1, 2, 3…
type AuditRow struct {
	Tenant parley.TenantID
	No     int64
	parley.Audit
	Hash string // of the row and the previous row; see package rules
}

// An AuditCut describes a cut of a chain by retention: its first row follows the last row that was deleted. It is the
// metadata of a record AuditTrimmed of the same chain.
type AuditCut struct {
	No   int64     `json:"no"`   // of the last deleted row
	Hash string    `json:"hash"` // of that row
	Rows int64     `json:"rows"` // number of rows that this cut deleted
	From time.Time `json:"from"` // of the first deleted row
	To   time.Time `json:"to"`   // of the last deleted row
}

// Record returns the audit record of a cut.
func (c AuditCut) Record(at time.Time, by parley.PrincipalID) parley.Audit {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err) // cannot fail: numbers and times
	}
	return parley.Audit{At: at, By: by, Action: AuditTrimmed, Resource: "audit", Source: sourceOf(by), Metadata: raw}
}

// Cut returns the metadata of a record AuditTrimmed; zero for any other row.
func (r AuditRow) Cut() (c AuditCut) {
	if r.Action != AuditTrimmed || json.Unmarshal(r.Metadata, &c) != nil {
		return AuditCut{}
	}
	return c
}

// sourceOf returns the source of a record about an action of a person, or else of the clock.
func sourceOf(by parley.PrincipalID) string {
	if by == "" {
		return "system"
	}
	return parley.ViaHTTP
}
