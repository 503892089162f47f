package eventbus

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
)

// setting is a setting of the tenant, under the name that this document uses.
// Dots in names stand for nested objects on the wire.
type setting struct {
	wire, name string
	show       func(parley.Settings) any
	// take converts a client's value to the tenant's value; nil: no conversion.
	take func(json.RawMessage) (any, bool)
	must string // description of the values that take accepts
}

var settings = []setting{
	{wire: "agent.max_iters", name: "turns", show: func(s parley.Settings) any { return s.Turns }},
	{wire: "agent.max_delegation_depth", name: "max_delegation_depth",
		show: func(s parley.Settings) any { return s.MaxDelegationDepth }},
	{wire: "agent.compact_at", name: "compact_at", show: func(s parley.Settings) any { return s.CompactAt }},
	{wire: "agent.approval", name: "approval", show: func(s parley.Settings) any { return s.Approval }},
	{wire: "agent.tool_permission_mode", name: "approval", must: "ask or auto",
		show: func(s parley.Settings) any {
			if s.Approval == parley.ApprovalFullAuto {
				return "auto"
			}
			return "ask"
		},
		take: func(raw json.RawMessage) (any, bool) {
			modes := map[string]parley.ApprovalMode{`"ask"`: parley.ApprovalSuggest, `"auto"`: parley.ApprovalFullAuto}
			mode := modes[string(raw)]
			return mode, mode != ""
		}},
	{wire: "routing.default_models", name: "model", must: "a list of at most one model",
		show: func(s parley.Settings) any {
			if s.Model == "" {
				return []string{}
			}
			return []string{s.Model}
		},
		take: func(raw json.RawMessage) (any, bool) {
			var list []string
			if err := json.Unmarshal(raw, &list); err != nil || len(list) > 1 {
				return nil, false
			}
			if len(list) == 0 {
				return nil, true
			}
			return list[0], true
		}},
}

// current returns the effective configuration of a tenant, without secrets: its settings and the server's
// configuration.
func (h *Handler) current(r request) (map[string]json.RawMessage, error) {
	chosen, err := h.Door.Settings(r.Context(), r.who)
	if err != nil {
		return nil, err
	}
	values := map[string]json.RawMessage{}
	if h.Server != nil {
		maps.Copy(values, h.Server(r.who.Tenant))
	}
	for _, s := range settings {
		values[s.wire] = dialect.Encode(s.show(chosen))
	}
	return values, nil
}

// getSettings returns the effective configuration.
func (h *Handler) getSettings(r request) (any, error) {
	values, err := h.current(r)
	return nested(values), err
}

// changeSettings changes the settings that the body names. A value that is sent
// back unchanged is accepted, also for settings that cannot be changed. If one
// setting cannot be changed, none is.
func (h *Handler) changeSettings(r request) (any, error) {
	if err := h.may(r, parley.ActSettings, port.WholeTenant); err != nil {
		return nil, err
	}
	values, err := h.current(r)
	if err != nil {
		return nil, err
	}
	delete(r.body, "project_root")
	wanted := map[string]json.RawMessage{}
	if err := flatten(r.body, "", wanted); err != nil {
		return nil, err
	}
	changed, wires := map[string]json.RawMessage{}, map[string]string{}
	for _, wire := range slices.Sorted(maps.Keys(wanted)) {
		if equalJSON(values[wire], wanted[wire]) {
			continue
		}
		name, value, err := toSetting(wire, wanted[wire])
		if err != nil {
			return nil, err
		}
		if other, twice := wires[name]; twice {
			return nil, dialect.Invalid("%s and %s are two names of one setting; send one of them", other, wire)
		}
		changed[name], wires[name] = value, wire
	}
	if len(changed) > 0 {
		_, err := h.submit(r, []parley.SessionID{parley.TenantSession}, parley.ChangeSettings{Values: changed})
		if err != nil {
			return nil, inTheirWords(err, wires)
		}
	}
	return h.getSettings(r)
}

// toSetting returns the tenant's setting that a client names, and its value.
// null resets a setting to the server's configuration.
func toSetting(wire string, raw json.RawMessage) (string, json.RawMessage, error) {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.wire == wire })
	if i < 0 {
		return "", nil, dialect.Invalid("%s cannot be changed while the server runs", clip(wire, maxPreview))
	}
	s := settings[i]
	if s.take == nil || string(raw) == "null" {
		return s.name, raw, nil
	}
	value, ok := s.take(raw)
	if !ok {
		return "", nil, dialect.Invalid("%s must be %s", wire, s.must)
	}
	return s.name, dialect.Encode(value), nil
}

// inTheirWords replaces the name of a setting in a refusal by the client's
// name.
func inTheirWords(err error, wires map[string]string) error {
	name, rest, ok := strings.Cut(parley.MessageOf(err), " ")
	if wire := wires[name]; ok && wire != "" && parley.CodeOf(err) == parley.CodeInvalid {
		return parley.Errorf(parley.CodeInvalid, "%s %s", wire, rest)
	}
	return err
}

// flatten converts nested objects to names with dots.
func flatten(o dialect.Object, prefix string, into map[string]json.RawMessage) error {
	for key, raw := range o {
		if strings.Contains(key, ".") || key == "" {
			return dialect.Invalid("%s%s is no setting", prefix, clip(key, maxPreview))
		}
		if raw[0] != '{' {
			into[prefix+key] = raw
			continue
		}
		below, err := dialect.ParseObject(raw)
		if err != nil {
			return dialect.Invalid("%s%s: %s", prefix, clip(key, maxPreview), err)
		}
		if err := flatten(below, prefix+key+".", into); err != nil {
			return err
		}
	}
	return nil
}

// nested is the inverse of flatten.
func nested(values map[string]json.RawMessage) map[string]any {
	top := map[string]any{}
	for name, raw := range values {
		parts := strings.Split(name, ".")
		at := top
		for _, p := range parts[:len(parts)-1] {
			below, ok := at[p].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[p] = below
			}
			at = below
		}
		at[parts[len(parts)-1]] = raw
	}
	return top
}

// equalJSON compares values, not their spelling.
func equalJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var va, vb any
	if json.Unmarshal(a, &va) != nil || json.Unmarshal(b, &vb) != nil {
		return false
	}
	return bytes.Equal(dialect.Encode(va), dialect.Encode(vb))
}

// listModels lists the models of the configured vendors.
func (h *Handler) listModels(r request) (any, error) {
	return dialect.ListModels(r.Context(), h.Door, r.who, h.Models)
}
