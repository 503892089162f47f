package screen

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq5nRz0\nq1Zz+/abcdEFGH0123456789\n-----END RSA PRIVATE KEY-----"

// secrets are made up; each has the form of its kind.
var secrets = []struct{ text, want string }{
	{"AKIA" + "QYLPMN5HFIQR7XYZ", "[redacted:aws_key]"},
	{"token ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a here", "token [redacted:github_token] here"},
	{"glpat-" + "x7Yk2_mNq9-RtVwZb3Hs", "[redacted:gitlab_token]"},
	{"xoxb-" + "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx", "[redacted:slack_token]"},
	{"sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "[redacted:stripe_key]"},
	{"sk-ant-" + "api03-Zb3Hsx7Yk2mNq9RtVwZb3Hsx7Yk2mNq9RtVwZb3Hsx7Yk2mNq9", "[redacted:anthropic_key]"},
	{"sk-proj-" + "Zb3Hsx7Yk2mNq9RtVwZb3Hsx7Yk2mNq9RtVwZb3", "[redacted:openai_key]"},
	{"AIza" + "SyD3x7Yk2mNq9RtVwZb3Hsx7Yk2mNq9RtVw", "[redacted:google_key]"},
	{"Authorization: Bearer 7Yk2mNq9RtVwZb3Hsx", "Authorization: Bearer [redacted:authorization]"},
	{"postgres://parley:hunter22@db/parley", "postgres://parley:[redacted:url_password]@db/parley"},
	{"redis://:s3cr3tpass@cache:6379/0", "redis://:[redacted:url_password]@cache:6379/0"},
	{"DB_PASSWORD=correct-horse", "DB_PASSWORD=[redacted:password]"},
	{`"password": "correct-horse"`, `"password": "[redacted:password]"`},
	{"api_key = 'q7Yk2mNq9RtVwZ'", "api_key = '[redacted:secret]'"},
	{"clientSecret: 8f14e45fceea167a5a36dedd4bea2543", "clientSecret: [redacted:secret]"},
	{"HEROKU_KEY=550e8400-e29b-41d4-a716-446655440000", "HEROKU_KEY=[redacted:secret]"},
	{"curl -u ann:correcthorse https://x.example", "curl -u [redacted:authorization] https://x.example"},
	{"https://hooks.slack.com/services/" + "T0AAAAAA1/B0BBBBBB2/x7Yk2mNq9RtVwZb3Hsx7Yk2m",
		"https://[redacted:webhook]"},
	{"eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P", "[redacted:jwt]"},
	{pem, "[redacted:private_key]"},
	{strings.ReplaceAll(pem, "\n", " ") + " rest", "[redacted:private_key] rest"},
	{"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIB\nno key any more: see below",
		"[redacted:private_key]\nno key any more: see below"},
	{"key:\n" + pem + "\nrest", "key:\n[redacted:private_key]\nrest"},
	{`{"key": "` + strings.ReplaceAll(pem, "\n", `\n`) + `", "id": 7}`, `{"key": "[redacted:private_key]", "id": 7}`},
	{"-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq5nRz0\nq1Zz", "[redacted:private_key]"},
	{`<add key="Password" value="correct-horse" />`, `<add key="Password" value="[redacted:password]" />`},
}

var harmless = []string{
	"", "\n", "hello", "the password is secret", "password: string", "token := strings.TrimSpace(raw)", "auth = newAuth(cfg)", "token = sign9A8b7c6d5(x)", "key: value",
	"PASSWORD=", "PASSWORD=$DB_PASSWORD", "password: ${{ secrets.DB }}", "api_key: <your key>", "password = os.Getenv(\"PW\")", "Authorization: Bearer <token>",
	"commit 3f786850e387550fdab836ed7e6dc881de23001b",
	"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	"session_id=550e8400-e29b-41d4-a716-446655440000", `"token_id": "550e8400-e29b-41d4-a716-446655440000"`,
	"-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA7bq5nRz0\n-----END CERTIFICATE-----",
	"-----BEGIN PUBLIC KEY-----\nMIIEpAIBAAKCAQEA7bq5nRz0\n-----END PUBLIC KEY-----",
	"https://example.com:8080/path?x=1", "mailto:ann@example.com", "ssh://git@host/repo",
	"sk-learn-pipeline-for-text-2024", "key-value-store", "npm_config_registry",
	"url = https://example.com/a/b/c.html", "path=/usr/local/lib/python3.12/site-packages",
	"model: claude-sonnet-4-5-20250929",
	"drwxr-xr-x 2 root root 4096 Nov 15 05:27 screen", "ok  \tparley/screen\t3.183s", "xoxb", "AKIA", "Bearer",
	"-----BEGIN",
}

func TestSecretsAreRedacted(t *testing.T) {
	r := NewRedactor()
	for _, c := range secrets {
		got, found := r.Redact(c.text)
		if got != c.want || len(found) != 1 || !strings.Contains(c.want, "[redacted:"+found[0].Kind+"]") {
			t.Errorf("%q: %q %v, want %q", c.text, got, found, c.want)
		}
		if again, _ := r.Redact(got); again != got {
			t.Errorf("%q is redacted once more: %q", got, again)
		}
	}
	for _, text := range harmless {
		if got, found := r.Redact(text); got != text || len(found) > 0 {
			t.Errorf("%q: %q %v", text, got, found)
		}
	}
}

func TestTheServersOwnSecrets(t *testing.T) {
	own := []string{"plain words, no key", "p@ss/wörd?&", "  0123456789abcdef\n", "short", "",
		"a longer one with inner-secret in it", "inner-secret"}
	r := NewRedactor(own...)
	for _, c := range []struct {
		text string
		has  bool
	}{
		{"say plain words, no key!", true},
		{"p@ss/wörd?&", true},
		{"q=" + url.QueryEscape("p@ss/wörd?&"), true},
		{"q=" + url.PathEscape("p@ss/wörd?&"), true},
		{"0123456789abcdef", true},
		{base64.StdEncoding.EncodeToString([]byte("plain words, no key")), true},
		{base64.StdEncoding.EncodeToString([]byte("x" + "p@ss/wörd?&" + "tail")), true},
		{base64.URLEncoding.EncodeToString([]byte("xx" + "p@ss/wörd?&")), true},
		{"a longer one with inner-secret and then not", true},
		{"short", false},
		{"plain words, no ke", false},
		{"0123456789ABCDEF", false},
		{"", false},
	} {
		out, found := r.Redact(c.text)
		if r.HasOwn(c.text) != c.has || (len(found) > 0) != c.has || c.has && !strings.Contains(out, "[redacted:own]") {
			t.Errorf("%q: HasOwn is %v, redacted to %q", c.text, r.HasOwn(c.text), out)
		}
	}
	if NewRedactor().HasOwn("anything") || NewRedactor("", "  ").HasOwn("") {
		t.Error("no secrets, and one is found")
	}
}

func TestFoundHasThePosition(t *testing.T) {
	text := "a DB_PASSWORD=correct-horse b\nc api_key = 'q7Yk2mNq9RtVwZ'\n"
	_, found := NewRedactor().Redact(text)
	if len(found) != 2 || text[found[0].At:][:13] != "correct-horse" || text[found[1].At:][:14] != "q7Yk2mNq9RtVwZ" {
		t.Errorf("%v", found)
	}
	s := NewRedactor().Stream()
	_, a := s.Write(text[:20])
	_, b := s.Write(text[20:])
	if streamed := append(a, b...); len(streamed) != 2 || streamed[0] != found[0] || streamed[1] != found[1] {
		t.Errorf("in a stream %v, as a whole %v", streamed, found)
	}
}

// TestAStreamIsRedactedLikeAText: however a text is cut, the stream's output
// equals that of Redact.
func TestAStreamIsRedactedLikeAText(t *testing.T) {
	r := NewRedactor("own secret over\ntwo lines", "another-own-secret")
	var parts []string
	for _, s := range secrets {
		parts = append(parts, s.text)
	}
	parts = append(append(parts, harmless...), "own secret over\ntwo lines", "own secret", "another-own-secret",
		"größe", "\u200b", "\xff", "\"", " ", "\n", "\n\n", "=", "-----END", "PRIVATE KEY-----", "password")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "parts"),
			rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "between"))
		want, wantFound := r.Redact(text)
		s := r.Stream()
		var out strings.Builder
		n := 0
		for rest := text; rest != ""; {
			size := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "size")
			safe, found := s.Write(rest[:size])
			out.WriteString(safe)
			n += len(found)
			rest = rest[size:]
		}
		safe, found := s.Close()
		out.WriteString(safe)
		if n += len(found); out.String() != want || n != len(wantFound) {
			t.Fatalf("%q\nin pieces %q\nas a whole %q", text, out.String(), want)
		}
	})
}

