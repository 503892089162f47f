package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"parley/port"
)

// Signing contains the settings with which tokens are signed and verified.
type Signing struct {
	JWTSecret   Secret `name:"jwt-secret" var:"PARLEY_JWT_SECRET" placeholder:"TEXT" group:"Access" help:"With --auth jwt: HS256 secret that signs tokens, at least 32 bytes. Prefer the variable: other users of the machine can see flags."`
	JWTIssuer   string `name:"jwt-issuer" var:"PARLEY_JWT_ISSUER" default:"parley" group:"Access" help:"Issuer (iss) of tokens."`
	JWTAudience string `name:"jwt-audience" var:"PARLEY_JWT_AUDIENCE" placeholder:"TEXT" group:"Access" help:"Audience (aud) of tokens (default: not checked)."`
}

// Access contains the settings for authentication, origins and rate limits.
type Access struct {
	Auth string `var:"PARLEY_AUTH" default:"local" group:"Access" help:"Authentication. local: every user of this machine, without a credential; jwt: callers with a token."`
	Signing
	OIDC               `group:"Sign-in with OpenID Connect"`
	JWKSURL            string  `name:"jwks-url" var:"PARLEY_JWKS_URL" placeholder:"URL" group:"Access" help:"With --auth jwt: address of the public keys (JWKS) that verify tokens, instead of a secret."`
	QueryToken         string  `var:"PARLEY_QUERY_TOKEN" default:"on" group:"Access" help:"Whether a token in the query (?access_token=) is accepted: on or off. Browsers that open a WebSocket without a ticket need it."`
	AllowOrigin        Origins `aliases:"allowed-origins" repeat:"" var:"PARLEY_ALLOW_ORIGIN,PARLEY_ALLOWED_ORIGINS" placeholder:"LIST" group:"Address" help:"Origins of pages that may use the server, like https://app.example.com; repeat the flag or separate them by commas (default: the server's own). With --auth local the server's own origin is always allowed; with --auth jwt name it too."`
	TrustedProxies     Proxies `var:"PARLEY_TRUSTED_PROXIES" placeholder:"LIST" group:"Address" help:"Addresses of proxies whose X-Forwarded-For header is trusted, such as 10.0.0.0/8, separated by commas."`
	LimitConnections   Limit   `var:"PARLEY_LIMIT_CONNECTIONS" placeholder:"N/minute|off" group:"Limits" help:"Maximum rate of new connections per user or address (default: 10/minute; with --auth local, off)."`
	LimitMessages      Limit   `var:"PARLEY_LIMIT_MESSAGES" placeholder:"N/minute|off" group:"Limits" help:"Maximum rate of messages per connection (default: 60/minute; with --auth local, off)."`
	LimitReconnections Limit   `var:"PARLEY_LIMIT_RECONNECTIONS" placeholder:"N/minute|off" group:"Limits" help:"Maximum rate of reconnections per user or address (default: 5/minute; with --auth local, off)."`
	MaxConnections     int     `var:"PARLEY_MAX_CONNECTIONS" default:"10000" group:"Limits" help:"Maximum number of open connections."`
}

// Limits returns the rate limits: those that were given, or else those of the mode.
func (a *Access) Limits() (connections, messages, reconnections port.Rate) {
	pick := func(l Limit, n int) port.Rate {
		if l.Given || a.Auth == "local" {
			return l.Rate
		}
		return port.Rate{N: n, Per: time.Minute}
	}
	return pick(a.LimitConnections, 10), pick(a.LimitMessages, 60), pick(a.LimitReconnections, 5)
}

// A Limit is a rate, and whether it was given.
type Limit struct {
	port.Rate
	Given bool
}

func (l *Limit) UnmarshalText(text []byte) error {
	l.Given = true
	return l.Rate.UnmarshalText(text)
}

// Origins are the origins of web pages, exactly as browsers write them.
type Origins []string

func (o *Origins) UnmarshalText(text []byte) error {
	for _, origin := range commas(text) {
		if err := checkOrigin(origin); err != nil {
			return err
		}
		*o = append(*o, origin)
	}
	return nil
}

