package port

import (
	"context"
	"time"

	"parley"
)

// A Store keeps logs and all rows derived from them. All methods may be called
// concurrently.
type Store interface {
	// Epoch identifies the store's history. A store that was restored from a
	// backup must get a new epoch. Otherwise [1,2,3] read before and [1,2,3',4]
	// read after would look like one log to a client that resumes at 3.
	Epoch() string

	// Append commits a batch. It returns once the batch is durable. The store
	// commits it in one group with the batches of other sessions that wait at
	// that time. An error means that this batch, and only this one, may not
	// have been committed.
	Append(context.Context, Batch) (Appended, error)

	// DueBefore lists sessions that are due and that no actor holds, soonest
	// first, and the time when the next one is due (zero: none).
	DueBefore(ctx context.Context, now time.Time, limit int) (due []DueSession, next time.Time, err error)

	// Trim deletes the chunks of outputs that were finished before a time, because their OutputFinished repeats the
	// text. Each tenant has its own time; zero: its chunks stay, as do chunks of sessions under a legal hold. Events
	// with a time after now count as old: otherwise a clock that once jumped would end retention. One call does a
	// bounded part of the work, and more says whether to call again.
	Trim(ctx context.Context, before func(parley.TenantID) time.Time, now time.Time) (deleted int, more bool, err error)

	// IndexEarlier indexes for Search the messages that were appended by a release
	// without search. One call does a bounded part, newest first, and more says
	// whether to call again.
	IndexEarlier(context.Context) (messages int, more bool, err error)

	// Erase deletes data permanently, see Erasure.
	Erase(context.Context, parley.TenantID, Erasure) error
	// Rewrite rewrites the files of the store, so that they contain no deleted data. If that would block the server for
	// long, it does nothing unless force is set.
	Rewrite(ctx context.Context, force bool) (done bool, err error)

	// TrimAudit deletes the oldest records of a tenant's audit, up to the first that is not older than a time, and adds
	// a record AuditTrimmed. One call does a bounded part, and more says whether to call again. It deletes nothing of a
	// tenant with a legal hold (CodeConflict), and no record that was modified (CodeCorrupt).
	TrimAudit(ctx context.Context, tenant parley.TenantID, before time.Time, by parley.PrincipalID, now time.Time) (
		deleted int, more bool, err error)
	// Setups lists the setups of all tenants, by tenant, kind and name.
	Setups(context.Context) ([]Setup, error)

	// Tenants lists all tenants with data in the store.
	Tenants(context.Context) ([]parley.TenantID, error)

	// Ready returns the reason why nothing can be appended now. It checks the
	// disk or the database only if the last append failed, so it may be called
	// often.
	Ready(context.Context) error

	// Tenant returns the data of one tenant. There is no other way to read.
	Tenant(parley.TenantID) TenantStore

	Close() error
}

