package native

import (
	"context"
	"encoding/json"
	"net/http"

	"parley"
	"parley/dialect"
)

// Webhooks keeps those of sessions.
type Webhooks interface {
	SetWebhook(ctx context.Context, who parley.Principal, id parley.SessionID, ask parley.WebhookAsk, via string) (
		parley.WebhookInfo, error)
	Webhook(ctx context.Context, who parley.Principal, id parley.SessionID, via string) (parley.WebhookInfo, error)
	RemoveWebhook(ctx context.Context, who parley.Principal, id parley.SessionID, via string) error
}

func (h *Handler) getWebhook(r request) (int, any, error) {
	info, err := h.Webhooks.Webhook(r.Context(), r.who, parley.SessionID(r.PathValue("id")), parley.ViaHTTP)
	return http.StatusOK, info, err
}

// setWebhook answers with the secret, this once.
func (h *Handler) setWebhook(r request) (int, any, error) {
	ask := parley.WebhookAsk{}
	var err error
	if ask.URL, err = r.body.String("url"); err == nil {
		ask.Secret, err = r.body.String("secret")
	}
	if err != nil {
		return 0, nil, dialect.Invalid("%s", err)
	}
	if raw, given := r.body["events"]; given {
		if json.Unmarshal(raw, &ask.Events) != nil || len(ask.Events) == 0 {
			return 0, nil, parley.Errorf(parley.CodeInvalid, "events is a list of %s and %s; leave it out for both.",
				parley.HookFinished, parley.HookNeeded)
		}
	}
	info, err := h.Webhooks.SetWebhook(r.Context(), r.who, parley.SessionID(r.PathValue("id")), ask, parley.ViaHTTP)
	return http.StatusOK, info, err
}

func (h *Handler) removeWebhook(r request) (int, any, error) {
	err := h.Webhooks.RemoveWebhook(r.Context(), r.who, parley.SessionID(r.PathValue("id")), parley.ViaHTTP)
	return http.StatusOK, map[string]bool{"removed": true}, err
}