// checkOrigin accepts only the form in which browsers write an origin. Origins
// are compared letter by letter, so any other form would never match.
func checkOrigin(origin string) error {
	if strings.Contains(origin, "*") {
		return fmt.Errorf("%q would allow sites that are not named; name each origin", origin)
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		origin != u.Scheme+"://"+strings.ToLower(u.Host) ||
		u.Hostname() == "" || strings.HasSuffix(u.Host, ":") || u.Port() == map[string]string{"http": "80",
		"https": "443"}[u.Scheme] ||
		strings.ContainsFunc(origin, func(r rune) bool { return r > '~' }) {
		return fmt.Errorf("%q is not an origin as browsers send it; write https://app.example.com: in small letters "+
			"and ASCII, with a port unless it is the usual one, and nothing after it", origin)
	}
	return nil
}

// Proxies are blocks of addresses. A single address is a block of one.
type Proxies []netip.Prefix

func (p *Proxies) UnmarshalText(text []byte) error {
	*p = nil
	for _, block := range commas(text) {
		prefix, err := netip.ParsePrefix(block)
		if addr, bad := netip.ParseAddr(block); bad == nil && addr.Zone() == "" {
			prefix, err = addr.Unmap().Prefix(addr.Unmap().BitLen())
		}
		switch {
		case err != nil:
			return fmt.Errorf("%q is no block of addresses; write it like 10.0.0.0/8 or 192.0.2.7", block)
		case prefix != prefix.Masked():
			return fmt.Errorf("%q is an address within a block; write %s, or the address alone", block, prefix.Masked())
		case prefix.Bits() == 0:
			return fmt.Errorf("%q covers every client, so any client could choose the address that it is counted "+
				"under; name your proxies", block)
		}
		*p = append(*p, prefix)
	}
	return nil
}

func commas(text []byte) []string {
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || r == ' ' })
}

// validateAccess never repeats a secret, nor a URL, which may hold a password.
func (a *Access) validateAccess() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch a.Auth {
	case "local":
		if a.JWTSecret != "" || a.JWKSURL != "" {
			wrong("a secret or keys for tokens are set (PARLEY_JWT_SECRET or PARLEY_JWKS_URL), but --auth local " +
				"accepts no tokens; set PARLEY_AUTH=jwt, or remove them")
		}
	case "jwt":
		switch {
		case a.JWTSecret != "" && a.JWKSURL != "":
			wrong("--jwt-secret and --jwks-url are both set; remove one, because tokens are verified by one of them")
		case a.JWTSecret == "" && a.JWKSURL == "":
			wrong("--auth jwt needs a key to verify tokens by; set PARLEY_JWT_SECRET or --jwks-url")
		case a.JWKSURL == "" && len(a.JWTSecret) < 32:
			wrong("--jwt-secret has %d bytes, which can be guessed; use at least 32 random ones, as openssl rand "+
				"-base64 48 prints them", len(a.JWTSecret))
		case a.JWKSURL != "" && !safeURL(a.JWKSURL):
			wrong("--jwks-url must be https without a password in it, or http on this machine: a party that can " +
				"change its answers can make tokens")
		}
	default:
		wrong("--auth %s is no mode; use local or jwt", a.Auth)
	}
	if a.QueryToken != "on" && a.QueryToken != "off" {
		wrong("--query-token %s is neither on nor off", a.QueryToken)
	}
	if a.MaxConnections < 1 {
		wrong("--max-connections %d refuses every client; use 1 or more", a.MaxConnections)
	}
	return errors.Join(errs...)
}

func safeURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" &&
		loopback(u.Hostname()))
}

// loopback reports whether a host is only reachable from this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// validateReach allows local mode only on loopback addresses, because every
// client then has all rights.
func (a *Access) validateReach(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || a.Auth != "local" || loopback(host) {
		return nil
	}
	return fmt.Errorf("--listen %s can be reached from other machines, and --auth local asks for no credential; "+
		"use 127.0.0.1:%s, or --auth jwt", listen, port)
}
