package access

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Client returns the address that a request comes from. It believes X-Forwarded-For only as far as trusted proxies
// wrote it: going back from the peer, it returns the first address that is not a trusted proxy. Any client can write
// the rest.
func Client(r *http.Request, proxies []netip.Prefix) netip.Addr {
	at := parseAddr(r.RemoteAddr)
	if !trusted(at, proxies) {
		return at
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		next := parseAddr(strings.TrimSpace(hops[i]))
		if !next.IsValid() {
			break // this proxy added no usable address
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

// parseAddr parses an address with or without a port. It returns the zero Addr if s is neither.
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

// blockOf returns the block of addresses that counts as one visitor: one IPv4
// address, or an IPv6 /64. All unknown addresses count as one.
func blockOf(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 32
	}
	block, _ := a.Prefix(bits) // an invalid address has the zero Prefix
	return block
}

// loopbackHost reports whether a Host header names this machine, with or without a port.
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
