package config

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"parley/port"
)

const jwtSecret = "fourscore-and-seven-years-ago-our-fathers"

func TestAccess(t *testing.T) {
	inDir(t, nil)
	env := map[string]string{
		"PARLEY_AUTH": "jwt", "PARLEY_JWT_SECRET": jwtSecret, "PARLEY_JWT_ISSUER": "us", "PARLEY_JWT_AUDIENCE": "them",
		"PARLEY_QUERY_TOKEN":       "off",
		"PARLEY_ALLOWED_ORIGINS":   "https://app.example.com, http://localhost:3000",
		"PARLEY_TRUSTED_PROXIES":   "10.0.0.0/8,::ffff:192.0.2.7, fd00::/8",
		"PARLEY_LIMIT_CONNECTIONS": "100/second", "PARLEY_LIMIT_MESSAGES": "off", "PARLEY_MAX_CONNECTIONS": "7",
		"PARLEY_LISTEN": "0.0.0.0:8080",
	}
	got, err := parse([]string{"serve"}, env)
	if err != nil {
		t.Fatal(err)
	}
	want := Access{
		Auth: "jwt", Signing: Signing{JWTSecret: jwtSecret, JWTIssuer: "us", JWTAudience: "them"}, OIDC: withoutOIDC,
		QueryToken: "off", MaxConnections: 7,
		AllowOrigin: Origins{"https://app.example.com", "http://localhost:3000"},
		TrustedProxies: Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32"),
			netip.MustParsePrefix("fd00::/8")},
		LimitConnections: Limit{Rate: port.Rate{N: 100, Per: time.Second}, Given: true},
		LimitMessages:    Limit{Given: true},
	}
	if diff := cmp.Diff(want, got.Access, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	env["PARLEY_LISTEN"], env["PARLEY_AUTH"] = "0.0.0.0:8080", "local"
	delete(env, "PARLEY_JWT_SECRET")
	if _, err := parse([]string{"serve"}, env); err == nil ||
		!strings.Contains(err.Error(), "can be reached from other machines") {
		t.Errorf("local mode, for everybody: %v", err)
	}
}

// TestOriginsCanBeRepeated checks that the flag, its older name and both variables
// are one setting.
func TestOriginsCanBeRepeated(t *testing.T) {
	inDir(t, map[string]string{"old.yaml": "allowed-origins: http://f.example\n"})
	for _, c := range []struct {
		args []string
		env  map[string]string
		want Origins
	}{
		{args: []string{"--allow-origin", "http://a.example", "--allow-origin", "http://b.example,http://c.example"},
			want: Origins{"http://a.example", "http://b.example", "http://c.example"}},
		{args: []string{"--allowed-origins", "http://a.example"},
			env:  map[string]string{"PARLEY_ALLOW_ORIGIN": "http://e.example"},
			want: Origins{"http://a.example"}},
		{env: map[string]string{"PARLEY_ALLOW_ORIGIN": "http://d.example,http://e.example",
			"PARLEY_ALLOWED_ORIGINS": "http://f.example"},
			want: Origins{"http://d.example", "http://e.example"}},
		{env: map[string]string{"PARLEY_ALLOWED_ORIGINS": "http://f.example"}, want: Origins{"http://f.example"}},
		{args: []string{"--config", "old.yaml"}, want: Origins{"http://f.example"}},
	} {
		got, err := parse(append([]string{"serve"}, c.args...), c.env)
		if err != nil || !slices.Equal(got.AllowOrigin, c.want) {
			t.Errorf("%v %v: %v %v", c.args, c.env, got.AllowOrigin, err)
		}
	}
}

func TestLimits(t *testing.T) {
	minute := func(n int) port.Rate { return port.Rate{N: n, Per: time.Minute} }
	given := Limit{Rate: minute(3), Given: true}
	for _, c := range []struct {
		access Access
		want   [3]port.Rate
	}{
		{Access{Auth: "local"}, [3]port.Rate{}},
		{Access{Auth: "jwt"}, [3]port.Rate{minute(10), minute(60), minute(5)}},
		{Access{Auth: "jwt", LimitConnections: given, LimitMessages: Limit{Given: true}},
			[3]port.Rate{minute(3), {}, minute(5)}},
		{Access{Auth: "local", LimitMessages: given, LimitReconnections: given},
			[3]port.Rate{{}, minute(3), minute(3)}},
	} {
		connections, messages, reconnections := c.access.Limits()
		if got := [3]port.Rate{connections, messages, reconnections}; got != c.want {
			t.Errorf("%+v: %v, want %v", c.access, got, c.want)
		}
	}
}

func TestOriginsAreWrittenAsBrowsersDo(t *testing.T) {
	for _, text := range []string{
		"*", "https://*", "null", "app.example.com", "https://", "ftp://a.example", "https://a.example/",
		"https://a.example/x", "https://a.example?x", "https://a.example#x",
		"https://A.example", "HTTPS://a.example", "https://u@a.example", "https://a.example:443", "http://a.example:80",
		"https://a.example:", "https://ä.example", "https://:8080", "https://a.example:x",
	} {
		var o Origins
		if err := o.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// TestSecretsDoNotShow checks that no help text, no error and no printed
// configuration contains a secret.
func TestSecretsDoNotShow(t *testing.T) {
	inDir(t, nil)
	env := map[string]string{"PARLEY_AUTH": "jwt", "PARLEY_JWT_SECRET": jwtSecret}
	got, err := parse([]string{"serve"}, env)
	if err != nil || string(got.JWTSecret) != jwtSecret {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %q", got, got, got, got.JWTSecret, got.JWTSecret)
	for _, change := range []map[string]string{
		{"PARLEY_JWKS_URL": "https://a:" + jwtSecret + "@b.example"}, {"PARLEY_AUTH": "local"},
		{"PARLEY_JWT_SECRET": jwtSecret[:31]},
		{"PARLEY_JWT_SECRET": "", "PARLEY_JWKS_URL": "https://a:" + jwtSecret + "@b.example"},
		{"PARLEY_JWT_SECRET": "", "PARLEY_JWKS_URL": "https://a:" + jwtSecret + "@%zz"},
	} {
		wrong := map[string]string{"PARLEY_AUTH": "jwt", "PARLEY_JWT_SECRET": jwtSecret}
		for name, value := range change {
			wrong[name] = value
		}
		_, err := parse([]string{"serve"}, wrong)
		if err == nil {
			t.Errorf("%v is accepted", change)
			continue
		}
		shown += err.Error()
	}
	var out bytes.Buffer
	var cli struct {
		Serve Serve `cmd:""`
	}
	k, err := kong.New(&cli, Environment(func(name string) (string, bool) { value, ok := env[name]; return value, ok }),
		kong.Writers(&out, &out), kong.Exit(func(int) { panic("exit") }))
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = k.Parse([]string{"serve", "--help"})
	}()
	if !strings.Contains(out.String(), "$PARLEY_JWT_SECRET") {
		t.Errorf("the help: %s", out.String())
	}
	if shown += out.String(); strings.Contains(shown, jwtSecret[:20]) {
		t.Errorf("the secret is shown: %s", shown)
	}
}
