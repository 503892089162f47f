package engine

import (
	"context"
	"time"

	"parley"
	"parley/port"
)

// SetWebhook gives a session a webhook, in place of the one it had. The
// returned info is the only place with the secret in plain text.
func (e *Engine) SetWebhook(ctx context.Context, who port.Principal, id parley.SessionID, ask port.WebhookAsk,
	via string) (port.WebhookInfo, error) {
	if err := e.maySetWebhook(ctx, who, id, via); err != nil {
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
	c, err := e.submitWebhook(ctx, who, id, via, parley.SetWebhook{Hook: hook, URL: ask.URL, Sealed: sealed})
	return port.WebhookInfo{URL: ask.URL, Events: hook.Events(), Status: "active", Secret: secret, SetAt: c.At}, err
}

// RemoveWebhook removes a session's webhook. Deliveries that are still pending are dropped.
func (e *Engine) RemoveWebhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) error {
	if err := e.maySetWebhook(ctx, who, id, via); err != nil {
		return err
	}
	_, err := e.submitWebhook(ctx, who, id, via, parley.SetWebhook{})
	return err
}

// Webhook returns the webhook of a session, if the principal could set it: its URL may hold a secret.
func (e *Engine) Webhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) (
	port.WebhookInfo, error) {
	row, err := e.storedWebhook(ctx, who, id, via)
	if err != nil {
		return port.WebhookInfo{}, err
	}
	return row.Info(), nil
}

// storedWebhook returns the webhook of a session, if the principal could set it.
func (e *Engine) storedWebhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) (
	port.StoredWebhook, error) {
	if err := e.maySetWebhook(ctx, who, id, via); err != nil {
		return port.StoredWebhook{}, err
	}
	row, ok, err := e.Store.Tenant(who.Tenant).Webhook(ctx, id)
	if err == nil && !ok {
		err = errNoWebhook
	}
	return row, err
}

// SessionWebhooks lists the webhooks that the principal could set: those of its own sessions, or of all.
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

// TryWebhook sends a sample to a session's webhook. The receiver's answer may come from a system that the principal
// cannot read. So if only the operator's list permits the address, the answer is withheld from principals that may not
// change settings.
func (e *Engine) TryWebhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) (
	port.WebhookTrial, error) {
	row, err := e.storedWebhook(ctx, who, id, via)
	if err != nil {
		return port.WebhookTrial{}, err
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

// maySetWebhook checks permission before anything is revealed about the webhook itself.
func (e *Engine) maySetWebhook(ctx context.Context, who port.Principal, id parley.SessionID, via string) error {
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
		err = parley.Errorf(parley.CodeUnavailable, "This server has no webhooks.")
	}
	return err
}

func (e *Engine) submitWebhook(ctx context.Context, who port.Principal, id parley.SessionID, via string,
	do parley.SetWebhook) (parley.Command, error) {
	c := parley.Command{Tenant: who.Tenant, Session: id, By: who.ID, At: e.Now().UTC().Truncate(time.Microsecond),
		Via: via, Do: do}
	_, err := e.route(ctx, key{c.Tenant, c.Session}, &request{who: who, command: c})
	return c, err
}
