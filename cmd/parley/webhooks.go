package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"parley"
	"parley/config"
	"parley/metrics"
	"parley/port"
	"parley/webhook"
)

// hookRules contain the addresses that webhooks may call, and look up the secrets
// that sign the webhooks of agents.
type hookRules struct {
	webhook.Allow
	env config.Lookup
}

func newHookRules(c *config.Settings, env config.Lookup) (h hookRules, err error) {
	if h.Allow, err = webhook.ParseAllow(c.WebhookAllow); err != nil {
		return h, fmt.Errorf("--webhook-allow: %w", err)
	}
	h.env, err = config.Variables(env)
	return h, err
}

// check rejects an agent whose webhook cannot be delivered.
func (h hookRules) check(a parley.Agent) error {
	if a.Webhook == nil {
		return nil
	}
	if _, err := h.Check(a.Webhook.URL); err != nil {
		return fmt.Errorf("agent %s: %s", a.Name, parley.MessageOf(err))
	}
	secret, ok := h.env(a.Webhook.SecretEnv)
	if !ok || secret == "" {
		return fmt.Errorf("agent %s: its webhook is signed by the secret in %s, which is not set; "+
			"set it to the output of echo whsec_$(openssl rand -base64 32)", a.Name, a.Webhook.SecretEnv)
	}
	if err := webhook.CheckSecret(secret); err != nil {
		return fmt.Errorf("agent %s: %s holds no secret for a webhook: %s",
			a.Name, a.Webhook.SecretEnv, parley.MessageOf(err))
	}
	return nil
}

// secrets returns the secrets that sign the webhooks of agents.
func (h hookRules) secrets(agents []parley.Agent) (list []string) {
	for _, a := range agents {
		if a.Webhook != nil {
			secret, _ := h.env(a.Webhook.SecretEnv)
			list = append(list, secret)
		}
	}
	return list
}

// hooks contain the rules for webhooks, the key that seals the secrets of sessions, and the dispatcher that calls
// receivers.
type hooks struct {
	hookRules
	webhook.Sealer
	dispatcher *webhook.Dispatcher
}

// Try sends a sample to a receiver.
func (h hooks) Try(ctx context.Context, tenant parley.TenantID, session parley.SessionID, hook port.StoredWebhook) (
	port.WebhookTrial, error) {
	return h.dispatcher.Try(ctx, tenant, session, hook)
}

func newHooks(c *config.Settings, rules hookRules, key []byte, store store, at net.Addr, m *metrics.Metrics,
	log *slog.Logger) (hooks, error) {
	sealer, err := webhook.NewSealer(key)
	if err != nil {
		return hooks{}, err
	}
	public := c.Public(at.String())
	if public == "" {
		public = openAt(at)
	}
	var term func(context.Context) (int64, error)
	if nodes := nodesOf(store); nodes != nil {
		term = nodes.Term
	}
	return hooks{rules, sealer, webhook.New(webhook.Config{Term: term, Store: store, Sealer: sealer, Allow: rules.Allow,
		Env: rules.env, Public: public, Version: version, Log: log, Now: time.Now, Told: m.Told})}, nil
}
