package main

import (
	"parley"
	"parley/feed"
	"parley/metrics"
	"parley/trace"
)

// meteredFeed counts events on their way to a feed, has ended runs exported as
// traces, and wakes the webhook dispatcher if an event promises a webhook.
type meteredFeed struct {
	*feed.Feed
	metrics *metrics.Metrics
	traces  *trace.Exporter // nil: none
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
