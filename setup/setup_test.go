package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/provider"
	"parley/store/sqlite"
	"parley/store/storetest"
)

var (
	operator  = port.Principal{ID: "local", Tenant: "acme"}
	serverKey = []byte("a server key of thirty-two bytes")
)

const secret = "sk-entered-0123456789-wxyz"

// desk has a book on a real store, and the keys of models.
type desk struct {
	t      *testing.T
	dir    string
	store  *sqlite.Store
	book   *Book
	models *provider.Models
	keys   *Keys
}

// accounts are real clients of vendors.
type accounts struct{ *provider.Models }

func (a accounts) Account(vendor string) Account {
	now := a.Models.Account(vendor)
	return Account{Key: now.Key, BaseURL: now.BaseURL}
}

func (a accounts) Use(vendor string, now Account) {
	a.Models.Use(vendor, provider.Account{Key: now.Key, BaseURL: now.BaseURL, In: now.In})
}

func (a accounts) Try(ctx context.Context, vendor string, now Account) ([]string, error) {
	return a.Models.Try(ctx, vendor, provider.Account{Key: now.Key, BaseURL: now.BaseURL, In: now.In})
}

func (d *desk) open(key []byte, c provider.Config) {
	d.t.Helper()
	var err error
	if d.store, err = sqlite.Open(d.t.Context(), d.dir, "a test"); err != nil {
		d.t.Fatal(err)
	}
	if d.book, err = Open(d.t.Context(), d.store, key, time.Now, slog.New(slog.DiscardHandler)); err != nil {
		d.t.Fatal(err)
	}
	d.models = provider.New(c)
	d.keys = &Keys{Book: d.book, Models: accounts{d.models}, Local: true, Vendors: []Vendor{
		{provider.Anthropic, "ANTHROPIC_API_KEY", false}, {provider.OpenAI, "OPENAI_API_KEY", true},
		{provider.Google, "GEMINI_API_KEY", false}}, Tenant: "acme",
		May: func(context.Context, port.Principal, parley.Action, port.Resource) error { return nil }}
	d.keys.Start()
}

func (d *desk) close() {
	d.models.Close()
	if err := d.store.Close(); err != nil {
		d.t.Error(err)
	}
}

func newDesk(t *testing.T, c provider.Config) *desk {
	d := &desk{t: t, dir: storetest.Dir(t)}
	d.open(serverKey, c)
	t.Cleanup(func() { d.close() })
	return d
}

// TestKeys checks that an entered key is used at once and after a restart. Only its last characters are shown, it is
// audited, and no file contains it in clear.
func TestKeys(t *testing.T) {
	ctx := t.Context()
	d := newDesk(t, provider.Config{})
	if got := d.models.Default(); got != provider.Demo {
		t.Errorf("the default is %s", got)
	}
	info, err := d.keys.Set(ctx, operator, provider.Anthropic, " "+secret+"\n", "")
	if err != nil || info.From != "console" || info.Last != "wxyz" || !info.Stored {
		t.Errorf("%+v, %v", info, err)
	}
	d.close()
	d.open(serverKey, provider.Config{})
	if a := d.models.Account(provider.Anthropic); a.Key != secret || d.models.Default() != "claude-sonnet-4-5" {
		t.Errorf("%+v, %s", a, d.models.Default())
	}
	list, err := d.keys.List(ctx, operator)
	shown, _ := json.Marshal(list)
	if err != nil || len(list) != 3 || strings.Contains(string(shown), "entered") {
		t.Errorf("%s, %v", shown, err)
	}
	if got := fmt.Sprint(Secrets(d.book.Of("acme", port.SetupModel))); got != "map[acme:[{key "+secret+"}]]" {
		t.Error("redacted are " + got)
	}
	if err := d.keys.Remove(ctx, operator, provider.Anthropic); err != nil {
		t.Error(err)
	}
	if a := d.models.Account(provider.Anthropic); a.Key != "" || d.models.Default() != provider.Demo {
		t.Errorf("%+v, %s", a, d.models.Default())
	}
	if err := d.keys.Remove(ctx, operator, provider.Anthropic); parley.CodeOf(err) != parley.CodeNotFound {
		t.Error(err)
	}
	rows, err := d.store.Tenant("acme").Audited(ctx, port.AuditQuery{Limit: 9})
	record, _ := json.Marshal(rows)
	if err != nil || len(rows) != 2 || rows[0].Action != port.AuditModelKeyRemoved ||
		rows[1].Action != port.AuditModelKeySet || strings.Contains(string(record), "entered") {
		t.Errorf("%s, %v", record, err)
	}
	files, _ := filepath.Glob(filepath.Join(d.dir, "*"))
	for _, name := range files {
		if raw, err := os.ReadFile(name); err != nil || strings.Contains(string(raw), "sk-entered") {
			t.Errorf("%s has the key in clear (%v)", name, err)
		}
	}
}

