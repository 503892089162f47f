package webhook

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"parley"
)

// Allow lists what webhooks may reach besides the public internet: blocks of
// addresses, and hosts by name, whatever their address. An allowed target need
// not use https.
type Allow struct {
	Blocks []netip.Prefix
	Hosts  []string // in lower case
}

// ParseAllow parses the list in PARLEY_WEBHOOK_ALLOW.
func ParseAllow(list []string) (a Allow, err error) {
	for _, entry := range list {
		prefix, err := netip.ParsePrefix(entry)
		if addr, bad := netip.ParseAddr(entry); bad == nil && addr.Zone() == "" {
			prefix, err = addr.Unmap().Prefix(addr.Unmap().BitLen())
		}
		switch {
		case err == nil && prefix != prefix.Masked():
			return a, fmt.Errorf("%q is an address within a block; write %s, or the address alone", entry,
				prefix.Masked())
		case err == nil:
			a.Blocks = append(a.Blocks, prefix)
		case !strings.Contains(entry, "/") && badHost(strings.ToLower(entry)) == "":
			a.Hosts = append(a.Hosts, strings.ToLower(entry))
		default:
			return a, fmt.Errorf("%q is neither a block of addresses nor a host; write it like 10.1.0.0/16, 192.0.2.7 "+
				"or hooks.internal", entry)
		}
	}
	return a, nil
}

func (a Allow) host(name string) bool {
	for _, h := range a.Hosts {
		if h == name {
			return true
		}
	}
	return false
}

func (a Allow) addr(ip netip.Addr) bool {
	for _, b := range a.Blocks {
		if b.Contains(ip) {
			return true
		}
	}
	return false
}

// special has the blocks within the publicly routed ranges that are not public:
// blocks for this machine or network, for examples, or for embedded addresses
// of the other family.
var special = func() (list []netip.Prefix) {
	for _, block := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		list = append(list, netip.MustParsePrefix(block))
	}
	return list
}()

var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // its last 32 bits are an IPv4 address
	unicast = netip.MustParsePrefix("2000::/3")     // all IPv6 addresses that are routed
)

// public reports whether an address belongs to the public internet. Unknown
// addresses do not.
func public(ip netip.Addr) bool {
	if ip.Zone() != "" {
		return false
	}
	ip = ip.Unmap()
	if nat64.Contains(ip) {
		raw := ip.As16()
		ip = netip.AddrFrom4([4]byte(raw[12:]))
	}
	if !ip.IsValid() || !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6() && !unicast.Contains(ip) {
		return false
	}
	for _, block := range special {
		if block.Contains(ip) {
			return false
		}
	}
	return true
}

// mayDial checks an address immediately before a connection to it, after name
// resolution: a name may resolve to another address the next time.
func (a Allow) mayDial(to *url.URL, ip netip.Addr) error {
	ip = ip.Unmap()
	switch {
	case a.host(strings.ToLower(to.Hostname())) || a.addr(ip):
		return nil
	case !public(ip):
		return parley.Errorf(parley.CodeForbidden, "Webhooks do not reach private addresses, and the host of this one "+
			"has such an address; the operator may allow it by PARLEY_WEBHOOK_ALLOW.")
	case to.Scheme != "https":
		return parley.Errorf(parley.CodeForbidden, "A webhook needs an https address.")
	}
	return nil
}

// maxURL is the maximum length of a URL, in bytes.
const maxURL = 2048

// Check returns an error if the URL of a webhook is invalid or may not be
// reached, as far as that is known without name resolution. target is its
// host:port.
func (a Allow) Check(text string) (target string, err error) {
	u, err := parse(text)
	if err != nil {
		return "", err
	}
	host := strings.ToLower(u.Hostname())
	ip, literal := netip.ParseAddr(host)
	switch {
	case literal == nil:
		if err := a.mayDial(u, ip); err != nil {
			return "", err
		}
	case u.Scheme != "https" && !a.host(host) && len(a.Blocks) == 0: // otherwise its resolved address decides
		return "", parley.Errorf(parley.CodeForbidden, "A webhook needs an https address; write https://…, or have the "+
			"operator allow the host by PARLEY_WEBHOOK_ALLOW.")
	case local(host) && !a.host(host) && len(a.Blocks) == 0:
		return "", parley.Errorf(parley.CodeForbidden, "%s is a name of this machine or network; the operator may "+
			"allow it by PARLEY_WEBHOOK_ALLOW.", host)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(host, port), nil
}

// local reports whether a name cannot belong to a host on the internet.
func local(host string) bool {
	if !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// parse parses a URL that has the same meaning for every parser. Parsers differ
// over text before an @, over unusual numbers, and over characters that are not
// ASCII.
func parse(text string) (*url.URL, error) {
	wrong := func(format string, args ...any) (*url.URL, error) {
		return nil, parley.Errorf(parley.CodeInvalid, "The url of a webhook "+format, args...)
	}
	if len(text) > maxURL {
		return wrong("has at most %d bytes.", maxURL)
	}
	if text == "" {
		return wrong("is missing.")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) || strings.ContainsAny(text, `\`) {
		return wrong(
			"is ASCII without spaces and backslashes; a name in another script is written as punycode (xn--…).")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Opaque != "":
		return wrong("is like https://example.com/path.")
	case u.User != nil:
		return wrong("has no name and password in it; the receiver recognises this server by the signature.")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return wrong("has no fragment: it would not be sent.")
	case u.Port() == "" && strings.HasSuffix(u.Host, ":"):
		return wrong("has a colon and no port.")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return wrong("has the port %s, which there is not.", port)
		}
	}
	if why := badHost(strings.ToLower(u.Hostname())); why != "" {
		return wrong("%s", why)
	}
	return u, nil
}

// badHost returns what is wrong with a host; empty: nothing.
func badHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "has an address with a zone, which means something on one machine only."
		}
		return ""
	}
	name := strings.TrimSuffix(host, ".")
	if name == "" || len(name) > 253 {
		return "has a host that is none."
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.ContainsFunc(label, func(r rune) bool {
				return r != '-' && r != '_' && (r < '0' || r > '9') &&
					(r < 'a' || r > 'z')
			}) {
			return "has a host that is none."
		}
	}
	// Some parsers take a name that ends in a number for an IPv4 address:
	// 2130706433, 0x7f.1, 127.1 and 017700000001 are all 127.0.0.1.
	last := labels[len(labels)-1]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || last[0] >= '0' && last[0] <= '9' {
		return "has an address in an unusual form; write four numbers from 0 to 255, like 192.0.2.7, or a name."
	}
	return ""
}
