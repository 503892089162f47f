package config

import (
	"fmt"
	"net"
)

// Metrics contains the address of /metrics and its token. In local mode the server
// itself serves /metrics, too.
type Metrics struct {
	MetricsListen string `var:"PARLEY_METRICS_LISTEN" placeholder:"ADDRESS" help:"Address to serve /metrics on, for Prometheus. An address that other machines reach needs --metrics-token. Default: the server's own address with --auth local, none with jwt."`
	MetricsToken  Secret `var:"PARLEY_METRICS_TOKEN" placeholder:"TEXT" help:"Bearer token for --metrics-listen, at least 16 bytes. Prefer the variable: other users of the machine can see flags."`
}

// validateMetrics checks the address and the token. Metrics cover all tenants, so
// they are for the operator, and no role of a tenant gives access to them.
func (m *Metrics) validateMetrics() error {
	if m.MetricsListen == "" {
		if m.MetricsToken != "" {
			return fmt.Errorf("--metrics-token has no effect without --metrics-listen; set --metrics-listen, or " +
				"remove the token")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(m.MetricsListen)
	switch {
	case err != nil:
		return fmt.Errorf("--metrics-listen %s is not an address; write HOST:PORT, like 127.0.0.1:9464",
			m.MetricsListen)
	case m.MetricsToken != "" && len(m.MetricsToken) < 16:
		return fmt.Errorf("--metrics-token has %d bytes, which can be guessed; use at least 16 random ones",
			len(m.MetricsToken))
	case m.MetricsToken == "" && !loopback(host):
		return fmt.Errorf("--metrics-listen %s would show metrics to other machines without a token; "+
			"use an address like 127.0.0.1:9464, or set PARLEY_METRICS_TOKEN", m.MetricsListen)
	}
	return nil
}
