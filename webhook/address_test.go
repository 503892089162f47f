package webhook

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"parley"
)

// TestPublicAddresses checks that addresses of the machine, its network, or
// special blocks are not public, in whatever form they are written.
func TestPublicAddresses(t *testing.T) {
	for _, ip := range []string{"8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::1",
		"::ffff:8.8.8.8", "64:ff9b::8.8.8.8"} {
		if !public(netip.MustParseAddr(ip)) {
			t.Errorf("%s is public", ip)
		}
	}
	for _, ip := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "100.127.255.255",
		"192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1",
		"::ffff:169.254.169.254", "::127.0.0.1",
		"64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2001::1", "2001:db8::1",
		"2002:7f00:1::", "2002:a00:1::", "3fff::1", "100::1", "5f00::1",
	} {
		if public(netip.MustParseAddr(ip)) {
			t.Errorf("%s is not public", ip)
		}
	}
}

// FuzzPublic checks that an embedded address is as public as the address
// itself, and that no address is public that the standard library takes for
// local.
func FuzzPublic(f *testing.F) {
	for _, ip := range []string{"127.0.0.1", "8.8.8.8", "::1", "64:ff9b::7f00:1", "2002:7f00:1::", "fe80::1"} {
		f.Add(netip.MustParseAddr(ip).AsSlice())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ip, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		got, bare := public(ip), ip.Unmap()
		std := net.IP(bare.AsSlice())
		if got && (std.IsLoopback() || std.IsPrivate() || std.IsLinkLocalUnicast() || std.IsMulticast() ||
			std.IsUnspecified() || std.IsInterfaceLocalMulticast() || std.Equal(net.IPv4bcast)) {
			t.Errorf("%s is public", ip)
		}
		if bare.Is4() {
			mapped := netip.AddrFrom16(bare.As16())
			v4 := bare.As4()
			translated := netip.AddrFrom16([16]byte{0: 0, 1: 0x64, 2: 0xff, 3: 0x9b, 12: v4[0], 13: v4[1], 14: v4[2],
				15: v4[3]})
			if public(mapped) != got || public(translated) != got ||
				public(netip.AddrFrom16([16]byte{0x20, 0x02, v4[0], v4[1], v4[2], v4[3]})) {
				t.Errorf("%s: %v, mapped %v, translated %v", ip, got, public(mapped), public(translated))
			}
		}
	})
}

