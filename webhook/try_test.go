package webhook

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// TestTry checks that a sample is signed like a delivery, cannot reach more than a delivery, and that Try returns the
// first kilobyte of the answer. A tenant can try one webhook at a time.
func TestTry(t *testing.T) {
	b := newBench(t)
	var header http.Header
	var body []byte
	held, release := make(chan struct{}), make(chan struct{})
	addr := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/held":
			close(held)
			<-release
		case "/no":
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, "bad\xff "+strings.Repeat("long ", 1000))
	})
	b.start()
	secret, sealed, err := b.seal.Seal(acme, mine, "")
	if err != nil {
		t.Fatal(err)
	}
	try := func(tenant parley.TenantID, url string) (port.WebhookTrial, error) {
		return b.d.Try(t.Context(), tenant, mine, port.StoredWebhook{URL: url, Sealed: sealed})
	}
	trial, err := try(acme, "http://"+addr+"/yes")
	if err != nil || !trial.Delivered || trial.Status != 200 || !trial.Private || trial.Reason != "" ||
		len(trial.Answer) > shownAnswer+2 || !strings.HasPrefix(trial.Answer, "bad\uFFFD long") {
		t.Errorf("%+v, %v", trial, err)
	}
	raw, _ := key(secret)
	if header.Get("Webhook-Signature") != sign(raw, header.Get("Webhook-Id"), b.clock(), body) ||
		!strings.Contains(string(body), `"type":"test"`) {
		t.Errorf("%v %s", header, body)
	}
	if trial, err = try(acme, "http://"+addr+"/no"); err != nil || trial.Delivered || trial.Status != 418 ||
		trial.Reason != "the receiver answered 418" {
		t.Errorf("%+v, %v", trial, err)
	}
	if trial, err = try(acme, "http://169.254.169.254/"); err != nil || trial.Delivered || trial.Status != 0 ||
		!strings.Contains(trial.Reason, "private addresses") {
		t.Errorf("%+v, %v", trial, err)
	}
	if _, err = try("rival", "http://"+addr+"/yes"); parley.CodeOf(err) != parley.CodeInvalid {
		t.Errorf("the secret of another tenant: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := try(acme, "http://"+addr+"/held")
		done <- err
	}()
	<-held
	if _, err = try(acme, "http://"+addr+"/yes"); parley.CodeOf(err) != parley.CodeLimited {
		t.Errorf("two at a time: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if list := b.effects(); len(list) != 0 {
		t.Errorf("a sample is a delivery: %+v", list)
	}
}
