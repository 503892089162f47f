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

// Cookie holds the token of who signed in with a browser. Scripts cannot read it,
// and browsers send it with whatever is asked of this server, so where it comes
// from has to be looked at: see ownPage.
const Cookie = "parley_session"

// byCookie says whose cookie comes with a request. It is no credential for a
// socket: an upgrade is a GET that can do everything, and pages get tickets.
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

// ownPage reports whether a request that a browser sends by itself was made by a
// page of this server. Pages cannot write these two headers. A request that
// changes something must prove it; one that only looks may also come from the
// address bar, or from a browser that does not tell, since no other page can read
// the answer.
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

// CookieConfig says how session cookies are made.
type CookieConfig struct {
	Secret   string // of HS256: what signs the tokens in them
	Issuer   string // of those
	Audience string // of those; empty: none
	Secure   bool   // browsers reach us by https
	Log      *slog.Logger
	Now      func() time.Time
}

// Cookies sign people in and out. A cookie holds a token of its own, with an id, so that signing out ends it and leaves
// the token that the person has.
type Cookies struct {
	c        CookieConfig
	entrance *Entrance
}

func NewCookies(c CookieConfig, e *Entrance) *Cookies { return &Cookies{c, e} }

// maxCookieLife is how long a sign-in lasts at most, whatever the token says.
const maxCookieLife = 30 * 24 * time.Hour

// errNotRecorded: a sign-in that is not on record is none.
var errNotRecorded = errors.New("the sign-in could not be written to the audit log")

// Routes lists what is served. None of it needs a credential.
func (c *Cookies) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"POST /auth/session": http.HandlerFunc(c.signIn),
		"POST /auth/logout":  http.HandlerFunc(c.signOut),
	}
}

// give puts a cookie into an answer.
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

// signIn trades a token for a cookie. The page must be of this server: a page of another server could sign a user in
// under the name of an attacker.
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
		c.refuse(w, parley.Errorf(parley.CodeUnavailable, "Nobody can sign in now; the server's log says why."))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// shown is whose token is in the body of a request.
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

// signOut takes the cookie away, and revokes the token in it.
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

// refuse answers as every route under /api/v1 does.
func (c *Cookies) refuse(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	if denied, ok := errors.AsType[*Denied](err); ok {
		status = denied.Status(w.Header())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{ // nobody left to tell
		"code": parley.CodeOf(err), "message": parley.MessageOf(err)}})
}
