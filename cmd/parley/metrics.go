package main

import (
	"parley"
	"parley/feed"
	"parley/metrics"
)

// meteredFeed counts events on their way to a feed, and wakes the webhook
// dispatcher if one of them promises a webhook.
type meteredFeed struct {
	*feed.Feed
	metrics *metrics.Metrics
	wake    func()
}

func (c meteredFeed) Publish(tenant parley.TenantID, events []parley.Event) {
	c.Feed.Publish(tenant, events)
	c.metrics.Published(events)
	for i := range events {
		if effect, ok := events[i].Body.(parley.EffectEnqueued); ok && effect.Type == parley.Webhook {
			c.wake()
			break
		}
	}
}
