package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// SignInConfig configures signing in with a browser by OpenID Connect: the
// issuer, and how its claims become a principal.
type SignInConfig struct {
	Issuer       string
	ClientID     string
	ClientSecret string // empty: a public client, protected by PKCE alone
	PublicURL    string // of this server as browsers know it: scheme, host, optional port
	Mapping      Mapping
	Life         time.Duration // lifetime of a sign-in

	Cookies *Cookies // issues the session cookies
	Secret  string   // signs the cookies of sign-ins in progress

	Log *slog.Logger
	Now func() time.Time
}

// SignIn signs users in. It sends the browser to the issuer, and gives it a
// session cookie when it comes back with a proof. SignIn itself stores nothing:
// the state of a sign-in in progress is in a cookie of that browser.
type SignIn struct {
	c        SignInConfig
	secure   bool // browsers reach the server by https
	entrance *Entrance
	client   *http.Client
	key      []byte        // signs the cookies of sign-ins in progress
	slots    chan struct{} // limits concurrent exchanges with the issuer
	found    chan *oidc.Provider
}

const (
	loginCookie    = "parley_login"
	loginPath      = "/auth/callback"
	loginWithin    = 10 * time.Minute
	maxExchanges   = 16
	issuerPatience = 10 * time.Second
)

// NewSignIn returns a SignIn. e writes its refusals to the audit log.
func NewSignIn(c SignInConfig, e *Entrance) (*SignIn, error) {
	if c.Secret == "" {
		return nil, errors.New("sign-in needs a secret that signs the session cookies")
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the public URL %q is not an http or https URL", c.PublicURL)
	}
	mac := hmac.New(sha256.New, []byte(c.Secret))
	mac.Write([]byte("parley: sign-ins under way"))
	s := &SignIn{c: c, secure: u.Scheme == "https", entrance: e, key: mac.Sum(nil),
		slots: make(chan struct{}, maxExchanges), found: make(chan *oidc.Provider, 1)}
	s.found <- nil
	// The client secret goes only to the address that discovery names.
	// Redirects are refused, so that no other server gets it.
	s.client = &http.Client{Timeout: issuerPatience, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the issuer redirects, which is not followed")
	}}
	return s, nil
}

// Routes returns the routes to serve. None of them needs a credential.
func (s *SignIn) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /auth/login":    http.HandlerFunc(s.begin),
		"GET /auth/callback": http.HandlerFunc(s.finish),
	}
}

// Issuer returns the issuer's name for display: its host.
func (s *SignIn) Issuer() string {
	if u, err := url.Parse(s.c.Issuer); err == nil && u.Host != "" {
		return u.Host
	}
	return s.c.Issuer
}

// Warm discovers the issuer, so that a wrong address is noticed before the
// first sign-in.
func (s *SignIn) Warm(ctx context.Context) error {
	_, err := s.provider(ctx)
	return err
}

// provider returns the issuer's discovery document. The first caller that needs
// it requests it; the others wait for that request. A failure is not kept.
func (s *SignIn) provider(ctx context.Context) (*oidc.Provider, error) {
	select {
	case p := <-s.found:
		defer func() { s.found <- p }()
		if p != nil {
			return p, nil
		}
		var err error
		if p, err = oidc.NewProvider(oidc.ClientContext(ctx, s.client), s.c.Issuer); err != nil {
			p = nil
			return nil, err
		}
		return p, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *SignIn) oauth(p *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{ClientID: s.c.ClientID, ClientSecret: s.c.ClientSecret, Endpoint: p.Endpoint(),
		RedirectURL: strings.TrimSuffix(s.c.PublicURL, "/") + loginPath, Scopes: []string{oidc.ScopeOpenID, "profile",
			"email"}}
}

// login is a sign-in in progress.
type login struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	To       string    `json:"to"`
	Until    time.Time `json:"until"`
}

// begin sends a browser to the issuer.
func (s *SignIn) begin(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), issuerPatience)
	defer cancel()
	p, err := s.provider(ctx)
	if err != nil {
		s.c.Log.Warn("the OpenID provider cannot be reached", "issuer", s.c.Issuer, "error", err)
		s.fail(w, r, "unavailable")
		return
	}
	l := login{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		To: within(r.URL.Query().Get("to")), Until: s.c.Now().Add(loginWithin)}
	// Lax, because the issuer's page redirects back here: with a navigation
	// from another site, browsers do not send a Strict cookie.
	http.SetCookie(w, &http.Cookie{Name: loginCookie, Value: s.seal(l), Path: loginPath,
		MaxAge:   int(loginWithin.Seconds()),
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode})
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, s.oauth(p).AuthCodeURL(l.State, oidc.Nonce(l.Nonce), oauth2.S256ChallengeOption(l.Verifier)),
		http.StatusSeeOther)
}

// finish handles the redirect from the issuer, which carries a code. It sets a Strict cookie, so the browser does not
// send the cookie while it follows the redirect from here. That is fine: the page needs no cookie, and the page's own
// requests send it.
func (s *SignIn) finish(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: loginCookie, Path: loginPath, MaxAge: -1, HttpOnly: true, Secure: s.secure,
		SameSite: http.SameSiteLaxMode})
	w.Header().Set("Cache-Control", "no-store")
	l, why := s.underWay(r)
	if why == "" {
		why = s.answered(w, r, l)
	}
	if why == "" {
		http.Redirect(w, r, l.To, http.StatusSeeOther)
		return
	}
	from := Client(r, s.entrance.Proxies)
	var err error = deny(SignInFailed, why)
	if often := s.entrance.Gate.Attempt(from); often != nil {
		why, err = "often", often
	}
	if e := s.entrance.refuse(r.Context(), err, from); !errors.Is(e, err) {
		why = "unavailable" // the audit log could not be written
	}
	s.fail(w, r, why)
}

