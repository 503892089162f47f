package engine

import (
	"context"
	"time"

	"parley"
	"parley/port"
)

// SetWebhook gives a session a webhook, in place of the one it had. The secret is
// in what it returns, and nowhere else in the open.
func (e *Engine) SetWebhook(ctx context.Context, who port.Principal, id parley.SessionID, ask port.WebhookAsk,
	via string) (port.WebhookInfo, error) {
	if err := e.mayHook(ctx, who, id, via); err != nil {
		return port.WebhookInfo{}, err
	}
	if err := port.CheckHookEvents(ask.Events); err != nil {
		return port.WebhookInfo{}, err
	}
	target, err := e.Webhooks.Check(ask.URL)
	if err != nil {
		return port.WebhookInfo{}, err
	}
	secret, sealed, err := e.Webhooks.Seal(who.Tenant, id, ask.Secret)
	if err != nil {
		return port.WebhookInfo{}, err
	}
	hook := parley.HookOf(target, ask.Events)
	c, err := e.hook(ctx, who, id, via, parley.SetWebhook{Hook: hook, URL: ask.URL, Sealed: sealed})
	return port.WebhookInfo{URL: ask.URL, Events: hook.Events(), Status: "active", Secret: secret, SetAt: c.At}, err
}

// RemoveWebhook takes it away. What was promised and not told is not any more.
func (e *Engine) RemoveWebhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) error {
	if err := e.mayHook(ctx, who, id, via); err != nil {
		return err
	}
	_, err := e.hook(ctx, who, id, via, parley.SetWebhook{})
	return err
}

// Webhook is a session's, for who could set it: its URL may hold a secret.
func (e *Engine) Webhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) (
	port.WebhookInfo, error) {
	if err := e.mayHook(ctx, who, id, via); err != nil {
		return port.WebhookInfo{}, err
	}
	row, ok, err := e.Store.Tenant(who.Tenant).Webhook(ctx, id)
	switch {
	case err != nil:
		return port.WebhookInfo{}, err
	case !ok:
		return port.WebhookInfo{}, errNoWebhook
	}
	return row.Info(), nil
}

// SessionWebhooks lists those that the principal could set: its own, or everybody's.
func (e *Engine) SessionWebhooks(ctx context.Context, who port.Principal, q port.WebhookQuery, via string) (
	[]port.SessionWebhook, error) {
	if err := e.permit(ctx, who, via, parley.ActMessage, port.Resource{Kind: port.OwnSessions,
		Tenant: who.Tenant}); err != nil {
		return nil, err
	}
	if err := e.mayList(ctx, who, "", &q.Owner, &q.Limit); err != nil {
		return nil, err
	}
	return e.Store.Tenant(who.Tenant).Webhooks(ctx, q)
}

// TryWebhook sends a sample to a session's webhook. What the receiver answers is not for everybody: an address that only
// the operator's list permits may lead to something that the principal cannot read.
func (e *Engine) TryWebhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) (
	port.WebhookTrial, error) {
	if err := e.mayHook(ctx, who, id, via); err != nil {
		return port.WebhookTrial{}, err
	}
	row, ok, err := e.Store.Tenant(who.Tenant).Webhook(ctx, id)
	switch {
	case err != nil:
		return port.WebhookTrial{}, err
	case !ok:
		return port.WebhookTrial{}, errNoWebhook
	}
	if _, err := e.Store.Append(ctx, port.Batch{Tenant: who.Tenant, Audit: []parley.Audit{{At: e.Now(), By: who.ID,
		Action: port.AuditWebhookTested, Resource: "session", ID: string(id), Source: via,
		Metadata: parley.Metadata(map[string]any{"session": id, "target": row.Hook.Target})}}}); err != nil {
		return port.WebhookTrial{}, err
	}
	trial, err := e.Webhooks.Try(ctx, who.Tenant, id, row)
	if trial.Private && trial.Answer != "" && e.Access.Permit(who, parley.ActSettings,
		port.Resource{Kind: port.WholeTenant, Tenant: who.Tenant}) != nil {
		trial.Answer, trial.Withheld = "", true
	}
	return trial, err
}

var errNoWebhook = parley.Errorf(parley.CodeNotFound, "This session has no webhook.")

// mayHook asks before anything is said about the webhook itself.
func (e *Engine) mayHook(ctx context.Context, who port.Principal, id parley.SessionID, via string) error {
	if err := e.permit(ctx, who, via, parley.ActMessage, port.Resource{Kind: port.OwnSessions, Tenant: who.Tenant,
		Session: id}); err != nil {
		return err
	}
	m, err := e.Session(ctx, who, id)
	if err == nil {
		err = e.permit(ctx, who, via, parley.ActMessage, port.Resource{Kind: port.OneSession, Tenant: who.Tenant,
			Session: id, Owner: m.Owner})
	}
	if err == nil && e.Webhooks == nil {
		err = parley.Errorf(parley.CodeUnavailable, "This server tells no webhooks.")
	}
	return err
}

func (e *Engine) hook(ctx context.Context, who port.Principal, id parley.SessionID, via string,
	do parley.SetWebhook) (parley.Command, error) {
	c := parley.Command{Tenant: who.Tenant, Session: id, By: who.ID, At: e.Now().UTC().Truncate(time.Microsecond),
		Via: via, Do: do}
	_, err := e.hand(ctx, key{c.Tenant, c.Session}, true, &request{who: who, command: c})
	return c, err
}
