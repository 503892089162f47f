package access

import (
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkLocal keeps pages of other sites out of local mode, where every client has all rights. A page of any site, or of
// another program on this machine, can make a browser send requests here. It cannot hide its Origin. Nor can it hide
// the Host, if it uses its own name that resolves to this machine. And a browser does not send JSON to another origin
// without a preflight request.
func checkLocal(r *http.Request, allowed []string) error {
	origin, one := originOf(r)
	switch {
	case !loopbackHost(r.Host):
		return deny(HostRefused, "")
	case !one || origin != "" && !ownOrigin(origin, r.Host) && !slices.Contains(allowed, origin):
		return deny(OriginRefused, "")
	case r.Method == http.MethodPost && r.ContentLength != 0 && !isJSON(r.Header.Get("Content-Type")):
		return deny(NotJSON, "")
	}
	return nil
}

// ownOrigin reports whether an origin belongs to a server reached on this machine: the same host and port as reached,
// or localhost with the same port.
func ownOrigin(origin, reached string) bool {
	at, ok := originHost(origin)
	if !ok || !strings.HasPrefix(origin, "http://") {
		return false
	}
	name, port := splitHost(at)
	_, own := splitHost(reached)
	return at == reached || port == own && (name == "localhost" || name == "127.0.0.1" || name == "::1")
}

// splitHost splits a Host header; without a port it returns the port of http.
func splitHost(host string) (name, port string) {
	if name, port, err := net.SplitHostPort(host); err == nil {
		return name, port
	}
	return strings.Trim(host, "[]"), "80"
}

// checkOrigin compares the Origin with a list, byte by byte: browsers write an
// origin in one way only. Without a list, a page may use only the server it
// came from. A request without an Origin does not come from a page in a
// browser, and still needs a credential. If the credential is a cookie, more is
// checked: see ownPage.
func checkOrigin(r *http.Request, allowed []string) error {
	origin, one := originOf(r)
	switch {
	case !one:
	case origin == "":
		return nil
	case len(allowed) == 0:
		if host, ok := originHost(origin); ok && host == r.Host {
			return nil
		}
	case slices.Contains(allowed, origin):
		return nil
	}
	return deny(OriginRefused, "")
}

// originOf returns the Origin of a request, which may be empty. one is false if the request has several.
func originOf(r *http.Request) (origin string, one bool) {
	return r.Header.Get("Origin"), len(r.Header["Origin"]) <= 1
}

// originHost returns the host and port of an origin as browsers write it:
// scheme, host in lower case, an optional port, and nothing else.
func originHost(origin string) (string, bool) {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		origin != u.Scheme+"://"+strings.ToLower(u.Host) {
		return "", false
	}
	for _, r := range u.Host {
		if r > '~' || r == '%' || r == '@' {
			return "", false // browsers write names in other scripts in ASCII (punycode)
		}
	}
	if _, port, err := net.SplitHostPort(u.Host); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return "", false
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return "", false
	}
	return u.Host, true
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}
