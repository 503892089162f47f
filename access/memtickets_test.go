package access

import (
	"context"
	"sync"
	"time"

	"parley"
)

const maxTickets = 10_000

// MemoryTickets is a TicketStore for one process.
type MemoryTickets struct {
	now func() time.Time

	mu   sync.Mutex
	kept map[TicketHash]TicketClaim
	per  map[subject]int
}

var _ TicketStore = (*MemoryTickets)(nil)

func NewMemoryTickets(now func() time.Time) *MemoryTickets {
	return &MemoryTickets{now: now, kept: map[TicketHash]TicketClaim{}, per: map[subject]int{}}
}

func (m *MemoryTickets) PutTicket(_ context.Context, hash TicketHash, claim TicketClaim, _ time.Time) error {
	who := subjectOf(claim.Principal)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.kept) >= maxTickets || m.per[who] >= parley.MaxTickets {
		m.sweep()
	}
	if len(m.kept) >= maxTickets || m.per[who] >= parley.MaxTickets {
		d := deny(TooOften, "too many tickets wait to be used")
		d.Retry = TicketLife
		return d
	}
	m.kept[hash] = claim
	m.per[who]++
	return nil
}

func (m *MemoryTickets) TakeTicket(_ context.Context, hash TicketHash) (TicketClaim, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	claim, ok := m.kept[hash]
	if ok {
		m.drop(hash, claim)
	}
	return claim, ok, nil
}

// sweep drops expired tickets. It runs only when there is no room; the number
// of tickets is bounded either way.
func (m *MemoryTickets) sweep() {
	now := m.now()
	for hash, claim := range m.kept {
		if !now.Before(claim.Until) {
			m.drop(hash, claim)
		}
	}
}

func (m *MemoryTickets) drop(hash TicketHash, claim TicketClaim) {
	delete(m.kept, hash)
	who := subjectOf(claim.Principal)
	if m.per[who]--; m.per[who] == 0 {
		delete(m.per, who)
	}
}
