package eventbus

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
)

// Settings is what a server is set to. Names have dots where the wire has objects
// in objects: agent.max_iters.
type Settings interface {
	// Current is what holds for a tenant, without secrets.
	Current(context.Context, parley.TenantID) (map[string]json.RawMessage, error)
	// Check says why a value cannot be set, naming it; null takes it back to
	// what the server was started with.
	Check(name string, value json.RawMessage) error
}

func (h *Handler) current(r request) (map[string]json.RawMessage, error) {
	if h.Settings == nil {
		return nil, parley.Errorf(parley.CodeUnavailable, "This server has no settings to show.")
	}
	return h.Settings.Current(r.Context(), r.who.Tenant)
}

// getSettings shows the configuration that holds.
func (h *Handler) getSettings(r request) (any, error) {
	if err := h.may(r, parley.ActRead, parley.WholeTenant); err != nil {
		return nil, err
	}
	values, err := h.current(r)
	return nested(values), err
}

// changeSettings merges: what is not named stays as it is, and so does what is
// sent back unchanged, be it for changing or not. Nothing is changed unless
// everything can be.
func (h *Handler) changeSettings(r request) (any, error) {
	if err := h.may(r, parley.ActAdmin, parley.WholeTenant); err != nil {
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
	changed := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if equalJSON(values[name], wanted[name]) {
			continue
		}
		if err := h.Settings.Check(name, wanted[name]); err != nil {
			return nil, err
		}
		changed[name] = wanted[name]
	}
	if len(changed) > 0 {
		if _, err := h.submit(r, []parley.SessionID{parley.TenantSession}, parley.ChangeSettings{Values: changed}); err != nil {
			return nil, err
		}
	}
	return h.getSettings(r)
}

// flatten makes names with dots of objects in objects.
func flatten(o dialect.Object, prefix string, into map[string]json.RawMessage) error {
	for key, raw := range o {
		if strings.Contains(key, ".") || key == "" {
			return invalid("%s%s is no setting", prefix, clip(key, maxPreview))
		}
		if raw[0] != '{' {
			into[prefix+key] = raw
			continue
		}
		below, err := dialect.ParseObject(raw)
		if err != nil {
			return invalid("%s%s: %s", prefix, clip(key, maxPreview), err)
		}
		if err := flatten(below, prefix+key+".", into); err != nil {
			return err
		}
	}
	return nil
}

// nested is what flatten was given.
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

// equalJSON compares values, not how they are written.
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
