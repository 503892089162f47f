package port

import (
	"context"
	"time"

	"parley"
)

// A Store keeps logs and every row they imply. All methods may be called
// concurrently.
type Store interface {
	// Epoch identifies the store's history. A store that was restored from a
	// backup must be given a new one: without it, [1,2,3] read before and
	// [1,2,3',4] read after would look like one log to a client that resumes
	// at 3.
	Epoch() string

	// Append commits a batch. It returns once the batch is durable, in one
	// group with whatever other sessions had to append at the time. An error
	// means that this batch, and only this one, may not have been committed.
	Append(context.Context, Batch) (Appended, error)

	// DueBefore lists sessions that are due and that no actor holds, soonest
	// first, and the time at which the next one will be (zero: none).
	DueBefore(ctx context.Context, now time.Time, limit int) (due []DueSession, next time.Time, err error)

	// Trim deletes the pieces of outputs that were finished before a time,
	// whose OutputFinished says all of it again; what claims to come from after
	// now is taken for old, or a clock that once jumped would end retention.
	// Each tenant has a time of its own; zero: its pieces stay, as do those of sessions under a legal hold.
	// It does a bounded part of that, and says whether to come back for more.
	Trim(ctx context.Context, before func(parley.TenantID) time.Time, now time.Time) (deleted int, more bool, err error)

	// IndexEarlier indexes for Search what was appended by a release that did not.
	// It does a bounded part of that, newest first, and says whether there is more.
	IndexEarlier(context.Context) (messages int, more bool, err error)

	// Erase deletes for good what was said, see Erasure.
	Erase(context.Context, parley.TenantID, Erasure) error
	// Rewrite writes the files of the store anew, so that nothing that was deleted is in them. If that would stop the
	// server for long, it is not done unless force is set.
	Rewrite(ctx context.Context, force bool) (done bool, err error)

	// TrimAudit deletes the oldest records of a tenant's audit, up to the first that is not older than a time, and adds
	// a record AuditTrimmed. It does a bounded part of that, and says whether there is more. It deletes nothing of a
	// tenant with a legal hold (CodeConflict), and nothing that is not as it was written (CodeCorrupt).
	TrimAudit(ctx context.Context, tenant parley.TenantID, before time.Time, by parley.PrincipalID, now time.Time) (deleted int,
		more bool, err error)
	// Setups lists those of all tenants, by tenant, kind and name.
	Setups(context.Context) ([]Setup, error)

	// Tenants lists everybody who has anything here.
	Tenants(context.Context) ([]parley.TenantID, error)

	// Ready says why nothing can be appended right now. It asks the disk or
	// the database only if the last append failed, so it may be called often.
	Ready(context.Context) error

	// Tenant is the only way to read.
	Tenant(parley.TenantID) TenantStore

	Close() error
}

