package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"parley"
	"parley/port"
)

// sampleType is the type of the message that Try sends.
const sampleType parley.HookEvent = "test"

// Try sends a sample to the webhook of a session once, like a delivery: signed with its secret, and only to addresses
// that webhooks may reach. A tenant can try one webhook at a time.
func (d *Dispatcher) Try(ctx context.Context, tenant parley.TenantID, session parley.SessionID,
	hook port.StoredWebhook) (port.WebhookTrial, error) {
	if _, busy := d.trying.LoadOrStore(tenant, true); busy {
		return port.WebhookTrial{}, parley.Errorf(parley.CodeLimited,
			"Another webhook is being tested. Try again when it has answered, at most %v from now.", answerWithin)
	}
	defer d.trying.Delete(tenant)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.delivering, cancel)()
	key, err := d.Sealer.open(tenant, session, hook.Sealed)
	if err != nil {
		return port.WebhookTrial{}, parley.Errorf(parley.CodeInvalid,
			"The secret of this webhook was sealed by another server key. Set the webhook again.")
	}
	at := d.Now()
	body, err := json.Marshal(message{Type: sampleType, Timestamp: at.UTC(), Data: data{Tenant: tenant, Session: session,
		Root: session, Links: map[string]string{"session": d.Public + "/api/v1/sessions/" + string(session)}}})
	if err != nil {
		return port.WebhookTrial{}, err
	}
	started := time.Now()
	v := d.sender.send(ctx, hook.URL, key, "msg_test_"+strings.ToLower(rand.Text()), at, body)
	return port.WebhookTrial{Delivered: v.done, Reason: v.why, Status: v.status,
		Milliseconds: time.Since(started).Milliseconds(), Answer: strings.ToValidUTF8(string(v.answer), "\uFFFD"),
		Private: v.private}, nil
}
