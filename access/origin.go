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

// checkLocal keeps pages of others out of local mode, where every client has all
// rights. A page of any site, or of another program on this machine, can have a
// browser send requests here. It cannot hide its Origin, nor, with a name of its
// own that resolves to this machine, the Host. And without asking first a browser
// sends no JSON for another origin.
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

// ownOrigin reports whether an origin is that of a server which was reached under
// a Host of this machine: the same host and port, or the same port of localhost.
func ownOrigin(origin, reached string) bool {
	at, ok := originHost(origin)
	if !ok || !strings.HasPrefix(origin, "http://") {
		return false
	}
	name, port := splitHost(at)
	_, own := splitHost(reached)
	return at == reached || port == own && (name == "localhost" || name == "127.0.0.1" || name == "::1")
}

// splitHost parts a Host; without a port it has that of http.
func splitHost(host string) (name, port string) {
	if name, port, err := net.SplitHostPort(host); err == nil {
		return name, port
	}
	return strings.Trim(host, "[]"), "80"
}

// checkOrigin compares with a list, letter by letter: browsers write an origin
// in one way only. With no list, a page may use the server it came from. Who
// sends no Origin is not a browser that acts for a page, and still needs a
// credential; where that is a cookie more is asked, see ownPage.
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

// originOf is the Origin of a request, which may be empty; there may be one.
func originOf(r *http.Request) (origin string, one bool) {
	return r.Header.Get("Origin"), len(r.Header["Origin"]) <= 1
}

// originHost is the host and port of an origin as browsers write them: scheme,
// host in lower case, perhaps a port, and nothing else.
func originHost(origin string) (string, bool) {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		origin != u.Scheme+"://"+strings.ToLower(u.Host) {
		return "", false
	}
	for _, r := range u.Host {
		if r > '~' || r == '%' || r == '@' {
			return "", false // names of other scripts are written in ASCII
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