// TestLongLinesInAStream: text without line ends does not pile up, and its
// secrets do not pass.
func TestLongLinesInAStream(t *testing.T) {
	r := NewRedactor()
	key := "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
	for name, text := range map[string]string{
		"a long line": strings.Repeat("all work and no play, "+key+" and more; ", 3000),
		"a long key": "-----BEGIN PRIVATE KEY-----\n" +
			strings.Repeat("4eC39HqLyjWDarjtT1zdp7dc4eC39HqLyjWDarjtT1zdp7dc\n", 3000) +
			"-----END PRIVATE KEY-----\nrest",
		"a long token": "x pypi-" + strings.Repeat("4eC39HqLyjWDarjtT1zdp7dc", 5000) + " rest",
		"no words":     strings.Repeat("ü", 60000) + " " + key + strings.Repeat("é", 60000),
	} {
		for _, size := range []int{1000, 1024, 4096, 100_000} {
			s := r.Stream()
			var out strings.Builder
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				safe, _ := s.Write(rest[:n])
				out.WriteString(safe)
				rest = rest[n:]
				if len(s.held) > maxHeld {
					t.Fatalf("%s: %d bytes are held back", name, len(s.held))
				}
			}
			rest, _ := s.Close()
			out.WriteString(rest)
			if got := out.String(); strings.Contains(got, "4eC39HqL") || strings.Count(got, "[redacted:") != max(1,
				strings.Count(text, key)) || strings.HasSuffix(text, "rest") != strings.HasSuffix(got, "rest") {
				t.Errorf("%s in pieces of %d: %d redacted of %d, %.80q … %.80q", name, size,
					strings.Count(got, "[redacted:"), strings.Count(text, key), got, got[max(0, len(got)-80):])
			}
		}
	}
}