// underWay returns the sign-in that a callback completes, or the reason why
// there is none.
func (s *SignIn) underWay(r *http.Request) (login, string) {
	cookies := r.CookiesNamed(loginCookie)
	if len(cookies) != 1 {
		return login{}, "state"
	}
	l, ok := s.open(cookies[0].Value)
	switch {
	case !ok || subtle.ConstantTimeCompare([]byte(l.State), []byte(r.URL.Query().Get("state"))) != 1:
		return login{}, "state"
	case !l.Until.After(s.c.Now()):
		return login{}, "expired"
	}
	return l, ""
}

// answered turns the issuer's answer into a session cookie, or returns the
// reason for the failure.
func (s *SignIn) answered(w http.ResponseWriter, r *http.Request, l login) string {
	if r.URL.Query().Get("error") != "" {
		return "refused" // the issuer's own words are not shown
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return "often"
	}
	ctx, cancel := context.WithTimeout(r.Context(), issuerPatience)
	defer cancel()
	claims, why, err := s.exchange(ctx, r.URL.Query().Get("code"), l)
	if err != nil {
		s.c.Log.Warn("a sign-in failed", "reason", why, "error", err)
		return why
	}
	who, err := s.c.Mapping.principal(claims)
	if err != nil {
		s.c.Log.Warn("a user whom the OpenID provider knows has no access here", "error", err)
		return "nobody"
	}
	err = s.c.Cookies.give(w, r, who, s.c.Now().Add(s.c.Life), map[string]any{"issuer": s.c.Issuer, "roles": who.Roles})
	switch {
	case errors.Is(err, errNotRecorded):
		return "unavailable"
	case err != nil:
		s.c.Log.Warn("no token can be made for a user whom the OpenID provider knows", "error", err)
		return "nobody"
	}
	return ""
}

// exchange trades the code for the issuer's claims about a user. go-oidc checks the signature, iss, aud and exp. This
// function checks the nonce and, if the token has several audiences, that azp names this client.
func (s *SignIn) exchange(ctx context.Context, code string, l login) (claims object, why string, err error) {
	p, err := s.provider(ctx)
	if err != nil {
		return nil, "unavailable", err
	}
	answer, err := s.oauth(p).Exchange(oidc.ClientContext(ctx, s.client), code, oauth2.VerifierOption(l.Verifier))
	if err != nil {
		if _, refused := errors.AsType[*oauth2.RetrieveError](err); refused {
			return nil, "refused", errors.New("the OpenID provider rejected the code") // it may repeat the code
		}
		return nil, "unavailable", err
	}
	raw, _ := answer.Extra("id_token").(string)
	proof, err := p.Verifier(&oidc.Config{ClientID: s.c.ClientID, Now: s.c.Now}).Verify(
		oidc.ClientContext(ctx, s.client), raw)
	switch {
	case err != nil:
		return nil, "refused", err
	case subtle.ConstantTimeCompare([]byte(proof.Nonce), []byte(l.Nonce)) != 1:
		return nil, "refused", errors.New("the nonce belongs to another sign-in")
	}
	var payload json.RawMessage
	if err := proof.Claims(&payload); err != nil {
		return nil, "refused", err
	}
	if claims, err = strictObject(payload); err != nil {
		return nil, "refused", err
	}
	var azp string
	if !claims.text("azp", &azp) || azp != "" && azp != s.c.ClientID || azp == "" && len(proof.Audience) > 1 {
		return nil, "refused", errors.New("azp names another client, or is missing although aud has several values")
	}
	return claims, "", nil
}

// whyFailed is the parameter of the sign-in page that names the reason of a failed sign-in.
const whyFailed = "sign_in"

// fail redirects to the sign-in page with a reason. The page has a text for
// each reason: otherwise a crafted address could make it show any text.
func (s *SignIn) fail(w http.ResponseWriter, r *http.Request, why string) {
	http.Redirect(w, r, "/?"+whyFailed+"="+why, http.StatusSeeOther)
}

// seal encodes a sign-in for the browser's cookie. It is signed, so that the
// browser cannot extend it; it is not encrypted, because it holds nothing
// secret from the browser.
func (s *SignIn) seal(l login) string {
	raw, err := json.Marshal(l)
	if err != nil {
		panic(err) // a login has only strings and a time
	}
	text := base64.RawURLEncoding.EncodeToString(raw)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.sign(text))
}

func (s *SignIn) open(sealed string) (l login, ok bool) {
	text, signature, _ := strings.Cut(sealed, ".")
	given, err := decodeBase64(signature)
	if err != nil || !hmac.Equal(given, s.sign(text)) {
		return login{}, false
	}
	raw, err := decodeBase64(text)
	return l, err == nil && json.Unmarshal(raw, &l) == nil
}

func (s *SignIn) sign(text string) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// placeInPage is a message of a conversation, or a part of the settings.
var placeInPage = regexp.MustCompile(`^[a-z0-9]*$`)

// within returns the path in the console to go to after a sign-in. Anyone can
// make up the input, so the result is always a path of this server that
// browsers do not take for another site.
func within(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Query().Has(whyFailed) ||
		!placeInPage.MatchString(u.Fragment) || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.ContainsAny(to, "\\\t\r\n") || strings.HasPrefix(to, "/auth/") || strings.HasPrefix(to, "/api/") ||
		len(to) > 1024 {
		return "/"
	}
	return to
}
