package access

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"parley"
	"parley/port"
)

const sessionKey = "a key for cookies of at least 32 bytes"

// hall is a server that users sign in to; /who answers with the principal.
type hall struct {
	*httptest.Server
	t     *testing.T
	clock *clock
	log   lockedBuffer
	to    *issuer

	entrance *Entrance
}

func newHall(t *testing.T, change ...func(*SignInConfig)) *hall {
	h := &hall{t: t, clock: &clock{at: start}, to: newIssuer(t)}
	mux := http.NewServeMux()
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	revoked := must(NewRevocations(t.Context(), nil, h.clock.now))
	tickets := NewTickets(NewMemoryTickets(h.clock.now), h.clock.now)
	sessions := must(NewVerifier(TokenConfig{Secret: sessionKey, Issuer: "parley", Now: h.clock.now}))
	auth := must(NewJWT(JWTConfig{Verifier: verifier(t, func(c *TokenConfig) { c.Now = h.clock.now }), Tickets: tickets,
		Revocations: revoked, Sessions: sessions, QueryToken: true}))
	e := &Entrance{Auth: auth, Revocations: revoked, Tickets: tickets,
		Gate: NewGate(GateConfig{Connections: port.Rate{N: 1000, Per: time.Hour},
			Messages: port.Rate{N: 1000, Per: time.Hour}, Most: 100, Now: h.clock.now})}
	h.entrance = e
	c := SignInConfig{Issuer: h.to.URL, ClientID: clientID, ClientSecret: clientSecret, PublicURL: h.URL,
		Life: time.Hour, Secret: secret,
		Mapping: Mapping{User: "sub", Home: "acme", Roles: "roles"}, Now: h.clock.now,
		Log: slog.New(slog.NewTextHandler(&h.log, nil))}
	for _, f := range change {
		f(&c)
	}
	c.Cookies = NewCookies(CookieConfig{Secret: sessionKey, Issuer: "parley",
		Secure: strings.HasPrefix(c.PublicURL, "https:"), Log: c.Log, Now: h.clock.now}, e)
	routes := must(NewSignIn(c, e)).Routes()
	maps.Copy(routes, c.Cookies.Routes())
	for pattern, handler := range routes {
		mux.Handle(pattern, handler)
	}
	mux.HandleFunc("/api/v1/tickets", func(w http.ResponseWriter, r *http.Request) {
		ticket, _, err := e.Ticket(r, func() (string, error) { return "", nil })
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		fmt.Fprint(w, ticket)
	})
	mux.HandleFunc("/who", func(w http.ResponseWriter, r *http.Request) {
		who, err := e.Who(r)
		if d, ok := errors.AsType[*Denied](err); ok {
			http.Error(w, string(d.Reason), d.Status(w.Header()))
			return
		}
		fmt.Fprintf(w, "%s of %s: %s", who.ID, who.Tenant, strings.Trim(fmt.Sprint(who.Roles), "[]"))
	})
	return h
}

// person is a user with a browser that keeps cookies. Go's cookie jar ignores
// SameSite: requests that a browser would send without the cookie arrive here
// with it, and must be refused all the same.
type person struct {
	*http.Client
	h *hall
}

func (h *hall) person() *person {
	return &person{&http.Client{Jar: must(cookiejar.New(nil))}, h}
}

// follow follows redirects without requesting a page of the console, and returns the final address.
func (p *person) follow(address string) *url.URL {
	p.h.t.Helper()
	at := must(url.Parse(address))
	client := *p.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for range 10 {
		if at.Host == must(url.Parse(p.h.URL)).Host && !strings.HasPrefix(at.Path, "/auth/") {
			return at
		}
		res, err := client.Get(at.String())
		if err != nil {
			p.h.t.Fatal(err)
		}
		_ = res.Body.Close()
		next, err := res.Location()
		if err != nil {
			p.h.t.Fatalf("%s: %s", at, res.Status)
		}
		at = next
	}
	p.h.t.Fatal("it has no end")
	return nil
}

// until follows redirects up to an address that contains words, without requesting that address.
func (p *person) until(address, words string) *url.URL {
	p.h.t.Helper()
	client := *p.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	at := must(url.Parse(address))
	for !strings.Contains(at.String(), words) {
		res, err := client.Get(at.String())
		if err != nil {
			p.h.t.Fatal(err)
		}
		_ = res.Body.Close()
		at = must(res.Location())
	}
	return at
}

