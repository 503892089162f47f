package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"parley/config"
	"parley/metrics"
	"parley/server"
)

// ports are the listeners of a server. Commands and MCP servers of agents cannot
// connect to them.
type ports struct {
	main net.Listener
	all  []net.Listener
}

// listen opens every port. It runs before the store is opened, so that a server
// whose address is in use changes nothing.
func listen(
	c *config.Settings, env config.Lookup, m *metrics.Metrics, made *parts, log *slog.Logger,
) (p ports, err error) {
	open := func(flag, address string) (l net.Listener, err error) {
		if l, err = net.Listen("tcp", address); err != nil {
			by := ""
			if flag == "listen" && errors.Is(err, errInUse) {
				by = "; " + occupant(address, config.DataFolders(env, c.Data))
			}
			return nil, fmt.Errorf("cannot listen on %s: %w%s (choose another address with --%s)", address, err, by,
				flag)
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

// occupantWithin is how long the program that uses an address may take to answer.
// Tests allow more time, because their machine may be busy.
var occupantWithin = time.Second

// occupant describes the program that uses an address. It searches the data folders
// for the lock of a server at that address.
func occupant(address string, folders []string) string {
	if !answers(address, occupantWithin) {
		return "another program uses it, and does not answer like a Parley"
	}
	for _, folder := range folders {
		if pid, at := serverOn(folder); pid != 0 && sameAddress(at, address) {
			return fmt.Sprintf("another Parley serves there: process %d, data folder %s", pid, folder)
		}
	}
	return "another Parley serves there"
}

// sameAddress reports whether two addresses conflict.
func sameAddress(a, b string) bool {
	at, err := net.ResolveTCPAddr("tcp", a)
	if err != nil {
		return false
	}
	to, err := net.ResolveTCPAddr("tcp", b)
	return err == nil && at.Port == to.Port && (at.IP.Equal(to.IP) || everywhere(at) || everywhere(to))
}

func everywhere(at *net.TCPAddr) bool { return at.IP == nil || at.IP.IsUnspecified() }

// onceClosed is a listener whose Close succeeds if a server has already closed it.
type onceClosed struct{ net.Listener }

func (l onceClosed) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// openAt returns the URL of an address for a browser on this machine. A server
// that listens on all addresses is shown as localhost.
func openAt(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", tcp.Port)
	}
	return "http://" + at.String()
}
