package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"time"

	"parley"
	"parley/config"
	"parley/metrics"
	"parley/webhook"
)

// hooks are the webhooks of a server: what may be told, and by what it is signed.
type hooks struct {
	webhook.Allow
	webhook.Sealer
	env config.Lookup
}

func newHooks(c *config.Settings, env config.Lookup) (h hooks, err error) {
	if h.Allow, err = webhook.ParseAllow(c.WebhookAllow); err != nil {
		return h, fmt.Errorf("--webhook-allow: %w", err)
	}
	h.env, err = config.Variables(env)
	return h, err
}

// check finds what a file asks for and cannot have.
func (h hooks) check(a parley.Agent) error {
	if a.Webhook == nil {
		return nil
	}
	if _, err := h.Check(a.Webhook.URL); err != nil {
		return fmt.Errorf("agent %s: %s", a.Name, parley.MessageOf(err))
	}
	secret, ok := h.env(a.Webhook.SecretEnv)
	if !ok || secret == "" {
		return fmt.Errorf("agent %s: its webhook is signed by what is in %s, which is not set; set it to what echo whsec_$(openssl rand -base64 32) prints", a.Name, a.Webhook.SecretEnv)
	}
	if err := webhook.CheckSecret(secret); err != nil {
		return fmt.Errorf("agent %s: %s holds no secret for a webhook: %s", a.Name, a.Webhook.SecretEnv, parley.MessageOf(err))
	}
	return nil
}

// secrets are what nobody is to see of them.
func (h hooks) secrets(agents []parley.Agent) (list []string) {
	for _, a := range agents {
		if a.Webhook != nil {
			secret, _ := h.env(a.Webhook.SecretEnv)
			list = append(list, secret)
		}
	}
	return list
}

// tell begins to tell webhooks what they are owed.
func (h hooks) tell(c *config.Settings, store store, at net.Addr, numbers *metrics.Metrics, log *slog.Logger) *webhook.Dispatcher {
	public := cmp.Or(c.Public(at.String()), "http://"+at.String())
	return webhook.Start(webhook.Config{Store: store, Sealer: h.Sealer, Allow: h.Allow, Env: h.env, Public: public, Version: version, Log: log, Now: time.Now, Told: numbers.Told})
}