func (p *person) signIn() {
	p.h.t.Helper()
	if at := p.follow(p.h.URL + "/auth/login"); at.RequestURI() != "/" {
		p.h.t.Fatalf("signing in led to %s; the log:\n%s", at, p.h.log.String())
	}
}

func (p *person) cookie(name string) *http.Cookie {
	for _, c := range p.Jar.Cookies(must(url.Parse(p.h.URL + "/auth/callback"))) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// ask sends a request with the person's cookies.
func (p *person) ask(method, path string, header http.Header) (int, string) {
	p.h.t.Helper()
	r := must(http.NewRequest(method, p.h.URL+path, nil))
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	res, err := p.Do(r)
	if err != nil {
		p.h.t.Fatal(err)
	}
	defer res.Body.Close()
	raw := must(io.ReadAll(res.Body))
	return res.StatusCode, strings.TrimSpace(string(raw))
}

func (p *person) wantNobody(t *testing.T) {
	t.Helper()
	if status, body := p.ask("GET", "/who", nil); status != http.StatusUnauthorized {
		t.Errorf("somebody came in: %d %s", status, body)
	}
	if p.cookie(Cookie) != nil {
		t.Error("there is a cookie")
	}
}

func TestSigningIn(t *testing.T) {
	h := newHall(t)
	ann := h.person()
	ann.wantNobody(t)
	if at := ann.follow(h.URL + "/auth/login?to=/agents/coder"); at.RequestURI() != "/agents/coder" {
		t.Errorf("it led to %s; the log:\n%s", at, h.log.String())
	}
	if status, body := ann.ask("GET", "/who", nil); status != 200 || body != "ann of acme: standard_user" {
		t.Errorf("%d %s", status, body)
	}
	h.person().wantNobody(t)

	// The attributes of the cookie as sent to the browser.
	client := *ann.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	back := ann.until(h.URL+"/auth/login", "/auth/callback")
	res := must(client.Get(back.String()))
	_ = res.Body.Close()
	for _, c := range res.Cookies() {
		if c.Name == Cookie && (!c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" ||
			c.MaxAge != 3600 || c.Domain != "" || c.Secure) {
			t.Errorf("the cookie is %s", c)
		}
	}
	// A code works once, and so does a sign-in.
	if at := ann.follow(back.String()); at.RequestURI() != "/?sign_in=state" {
		t.Errorf("a callback again led to %s", at)
	}

	h.clock.pass(time.Hour)
	if status, body := ann.ask("GET", "/who", nil); status != 401 || body != string(TokenExpired) {
		t.Errorf("an hour later: %d %s", status, body)
	}
}

func TestSigningOut(t *testing.T) {
	h := newHall(t)
	ann := h.person()
	ann.signIn()
	if status, _ := ann.ask("POST", "/auth/logout", http.Header{"Sec-Fetch-Site": {"cross-site"}}); status != 403 ||
		ann.cookie(Cookie) == nil {
		t.Errorf("another site signs people out: %d", status)
	}
	if status, _ := ann.ask("POST", "/auth/logout", http.Header{"Sec-Fetch-Site": {"same-origin"}}); status != 204 {
		t.Errorf("%d", status)
	}
	ann.wantNobody(t)
}

// TestSigningInWithAToken: a token buys a cookie that lasts as long as the token. Signing out ends the cookie, but not
// the token.
func TestSigningInWithAToken(t *testing.T) {
	h := newHall(t)
	own := http.Header{"Sec-Fetch-Site": {"same-origin"}, "Content-Type": {"application/json"}}
	mine := hs256(t, `{"alg":"HS256","typ":"JWT"}`, with("sub", "bob"))
	ask := func(p *person, header http.Header, body string) (int, string) {
		r := must(http.NewRequest("POST", h.URL+"/auth/session", strings.NewReader(body)))
		r.Header = header
		res := must(p.Do(r))
		defer res.Body.Close()
		for _, c := range res.Cookies() {
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge <= 0 || c.Secure {
				t.Errorf("the cookie is %s", c)
			}
		}
		return res.StatusCode, string(must(io.ReadAll(res.Body)))
	}
	bob := h.person()
	for name, test := range map[string]struct {
		header http.Header
		body   string
		want   int
	}{
		"another site": {http.Header{"Sec-Fetch-Site": {"cross-site"}, "Content-Type": {"application/json"}},
			`{"token":"` + mine + `"}`, 403},
		"nobody's page": {http.Header{"Content-Type": {"application/json"}}, `{"token":"` + mine + `"}`, 403},
		"a form": {http.Header{"Sec-Fetch-Site": {"same-origin"}, "Content-Type": {"text/plain"}},
			`{"token":"` + mine + `"}`, 415},
		"a bad token": {own, `{"token":"x.y.z"}`, 401},
		"no token":    {own, `{}`, 401},
		"no JSON":     {own, `token`, 401},
	} {
		if status, body := ask(bob, test.header, test.body); status != test.want {
			t.Errorf("%s: %d %s", name, status, body)
		}
		bob.wantNobody(t)
	}
	if status, body := ask(bob, own, `{"token":"`+mine+`"}`); status != 204 {
		t.Fatalf("%d %s", status, body)
	}
	who := func(p *person, header http.Header) string {
		_, body := p.ask("GET", "/who", header)
		return strings.Fields(body)[0]
	}
	if got := who(bob, nil); got != "bob" {
		t.Errorf("with the cookie: %s", got)
	}
	copied := Cookie + "=" + bob.cookie(Cookie).Value
	if strings.Contains(copied, mine) {
		t.Error("the cookie holds the token itself")
	}
	if got := who(h.person(), http.Header{"Authorization": {"Bearer " + bob.cookie(Cookie).Value}}); got == "bob" {
		t.Error("a cookie is a token for programs")
	}
	ticket := func() string { _, body := bob.ask("POST", "/api/v1/tickets", own); return body }()
	id := must(h.entrance.Auth.jwt.Tickets.take(t.Context(), ticket, "", ""))
	socket, leave := h.entrance.Revocations.Watch(t.Context(), id)
	defer leave()
	if status, _ := bob.ask("POST", "/auth/logout", own); status != 204 {
		t.Errorf("signing out: %d", status)
	}
	bob.wantNobody(t)
	<-socket.Done() // the socket of the cookie's ticket
	if got := who(h.person(), http.Header{"Cookie": {copied}}); got == "bob" {
		t.Error("a copy of the cookie is good after signing out")
	}
	if got := who(h.person(), http.Header{"Authorization": {"Bearer " + mine}}); got != "bob" {
		t.Errorf("signing out has ended the token itself: %s", got)
	}
	if status, body := ask(bob, own, `{"token":"`+mine+`"}`); status != 204 || who(bob, nil) != "bob" {
		t.Errorf("signing in again: %d %s", status, body)
	}
}

// TestSignOutsAreCountedApart: sign-outs do not use up the room for revocations of users, and are forgotten when the
// token expires.
func TestSignOutsAreCountedApart(t *testing.T) {
	clock := &clock{at: start}
	r := must(NewRevocations(t.Context(), nil, clock.now))
	id := func(n int) Identity {
		return Identity{Principal: port.Principal{ID: "ann", Tenant: "acme"}, TokenID: fmt.Sprint(n), Issued: start,
			Expires: start.Add(time.Hour)}
	}
	for n := range maxOfTenant {
		if err := r.SignOut(t.Context(), id(n), parley.Audit{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.SignOut(t.Context(), id(-1), parley.Audit{}); parley.CodeOf(err) != parley.CodeOverloaded {
		t.Errorf("one more: %v", err)
	}
	if err := r.Revoke(t.Context(), Revocation{Tenant: "acme", Principal: "bob", Before: start},
		parley.Audit{}); err != nil {
		t.Errorf("a revocation: %v", err)
	}
	if r.Check(id(7)) == nil || r.Check(id(-1)) != nil {
		t.Error("the wrong tokens are good")
	}
	clock.pass(time.Hour)
	if err := r.SignOut(t.Context(), Identity{Principal: id(0).Principal, TokenID: "x",
		Expires: start.Add(2 * time.Hour)},
		parley.Audit{}); err != nil {
		t.Errorf("after the others have ended: %v", err)
	}
}

// TestBehindHTTPS: with an https URL, cookies are for encrypted connections only.
func TestBehindHTTPS(t *testing.T) {
	h := newHall(t, func(c *SignInConfig) { c.PublicURL = "https://parley.example.com" })
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res := must(client.Get(h.URL + "/auth/login"))
	_ = res.Body.Close()
	c := res.Cookies()[0]
	if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/auth/callback" {
		t.Errorf("%s", c)
	}
	if to := must(res.Location()).Query().Get("redirect_uri"); to != "https://parley.example.com/auth/callback" {
		t.Errorf("the issuer is to lead back to %s", to)
	}
}

// TestInvalidIDTokensAreRefused: an invalid proof from the issuer signs no user in.
func TestInvalidIDTokensAreRefused(t *testing.T) {
	other := must(rsa.GenerateKey(rand.Reader, 2048))
	set := func(name string, value any) func(*issuer) {
		return func(i *issuer) { i.change = func(c map[string]any) { c[name] = value } }
	}
	for name, test := range map[string]struct {
		change func(*issuer)
		why    string
	}{
		"another nonce": {set("nonce", "of another sign-in"), "refused"},
		"no nonce": {func(i *issuer) { i.change = func(c map[string]any) { delete(c, "nonce") } },
			"refused"},
		"expired":                    {set("exp", start.Add(-time.Second).Unix()), "refused"},
		"for another":                {set("aud", "somebody else"), "refused"},
		"for several, by nobody":     {set("aud", []string{clientID, "somebody else"}), "refused"},
		"for us, given to another":   {set("azp", "somebody else"), "refused"},
		"of another issuer":          {set("iss", "https://evil.example.com"), "refused"},
		"no person":                  {set("sub", ""), "nobody"},
		"a person not to be printed": {set("sub", "ann\u202e"), "nobody"},
		"a role nobody knows":        {set("roles", []string{"king"}), "nobody"},
		"the role of local mode":     {set("roles", []parley.UserRole{parley.RoleLocal}), "nobody"},
		"roles that are none":        {set("roles", 7), "nobody"},
		"signed by another": {
			func(i *issuer) { i.sign = func(c map[string]any) string { return signedBy(other, c) } }, "refused"},
		"signed by nobody": {func(i *issuer) {
			i.sign = func(c map[string]any) string {
				return must(jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims(c)).SignedString(
					jwt.UnsafeAllowNoneSignatureType))
			}
		}, "refused"},
		"signed with the public key": {func(i *issuer) {
			i.sign = func(c map[string]any) string {
				return must(jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims(c)).SignedString(i.key.N.Bytes()))
			}
		}, "refused"},
		"no proof":   {func(i *issuer) { i.sign = func(map[string]any) string { return "" } }, "refused"},
		"it says no": {func(i *issuer) { i.deny = "access_denied" }, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t)
			test.change(h.to)
			ann := h.person()
			if at := ann.follow(h.URL + "/auth/login"); at.RequestURI() != "/?sign_in="+test.why {
				t.Errorf("it led to %s", at)
			}
			ann.wantNobody(t)
		})
	}
}