func TestKeysAreRefused(t *testing.T) {
	ctx := t.Context()
	d := newDesk(t, provider.Config{OpenAI: provider.Account{Key: "sk-of-the-environment-abcd"}})
	for name, c := range map[string]struct {
		vendor, key, address string
		code                 parley.Code
	}{
		"the environment wins": {provider.OpenAI, secret, "", parley.CodeConflict},
		"no vendor":            {"acme", secret, "", parley.CodeNotFound},
		"no key":               {provider.Google, "", "", parley.CodeInvalid},
		"spaces":               {provider.Google, "a key", "", parley.CodeInvalid},
		"no address":           {provider.Google, secret, "ftp://x", parley.CodeInvalid},
		"a query":              {provider.Google, secret, "https://x/v1?x=", parley.CodeInvalid},
		"an empty query":       {provider.Google, secret, "https://x/v1?", parley.CodeInvalid},
		"a fragment":           {provider.Google, secret, "https://x/v1#x", parley.CodeInvalid},
		"a password":           {provider.Google, secret, "https://a:b@x/", parley.CodeInvalid},
	} {
		if _, err := d.keys.Set(ctx, operator, c.vendor, c.key, c.address); parley.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := d.keys.List(ctx, operator)
	if err != nil || list[1].Vendor != provider.OpenAI || list[1].From != "environment" || list[1].Last != "abcd" ||
		list[1].Variable != "OPENAI_API_KEY" {
		t.Errorf("%+v, %v", list, err)
	}
	d.keys.Local = false
	if _, err := d.keys.Set(ctx, operator, provider.Google, secret, ""); parley.CodeOf(err) != parley.CodeForbidden {
		t.Errorf("with sign-in: %v", err)
	}
	if _, err := d.keys.Try(ctx, operator, provider.Google, secret, ""); parley.CodeOf(err) != parley.CodeForbidden {
		t.Errorf("with sign-in: %v", err)
	}
	if rows, err := d.store.Tenant("acme").Audited(ctx, port.AuditQuery{Limit: 9}); err != nil || len(rows) > 0 {
		t.Errorf("%v, %v", rows, err)
	}
}

// TestKeysOfAnotherServer checks that a value that was sealed with another server's key is not used, and that the list
// says so.
func TestKeysOfAnotherServer(t *testing.T) {
	d := newDesk(t, provider.Config{})
	if _, err := d.keys.Set(t.Context(), operator, provider.Google, secret, ""); err != nil {
		t.Fatal(err)
	}
	d.close()
	d.open([]byte("another key of thirty-two bytes."), provider.Config{})
	list, err := d.keys.List(t.Context(), operator)
	if err != nil || list[2].From != "" || !strings.Contains(list[2].Problem, "another server key") {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestTryAKey checks that the answer says whether the vendor accepts the key. If not, it contains the vendor's message
// without the key.
func TestTryAKey(t *testing.T) {
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer "+secret {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect key: %s"}}`, r.Header.Get("Authorization"))
			return
		}
		fmt.Fprint(w, `{"object":"list","data":[{"id":"one","object":"model"},{"id":"two","object":"model"}]}`)
	}))
	defer vendor.Close()
	d := newDesk(t, provider.Config{ShowAddress: true})
	try := func(key, address string) port.ModelKeyTrial {
		t.Helper()
		trial, err := d.keys.Try(t.Context(), operator, provider.OpenAI, key, address)
		if err != nil {
			t.Fatal(err)
		}
		return trial
	}
	if got := try(secret, vendor.URL); !got.Works || got.Models != 2 || strings.Join(got.Names, " ") != "one two" {
		t.Errorf("%+v", got)
	}
	if got := try("sk-wrong-9876543210", vendor.URL); got.Works || !strings.Contains(got.Reason, "does not accept the key") ||
		!strings.Contains(got.Reason, "Incorrect key") || strings.Contains(got.Reason, "sk-wrong") {
		t.Errorf("%+v", got)
	}
	if got := try(secret, "http://127.0.0.1:1/v1"); got.Works || !strings.Contains(got.Reason, "127.0.0.1:1") {
		t.Errorf("%+v", got)
	}
	if d.models.Account(provider.OpenAI).Key != "" {
		t.Error("a key that was tried is used")
	}
	// Without an entered key the stored one is tried, but never at another address.
	if _, err := d.keys.Set(t.Context(), operator, provider.OpenAI, secret, vendor.URL); err != nil {
		t.Fatal(err)
	}
	if got := try("", vendor.URL); !got.Works {
		t.Errorf("%+v", got)
	}
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.Contains(fmt.Sprint(r.Header), secret) {
			t.Error("the key is sent to another address")
		}
	}))
	defer other.Close()
	try("", other.URL)
}
