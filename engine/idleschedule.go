package engine

import "time"

// An idleAgent is an agent that may be prompted once it was idle for its interval.
type idleAgent struct {
	name     string
	interval time.Duration
	since    time.Time // its last activity; zero: none
	// held: the agent is busy, or cannot be prompted. It becomes due in one
	// interval from now at the earliest.
	held bool
}

// An idleSchedule finds agents that were idle for long enough. It computes this from the list that due gets. It keeps
// only the time at which each agent is due, in case the clock is set.
type idleSchedule map[string]appointment

// An appointment is the time at which an agent is due, and the facts that it was computed from.
type appointment struct {
	since    time.Time
	interval time.Duration
	at       time.Time
}

// due returns the agents that are due, each once per interval, and when to
// look again; zero: when the list of agents has changed.
func (v idleSchedule) due(list []idleAgent, now time.Time) (due []string, next time.Time) {
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
		// After the clock was set back, an agent waits for one interval at most.
		if latest := now.Add(i.interval); meant.at.After(latest) {
			meant.at = latest
		}
		if !i.held && !now.Before(meant.at) {
			due = append(due, i.name)
			meant.at = now.Add(i.interval) // unless the agent is active before
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