// TestAnswersToOtherSignIns: a callback address that another user made does not sign anyone in (it would be as that
// user), nor does an expired one.
func TestAnswersToOtherSignIns(t *testing.T) {
	h := newHall(t)
	mallory, ann := h.person(), h.person()
	evil := mallory.until(h.URL+"/auth/login", "/auth/callback") // a callback for mallory, for the victim to click
	if at := ann.follow(evil.String()); at.RequestURI() != "/?sign_in=state" {
		t.Errorf("without a sign-in of one's own: %s", at)
	}
	ann.until(h.URL+"/auth/login", h.to.URL) // a sign-in of ann is in progress
	if at := ann.follow(evil.String()); at.RequestURI() != "/?sign_in=state" {
		t.Errorf("in another sign-in: %s", at)
	}
	ann.wantNobody(t)

	own := ann.until(h.URL+"/auth/login", "/auth/callback")
	h.clock.pass(loginWithin)
	if at := ann.follow(own.String()); at.RequestURI() != "/?sign_in=expired" {
		t.Errorf("too late: %s", at)
	}
	ann.wantNobody(t)

	// A changed sign-in, for example another path or a longer life, is refused.
	own = ann.until(h.URL+"/auth/login", "/auth/callback")
	text, signature, _ := strings.Cut(ann.cookie(loginCookie).Value, ".")
	forged := encode(strings.Replace(string(must(decodeBase64(text))), `"to":"/"`, `"to":"/x"`, 1)) + "." + signature
	ann.Jar.SetCookies(must(url.Parse(h.URL+loginPath)),
		[]*http.Cookie{{Name: loginCookie, Value: forged, Path: loginPath}})
	if at := ann.follow(own.String()); at.RequestURI() != "/?sign_in=state" {
		t.Errorf("a forged sign-in: %s", at)
	}
	// A stolen code is useless without the verifier of its sign-in.
	stolen := ann.until(h.URL+"/auth/login", "/auth/callback").Query()
	thief := mallory.until(h.URL+"/auth/login", "/auth/callback")
	q := thief.Query()
	q.Set("code", stolen.Get("code"))
	thief.RawQuery = q.Encode()
	if at := mallory.follow(thief.String()); at.RequestURI() != "/?sign_in=refused" {
		t.Errorf("a stolen code: %s", at)
	}
	mallory.wantNobody(t)
	if words := h.log.String(); strings.Contains(words, stolen.Get("code")) {
		t.Errorf("the log has a code: %s", words)
	}
}

