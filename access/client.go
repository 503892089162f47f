package access

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Client is the address a request comes from. What a header says about it is
// believed as far as it was written by proxies of ours: going back from the
// peer, the first address that is not one of theirs. Anybody can write the rest.
func Client(r *http.Request, proxies []netip.Prefix) netip.Addr {
	at := parseAddr(r.RemoteAddr)
	if !trusted(at, proxies) {
		return at
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		next := parseAddr(strings.TrimSpace(hops[i]))
		if !next.IsValid() {
			break // the proxy at hand has said nothing one could use
		}
		if at = next; !trusted(at, proxies) {
			break
		}
	}
	return at
}

func trusted(a netip.Addr, proxies []netip.Prefix) bool {
	for _, p := range proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// parseAddr reads an address with or without a port; invalid if it is neither.
func parseAddr(s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil {
		ap, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}
		}
		a = ap.Addr()
	}
	return a.Unmap().WithZone("")
}

// blockOf is what one visitor can be expected to have: an address of IPv4, or a
// /64 of IPv6. All whose address is not known are one.
func blockOf(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 32
	}
	block, _ := a.Prefix(bits) // an invalid address has the zero block
	return block
}

// loopbackHost reports whether a Host names this machine, with or without a port.
func loopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
		if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
			name = host[1 : len(host)-1]
		}
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}
