package access

import "net/http"

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
	return c.Verifier.Verify(r.Context(), cookies[0].Value)
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
