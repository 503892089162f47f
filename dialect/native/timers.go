package native

import (
	"net/http"
	"slices"

	"parley"
)

// What comes unasked, and how far it got. A thing is named by its session and seq.

func (h *Handler) listTimers(r request) (int, any, error) {
	q := r.URL.Query()
	limit, err := limitOf(r)
	if err != nil {
		return 0, nil, err
	}
	status := parley.TimerStatus(q.Get("status"))
	if !slices.Contains([]parley.TimerStatus{"", parley.TimerPending, parley.TimerDone, parley.TimerGone}, status) {
		return 0, nil, parley.Errorf(parley.CodeInvalid, "status must be pending, promoted or cancelled.")
	}
	list, err := h.Door.Timers(r.Context(), r.who, parley.TimerQuery{Session: parley.SessionID(q.Get("session")), Status: status, Limit: limit})
	if list == nil {
		list = []parley.TimerInfo{}
	}
	return http.StatusOK, map[string]any{"timers": list}, err
}

func (h *Handler) listEffects(r request) (int, any, error) {
	q := r.URL.Query()
	limit, err := limitOf(r)
	if err != nil {
		return 0, nil, err
	}
	status := parley.EffectStatus(q.Get("status"))
	if !slices.Contains([]parley.EffectStatus{"", parley.EffectPending, parley.EffectCompleted, parley.EffectFailed, parley.EffectGone}, status) {
		return 0, nil, parley.Errorf(parley.CodeInvalid, "status must be pending, completed, failed or cancelled.")
	}
	list, err := h.Door.Effects(r.Context(), r.who, parley.EffectQuery{Session: parley.SessionID(q.Get("session")), Status: status, Limit: limit})
	if list == nil {
		list = []parley.EffectInfo{}
	}
	return http.StatusOK, map[string]any{"effects": list}, err
}
