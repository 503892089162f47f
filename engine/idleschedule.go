package engine

import "time"

// An idleAgent is one that may be prompted when it was idle for its interval.
type idleAgent struct {
	name     string
	interval time.Duration
	since    time.Time // when something was last heard of it; zero: never
	// held: it is busy, or cannot be asked. It is not due, and cannot be before
	// another interval has passed.
	held bool
}

// An idleSchedule waits for agents to be idle for long enough. It goes by what it is
// told of them and remembers only when it meant to look again, for the case that the
// clock is set.
type idleSchedule map[string]appointment

type appointment struct {
	since    time.Time
	interval time.Duration
	at       time.Time
}

// look says which agents are due, each once per interval, and when to look again;
// zero: when other agents are to be looked at.
func (v idleSchedule) look(list []idleAgent, now time.Time) (due []string, next time.Time) {
	names := map[string]bool{}
	for _, i := range list {
		names[i.name] = true
		meant, ok := v[i.name]
		switch {
		case i.held:
			meant = appointment{i.since, i.interval, now.Add(i.interval)}
		case !ok || !meant.since.Equal(i.since) || meant.interval != i.interval:
			meant = appointment{i.since, i.interval, i.since.Add(i.interval)}
		}
		// After a clock was set back nobody waits for it to be that late again.
		if latest := now.Add(i.interval); meant.at.After(latest) {
			meant.at = latest
		}
		if !i.held && !now.Before(meant.at) {
			due = append(due, i.name)
			meant.at = now.Add(i.interval) // unless something is heard of it before
		}
		if v[i.name] = meant; next.IsZero() || meant.at.Before(next) {
			next = meant.at
		}
	}
	for name := range v {
		if !names[name] {
			delete(v, name)
		}
	}
	return due, next
}
