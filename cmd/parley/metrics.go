package main

import (
	"fmt"
	"log/slog"
	"net"

	"parley"
	"parley/config"
	"parley/dialect"
	"parley/engine"
	"parley/feed"
	"parley/metrics"
	"parley/server"
)

// serveMetrics serves them where the settings say, on a listener that commands
// and servers of tools are to be kept away from as from the server's own; nil:
// there is none.
func serveMetrics(c *config.Settings, m *metrics.Metrics, log *slog.Logger) (_ net.Listener, stop func(), err error) {
	if c.MetricsListen == "" {
		return nil, func() {}, nil
	}
	l, err := net.Listen("tcp", c.MetricsListen)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot listen on %s: %w (choose another address with --metrics-listen)", c.MetricsListen, err)
	}
	log.Info("metrics are served", "at", "http://"+l.Addr().String()+"/metrics")
	return l, server.Metrics(l, m.Handler(), string(c.MetricsToken), log), nil
}

// counted is a feed whose events are counted on their way, and have webhooks told
// if that is promised.
type counted struct {
	*feed.Feed
	metrics *metrics.Metrics
	tell    func()
}

func (c counted) Publish(tenant parley.TenantID, events []parley.Event) {
	c.Feed.Publish(tenant, events)
	c.metrics.Published(events)
	for i := range events {
		if effect, ok := events[i].Body.(parley.EffectEnqueued); ok && effect.Type == parley.Webhook {
			c.tell()
			break
		}
	}
}

// dialects of sockets, by the route they come by.
var dialects = map[string]string{
	"GET /api/chat/ws":           "threadchat",
	"GET /ws":                    "agentchat",
	"GET /api/agentloop/ws":      "agentloop",
	"GET /{$}":                   "agentloop",
	"GET /api/v1/agents/{id}/ws": "debugconsole",
	"GET /api/events":            "eventbus",
}

// watch has metrics ask the parts of a server what there is.
func watch(m *metrics.Metrics, store store, feed *feed.Feed, door *engine.Engine, conns *dialect.Conns) {
	store.Observe(m.Committed)
	m.Watch(metrics.Sources{Backlog: store.Backlog, Followers: feed.Followers, Sessions: door.Loaded,
		Sockets: func() map[string]int {
			open := map[string]int{}
			for _, name := range dialects {
				open[name] = 0
			}
			for route, n := range conns.Sockets() {
				open[dialects[route]] += n
			}
			return open
		}})
}
