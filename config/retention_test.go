package config

import (
	"strings"
	"testing"
	"time"

	"parley"
	"parley/port"
)

func TestRetention(t *testing.T) {
	inDir(t, map[string]string{"parley.yaml": `keep-pieces: 48h
retention:
  transcripts: 365d
  artifacts: 720h
  audit: 400d
  tenants:
    acme: {transcripts: 90d}
    keeps: {}
`})
	got, err := parse([]string{"serve", "--config", "parley.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	for tenant, want := range map[parley.TenantID]port.Retention{
		"default": {Chunks: 2 * day, Transcripts: 365 * day, Artifacts: 30 * day, Audit: 400 * day},
		"acme":    {Transcripts: 90 * day}, "keeps": {}} {
		if r := got.Retention.Of(tenant); r != want {
			t.Errorf("%s: %+v, and not %+v", tenant, r, want)
		}
	}
	if !got.Retention.Any() || (Retention{}).Any() {
		t.Error("it is not known whether there are rules")
	}
}

// TestBadRetention checks that the server does not start, and that the message
// names the line and the key.
func TestBadRetention(t *testing.T) {
	for text, want := range map[string]string{
		"retention: 5\n":                               "parley.yaml:1: retention has chunks:, transcripts:",
		"retention:\n  transcripts: 5\n":               "parley.yaml:2: retention.transcripts is a time of at least 1h",
		"retention:\n  transcripts: 5m\n":              "parley.yaml:2: retention.transcripts is a time of at least 1h",
		"retention:\n  artifacts: -3d\n":               "parley.yaml:2: retention.artifacts is a time of at least 1h",
		"retention:\n  chunks: 99999999d\n":            "parley.yaml:2: retention.chunks is a time of at least 1h",
		"retention:\n  audit: 29d\n":                   "parley.yaml:2: retention.audit is a time of at least 720h0m0s",
		"retention:\n  chats: 5d\n":                    "parley.yaml:2:",
		"retention:\n  tenants:\n    Acme: {}\n":       "parley.yaml:3: Acme is no tenant id",
		"retention:\n  tenants: {a: {chunks: soon}}\n": "parley.yaml:2: retention.tenants.a.chunks is a time",
	} {
		inDir(t, map[string]string{"parley.yaml": text})
		if _, err := parse([]string{"serve", "--config", "parley.yaml"}, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, and not %q", text, err, want)
		}
	}
}
