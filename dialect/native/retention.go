package native

import (
	"net/http"

	"parley/dialect"
	"parley/port"
)

// retain returns a handler that applies the retention rules, or with dry only reports what they would delete.
func (h *Handler) retain(dry bool) func(request) (int, any, error) {
	return func(r request) (int, any, error) {
		report, err := h.Door.Retain(r.Context(), r.who, dry)
		return http.StatusOK, report, err
	}
}

// holdList is the answer of GET /api/v1/holds.
type holdList struct {
	Holds port.LegalHolds `json:"holds"`
}

func (h *Handler) listHolds(r request) (int, any, error) {
	holds, err := h.Door.LegalHolds(r.Context(), r.who)
	if holds == nil {
		holds = port.LegalHolds{}
	}
	return http.StatusOK, holdList{holds}, err
}

// holdBody is the body of POST /api/v1/holds.
type holdBody struct {
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Reason  string `json:"reason,omitempty"`
	Release bool   `json:"release,omitempty"`
}

// setHold sets a legal hold or releases it.
func (h *Handler) setHold(r request) (int, any, error) {
	var body holdBody
	for name, into := range map[string]*string{"kind": &body.Kind, "id": &body.ID, "reason": &body.Reason} {
		var err error
		if *into, err = r.body.String(name); err != nil {
			return 0, nil, dialect.Invalid("%s", err)
		}
	}
	if err := r.body.Into("release", &body.Release, "true or false"); err != nil {
		return 0, nil, dialect.Invalid("%s", err)
	}
	held, err := h.Door.Hold(r.Context(), r.who, port.HoldChange{LegalHold: port.LegalHold{
		Kind: port.HoldKind(body.Kind), ID: body.ID, Reason: body.Reason}, Release: body.Release})
	return http.StatusOK, held, err
}
