package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"parley/config"
	"parley/metrics"
	"parley/server"
)

// ports are the listeners of a server. Commands and MCP servers of agents do not
// reach them.
type ports struct {
	main net.Listener
	all  []net.Listener
}

// listen opens every port before the store is opened: an address in use is found
// out without touching anything.
func listen(c *config.Settings, m *metrics.Metrics, made *parts, log *slog.Logger) (p ports, err error) {
	open := func(flag, address string) (l net.Listener, err error) {
		if l, err = net.Listen("tcp", address); err != nil {
			return nil, fmt.Errorf("cannot listen on %s: %w (choose another address with --%s)", address, err, flag)
		}
		p.all = append(p.all, l)
		return l, nil
	}
	if p.main, err = open("listen", c.Listen); err != nil {
		return p, err
	}
	made.open("listener", onceClosed{p.main})
	if c.AdminListen != "" {
		l, err := open("admin-listen", c.AdminListen)
		if err != nil {
			return p, err
		}
		made.add("profiles", server.NewAdmin(l, log))
	}
	if c.MetricsListen != "" {
		l, err := open("metrics-listen", c.MetricsListen)
		if err != nil {
			return p, err
		}
		made.add("metrics", server.NewMetrics(l, m.Handler(), string(c.MetricsToken), log))
		log.Info("metrics are served", "at", openAt(l.Addr())+"/metrics")
	}
	return p, nil
}

// onceClosed is a listener that a server may have closed already.
type onceClosed struct{ net.Listener }

func (l onceClosed) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// openAt is a URL that opens what listens at an address, in a browser on this
// machine: one that listens on all addresses is shown as localhost.
func openAt(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", tcp.Port)
	}
	return "http://" + at.String()
}