func TestAStreamKeepsRunesWhole(t *testing.T) {
	s := NewRedactor().Stream()
	for range 20 {
		if safe, _ := s.Write(strings.Repeat("日", 1000)); !utf8.ValidString(safe) {
			t.Fatal("a rune is broken")
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range secrets {
		f.Add(s.text, uint8(7))
	}
	for _, s := range harmless {
		f.Add(s, uint8(1))
	}
	r := NewRedactor("an-own-secret-of-the-server")
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		want, found := r.Redact(text)
		if len(found) == 0 && want != text || r.HasOwn(want) {
			t.Fatalf("%q became %q, %v", text, want, found)
		}
		s := r.Stream()
		var out strings.Builder
		for rest := text; rest != ""; {
			size := min(int(n)+1, len(rest))
			safe, _ := s.Write(rest[:size])
			out.WriteString(safe)
			rest = rest[size:]
		}
		safe, _ := s.Close()
		if out.WriteString(safe); len(text) < maxHeld && out.String() != want {
			t.Fatalf("%q\nin pieces %q\nas a whole %q", text, out.String(), want)
		}
	})
}

var redactLoads = []struct{ name, text string }{
	{"prose", strings.Join(honest, "\n")},
	{"log", "2024-05-01T10:00:00Z level=info msg=\"request done\" method=GET path=/api/v1/sessions status=200 " +
		"took=3ms id=550e8400-e29b-41d4-a716-446655440000\n"},
	{"secrets", pem + "\nDB_PASSWORD=correct-horse api_key = 'q7Yk2mNq9RtVwZ' " +
		"ghp_16C7e42F292c6912E7710c838347Ae178B4a\n"},
	{"assignments", "a=a=a=a="},
	{"names", "password"},
	{"beginnings", "-----BEGIN PRIVATE KEY"},
	{"schemes", "x://a:b@Bearer -u curl "},
	{"one run", "eyJ.ey"},
}

func TestRedactIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	r := NewRedactor("an-own-secret-of-the-server")
	for _, load := range redactLoads {
		small, large := size(load.text, 1<<15), size(load.text, 1<<18)
		a, b := best(func() { r.Redact(small) }), best(func() { r.Redact(large) })
		if b > 8*4*a+50*time.Millisecond {
			t.Errorf("%s: 32 KiB take %v, 256 KiB take %v", load.name, a, b)
		}
	}
}

func BenchmarkRedact(b *testing.B) {
	r := NewRedactor("an-own-secret-of-the-server")
	for _, load := range redactLoads {
		text := size(load.text, 1<<20)
		b.Run(load.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				r.Redact(text)
			}
		})
	}
}