// A TenantStore reads the data of one tenant. Absent sessions are CodeNotFound,
// rows that cannot be decoded CodeCorrupt.
type TenantStore interface {
	Session(context.Context, parley.SessionID) (Stored, error)
	// Sessions lists summaries, most recently changed first.
	Sessions(context.Context, SessionQuery) ([]Summary, error)
	// Owned lists all sessions of a user, including deleted ones and sessions of sub-agents.
	Owned(context.Context, parley.PrincipalID) ([]Summary, error)
	// Runs lists runs of sessions that are not deleted, newest first.
	Runs(context.Context, RunQuery) ([]RunInfo, error)
	// Cards lists open cards, oldest first.
	Cards(context.Context, CardQuery) ([]CardInfo, error)
	// Search finds messages of sessions that lists show, newest first.
	Search(context.Context, SearchQuery) (Found, error)
	// Activity returns the activity of an agent of a project, from rows of runs: open runs, whenever they began, and
	// runs that began after a time.
	Activity(ctx context.Context, project Project, agent string, after time.Time) (Activity, error)

	// Events reads a session's log in order, after a seq: at most limit events
	// and, unless the first is larger, not much more than PageBytes. No events:
	// the seq is the head. Only seqs of chunks that Trim deleted are missing.
	Events(ctx context.Context, id parley.SessionID, after parley.Seq, limit int) ([]parley.Event, error)
	// EventsWithoutChunks reads the log of a session after a seq, without the chunks of
	// outputs: the events that make up the conversation.
	EventsWithoutChunks(ctx context.Context, id parley.SessionID, after parley.Seq) ([]parley.Event, error)
	// Tree reads the logs of all sessions under a root, in order of position
	// and in pages like Events. An empty root stands for the whole tenant. A
	// row that cannot be decoded becomes an event with an Unreadable body, so
	// that a broken session does not stop followers of its neighbours.
	Tree(ctx context.Context, root parley.SessionID, after parley.Position, limit int) ([]parley.Event, error)
	// Position returns the last assigned position.
	Position(context.Context) (parley.Position, error)

	// Snapshot returns the stored snapshot.
	Snapshot(context.Context, parley.SessionID) (parley.Snapshot, bool, error)
	// Receipt returns the answer to an earlier command under this id.
	Receipt(context.Context, parley.SessionID, parley.CommandID) (StoredReceipt, bool, error)
	Definition(ctx context.Context, digest string) (parley.Agent, error)

	// Audited lists audit records, newest first. AuditChain reads the rows of
	// the chain in order, after a number. After 0, it begins with the first row
	// of the table, even if its number is below 1, so that a check covers every
	// row.
	Audited(context.Context, AuditQuery) ([]AuditRow, error)
	AuditChain(ctx context.Context, after int64, limit int) ([]AuditRow, error)

	// Users lists users in the order of their ids, starting after the given one.
	Users(ctx context.Context, after parley.PrincipalID, limit int) ([]UserInfo, error)

	// Marks returns the marks of a user on a session.
	Marks(context.Context, parley.PrincipalID, parley.SessionID) (Marks, error)
	// LegalHolds lists the legal holds, oldest first.
	LegalHolds(context.Context) (LegalHolds, error)
	// Old lists sessions that were not changed since a time, including deleted ones, in the order of their ids,
	// starting after the given one. Sub-agents are listed with the session above them.
	Old(ctx context.Context, before time.Time, after parley.SessionID, limit int) ([]OldSession, error)
	// OldChunks estimates how many chunks Trim would delete.
	OldChunks(ctx context.Context, before time.Time) (int, error)
	// BegunErasures lists the erasures that have not ended, oldest first.
	BegunErasures(context.Context) ([]BegunErasure, error)
	// OldAudit estimates how many records TrimAudit would delete.
	OldAudit(ctx context.Context, before time.Time) (int, error)
	// Spent returns the usage of the tenant, and of one of its users, on a day. It adds up the storage only if storage
	// is set, because that reads a row of every session.
	Spent(ctx context.Context, day string, user parley.PrincipalID, storage bool) (tenant, own Spent, err error)
	// Usage lists the usage of users on days, the latest day first, by user. It leaves out the storage.
	Usage(context.Context, UsageQuery) ([]UsageRow, error)
	// Storage returns the storage of each user, in bytes.
	Storage(context.Context) (map[parley.PrincipalID]int64, error)

	// Context returns the text that a user wants an agent to know; false: none.
	Context(ctx context.Context, agent string, user parley.PrincipalID) (UserContext, bool, error)

	// Timers lists timers of sessions that are not deleted, latest first. Pending
	// timers are listed soonest first if the query selects them.
	Timers(context.Context, TimerQuery) ([]TimerInfo, error)
	// Effects lists effects, newest first.
	Effects(context.Context, EffectQuery) ([]EffectInfo, error)

	// Webhook returns the webhook of a session, or of an AgentHook; false: none.
	Webhook(context.Context, parley.SessionID) (StoredWebhook, bool, error)
	// Webhooks lists the webhooks of sessions that are not deleted.
	Webhooks(context.Context, WebhookQuery) ([]SessionWebhook, error)

	// Undelivered lists the bookmarks that were created after a time and are
	// pending or executing, oldest first. The methods below ignore bookmarks in
	// any other status.
	Undelivered(ctx context.Context, id parley.SessionID, after time.Time) ([]parley.Bookmark, error)
	// Delivered completes the bookmarks of runs.
	Delivered(ctx context.Context, id parley.SessionID, at time.Time, runs ...parley.RunID) error
	// Attempted records that a client has come for a bookmark, which is
	// executing until the given time.
	Attempted(ctx context.Context, id parley.SessionID, effect parley.Seq, at, until time.Time) error
	// SetAside marks a bookmark as failed.
	SetAside(ctx context.Context, id parley.SessionID, effect parley.Seq, why string, at time.Time) error
	// Expire fails effects that were created before a time, and makes effects
	// pending again whose execution lease has ended. It returns when the oldest
	// open effect was created, and when the next lease ends; zero: none. It
	// ignores webhooks, which the dispatcher ends. See HookStore.
	Expire(ctx context.Context, before, at time.Time) (Expired, error)
}

// A Batch is the data that an actor appends at once.
type Batch struct {
	Tenant  parley.TenantID
	Session parley.SessionID
	// Epoch of the writer, and the head it built on. The append is fenced if it
	// has an older epoch than the session's last append, or builds on another
	// head: another actor writes this session now. It is also fenced if another
	// process with the same epoch has appended.
	Epoch int64
	After parley.Seq

	Events  []parley.Event
	Trimmed bool           // seqs missing between the events belong to deleted chunks
	Summary Summary        // after the events
	Parent  *parley.Origin // of a sub-agent's session
	// Snapshot, if given, replaces the stored one.
	Snapshot *parley.Snapshot
	Receipt  *StoredReceipt
	Agent    *parley.Agent // a definition that the events refer to

	Due *DueChange // nil keeps the session's row

	// Leave: the writer gives up the session. Without Leave, the writer's node
	// becomes the session's holder.
	Leave bool
	// Letter is the command of a Letter that this batch answers. The store deletes the letter.
	Letter parley.CommandID

	// Context, if given, replaces the context of its user and agent.
	Context *UserContext

	// Marks, if given, changes the marks of a user on a session of the tenant that
	// is not deleted.
	Marks *MarkChange
	// Hold, if given, sets or releases a legal hold of the tenant.
	Hold *HoldChange
	// Setup, if given, replaces the setup of its kind and name in the batch's tenant.
	Setup *Setup

	// Webhook, if given, replaces the session's webhook; without a target, it removes it.
	Webhook *StoredWebhook

	// Revocation, if given, is stored unless a later one of its principal
	// exists. It belongs to the batch's tenant.
	Revocation *Revocation

	// Audit is written in the same transaction. A batch without a session may contain only Audit, a Context, Marks, a
	// Hold, a Setup and a Revocation. A batch without a tenant, too, belongs to the server's own chain.
	Audit []parley.Audit
}

// A DueChange replaces a session's due row. Held hides it from DueBefore for as
// long as this process lives: an actor holds the session.
type DueChange struct {
	parley.Due
	Held  bool
	Clear bool // remove the row
}

// Appended is the result of a batch.
type Appended struct {
	Fenced    bool
	Positions []parley.Position // of the events, in order
}

// Stored is the information about a session that needs no read of its log.
type Stored struct {
	Summary Summary
	Epoch   int64  // of the last writer
	Holder  string // another live node that holds the session; empty: none
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

// Expired is the result of Expire.
type Expired struct {
	Failed         int
	Oldest, Leased time.Time
}