// TestRedirectAfterSignIn: a sign-in always leads to a page of this server, whatever the request asked for.
func TestRedirectAfterSignIn(t *testing.T) {
	for to, want := range map[string]string{
		"/": "/", "/chat/1": "/chat/1", "": "/", "x": "/", "//evil.example.com": "/", "/\\evil.example.com": "/",
		"https://evil.example.com": "/",
		"https:evil.example.com":   "/", "javascript:alert(1)": "/", "/\t/evil.example.com": "/", "/auth/logout": "/",
		"/api/v1/me": "/", "/%2fevil.example.com": "/%2fevil.example.com",
		"/chat/1#m17": "/chat/1#m17", "/a#<b>": "/", "/a#x://y": "/", "https://evil.example.com/#m17": "/",
		"/files?path=a%20b.go&session=1": "/files?path=a%20b.go&session=1", "/runs?status=failed#x": "/runs?status=failed#x",
		"/?to=//evil.example.com": "/?to=//evil.example.com", "/a?b=c&sign%5Fin=x": "/", "/a?sign_in": "/",
		"/a?sign_in=x": "/", "/" + strings.Repeat("a", 2000): "/",
	} {
		if got := within(to); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}

// TestCookiesOfOtherPages: a cookie counts only if the headers show that a page of this server made the request.
func TestCookiesOfOtherPages(t *testing.T) {
	h := newHall(t)
	ann := h.person()
	ann.signIn()
	own, evil := h.URL, "https://evil.example.com"
	neighbour := strings.Replace(own, "127.0.0.1", "localhost", 1)
	for _, test := range []struct {
		method string
		header http.Header
		want   int
	}{
		{"GET", nil, 200},
		{"GET", http.Header{"Sec-Fetch-Site": {"none"}}, 200},
		{"GET", http.Header{"Sec-Fetch-Site": {"same-origin"}}, 200},
		{"GET", http.Header{"Sec-Fetch-Site": {"same-site"}}, 403},
		{"GET", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"HEAD", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"POST", http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {own}}, 200},
		{"POST", http.Header{"Sec-Fetch-Site": {"same-origin"}}, 200},
		{"POST", http.Header{"Origin": {own}}, 200},
		{"POST", nil, 403},
		{"PATCH", nil, 403},
		{"DELETE", nil, 403},
		{"POST", http.Header{"Sec-Fetch-Site": {"none"}}, 403},
		{"POST", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {own}}, 403},
		{"POST", http.Header{"Sec-Fetch-Site": {"same-site"}, "Origin": {neighbour}}, 403},
		{"POST", http.Header{"Sec-Fetch-Site": {"same-origin", "cross-site"}}, 403},
		{"POST", http.Header{"Sec-Fetch-Site": {""}}, 403},
		{"POST", http.Header{"Origin": {evil}}, 403},
		{"POST", http.Header{"Origin": {"null"}}, 403},
		{"POST", http.Header{"Origin": {neighbour}}, 403},
		{"POST", http.Header{"Origin": {own, evil}}, 403},
		{"POST", http.Header{"Referer": {own}}, 403},
	} {
		if status, body := ann.ask(test.method, "/who", test.header); status != test.want {
			t.Errorf("%s with %v: %d %s, want %d", test.method, test.header, status, body, test.want)
		}
	}
}

