package access

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"parley"
	"parley/port"
)

// Cookie is the name of the cookie with the token of a user who signed in with a browser. Scripts cannot read it.
// Browsers send it with every request to this server, so the origin of the request must be checked: see ownPage.
const Cookie = "parley_session"

// byCookie identifies the owner of the cookie in a request. A cookie cannot
// open a WebSocket: an upgrade is a GET that permits everything, and pages use
// tickets instead.
func (c *JWTConfig) byCookie(r *http.Request) (Identity, error) {
	cookies := r.CookiesNamed(Cookie)
	switch {
	case len(cookies) == 0 || len(r.Header["Upgrade"]) > 0:
		return Identity{}, deny(NoCredential, "")
	case len(cookies) > 1:
		return Identity{}, deny(TwoCredentials, "another server on this host may have set the second cookie")
	case !ownPage(r):
		return Identity{}, deny(OriginRefused, "a request with the cookie did not come from a page of this server")
	}
	return c.Sessions.Verify(r.Context(), cookies[0].Value)
}

// ownPage reports whether a request with a cookie was made by a page of this server. Pages cannot set Sec-Fetch-Site or
// Origin. A request that changes something must prove its origin. A read may also come from the address bar, or from a
// browser that sends neither header, since no other page can read the answer.
func ownPage(r *http.Request) bool {
	looks := r.Method == http.MethodGet || r.Method == http.MethodHead
	sites := r.Header["Sec-Fetch-Site"]
	origin, one := originOf(r)
	switch {
	case !one || len(sites) > 1:
		return false
	case len(sites) == 1:
		return sites[0] == "same-origin" || looks && sites[0] == "none"
	case origin != "":
		host, ok := originHost(origin)
		return ok && host == r.Host
	}
	return looks
}

// CookieConfig configures session cookies.
type CookieConfig struct {
	Secret   string // HS256 secret that signs the tokens in the cookies
	Issuer   string // iss of these tokens
	Audience string // aud of these tokens; empty: none
	Secure   bool   // browsers reach the server by https
	Log      *slog.Logger
	Now      func() time.Time
}

// Cookies signs people in and out. A cookie holds a token of its own, with an id. Signing out revokes that token and
// leaves the token that the user signed in with valid.
type Cookies struct {
	c        CookieConfig
	entrance *Entrance
}

func NewCookies(c CookieConfig, e *Entrance) *Cookies { return &Cookies{c, e} }

// maxCookieLife is the longest lifetime of a sign-in, even if the token expires later.
const maxCookieLife = 30 * 24 * time.Hour

// errNotRecorded refuses a sign-in that could not be written to the audit log.
var errNotRecorded = errors.New("the sign-in could not be written to the audit log")

// Routes returns the routes to serve. None of them needs a credential.
func (c *Cookies) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"POST /auth/session": http.HandlerFunc(c.signIn),
		"POST /auth/logout":  http.HandlerFunc(c.signOut),
	}
}

// give sets a session cookie in the response.
func (c *Cookies) give(w http.ResponseWriter, r *http.Request, who port.Principal, until time.Time,
	record map[string]any) error {
	now := c.c.Now()
	if last := now.Add(maxCookieLife); until.After(last) {
		until = last
	}
	token, err := Mint(c.c.Secret, Claims{Issuer: c.c.Issuer, Audience: c.c.Audience, Principal: who, Issued: now,
		Expires: until, ID: rand.Text()})
	if err != nil {
		return err
	}
	if c.entrance.Record != nil {
		if err := c.entrance.Record.Did(r.Context(), who, port.AuditSignedIn, "user", string(who.ID),
			record); err != nil {
			c.c.Log.Error("a sign-in could not be written to the audit log, so it was refused", "error", err)
			return errNotRecorded
		}
	}
	c.set(w, r, token, int(until.Sub(now).Seconds()))
	return nil
}

func (c *Cookies) set(w http.ResponseWriter, r *http.Request, token string, age int) {
	http.SetCookie(w, &http.Cookie{Name: Cookie, Value: token, Path: "/", MaxAge: age, HttpOnly: true,
		Secure: c.c.Secure || r.TLS != nil, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Cache-Control", "no-store")
}

// signIn trades a token for a cookie. The request must come from a page of this server: another server's page could
// sign a user in under the name of an attacker.
func (c *Cookies) signIn(w http.ResponseWriter, r *http.Request) {
	from := Client(r, c.entrance.Proxies)
	id, err := c.shown(w, r)
	if err == nil {
		err = c.entrance.Gate.Request(id.Principal, from, false)
	} else if often := c.entrance.Gate.Attempt(from); often != nil {
		err = often
	}
	if err != nil {
		c.refuse(w, c.entrance.refuse(r.Context(), err, from))
		return
	}
	until := id.Expires
	if until.IsZero() {
		until = c.c.Now().Add(maxCookieLife)
	}
	if err := c.give(w, r, id.Principal, until, map[string]any{"with": "token", "roles": id.Roles}); err != nil {
		c.refuse(w, parley.Errorf(parley.CodeUnavailable, "Sign-in fails now; the server's log says why."))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// shown identifies the owner of the token in the body of a request.
func (c *Cookies) shown(w http.ResponseWriter, r *http.Request) (Identity, error) {
	if !ownPage(r) {
		return Identity{}, deny(OriginRefused, "a request to sign in did not come from a page of this server")
	}
	var body struct {
		Token string `json:"token"`
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return Identity{}, deny(NotJSON, "")
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 2*maxToken)).Decode(&body); err != nil {
		return Identity{}, deny(TokenInvalid, "the body is not {\"token\": …}")
	}
	return c.entrance.Auth.Token(r.Context(), body.Token)
}

// signOut deletes the cookie and revokes the token in it.
func (c *Cookies) signOut(w http.ResponseWriter, r *http.Request) {
	from := Client(r, c.entrance.Proxies)
	if !ownPage(r) {
		c.refuse(w, c.entrance.refuse(r.Context(), deny(OriginRefused, ""), from))
		return
	}
	if id, err := c.entrance.Auth.jwt.byCookie(r); err == nil {
		record := didOf(c.c.Now(), id.Principal, port.AuditSignedOut, "user", string(id.Principal.ID), nil)
		if err := c.entrance.Revocations.SignOut(r.Context(), id, record); err != nil {
			c.c.Log.Error("a session cookie could not be revoked; it is valid until it expires", "error", err)
		}
	}
	c.set(w, r, "", -1)
	w.Header().Set("Clear-Site-Data", `"cache"`)
	w.WriteHeader(http.StatusNoContent)
}

// refuse writes an error as every route under /api/v1 does.
func (c *Cookies) refuse(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	if denied, ok := errors.AsType[*Denied](err); ok {
		status = denied.Status(w.Header())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{ // the client may have gone
		"code": parley.CodeOf(err), "message": parley.MessageOf(err)}})
}
