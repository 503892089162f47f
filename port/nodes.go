package port

import (
	"context"
	"time"

	"parley"
)

// Nodes connects the processes that share a store. Each process is a node. It
// counts as alive as long as the store has seen it within the lease time, by the
// store's own clock.
type Nodes interface {
	// Node returns the name of this process.
	Node() string
	// Describe sets the function that describes this node to others, and looks for
	// other nodes. It waits for the store, but not for long.
	Describe(func() Node)
	// Others lists the other nodes that were alive when this one was last seen,
	// in the order of their names. It does not query the store.
	Others() []Node
	// Lease is how long a node counts as alive after it was last seen.
	Lease() time.Duration
	// Term counts the leases of this node. It queries the store only if the
	// last lease may have run out, for example because the process was
	// suspended. Then other nodes may have taken over its sessions, and a new
	// term begins.
	Term(context.Context) (int64, error)
	// Facts returns the heads of the tenants' own sessions.
	Facts(context.Context, []parley.TenantID) (map[parley.TenantID]parley.Seq, error)

	// Reserve admits something by the quotas of a tenant, see Quotas.Admit, among all nodes. An admitted hold counts
	// until Settle. Holds of dead nodes are void.
	Reserve(ctx context.Context, tenant parley.TenantID, q Quotas, now time.Time,
		want Hold) (id string, ok bool, err error)
	Settle(ctx context.Context, tenant parley.TenantID, id string) error

	// Post stores a command for another node. An existing letter for the same command stays.
	Post(context.Context, Letter) error
	// Letters lists unanswered letters for this node, or for a dead node, oldest
	// first.
	Letters(ctx context.Context, limit int) ([]Letter, error)
	// Redirect assigns a letter to another node.
	Redirect(ctx context.Context, l Letter, node string) error
	// Reply stores the answer to a letter, if the letter still exists.
	Reply(ctx context.Context, l Letter, answer []byte) error
	// Replied returns the answer to a letter; nil: none yet. A letter is deleted
	// once its command was appended: see Batch.Letter.
	Replied(ctx context.Context, l Letter) (answer []byte, there bool, err error)
	// Withdraw takes a letter back.
	Withdraw(context.Context, Letter) error
}

// A Letter is a command on its way to the node that holds its session.
type Letter struct {
	Tenant  parley.TenantID
	Session parley.SessionID
	Command parley.CommandID
	Node    string
	Body    []byte // sealed
}

// A Node is one of several processes that share a store.
type Node struct {
	ID       string    `json:"id"`
	Address  string    `json:"address"`
	Version  string    `json:"version"`
	Sessions int       `json:"sessions"` // in memory
	Projects []string  `json:"projects"` // by their roots
	Since    time.Time `json:"since"`
	Draining bool      `json:"draining,omitempty"` // about to stop
	Agents   string    `json:"-"`                  // digest of the definitions in its files
}
