package native

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
)

// An CredentialIssuer issues tickets and revokes tokens.
type CredentialIssuer interface {
	Ticket(r *http.Request, wanted func() (agent string, err error)) (ticket string, expires time.Time, err error)
	// Revoke ends the tokens of a user of the same tenant. It returns the roles
	// whose tokens stay valid, because they are above those of by.
	Revoke(ctx context.Context, by port.Principal, who parley.PrincipalID) (spared []parley.UserRole, err error)
}

type ticketInfo struct {
	Ticket  string    `json:"ticket"`
	Expires time.Time `json:"expires_at"`
}

// issueTicket issues a ticket for one connection, for clients that cannot send
// a header with it.
func (h *Handler) issueTicket(w http.ResponseWriter, r *http.Request) {
	ticket, expires, err := h.Credentials.Ticket(r, func() (string, error) {
		body, err := readBody(w, r, maxBody)
		if err != nil {
			return "", err
		}
		agent, err := body.String("agent")
		if err != nil || agent != "" && !parley.ValidAgentName(agent) {
			return "", dialect.Invalid("agent must be the name of one")
		}
		return agent, nil
	})
	if err != nil {
		h.fail(w, err)
		return
	}
	dialect.WriteJSON(w, http.StatusCreated, ticketInfo{ticket, expires.UTC()})
}

// revoke revokes all tokens of a user on all servers.
func (h *Handler) revoke(r request) (int, any, error) {
	if err := h.Door.May(r.Context(), r.who, parley.ActWriteUsers,
		port.Resource{Kind: port.WholeTenant, Tenant: r.who.Tenant}); err != nil {
		return 0, nil, err
	}
	spared, err := h.Credentials.Revoke(r.Context(), r.who, parley.PrincipalID(r.PathValue("id")))
	answer := map[string]any{"status": "revoked"}
	if len(spared) > 0 {
		answer["spared_roles"] = spared
	}
	return http.StatusOK, answer, err
}

// auditEvent is an audit record in the format of the debug console.
type auditEvent struct {
	ID        string             `json:"id"`
	Tenant    parley.TenantID    `json:"tenant_id"`
	User      parley.PrincipalID `json:"user_id,omitempty"`
	Action    string             `json:"action"`
	Resource  string             `json:"resource_type,omitempty"`
	About     string             `json:"resource_id,omitempty"`
	Metadata  any                `json:"metadata,omitempty"`
	Source    string             `json:"source"`
	CreatedAt time.Time          `json:"created_at"`
	Hash      string             `json:"hash"`
}

func (h *Handler) listAudit(r request) (int, any, error) {
	q := r.URL.Query()
	limit, err := limitOf(r)
	if err != nil {
		return 0, nil, err
	}
	query := port.AuditQuery{By: parley.PrincipalID(q.Get("user_id")), Action: q.Get("action"),
		Resource: q.Get("resource_type"), Session: parley.SessionID(q.Get("session")),
		Source: q.Get("source"), Limit: limit}
	if cursor := q.Get("cursor"); cursor != "" {
		if query.BeforeNo, err = strconv.ParseInt(cursor, 10, 64); err != nil || query.BeforeNo < 1 {
			return 0, nil, dialect.Invalid("cursor must be the value of next in an earlier page")
		}
	}
	if query.After, err = r.time("after"); err != nil {
		return 0, nil, err
	}
	if query.Before, err = r.time("before"); err != nil {
		return 0, nil, err
	}
	rows, err := h.Door.Audited(r.Context(), r.who, query)
	events := []auditEvent{}
	for _, row := range rows {
		events = append(events, auditEvent{strconv.FormatInt(row.No, 10), row.Tenant, row.By, row.Action, row.Resource,
			row.ID, row.Metadata, row.Source, row.At, row.Hash})
	}
	answer := map[string]any{"events": events, "count": len(events)}
	if len(events) == limit {
		answer["next"] = events[limit-1].ID
	}
	return http.StatusOK, answer, err
}

// userList is a page of users. Next is the cursor of the next page; empty: this is the last.
type userList struct {
	Users []port.UserInfo `json:"users"`
	Next  string          `json:"next,omitempty"`
}

func (h *Handler) listUsers(r request) (int, any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return 0, nil, err
	}
	list, err := h.Door.Users(r.Context(), r.who, parley.PrincipalID(r.URL.Query().Get("cursor")), limit)
	answer := userList{Users: append([]port.UserInfo{}, list...)}
	if len(list) == limit {
		answer.Next = string(list[limit-1].ID)
	}
	return http.StatusOK, answer, err
}
