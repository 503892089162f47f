package config

import (
	"fmt"
	"net"
)

// Metrics is where numbers are served besides /metrics of a server in local mode.
type Metrics struct {
	MetricsListen string `var:"PARLEY_METRICS_LISTEN" placeholder:"ADDRESS" help:"Address to serve /metrics on, for Prometheus; beyond this machine only with a token (default: with --auth local on the server's own, with jwt none)."`
	MetricsToken  Secret `var:"PARLEY_METRICS_TOKEN" placeholder:"TEXT" help:"Bearer token that readers of --metrics-listen must send, at least 16 bytes. Better a variable than a flag, which others see in the list of processes."`
}

// validateMetrics: the numbers are those of all tenants together, so they are for
// who runs the server, and no role of a tenant opens them.
func (m *Metrics) validateMetrics() error {
	if m.MetricsListen == "" {
		if m.MetricsToken != "" {
			return fmt.Errorf("--metrics-token is given, and no --metrics-listen that asks for it; name an address, or take it away")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(m.MetricsListen)
	switch {
	case err != nil:
		return fmt.Errorf("--metrics-listen %s is not an address; write HOST:PORT, like 127.0.0.1:9464", m.MetricsListen)
	case m.MetricsToken != "" && len(m.MetricsToken) < 16:
		return fmt.Errorf("--metrics-token has %d bytes, which can be guessed; use at least 16 random ones", len(m.MetricsToken))
	case m.MetricsToken == "" && !loopback(host):
		return fmt.Errorf("--metrics-listen %s could be read from other machines by everybody; use an address like 127.0.0.1:9464, or set PARLEY_METRICS_TOKEN", m.MetricsListen)
	}
	return nil
}
