package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestModelServersAreCheckedAtTheStart checks that the log reports a model server that is down, refuses the key or
// lacks a model. The server is ready all the same, the check spends no tokens, and the key is not in the log.
func TestModelServersAreCheckedAtTheStart(t *testing.T) {
	t.Parallel()
	const key = "sk-a-secret-of-an-account"
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("the check sends %s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided: `+key+`"}}`)
	}))
	defer refuses.Close()
	for _, test := range []struct{ url, model, logs, reason string }{
		{"http://127.0.0.1:1/v1", "llama", "the model server cannot be used now; agents fail until it can",
			"The model's server cannot be reached at http://127.0.0.1:1. Start it, or correct OPENAI_BASE_URL."},
		{refuses.URL + "/v1", "llama", "the model server cannot be used now; agents fail until it can",
			"The model's server does not accept the key in OPENAI_API_KEY."},
		{tinyModel(t).URL + "/v1", "llama", "the model server does not list a model", "models=llama"},
	} {
		log := watchFor(test.logs)
		stop := servedTo(t, io.Discard, log, "--data", t.TempDir(), "--openai-base-url", test.url, "--openai-api-key",
			key,
			"--model", test.model)
		<-log.logged
		stop()
		if text := log.String(); !strings.Contains(text, "parley is ready") || !strings.Contains(text, test.reason) ||
			strings.Contains(text, key) || strings.Count(text, test.logs) != 1 {
			t.Errorf("%s: the log is\n%s", test.url, text)
		}
	}
}

// TestAModelServerThatHangs checks that a model server that hangs delays neither the start nor the stop of the server.
func TestAModelServerThatHangs(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 1), make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer hangs.Close()
	defer close(release)
	log := watchFor("parley is ready")
	stop := servedTo(t, io.Discard, log, "--data", t.TempDir(), "--openai-base-url", hangs.URL+"/v1", "--model",
		"llama")
	<-log.logged
	<-asked
	stop()
	if text := log.String(); strings.Contains(text, "model server") {
		t.Errorf("the log is\n%s", text)
	}
}