// TestURLs checks that an ambiguous URL is refused, with what to write instead.
func TestURLs(t *testing.T) {
	none := Allow{}
	for text, target := range map[string]string{
		"https://example.com":              "example.com:443",
		"https://Hooks.Example.com/a?b=c":  "hooks.example.com:443",
		"https://example.com:8443/x":       "example.com:8443",
		"https://93.184.216.34/x":          "93.184.216.34:443",
		"https://[2606:4700::1111]:444/x":  "[2606:4700::1111]:444",
		"https://xn--bcher-kva.example/ok": "xn--bcher-kva.example:443",
	} {
		if got, err := none.Check(text); err != nil || got != target {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for text, words := range map[string]string{
		"":                                           "is missing",
		"example.com":                                "is like https://",
		"/path":                                      "is like https://",
		"ftp://example.com":                          "is like https://",
		"file:///etc/passwd":                         "is like https://",
		"gopher://127.0.0.1:25/x":                    "is like https://",
		"https:example.com":                          "is like https://",
		"https://":                                   "is like https://",
		"https:///path":                              "is like https://",
		"http://example.com":                         "needs an https address",
		"https://user@example.com":                   "no name and password",
		"https://example.com@127.0.0.1":              "no name and password",
		"https://example.com:x@127.0.0.1/":           "no name and password",
		"https://example.com\\@127.0.0.1":            "backslashes",
		"https://example.com#@127.0.0.1":             "no fragment",
		"https://example.com#":                       "no fragment",
		"https://example.com/ x":                     "without spaces",
		"https://exam\tple.com":                      "without spaces",
		"https://example.com/\r\nHost: x":            "without spaces",
		"https://bücher.example":                     "punycode",
		"https://ｅxample.com":                        "punycode",
		"https://example.com:":                       "no port",
		"https://example.com:0":                      "which there is not",
		"https://example.com:65536":                  "which there is not",
		"https://2130706433":                         "unusual form",
		"https://0x7f000001":                         "unusual form",
		"https://0x7f.1":                             "unusual form",
		"https://127.1":                              "unusual form",
		"https://017700000001":                       "unusual form",
		"https://0177.0.0.1":                         "unusual form",
		"https://127.0.0.1.":                         "unusual form",
		"https://1.2.3.4.5":                          "unusual form",
		"https://exa_mple..com":                      "a host that is none",
		"https://-x.example":                         "a host that is none",
		"https://%31%32%37.0.0.1":                    "is like https://",
		"https://[fe80::1%25eth0]":                   "zone",
		"https://127.0.0.1":                          "private addresses",
		"https://[::1]":                              "private addresses",
		"https://[::ffff:127.0.0.1]":                 "private addresses",
		"https://[64:ff9b::7f00:1]":                  "private addresses",
		"https://169.254.169.254/latest/meta":        "private addresses",
		"https://10.0.0.1":                           "private addresses",
		"https://localhost":                          "name of this machine",
		"https://intranet":                           "name of this machine",
		"https://metadata.google.internal":           "name of this machine",
		"https://printer.local":                      "name of this machine",
		"https://e.com/" + strings.Repeat("x", 2100): "at most",
	} {
		if got, err := none.Check(text); err == nil || !strings.Contains(parley.MessageOf(err), words) {
			t.Errorf("%.60q: %q, %v; want %q", text, got, err, words)
		}
	}
	allow, err := ParseAllow([]string{"10.1.0.0/16", "192.0.2.7", "Hooks.Internal", "::1"})
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		"http://10.1.2.3/x": true, "http://10.2.2.3/x": false, "http://192.0.2.7": true, "https://192.0.2.8": false,
		"http://hooks.internal:8080": true, "http://[::1]:80": true,
		"https://[::ffff:10.1.2.3]": true, "http://93.184.216.34/": false, "http://user@10.1.2.3": false,
	} {
		if _, err := allow.Check(text); (err == nil) != ok {
			t.Errorf("%s: %v, want %v", text, err, ok)
		}
	}
	for _, bad := range []string{"10.0.0.1/8", "*", "http://x.example", "x.example/y", "10.0.0.0/33", "a b"} {
		if _, err := ParseAllow([]string{bad}); err == nil {
			t.Errorf("%q can be allowed", bad)
		}
	}
}

// FuzzURLs checks that Go's own parser and parse agree on the host of every
// accepted URL, and that the host is not local.
func FuzzURLs(f *testing.F) {
	for _, text := range []string{"https://example.com/x", "https://example.com@127.0.0.1", "https://2130706433",
		"https://[::1]", "https://0x7f.1/", "https://127.0.0.1.:443"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := (Allow{}).Check(text)
		if err != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.User != nil || u.Scheme != "https" {
			t.Fatalf("%q was let through", text)
		}
		host, _, err := net.SplitHostPort(target)
		if err != nil || host != strings.ToLower(u.Hostname()) {
			t.Fatalf("%q leads to %q", text, target)
		}
		if ip := net.ParseIP(host); ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() ||
			ip.IsUnspecified()) {
			t.Fatalf("%q leads to %s", text, ip)
		}
	})
}

// TestResolvedAddressesAreChecked covers a name that was harmless when the webhook
// was set and resolves to a local address at the delivery. The local server
// must get no request.
func TestResolvedAddressesAreChecked(t *testing.T) {
	var heard atomic.Int32
	addr := receiver(t, func(http.ResponseWriter, *http.Request) { heard.Add(1) })
	_, port, _ := net.SplitHostPort(addr)
	s := newSender(Allow{}, "test")
	defer s.close()
	for _, host := range []string{"localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "2130706433"} {
		u := &url.URL{Scheme: "https", Host: host + ":" + port}
		ctx := context.WithValue(t.Context(), dialledKey{}, &dialling{to: u})
		conn, err := s.client.Transport.(*http.Transport).DialContext(ctx, "tcp",
			net.JoinHostPort(strings.Trim(host, "[]"), port))
		if err == nil {
			conn.Close()
			t.Errorf("%s was reached", host)
		}
	}
	// If the block or the name is allowed, the server gets the request.
	for _, entry := range []string{"127.0.0.0/8", "localhost"} {
		allow, err := ParseAllow([]string{entry})
		if err != nil {
			t.Fatal(err)
		}
		s := newSender(allow, "test")
		if v := s.send(t.Context(), "http://localhost:"+port+"/", make([]byte, 32), "msg_1", t0,
			[]byte("{}")); !v.done {
			t.Errorf("%s: %+v", entry, v)
		}
		s.close()
	}
	if n := heard.Load(); n != 2 {
		t.Errorf("%d requests came through", n)
	}
}
