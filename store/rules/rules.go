package rules

import (
	"encoding/json"
	"time"

	"parley"
	"parley/port"
)

// PageBytes bounds the bytes that are read from a log at once.
const PageBytes = 1 << 20

// Revocations returns the revocations of a principal as a store keeps them: the
// latest time of each kind, if it is after another time.
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

// HookAtOnce is the due time of a delivery that was never tried. It is not the
// time of an event: the clock of a log may be ahead of the dispatcher's.
var HookAtOnce = time.Unix(0, 0).UTC()

// HookFar is longer than any delivery is put off, with room for servers whose
// clocks differ. A delivery that is due later was written by a clock that was
// wrong.
const HookFar = 90 * time.Minute

// HooksDue returns the answer of DueHooks from the deliveries that a store has
// found: those that are due, up to limit, and the next due time.
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

// PromiseOf reads the event's promise from the row of a webhook effect. If the
// row cannot be read, the promise is empty.
func PromiseOf(payload []byte) parley.HookPromise {
	var e parley.EffectEnqueued
	if err := json.Unmarshal(payload, &e); err != nil || e.Hook == nil {
		return parley.HookPromise{}
	}
	return *e.Hook
}
