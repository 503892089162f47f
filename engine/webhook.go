package engine

import (
	"context"
	"time"

	"parley"
)

// SetWebhook gives a session a webhook, in place of the one it had. The secret is
// in what it returns, and nowhere else in the open.
func (e *Engine) SetWebhook(ctx context.Context, who parley.Principal, id parley.SessionID, ask parley.WebhookAsk,
	via string) (parley.WebhookInfo, error) {
	if err := e.mayHook(ctx, who, id, via); err != nil {
		return parley.WebhookInfo{}, err
	}
	if err := parley.CheckHookEvents(ask.Events); err != nil {
		return parley.WebhookInfo{}, err
	}
	target, err := e.Webhooks.Check(ask.URL)
	if err != nil {
		return parley.WebhookInfo{}, err
	}
	secret, sealed, err := e.Webhooks.Seal(who.Tenant, id, ask.Secret)
	if err != nil {
		return parley.WebhookInfo{}, err
	}
	hook := parley.HookOf(target, ask.Events)
	c, err := e.hook(ctx, who, id, via, parley.SetWebhook{Hook: hook, URL: ask.URL, Sealed: sealed})
	return parley.WebhookInfo{URL: ask.URL, Events: hook.Events(), Status: "active", Secret: secret, SetAt: c.At}, err
}

// RemoveWebhook takes it away. What was promised and not told is not any more.
func (e *Engine) RemoveWebhook(ctx context.Context, who parley.Principal, id parley.SessionID, via string) error {
	if err := e.mayHook(ctx, who, id, via); err != nil {
		return err
	}
	_, err := e.hook(ctx, who, id, via, parley.SetWebhook{})
	return err
}

// Webhook is a session's, for who could set it: its URL may hold a secret.
func (e *Engine) Webhook(ctx context.Context, who parley.Principal, id parley.SessionID, via string) (
	parley.WebhookInfo, error) {
	if err := e.mayHook(ctx, who, id, via); err != nil {
		return parley.WebhookInfo{}, err
	}
	row, ok, err := e.Store.Tenant(who.Tenant).Webhook(ctx, id)
	switch {
	case err != nil:
		return parley.WebhookInfo{}, err
	case !ok:
		return parley.WebhookInfo{}, parley.Errorf(parley.CodeNotFound, "This session has no webhook.")
	}
	info := parley.WebhookInfo{URL: row.URL, Events: row.Hook.Events(), Status: "active", SetAt: row.At,
		GoneAt: row.Gone}
	if !row.Gone.IsZero() {
		info.Status = "gone"
	}
	return info, nil
}

// mayHook asks before anything is said about the webhook itself.
func (e *Engine) mayHook(ctx context.Context, who parley.Principal, id parley.SessionID, via string) error {
	if err := e.permit(ctx, who, via, parley.ActMessage, parley.Resource{Kind: parley.OwnSessions, Tenant: who.Tenant,
		Session: id}); err != nil {
		return err
	}
	m, err := e.Session(ctx, who, id)
	if err == nil {
		err = e.permit(ctx, who, via, parley.ActMessage, parley.Resource{Kind: parley.OneSession, Tenant: who.Tenant,
			Session: id, Owner: m.Owner})
	}
	if err == nil && e.Webhooks == nil {
		err = parley.Errorf(parley.CodeUnavailable, "This server tells no webhooks.")
	}
	return err
}

func (e *Engine) hook(ctx context.Context, who parley.Principal, id parley.SessionID, via string,
	do parley.SetWebhook) (parley.Command, error) {
	c := parley.Command{Tenant: who.Tenant, Session: id, By: who.ID, At: e.Now().UTC().Truncate(time.Microsecond),
		Via: via, Do: do}
	_, err := e.hand(ctx, key{c.Tenant, c.Session}, true, &request{who: who, command: c})
	return c, err
}
