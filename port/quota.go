package port

import (
	"errors"
	"fmt"
	"time"

	"parley"
)

// A Quota limits the usage of a tenant, or of one user, on one day (UTC), and the storage at any time. Zero: no limit.
type Quota struct {
	Sessions int64 `json:"sessions,omitempty"`      // sessions opened on a day, not counting sessions of sub-agents
	Tokens   int64 `json:"tokens,omitempty"`        // tokens read and written by models on a day
	Micros   int64 `json:"cost_micros,omitempty"`   // millionths of a US dollar on a day, where prices are known
	Storage  int64 `json:"storage_bytes,omitempty"` // bytes of all logs, at any time
}

// reached returns the error of the first quota that is used up.
func (q Quota) reached(now time.Time, of string, s Spent, held, want Hold) error {
	for _, l := range []struct {
		name        string
		limit, used int64
		show        func(int64) string
	}{
		{"sessions", q.Sessions, s.Sessions + held.Sessions, func(n int64) string { return fmt.Sprint(n) }},
		{"tokens", q.Tokens, s.tokens(), func(n int64) string { return fmt.Sprint(n) }},
		{"cost", q.Micros, s.CostMicros, func(n int64) string { return fmt.Sprintf("$%.4f", float64(n)/1e6) }},
		{"storage", q.Storage, s.Storage, func(n int64) string { return fmt.Sprintf("%d bytes", n) }},
	} {
		if l.limit == 0 || l.used < l.limit || l.name == "sessions" && want.Sessions == 0 {
			continue
		}
		left := l.show(max(l.limit-l.used, 0))
		if l.name == "storage" {
			return &parley.Error{Code: parley.CodeQuota, Quota: &parley.ReachedQuota{Of: of, What: l.name},
				Message: fmt.Sprintf(
					"The storage quota of this %s is reached: %s of %s are used, %s are left. It does "+
						"not renew by itself, and deleted sessions count until their logs are removed. Ask the "+
						"operator for more, or to remove old sessions.", of, l.show(l.used), l.show(l.limit), left)}
		}
		renews := Renews(now)
		return &parley.Error{Code: parley.CodeQuota, Quota: &parley.ReachedQuota{Of: of, What: l.name},
			RetryAfter: renews.Sub(now),
			Message: fmt.Sprintf("The daily quota of this %s for %s is reached: %s of %s are used, %s are left. It "+
				"renews at %s.", of, l.name, l.show(l.used), l.show(l.limit), left, renews.Format(time.RFC3339))}
	}
	return nil
}

// Quotas are the quotas of one tenant: for the tenant as a whole, and for each of its users.
type Quotas struct{ Tenant, User Quota }

// Admit decides whether something may begin. An error of CodeQuota names the quota that is reached. If ok is false, the
// rest of a quota is too small in addition to the holds: the caller must wait until a hold ends, and ask again. If
// there are no holds, any rest is enough. So a quota is exceeded by at most one call.
//
// The holds must be read before the usage: a hold that ends in between would otherwise be missing in both.
func (q Quotas) Admit(now time.Time, tenant, user Spent, held []Hold, want Hold) (ok bool, err error) {
	var all, own Hold
	for _, h := range held {
		all = all.plus(h)
		if h.User == want.User {
			own = own.plus(h)
		}
	}
	free := true
	for _, s := range []struct {
		of    string
		quota Quota
		spent Spent
		held  Hold
	}{{"user", q.User, user, own}, {"tenant", q.Tenant, tenant, all}} {
		if err := s.quota.reached(now, s.of, s.spent, s.held, want); err != nil {
			return false, err
		}
		free = free && fits(s.quota.Tokens, s.spent.tokens(), s.held.Tokens, want.Tokens) &&
			fits(s.quota.Micros, s.spent.CostMicros, s.held.Micros, want.Micros)
	}
	return free, nil
}

// A Hold is the most that something under way may use until its events are committed. Admit counts it as used.
type Hold struct {
	User     parley.PrincipalID
	Sessions int64
	Tokens   int64
	Micros   int64
}

func (h Hold) plus(g Hold) Hold {
	return Hold{h.User, h.Sessions + g.Sessions, h.Tokens + g.Tokens, h.Micros + g.Micros}
}

// fits reports whether a limit leaves room for want in addition to held. It always does if nothing is held or wanted.
func fits(limit, used, held, want int64) bool {
	return limit == 0 || want == 0 || held == 0 || used+held+want <= limit
}

// A Spent is the usage on one day, and the storage now.
type Spent struct {
	Sessions int64 `json:"sessions"` // opened sessions
	Calls    int64 `json:"calls"`    // model calls
	parley.Usage
	Storage int64 `json:"storage_bytes"`
}

// Plus adds the usage of several users.
func (s Spent) Plus(t Spent) Spent {
	return Spent{s.Sessions + t.Sessions, s.Calls + t.Calls, s.Usage.Plus(t.Usage), s.Storage + t.Storage}
}

func (s Spent) tokens() int64 { return s.Input + s.Output }

// Day returns the UTC day of a time, as in rows of usage.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Renews returns when the usage on the day of a time no longer counts.
func Renews(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// ReachedBy returns the quota that an error names; nil: the error is of another kind.
func ReachedBy(err error) *parley.ReachedQuota {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e.Quota
	}
	return nil
}

// A UsageQuery filters rows of usage. User empty: all users.
type UsageQuery struct {
	User        parley.PrincipalID
	First, Last string // days, in the format of Day
	Limit       int
}

// A UsageRow is the usage of one user on one day.
type UsageRow struct {
	User parley.PrincipalID
	Day  string
	Spent
}

// A UsageReport is the usage of a user on one day, and the rest of the quota. For principals that may read all
// sessions, it includes the tenant and its other users.
type UsageReport struct {
	Day      string    `json:"day"`
	RenewsAt time.Time `json:"renews_at"`
	User     UsageOf   `json:"user"`
	Tenant   *UsageOf  `json:"tenant,omitempty"`
	Users    []UsageOf `json:"users,omitempty"`
}

// A UsageOf is the usage and the quota of one user or tenant.
type UsageOf struct {
	ID    string `json:"id"`
	Used  Spent  `json:"used"`
	Quota Quota  `json:"quota"` // zero: no limit
	Left  Left   `json:"left"`
}

// Left is the rest of a quota; nil: no limit.
type Left struct {
	Sessions *int64 `json:"sessions,omitempty"`
	Tokens   *int64 `json:"tokens,omitempty"`
	Micros   *int64 `json:"cost_micros,omitempty"`
	Storage  *int64 `json:"storage_bytes,omitempty"`
}

// NewUsageOf computes the rest of a quota.
func NewUsageOf(id string, used Spent, q Quota) UsageOf {
	left := func(limit, used int64) *int64 {
		if limit == 0 {
			return nil
		}
		return new(max(limit-used, 0))
	}
	return UsageOf{id, used, q, Left{left(q.Sessions, used.Sessions), left(q.Tokens, used.tokens()),
		left(q.Micros, used.CostMicros), left(q.Storage, used.Storage)}}
}
