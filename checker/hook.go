package checker

import (
	"reflect"

	"parley"
)

// hooked is the webhook state of a log.
type hooked struct {
	hook  parley.Hook // the session's
	above []parley.HookRef
	agent parley.AgentRef // of the run
	tell  []parley.HookPromise
}

// hookEvent checks that an event is directly followed by one promise for each
// webhook that must deliver it, and by no other promise.
func (c *check) hookEvent(e parley.Event) {
	h := &c.hooked
	if b, ok := e.Body.(parley.EffectEnqueued); ok && b.Type == parley.Webhook {
		ok := len(h.tell) > 0 && b.Hook != nil && reflect.DeepEqual(h.tell[0], *b.Hook)
		c.must(ok, "expected promises of the webhooks %+v in this order, found %+v", h.tell, b.Hook)
		h.tell = h.tell[min(1, len(h.tell)):]
		return
	}
	c.must(len(h.tell) == 0, "promises of these webhooks must come first: %+v", h.tell)
	h.tell = nil
	switch b := e.Body.(type) {
	case parley.SessionOpened:
		h.above = b.Hooks
		for _, a := range b.Hooks {
			c.must(b.Parent != nil && a.Needed && !a.Finished, "only a sub-agent has webhooks of sessions above it, "+
				"and they are told only when a person is needed; found %+v", a)
		}
	case parley.WebhookChanged:
		c.must(e.Run == 0 && len(h.above) == 0, "a webhook can be changed only outside of runs, and not in the "+
			"session of a sub-agent")
		h.hook = b.Hook
	case parley.RunStarted:
		h.agent = b.Agent
	case parley.RunFinished:
		c.promise(e, parley.HookFinished, func(h parley.Hook) bool { return h.Finished })
	case parley.ApprovalRequested, parley.QuestionAsked:
		c.promise(e, parley.HookNeeded, func(h parley.Hook) bool { return h.Needed })
	case parley.ToolCallFinished:
		if b.Outcome == parley.CallUnknown {
			c.promise(e, parley.HookNeeded, func(h parley.Hook) bool { return h.Needed })
		}
	}
}

func (c *check) promise(e parley.Event, what parley.HookEvent, wants func(parley.Hook) bool) {
	h := &c.hooked
	all := append([]parley.HookRef{}, h.above...)
	all = append(all, parley.HookRef{Hook: h.hook, Session: e.Session},
		parley.HookRef{Hook: h.agent.Hook, Agent: h.agent.Digest})
	for _, to := range all {
		if wants(to.Hook) {
			to.Hook = parley.Hook{Target: to.Target}
			h.tell = append(h.tell, parley.HookPromise{Event: what, About: e.Seq, Run: e.Run, HookRef: to})
		}
	}
}
