package rules

import (
	"encoding/json"
	"time"

	"parley"
	"parley/port"
)

// PageBytes bounds what is read from a log at once.
const PageBytes = 1 << 20

// Revocations are those of a principal, as a store keeps them: the latest time of
// each kind, as far as it is after another.
func Revocations(of port.Revocation, before, sparing, after time.Time) (list []port.Revocation) {
	if before.After(after) {
		list = append(list, port.Revocation{Tenant: of.Tenant, Principal: of.Principal, Before: before})
	}
	if sparing.After(after) {
		list = append(list, port.Revocation{Tenant: of.Tenant, Principal: of.Principal, Before: sparing,
			SparesAdmins: true})
	}
	return list
}

// HookAtOnce is the time of what was never tried. It is no event's: those keep to
// the clock of their log, which may be ahead of the one that is looked at.
var HookAtOnce = time.Unix(0, 0).UTC()

// HookFar is longer than anything is put off, with room for servers whose clocks
// differ: what is to be tried later was written by a clock that was wrong.
const HookFar = 90 * time.Minute

// HooksDue is the answer of DueHooks, of those that were found, by their times.
func HooksDue(found []port.HookDue, now time.Time, limit int) (due []port.HookDue, next time.Time) {
	for _, d := range found {
		at := d.Next
		if at.After(now.Add(HookFar)) {
			at = now
		}
		switch {
		case !at.After(now) && len(due) < limit:
			due = append(due, d)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return due, next
}

// PromiseOf reads what the row of a webhook effect keeps of its event. What
// cannot be read promises nothing to nobody.
func PromiseOf(payload []byte) parley.HookPromise {
	var e parley.EffectEnqueued
	if err := json.Unmarshal(payload, &e); err != nil || e.Hook == nil {
		return parley.HookPromise{}
	}
	return *e.Hook
}
