package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"parley"
	"parley/port"
)

// Webhook contains the addresses that webhooks may call.
type Webhook struct {
	WebhookAllow Names `var:"PARLEY_WEBHOOK_ALLOW" placeholder:"LIST" help:"Private networks and hosts that webhooks may reach, also by plain http, such as 10.1.0.0/16,hooks.internal (default: none)."`
}

// Names are separated by commas.
type Names []string

func (n *Names) UnmarshalText(text []byte) error {
	*n = commas(text)
	return nil
}

// validatePublic checks the public URL in every mode, because links in webhooks
// begin with it.
func (a *Access) validatePublic() error {
	u, err := url.Parse(a.PublicURL)
	if a.PublicURL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "") {
		return fmt.Errorf("--public-url %s is not where a server is; write it like https://parley.example.com",
			a.PublicURL)
	}
	return nil
}

// Variables looks up variables in an environment, and then in .env.
func Variables(env Lookup) (Lookup, error) {
	dotenv, err := readDotenv(".env")
	return sources{variables: []Lookup{env, dotenv}}.variable, err
}

type webhookFile struct {
	URL       string             `yaml:"url"`
	Events    []parley.HookEvent `yaml:"events"`
	SecretEnv string             `yaml:"secret_env"`
}

// webhook reads the webhook of an agent from its file. It does not check whether
// the address is allowed.
func (f *frontMatter) webhook(doc document) (*parley.AgentWebhook, error) {
	w := f.Webhook
	if w == nil {
		return nil, nil
	}
	u, err := url.Parse(w.URL)
	switch {
	case w.URL == "":
		return nil, at(doc.path, doc.line("webhook"), "webhook.url is missing; write it like https://example.com/path")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, at(doc.path, doc.line("webhook.url"), "webhook.url is like https://example.com/path")
	case w.Events != nil && (len(w.Events) == 0 || port.CheckHookEvents(w.Events) != nil):
		return nil, at(doc.path, doc.line("webhook.events"), "webhook.events has %s, %s or both; leave it out for both",
			parley.HookFinished, parley.HookNeeded)
	case !variableName.MatchString(w.SecretEnv):
		return nil, at(doc.path, doc.line("webhook"), "webhook.secret_env is the name of the variable that has the "+
			"secret by which messages are signed, as in CODER_WEBHOOK_SECRET")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return &parley.AgentWebhook{URL: w.URL, Events: w.Events, SecretEnv: w.SecretEnv,
		Target: net.JoinHostPort(strings.ToLower(u.Hostname()), port)}, nil
}
