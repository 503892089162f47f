package native

import (
	"net/http"
	"slices"

	"parley"
	"parley/dialect"
	"parley/port"
)

// Timers and effects. The id of each is a reference to its session and seq.

func (h *Handler) listTimers(r request) (int, any, error) {
	q := r.URL.Query()
	limit, err := limitOf(r)
	if err != nil {
		return 0, nil, err
	}
	status := parley.TimerStatus(q.Get("status"))
	if !slices.Contains([]parley.TimerStatus{"", parley.TimerPending, parley.TimerDone, parley.TimerGone}, status) {
		return 0, nil, dialect.Invalid("status must be pending, promoted or cancelled")
	}
	list, err := h.Door.Timers(r.Context(), r.who, port.TimerQuery{Session: parley.SessionID(q.Get("session")),
		Status: status, Limit: limit})
	if list == nil {
		list = []port.TimerInfo{}
	}
	return http.StatusOK, map[string]any{"timers": list}, err
}

func (h *Handler) listEffects(r request) (int, any, error) {
	q := r.URL.Query()
	limit, err := limitOf(r)
	if err != nil {
		return 0, nil, err
	}
	status := port.EffectStatus(q.Get("status"))
	if !slices.Contains([]port.EffectStatus{"", port.EffectPending, port.EffectExecuting, port.EffectCompleted,
		port.EffectFailed, port.EffectGone}, status) {
		return 0, nil, dialect.Invalid("status must be pending, executing, completed, failed or cancelled")
	}
	kind := parley.EffectType(q.Get("type"))
	if !slices.Contains([]parley.EffectType{"", parley.Webhook, parley.SendMessage}, kind) {
		return 0, nil, dialect.Invalid("type must be %s or %s", parley.Webhook, parley.SendMessage)
	}
	list, err := h.Door.Effects(r.Context(), r.who, port.EffectQuery{Session: parley.SessionID(q.Get("session")),
		Status: status, Type: kind, Limit: limit})
	if list == nil {
		list = []port.EffectInfo{}
	}
	return http.StatusOK, map[string]any{"effects": list}, err
}

var (
	errNoTimer  = parley.Errorf(parley.CodeNotFound, "There is no such follow-up.")
	errNoEffect = parley.Errorf(parley.CodeNotFound, "There is no such effect.")
)

func (h *Handler) getTimer(r request) (int, any, error) {
	session, seq, err := r.ref(errNoTimer)
	if err != nil {
		return 0, nil, err
	}
	q := port.TimerQuery{Session: session, Timer: parley.TimerID(seq), Limit: 1}
	list, err := h.Door.Timers(r.Context(), r.who, q)
	one, err := only(list, err, errNoTimer)
	return http.StatusOK, one, err
}

// cancelTimer cancels a follow-up. The session knows only the pending ones; for
// others, the rows tell whether it ever existed.
func (h *Handler) cancelTimer(r request) (int, any, error) {
	session, seq, err := r.ref(errNoTimer)
	if err != nil {
		return 0, nil, err
	}
	receipt, err := h.submit(r, string(session), parley.CancelTimer{Timer: parley.TimerID(seq)})
	if parley.CodeOf(err) == parley.CodeClosed {
		if _, _, there := h.getTimer(r); there != nil {
			err = there
		}
	}
	return http.StatusAccepted, receipt, err
}

func (h *Handler) getEffect(r request) (int, any, error) {
	session, seq, err := r.ref(errNoEffect)
	if err != nil {
		return 0, nil, err
	}
	list, err := h.Door.Effects(r.Context(), r.who, port.EffectQuery{Session: session, Effect: seq, Limit: 1})
	one, err := only(list, err, errNoEffect)
	return http.StatusOK, one, err
}
