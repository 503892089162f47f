package port

import (
	"context"
	"time"

	"parley"
)

// Nodes is what a store that several processes share knows of them, and how they
// reach each other through it. Each process is a node, and lives for as long as
// the store has seen it within the time of a lease, by the store's own clock.
type Nodes interface {
	// Node names this process.
	Node() string
	// Describe has the node say this of itself from now on, and looks for others. It
	// waits for the store, but not for long.
	Describe(func() Node)
	// Others lists the other nodes that lived when this one was last seen, in the
	// order of their names. It asks nobody.
	Others() []Node
	// Lease is how long a node that is not seen is taken to live.
	Lease() time.Duration
	// Term counts the leases of this node. It asks the store only if the last
	// lease may have run out, for example because the process was stopped. Then
	// others may have taken what the node had, and a new term begins.
	Term(context.Context) (int64, error)
	// Facts returns the heads of the tenants' own sessions.
	Facts(context.Context, []parley.TenantID) (map[parley.TenantID]parley.Seq, error)

	// Reserve admits something by the quotas of a tenant, see Quotas.Admit, among all nodes. What is admitted holds
	// what it wants until Settle. Holds of nodes that live no more are void.
	Reserve(ctx context.Context, tenant parley.TenantID, q Quotas, now time.Time,
		want Hold) (id string, ok bool, err error)
	Settle(ctx context.Context, tenant parley.TenantID, id string) error

	// Post leaves a command for another node. One that is there already stays.
	Post(context.Context, Letter) error
	// Letters lists those without an answer that are for this node, or for a node
	// that lives no more, oldest first.
	Letters(ctx context.Context, limit int) ([]Letter, error)
	// Redirect has another node answer.
	Redirect(ctx context.Context, l Letter, node string) error
	// Reply answers a letter, if it is still there.
	Reply(ctx context.Context, l Letter, answer []byte) error
	// Replied is the answer to a letter; nil: none yet. A letter is gone if what it
	// asks for was appended: see Batch.Letter.
	Replied(ctx context.Context, l Letter) (answer []byte, there bool, err error)
	// Withdraw takes a letter back.
	Withdraw(context.Context, Letter) error
}

// A Letter is a command on its way to the node that has its session.
type Letter struct {
	Tenant  parley.TenantID
	Session parley.SessionID
	Command parley.CommandID
	Node    string
	Body    []byte // sealed
}

// A Node is a process of several that share a store.
type Node struct {
	ID       string    `json:"id"`
	Address  string    `json:"address"`
	Version  string    `json:"version"`
	Sessions int       `json:"sessions"` // in memory
	Projects []string  `json:"projects"` // by their roots
	Since    time.Time `json:"since"`
	Draining bool      `json:"draining,omitempty"` // it is about to stop
	Agents   string    `json:"-"`                  // the digest of what its files define
}
