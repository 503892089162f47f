package native

import (
	"context"
	"net/http"

	"parley/dialect"
	"parley/port"
)

// ModelKeys manages the keys of model vendors that are entered in the console.
type ModelKeys interface {
	List(context.Context, port.Principal) ([]port.ModelKey, error)
	Set(ctx context.Context, who port.Principal, vendor, key, address string) (port.ModelKey, error)
	Remove(ctx context.Context, who port.Principal, vendor string) error
	Try(ctx context.Context, who port.Principal, vendor, key, address string) (port.ModelKeyTrial, error)
}

func (h *Handler) listModelKeys(r request) (int, any, error) {
	list, err := h.Keys.List(r.Context(), r.who)
	return http.StatusOK, map[string]any{"keys": list}, err
}

// withKey calls do with the key and the address in the body.
func withKey[T any](do func(ctx context.Context, who port.Principal, vendor, key, address string) (T, error)) handling {
	return func(r request) (int, any, error) {
		var key, address string
		if err := r.body.Strings(dialect.Fields{{"key", &key}, {"base_url", &address}}); err != nil {
			return 0, nil, dialect.Invalid("%s", err)
		}
		answer, err := do(r.Context(), r.who, r.PathValue("id"), key, address)
		return http.StatusOK, answer, err
	}
}

func (h *Handler) removeModelKey(r request) (int, any, error) {
	err := h.Keys.Remove(r.Context(), r.who, r.PathValue("id"))
	return http.StatusOK, map[string]bool{"removed": true}, err
}
