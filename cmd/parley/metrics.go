package main

import (
	"parley"
	"parley/feed"
	"parley/metrics"
	"parley/trace"
)

// meteredFeed counts events on their way to a feed, exports runs that have
// ended as traces, and wakes the webhook dispatcher if an event enqueues a
// webhook.
type meteredFeed struct {
	*feed.Feed
	metrics *metrics.Metrics
	traces  *trace.Exporter // nil: traces are not exported
	wake    func()
}

func (c meteredFeed) Publish(tenant parley.TenantID, events []parley.Event) {
	c.Feed.Publish(tenant, events)
	c.metrics.Published(events)
	c.traces.Published(tenant, events)
	for i := range events {
		if effect, ok := events[i].Body.(parley.EffectEnqueued); ok && effect.Type == parley.Webhook {
			c.wake()
			break
		}
	}
}
