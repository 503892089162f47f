package access

import (
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// checkLocal keeps other sites out of local mode, where whoever connects may do
// everything. A page anywhere can have a browser send requests to this machine;
// it cannot hide that they come from that page, nor, having a name of its own
// resolve here, under which name they were sent. And without being asked first
// a browser sends no JSON for another site.
func checkLocal(r *http.Request) error {
	origin, one := originOf(r)
	switch {
	case !loopbackHost(r.Host):
		return deny(HostRefused, "")
	case !one || origin != "" && !loopbackOrigin(origin):
		return deny(OriginRefused, "")
	case r.Method == http.MethodPost && r.ContentLength != 0 && !isJSON(r.Header.Get("Content-Type")):
		return deny(NotJSON, "")
	}
	return nil
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
	default:
		for _, a := range allowed {
			if a == origin {
				return nil
			}
		}
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
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || origin != u.Scheme+"://"+strings.ToLower(u.Host) {
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

func loopbackOrigin(origin string) bool {
	host, ok := originHost(origin)
	return ok && loopbackHost(host)
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}