// TestACookieOpensNoSocket: a socket permits everything, and its origin is not
// checked again later. So it needs a ticket, which a request with a cookie can
// get.
func TestACookieOpensNoSocket(t *testing.T) {
	h := newHall(t)
	ann := h.person()
	ann.signIn()
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}, "Origin": {h.URL}, "Sec-Fetch-Site": {"same-origin"}}
	if status, body := ann.ask("GET", "/who", upgrade); status != 401 || body != string(NoCredential) {
		t.Errorf("%d %s", status, body)
	}
	_, ticket := ann.ask("POST", "/api/v1/tickets", http.Header{"Origin": {h.URL}})
	if status, body := ann.ask("GET", "/who?ticket="+ticket, upgrade); status != 200 {
		t.Errorf("with a ticket: %d %s", status, body)
	}
}

// TestOneCredentialCounts: a cookie is ignored if the client sends another
// credential. Two cookies are refused, because a server on a neighbouring host
// can set one.
func TestOneCredentialCounts(t *testing.T) {
	h := newHall(t)
	ann := h.person()
	ann.signIn()
	bob := hs256(t, `{"alg":"HS256","typ":"JWT"}`, with("sub", "bob"))
	if _, body := ann.ask("GET", "/who", http.Header{"Authorization": {"Bearer " + bob}}); !strings.HasPrefix(body,
		"bob") {
		t.Errorf("a token beside a cookie: %s", body)
	}
	for _, path := range []string{"/who?access_token=", "/who?access_token=x", "/who?ticket=x"} {
		if status, body := ann.ask("GET", path, nil); status != 401 {
			t.Errorf("%s beside a cookie: %d %s", path, status, body)
		}
	}
	r := must(http.NewRequest("GET", h.URL+"/who", nil))
	r.Header.Set("Cookie", Cookie+"="+ann.cookie(Cookie).Value+"; "+Cookie+"="+bob)
	res := must(http.DefaultClient.Do(r))
	_ = res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("two cookies: %d", res.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestWithoutSigningIn: without sign-in, a cookie is ignored.
func TestWithoutSigningIn(t *testing.T) {
	s := newSite(t)
	if status, _, _ := s.ask(ws, map[string]string{"Cookie": Cookie + "=" + token(t, "", nil)}); status != 401 {
		t.Errorf("%d", status)
	}
}

func TestMappingOfClaims(t *testing.T) {
	claims := func(text string) object { return must(strictObject([]byte(text))) }
	groups := Mapping{User: "email", Tenant: "org", Roles: "groups",
		Names: map[string]parley.UserRole{"admins": "org_admin", "staff": "standard_user"}}
	for _, test := range []struct {
		m      Mapping
		claims string
		want   string // empty: refused
	}{
		{Mapping{User: "sub", Home: "acme", Roles: "roles"}, `{"sub":"ann","roles":["read_only","king","read_only"]}`,
			"{ann acme [read_only]}"},
		{Mapping{User: "sub", Home: "acme", Roles: "roles"}, `{"sub":"ann","roles":"dept_head"}`,
			"{ann acme [dept_head]}"},
		{Mapping{User: "sub", Home: "acme", Roles: "roles"}, `{"sub":"ann"}`, ""},
		{Mapping{User: "sub", Home: "acme", Roles: "roles", Else: "read_only"}, `{"sub":"ann"}`,
			"{ann acme [read_only]}"},
		{Mapping{User: "sub", Home: "acme", Roles: "roles", Else: "read_only"}, `{"sub":"ann","roles":["org_admin"]}`,
			"{ann acme [org_admin]}"},
		{groups, `{"email":"a@b.c","email_verified":true,"org":"rival","groups":["staff","admins","others"]}`,
			"{a@b.c rival [org_admin standard_user]}"},
		{groups, `{"email":"a@b.c","email_verified":false,"org":"rival","groups":["staff"]}`, ""},
		{groups, `{"email":"a@b.c","email_verified":"true","org":"rival","groups":["staff"]}`, ""},
		{groups, `{"email":"a@b.c","org":"rival","groups":["staff"]}`, ""},
		{groups, `{"email":"a@b.c","email_verified":true,"groups":["staff"]}`, ""},
		{groups, `{"email":"a@b.c","email_verified":true,"org":"../x","groups":["staff"]}`, ""},
		// with Names, a role's own name is not mapped
		{groups, `{"email":"a@b.c","email_verified":true,"org":"rival","groups":["org_admin"]}`, ""},
	} {
		p, err := test.m.principal(claims(test.claims))
		got := ""
		if err == nil {
			got = fmt.Sprintf("{%s %s %v}", p.ID, p.Tenant, p.Roles)
		}
		if got != test.want {
			t.Errorf("%s: %s %v, want %s", test.claims, got, err, test.want)
		}
	}
}

// TestAnIssuerThatIsAway: the server starts without the issuer, and uses it once it is available.
func TestAnIssuerThatIsAway(t *testing.T) {
	h := newHall(t)
	h.to.down = true
	ann := h.person()
	if at := ann.follow(h.URL + "/auth/login"); at.RequestURI() != "/?sign_in=unavailable" {
		t.Errorf("it led to %s", at)
	}
	h.to.down = false
	ann.signIn()
	if !bytes.Contains(h.log.Bytes(), []byte("cannot be reached")) {
		t.Error("nobody is told")
	}
}
