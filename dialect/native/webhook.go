package native

import (
	"context"
	"encoding/json"
	"net/http"

	"parley"
	"parley/dialect"
	"parley/port"
)

// Webhooks manages the webhooks of sessions.
type Webhooks interface {
	SetWebhook(ctx context.Context, who port.Principal, id parley.SessionID, ask port.WebhookAsk, via string) (
		port.WebhookInfo, error)
	Webhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) (port.WebhookInfo, error)
	RemoveWebhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) error
	SessionWebhooks(ctx context.Context, who port.Principal, q port.WebhookQuery, via string) (
		[]port.SessionWebhook, error)
	TryWebhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) (port.WebhookTrial, error)
}

func (h *Handler) listWebhooks(r request) (int, any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return 0, nil, err
	}
	list, err := h.Webhooks.SessionWebhooks(r.Context(), r.who,
		port.WebhookQuery{After: parley.SessionID(r.URL.Query().Get("cursor")), Limit: limit}, parley.ViaHTTP)
	answer := webhookList{Webhooks: append([]port.SessionWebhook{}, list...)}
	if len(list) == limit {
		answer.Next = string(list[len(list)-1].Session)
	}
	return http.StatusOK, answer, err
}

// webhookList is a page of webhooks. Next is the cursor of the next page; empty: this is the last.
type webhookList struct {
	Webhooks []port.SessionWebhook `json:"webhooks"`
	Next     string                `json:"next,omitempty"`
}

func (h *Handler) tryWebhook(r request) (int, any, error) {
	trial, err := h.Webhooks.TryWebhook(r.Context(), r.who, parley.SessionID(r.PathValue("id")), parley.ViaHTTP)
	return http.StatusOK, trial, err
}

func (h *Handler) getWebhook(r request) (int, any, error) {
	info, err := h.Webhooks.Webhook(r.Context(), r.who, parley.SessionID(r.PathValue("id")), parley.ViaHTTP)
	return http.StatusOK, info, err
}

// setWebhook sets the webhook of a session. Only this answer has the secret.
func (h *Handler) setWebhook(r request) (int, any, error) {
	ask := port.WebhookAsk{}
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
