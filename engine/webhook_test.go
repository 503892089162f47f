package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// hooks accepts every URL and seals nothing.
type hooks struct{}

func (hooks) Check(url string) (string, error) {
	if !strings.HasPrefix(url, "https://") {
		return "", parley.Errorf(parley.CodeInvalid, "no")
	}
	return strings.TrimPrefix(url, "https://") + ":443", nil
}

func (hooks) Seal(tenant parley.TenantID, session parley.SessionID, secret string) (string, []byte, error) {
	return "whsec_plain", []byte("sealed of " + string(tenant) + " " + string(session) + secret), nil
}

func (hooks) Try(context.Context, parley.TenantID, parley.SessionID, port.StoredWebhook) (port.WebhookTrial, error) {
	return port.WebhookTrial{Delivered: true, Status: 200, Answer: "an answer", Private: true}, nil
}

// TestWebhooksOfSubAgents lets an agent two levels below need a person. The
// dispatcher finds a row for the webhook of the top session, which says that
// the event is from below. The end of the run below leads to no row.
func TestWebhooksOfSubAgents(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Webhooks = hooks{} })
	id := r.open()
	info, err := r.SetWebhook(t.Context(), ann, id, port.WebhookAsk{URL: "https://hooks.example"}, parley.ViaHTTP)
	if err != nil || info.Secret != "whsec_plain" || info.Status != "active" ||
		!slices.Equal(info.Events, []parley.HookEvent{parley.HookFinished, parley.HookNeeded}) {
		t.Fatalf("%+v, %v", info, err)
	}
	r.tell(id, "call delegate one: call delegate two: call write x // say done / say back | say thanks")
	one := children(r.until(id, "one is there", seen[parley.ChildSpawned](1)))[0]
	two := children(r.below(one, "two is there", seen[parley.ChildSpawned](1)))[0]
	log := r.below(two, "it asks", seen[parley.EffectEnqueued](1))
	if p := all[parley.EffectEnqueued](log)[0].Hook; p == nil || p.Session != id || p.Event != parley.HookNeeded ||
		p.Target != "hooks.example:443" || parley.TypeOf(log[p.About-1].Body) != "ApprovalRequested" {
		t.Errorf("%+v", p)
	}
	due, _, err := r.Store.(port.HookStore).DueHooks(t.Context(), r.Now(), port.HooksBusy{}, 10)
	if err != nil || len(due) != 1 || due[0].Session != two || due[0].HookPromise.Session != id {
		t.Errorf("%+v, %v", due, err)
	}
	r.do(id, parley.CancelRun{})
	r.until(id, "it ended", seen[parley.EffectEnqueued](1))
	r.restart(false)
	due, _, err = r.Store.(port.HookStore).DueHooks(t.Context(), r.Now(), port.HooksBusy{}, 10)
	var told []string
	for _, d := range due {
		told = append(told, string(d.Event))
	}
	slices.Sort(told)
	if err != nil || strings.Join(told, " ") != "person_needed run_finished" {
		t.Errorf("%v, %v", told, err)
	}
	for _, s := range []parley.SessionID{id, one, two} {
		r.sound(s)
	}
}

// TestWebhooksAreSetByTheirOwnRequest checks that a command cannot set a
// webhook, because its URL would not be checked. A refusal changes nothing.
func TestWebhooksAreSetByTheirOwnRequest(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Webhooks = hooks{} })
	id := r.open()
	before := len(r.log(id))
	if _, err := r.try(id, parley.SetWebhook{Hook: parley.HookOf("169.254.169.254:80", nil),
		URL: "http://169.254.169.254/"}); parley.CodeOf(err) != parley.CodeInvalid {
		t.Errorf("%v", err)
	}
	for what, ask := range map[string]port.WebhookAsk{"a bad url": {URL: "ftp://x"},
		"no such event": {URL: "https://x", Events: []parley.HookEvent{"x"}}} {
		if _, err := r.SetWebhook(t.Context(), ann, id, ask, parley.ViaHTTP); parley.CodeOf(err) != parley.CodeInvalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	rival := port.Principal{ID: "ann", Tenant: "rival", Roles: ann.Roles}
	for _, err := range []error{
		r.RemoveWebhook(t.Context(), ann, id, parley.ViaHTTP),
		func() error { _, err := r.Webhook(t.Context(), ann, id, parley.ViaHTTP); return err }(),
		func() error {
			_, err := r.SetWebhook(t.Context(), rival, id, port.WebhookAsk{URL: "https://x"}, parley.ViaHTTP)
			return err
		}(),
	} {
		if parley.CodeOf(err) != parley.CodeNotFound {
			t.Errorf("%v", err)
		}
	}
	if got := len(r.log(id)); got != before {
		t.Errorf("%d events more", got-before)
	}
	set := func() {
		t.Helper()
		if _, err := r.SetWebhook(t.Context(), ann, id,
			port.WebhookAsk{URL: "https://x", Events: []parley.HookEvent{parley.HookNeeded}},
			parley.ViaHTTP); err != nil {
			t.Fatal(err)
		}
	}
	set()
	set() // the second time with another secret
	if info, err := r.Webhook(t.Context(), ann, id, parley.ViaHTTP); err != nil || info.URL != "https://x" ||
		info.Secret != "" || len(all[parley.WebhookChanged](r.log(id))) != 2 {
		t.Errorf("%+v, %v", info, err)
	}
	user := ann
	user.Roles = []parley.UserRole{"standard_user"}
	for who, answer := range map[*port.Principal]string{&ann: "an answer", &user: ""} {
		trial, err := r.TryWebhook(t.Context(), *who, id, parley.ViaHTTP)
		if err != nil || !trial.Delivered || trial.Answer != answer || trial.Withheld != (answer == "") {
			t.Errorf("%v is told %+v, %v", who.Roles, trial, err)
		}
	}
	if list, err := r.SessionWebhooks(t.Context(), ann, port.WebhookQuery{}, parley.ViaHTTP); err != nil ||
		len(list) != 1 || list[0].Session != id || list[0].URL != "https://x" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := r.SessionWebhooks(t.Context(), rival, port.WebhookQuery{}, parley.ViaHTTP); err != nil ||
		len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := r.RemoveWebhook(t.Context(), ann, id, parley.ViaHTTP); err != nil {
		t.Error(err)
	}
	if _, err := r.TryWebhook(t.Context(), ann, id, parley.ViaHTTP); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("%v", err)
	}
	if _, err := r.Webhook(t.Context(), ann, id, parley.ViaHTTP); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("%v", err)
	}
	r.sound(id)
}