// A TenantStore reads what belongs to one tenant. Absent sessions are
// CodeNotFound, rows that cannot be decoded CodeCorrupt.
type TenantStore interface {
	Session(context.Context, parley.SessionID) (Stored, error)
	// Sessions lists summaries, most recently changed first.
	Sessions(context.Context, SessionQuery) ([]Summary, error)
	// Owned lists all sessions of a user, also deleted ones and those of sub-agents.
	Owned(context.Context, parley.PrincipalID) ([]Summary, error)
	// Runs lists runs of sessions that are not deleted, newest first.
	Runs(context.Context, RunQuery) ([]RunInfo, error)
	// Cards lists what waits for a person, longest first.
	Cards(context.Context, CardQuery) ([]CardInfo, error)
	// Search finds messages of sessions that lists show, newest first.
	Search(context.Context, SearchQuery) (Found, error)
	// Activity is what rows of runs know of an agent of a project: those that are open,
	// whenever they began, and those that began after a time.
	Activity(ctx context.Context, project Project, agent string, after time.Time) (Activity, error)

	// Events reads a session's log in order, after a seq: at most limit events
	// and, unless the first is larger, not much more than PageBytes. None: the
	// seq is the head. No seq is missing but those of pieces that Trim deleted.
	Events(ctx context.Context, id parley.SessionID, after parley.Seq, limit int) ([]parley.Event, error)
	// Spoken is the log of a session after a seq, without the pieces of outputs:
	// what the conversation is made of.
	Spoken(ctx context.Context, id parley.SessionID, after parley.Seq) ([]parley.Event, error)
	// Tree reads the logs of all sessions under a root, in order of position
	// and in pages like Events. An empty root stands for the whole tenant. A
	// row that cannot be decoded is an event with an Unreadable body: one
	// session's trouble is not to keep its neighbours from being followed.
	Tree(ctx context.Context, root parley.SessionID, after parley.Position, limit int) ([]parley.Event, error)
	// Position is the last position given out.
	Position(context.Context) (parley.Position, error)

	// Snapshot is the last one that was kept.
	Snapshot(context.Context, parley.SessionID) (parley.Snapshot, bool, error)
	// Receipt finds what an earlier command under this id was answered.
	Receipt(context.Context, parley.SessionID, parley.CommandID) (StoredReceipt, bool, error)
	Definition(ctx context.Context, digest string) (parley.Agent, error)

	// Audited lists what is on record, newest first. AuditChain reads the rows
	// of the chain in order, after a number; after 0, it begins with the first
	// row of the table, also if its number is below 1, so that no row escapes
	// a check.
	Audited(context.Context, AuditQuery) ([]AuditRow, error)
	AuditChain(ctx context.Context, after int64, limit int) ([]AuditRow, error)

	// Users lists users in order of their ids, after one.
	Users(ctx context.Context, after parley.PrincipalID, limit int) ([]UserInfo, error)

	// Marks are those of a user on a session.
	Marks(context.Context, parley.PrincipalID, parley.SessionID) (Marks, error)
	// LegalHolds lists them, the oldest first.
	LegalHolds(context.Context) (LegalHolds, error)
	// Old lists sessions that were not changed since a time, also deleted ones, in order of their ids and after one.
	// Sub-agents come with the session above them.
	Old(ctx context.Context, before time.Time, after parley.SessionID, limit int) ([]OldSession, error)
	// OldChunks is about how many pieces Trim would delete.
	OldChunks(ctx context.Context, before time.Time) (int, error)
	// BegunErasures lists those that have not ended, the oldest first.
	BegunErasures(context.Context) ([]BegunErasure, error)
	// OldAudit is about how many records TrimAudit would delete.
	OldAudit(ctx context.Context, before time.Time) (int, error)
	// Spent is what the tenant, and what one of its users, has used on a day. What is stored is added up only if
	// storage is set: that reads a row of every session.
	Spent(ctx context.Context, day string, user parley.PrincipalID, storage bool) (tenant, own Spent, err error)
	// Usage lists what users have used on days, the latest day first, by user. It leaves out what is stored.
	Usage(context.Context, UsageQuery) ([]UsageRow, error)
	// Storage is what each user stores, in bytes.
	Storage(context.Context) (map[parley.PrincipalID]int64, error)

	// Context is what a user wants an agent to know; false: nothing.
	Context(ctx context.Context, agent string, user parley.PrincipalID) (UserContext, bool, error)

	// Timers lists those of sessions that are not deleted, latest first; if it is
	// asked for those that wait, soonest first.
	Timers(context.Context, TimerQuery) ([]TimerInfo, error)
	// Effects lists what is or was owed, newest first.
	Effects(context.Context, EffectQuery) ([]EffectInfo, error)

	// Webhook is that of a session, or of AgentHook; false: there is none.
	Webhook(context.Context, parley.SessionID) (StoredWebhook, bool, error)
	// Webhooks lists those of sessions that are not deleted.
	Webhooks(context.Context, WebhookQuery) ([]SessionWebhook, error)

	// Undelivered lists the bookmarks that were made after a time and are pending
	// or executing, oldest first. The others leave these alone that are neither.
	Undelivered(ctx context.Context, id parley.SessionID, after time.Time) ([]parley.Bookmark, error)
	// Delivered completes the bookmarks of runs.
	Delivered(ctx context.Context, id parley.SessionID, at time.Time, runs ...parley.RunID) error
	// Attempted notes that somebody has come for a bookmark, which is executing
	// until then.
	Attempted(ctx context.Context, id parley.SessionID, effect parley.Seq, at, until time.Time) error
	// SetAside fails a bookmark.
	SetAside(ctx context.Context, id parley.SessionID, effect parley.Seq, why string, at time.Time) error
	// Expire fails what was made before a time, and has what is executing for
	// too long pending again. It says when the oldest was made that is left, and
	// when the next will have been executing for too long; zero: there is none.
	// Webhooks are another matter: who tells them ends them. See HookStore.
	Expire(ctx context.Context, before, at time.Time) (Expired, error)
}

// A Batch is what an actor has to append at once.
type Batch struct {
	Tenant  parley.TenantID
	Session parley.SessionID
	// Epoch of the writer and the head it built on. An append that is of an
	// older epoch than the session's last one, or that builds on another head,
	// is fenced: somebody else writes this session now. So is one of the same
	// epoch by another process.
	Epoch int64
	After parley.Seq

	Events  []parley.Event
	Trimmed bool           // seqs that are missing between the events are of pieces that were deleted
	Summary Summary        // after the events
	Parent  *parley.Origin // of a sub-agent's session
	// Snapshot, if given, replaces the one that is kept.
	Snapshot *parley.Snapshot
	Receipt  *StoredReceipt
	Agent    *parley.Agent // a definition the events refer to

	Due *DueChange // nil leaves the session's row as it is

	// Leave: the writer has the session no longer. Without it the node of the
	// writer is the session's holder from now on.
	Leave bool
	// Letter is the command of a Letter that this batch answers; it goes.
	Letter parley.CommandID

	// Context, if given, replaces the one of its user and agent.
	Context *UserContext

	// Marks, if given, changes what a user has noted about a session of the tenant
	// that is not deleted.
	Marks *MarkChange
	// Hold, if given, sets or releases a legal hold of the tenant.
	Hold *HoldChange
	// Setup, if given, replaces the one of its kind and name in the batch's tenant.
	Setup *Setup

	// Webhook, if given, replaces the session's; without a target there is none.
	Webhook *StoredWebhook

	// Revocation, if given, is kept unless a later one of its principal is. It
	// is of the batch's tenant.
	Revocation *Revocation

	// Audit goes on record in the same transaction. A batch without a session
	// has nothing but this, a Context, Marks, a Hold, a Setup and a Revocation; one without a tenant too
	// is of the server's own chain.
	Audit []parley.Audit
}

// A DueChange replaces a session's due row. Held keeps it from DueBefore for as
// long as this process lives: an actor takes care of the session.
type DueChange struct {
	parley.Due
	Held  bool
	Clear bool // there is to be no row
}

// Appended says what became of a batch.
type Appended struct {
	Fenced    bool
	Positions []parley.Position // of the events, in order
}

// Stored is what is known of a session without reading its log.
type Stored struct {
	Summary Summary
	Epoch   int64  // of the last writer
	Holder  string // the other node that has it, and lives; empty: none has
}

type StoredReceipt struct {
	Receipt
	Digest string // of the command
	By     parley.PrincipalID
}

type DueSession struct {
	Tenant  parley.TenantID
	Session parley.SessionID
	parley.Due
}

// Expired is what became of effects with the time.
type Expired struct {
	Failed         int
	Oldest, Leased time.Time
}
