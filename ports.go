package parley

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"
	"time"
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
	// It does a bounded part of that, and says whether to come back for more.
	Trim(ctx context.Context, before, now time.Time) (deleted int, more bool, err error)

	// Tenants lists everybody who has anything here.
	Tenants(context.Context) ([]TenantID, error)

	// Ready says why nothing can be appended right now. It asks the disk or
	// the database only if the last append failed, so it may be called often.
	Ready(context.Context) error

	// Tenant is the only way to read.
	Tenant(TenantID) TenantStore

	Close() error
}

// A TenantStore reads what belongs to one tenant. Absent sessions are
// CodeNotFound, rows that cannot be decoded CodeCorrupt.
type TenantStore interface {
	Session(context.Context, SessionID) (Stored, error)
	// Sessions lists summaries, most recently changed first.
	Sessions(context.Context, SessionQuery) ([]Summary, error)
	// Runs lists runs of sessions that are not deleted, newest first.
	Runs(context.Context, RunQuery) ([]RunInfo, error)
	// Cards lists what waits for a person, longest first.
	Cards(context.Context, CardQuery) ([]CardInfo, error)
	// Activity is what rows of runs know of an agent: those that are open,
	// whenever they began, and those that began after a time.
	Activity(ctx context.Context, agent string, after time.Time) (Activity, error)

	// Events reads a session's log in order, after a seq: at most limit events
	// and, unless the first is larger, not much more than PageBytes. None: the
	// seq is the head. No seq is missing but those of pieces that Trim deleted.
	Events(ctx context.Context, id SessionID, after Seq, limit int) ([]Event, error)
	// Spoken is the log of a session after a seq, without the pieces of outputs:
	// what the conversation is made of.
	Spoken(ctx context.Context, id SessionID, after Seq) ([]Event, error)
	// Tree reads the logs of all sessions under a root, in order of position
	// and in pages like Events. An empty root stands for the whole tenant. A
	// row that cannot be decoded is an event with an Unreadable body: one
	// session's trouble is not to keep its neighbours from being followed.
	Tree(ctx context.Context, root SessionID, after Position, limit int) ([]Event, error)
	// Position is the last position given out.
	Position(context.Context) (Position, error)

	// Snapshot is the last one that was kept.
	Snapshot(context.Context, SessionID) (Snapshot, bool, error)
	// Receipt finds what an earlier command under this id was answered.
	Receipt(context.Context, SessionID, CommandID) (StoredReceipt, bool, error)
	Definition(ctx context.Context, digest string) (Agent, error)

	// Audited lists what is on record, newest first. AuditChain reads the rows
	// of the chain in order, after a number.
	Audited(context.Context, AuditQuery) ([]AuditRow, error)
	AuditChain(ctx context.Context, after int64, limit int) ([]AuditRow, error)

	// Context is what a user wants an agent to know; false: nothing.
	Context(ctx context.Context, agent string, user PrincipalID) (UserContext, bool, error)

	// Timers lists those of sessions that are not deleted, latest first; if it is
	// asked for those that wait, soonest first.
	Timers(context.Context, TimerQuery) ([]TimerInfo, error)
	// Effects lists what is or was owed, newest first.
	Effects(context.Context, EffectQuery) ([]EffectInfo, error)

	// Webhook is that of a session, or of AgentHook; false: there is none.
	Webhook(context.Context, SessionID) (StoredWebhook, bool, error)

	// Undelivered lists the bookmarks that were made after a time and are pending
	// or executing, oldest first. The others leave these alone that are neither.
	Undelivered(ctx context.Context, id SessionID, after time.Time) ([]Bookmark, error)
	// Delivered completes the bookmarks of runs.
	Delivered(ctx context.Context, id SessionID, at time.Time, runs ...RunID) error
	// Attempted notes that somebody has come for a bookmark, which is executing
	// until then.
	Attempted(ctx context.Context, id SessionID, effect Seq, at, until time.Time) error
	// SetAside fails a bookmark.
	SetAside(ctx context.Context, id SessionID, effect Seq, why string, at time.Time) error
	// Expire fails what was made before a time, and has what is executing for
	// too long pending again. It says when the oldest was made that is left, and
	// when the next will have been executing for too long; zero: there is none.
	// Webhooks are another matter: who tells them ends them. See HookStore.
	Expire(ctx context.Context, before, at time.Time) (Expired, error)
}

// Expired is what became of effects with the time.
type Expired struct {
	Failed         int
	Oldest, Leased time.Time
}

// PageBytes bounds what is read from a log at once.
const PageBytes = 1 << 20

// A Batch is what an actor has to append at once.
type Batch struct {
	Tenant  TenantID
	Session SessionID
	// Epoch of the writer and the head it built on. An append that is of an
	// older epoch than the session's last one, or that builds on another head,
	// is fenced: somebody else writes this session now.
	Epoch int64
	After Seq

	Events  []Event
	Trimmed bool    // seqs that are missing between the events are of pieces that were deleted
	Summary Summary // after the events
	Parent  *Origin // of a sub-agent's session
	// Snapshot, if given, replaces the one that is kept.
	Snapshot *Snapshot
	Receipt  *StoredReceipt
	Agent    *Agent // a definition the events refer to

	Due *DueChange // nil leaves the session's row as it is

	// Context, if given, replaces the one of its user and agent.
	Context *UserContext

	// Webhook, if given, replaces the session's; without a target there is none.
	Webhook *StoredWebhook

	// Revocation, if given, is kept unless a later one of its principal is. It
	// is of the batch's tenant.
	Revocation *Revocation

	// Audit goes on record in the same transaction. A batch without a session
	// has nothing but this, a Context and a Revocation; one without a tenant too
	// is of the server's own chain.
	Audit []Audit
}

// MaxContext bounds what a user may want an agent to know, in bytes.
const MaxContext = 64 << 10

// A UserContext is what a user wants an agent to know in every session of theirs.
type UserContext struct {
	Agent string
	User  PrincipalID
	Text  string
	At    time.Time // when it was given
}

// A DueChange replaces a session's due row. Held keeps it from DueBefore for as
// long as this process lives: an actor takes care of the session.
type DueChange struct {
	Due
	Held  bool
	Clear bool // there is to be no row
}

// Appended says what became of a batch.
type Appended struct {
	Fenced    bool
	Positions []Position // of the events, in order
}

// Stored is what is known of a session without reading its log.
type Stored struct {
	Summary Summary
	Epoch   int64 // of the last writer
}

type StoredReceipt struct {
	Receipt
	Digest string // of the command
	By     PrincipalID
}

type DueSession struct {
	Tenant  TenantID
	Session SessionID
	Due
}

// A SessionQuery narrows a list. Owner empty: everybody's.
type SessionQuery struct {
	Owner     PrincipalID
	Search    string    // in the title
	Transient bool      // list those too
	Running   bool      // only those that have an open run
	Root      SessionID // only this one and those below it
	Limit     int
}

// An AuditQuery narrows a list of records. What is empty does not.
type AuditQuery struct {
	By                       PrincipalID
	Action, Resource, Source string
	After, Before            time.Time
	Limit                    int
}

// A TicketStore keeps tickets until they are taken. It may forget them once they
// have expired, and must not before.
type TicketStore interface {
	// PutTicket keeps a ticket, which expires within MaxTicketLife. If too many
	// of its principal wait to be used it is refused with CodeLimited.
	PutTicket(ctx context.Context, hash TicketHash, claim TicketClaim, expires time.Time) error
	// TakeTicket removes a ticket and returns it, in one step: of any number
	// of calls for one ticket, on any number of servers, one gets it.
	TakeTicket(ctx context.Context, hash TicketHash) (TicketClaim, bool, error)
}

const (
	// MaxTicketLife lets a store forget tickets without a clock: one that is
	// put now shows that those which end this much earlier have expired, even
	// if the clocks of two servers differ by some seconds.
	MaxTicketLife = time.Minute
	// MaxTickets of one principal may wait, so that nobody takes all the room.
	MaxTickets = 100
)

// A RevocationStore keeps revocations across restarts, and lets several servers
// know of them.
type RevocationStore interface {
	// Append keeps the Revocation of a batch, with its audit record.
	Append(context.Context, Batch) (Appended, error)
	// Revocations lists those whose Before is after a time: the latest of a
	// principal, and the latest that spares administrators.
	Revocations(ctx context.Context, after time.Time) ([]Revocation, error)
}

// An Authorizer says who may do what. It returns nil to permit, CodeForbidden,
// or CodeNotFound where even existence is not to be known.
type Authorizer interface {
	Permit(who Principal, action Action, on Resource) error
}

// Agents knows the current definitions. An empty name is the default agent's.
type Agents interface {
	Agent(tenant TenantID, name string) (Agent, error)
	List(tenant TenantID) []Agent
}

// Skills knows the skills there are now.
type Skills interface {
	// Skills lists those of a tenant, by name.
	Skills(TenantID) []Skill
	// Problems says what is wrong with those that are not listed, each with its
	// file and line.
	Problems(TenantID) []string
}

// A Model speaks. The sequence yields what it says in order and ends with one
// ModelDone or an error. The message of an *Error is shown to people, and
// CodeOverloaded or CodeUnavailable says that trying again may help, after
// RetryAfter. Leaving the loop ends the upstream call.
type Model interface {
	Stream(context.Context, ModelRequest) iter.Seq2[Said, error]
}

type ModelRequest struct {
	Model        string
	Instructions string
	Messages     []Message
	Tools        []ToolSpec
	Fallback     []string // models to ask instead, in this order, if Model cannot answer
}

// Said is one thing a model said: exactly one field is set. FellBack comes
// before anything else is said.
type Said struct {
	Text     string
	Thinking string
	Call     *MessageCall
	Done     *ModelDone
	FellBack *FellBack
}

type ModelDone struct {
	Stop  Stop
	Usage Usage
	Memo  *Memo // what the provider wants back with this turn; nil: nothing
}

// A Memo is what a provider needs to be told again with the next request for a
// turn to be understood as it was meant: signatures of thinking, for example. It
// is opaque to everybody else, and given back to who wrote it alone.
type Memo struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Data     json.RawMessage `json:"data"`
}

// MaxMemo bounds the data of one, in bytes.
const MaxMemo = 1 << 20

// A Toolbox carries out tool calls.
type Toolbox interface {
	Specs(Agent) []ToolSpec
	// Judge says, without doing anything, what is to become of a call.
	Judge(agent Agent, name, arguments string) Verdict
	// Perform carries out a call. Live output goes to progress. When ctx ends
	// it stops everything it started before it returns. An error that is
	// ErrFateUnknown says that the call may have had its effect.
	Perform(ctx context.Context, agent Agent, name, arguments string, progress func(string)) (ToolResult, error)
}

// ErrFateUnknown: whatever was to carry out a call is gone, and nobody knows
// whether it happened. The call ends as after a crash, and a person decides.
var ErrFateUnknown = errors.New("nobody knows whether it happened")

// A TenantToolbox has tools that are not the same for every tenant.
type TenantToolbox interface {
	Toolbox // what all of them have
	// Of is the toolbox of a tenant, for as long as ctx lasts.
	Of(context.Context, ToolLedger) Toolbox
}

// A ToolLedger is what a tenant's session knows of tools that are not Parley's
// own: who offers them may change what they are.
type ToolLedger interface {
	Tenant() TenantID
	// Accepted is what was accepted of each server: digests by tool.
	Accepted(context.Context) (map[string]map[string]string, error)
	// AcceptFirst accepts what a server offers, if nothing of it was before.
	AcceptFirst(ctx context.Context, server string, tools map[string]string) error
}

// A ToolServer is a program outside that offers tools, as a tenant sees it.
type ToolServer struct {
	Name      string       `json:"name"`
	Transport string       `json:"transport"` // stdio or http
	Status    string       `json:"status"`    // stopped, starting, running or failed
	Problem   string       `json:"problem,omitempty"`
	Trusted   bool         `json:"trusted"`
	Tools     []ServerTool `json:"tools"` // as it last listed them
}

type ServerTool struct {
	Name        string          `json:"name"`   // as models know it
	Status      string          `json:"status"` // available, waiting (to be accepted) or unusable
	Reason      string          `json:"reason,omitempty"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Digest      string          `json:"digest"`             // of what the server says of it now
	Accepted    string          `json:"accepted,omitempty"` // of what was accepted
}

// A ToolResult is what came of a call that was carried out.
type ToolResult struct {
	Text   string
	Exit   *int // of a command
	Failed bool // it was carried out, and did not do what it was meant to
}

type ToolSpec struct {
	Name        string
	Description string
	Parameters  string // JSON Schema
	ReadOnly    bool   // changes nothing, whatever its arguments: runs that plan may have it
	Anywhere    bool   // touches nothing that belongs to a tenant: agents of every one may have it
}

// Changes finds out what a run has done to the files of its project.
type Changes interface {
	// Note remembers under a name what the files are like now, unless they were
	// noted under it before. It comes back when nothing may be missed any more.
	Note(ctx context.Context, name string) error
	// Since is what has changed since the files were noted, sorted by path and
	// within MaxFilesChanged and MaxDiff. Nothing: nothing did, or they could
	// not be noted.
	Since(ctx context.Context, name string) (FilesChanged, error)
}

// A Screen looks at texts on their way in and out. It computes, and nothing
// else; all methods may be called concurrently.
type Screen interface {
	// Scan judges a text that somebody sent, or that a tool has read, with what
	// was said before it.
	Scan(recent []string, text string) Finding
	// Canary is the word that the model of a session is given and must never
	// say.
	Canary(TenantID, SessionID) Canary
	// Redactor takes secrets out of a text that comes in pieces.
	Redactor() Filter
	// HasSecret reports whether a text holds one of the server's own secrets.
	HasSecret(text string) bool
}

// A Canary is in no event, snapshot or backup.
type Canary interface {
	Word() string
	// Filter lets nothing of the word through, in whatever pieces or usual
	// encoding it comes: the piece that would complete it is the end of what
	// it returns, and from then on it has leaked.
	Filter() LeakFilter
	Contains(text string) bool
	// Hide puts [canary] in its place, for those who look at prompts.
	Hide(text string) string
}

// A Filter holds back no more than could still become something to be changed.
type Filter interface {
	Write(piece string) string
	Close() string // what was held back; for a LeakFilter not yet the end
}

type LeakFilter interface {
	Filter
	Leaked() bool
}

// A Classifier judges an input with more than rules. It is asked before the
// model, and has two seconds.
type Classifier interface {
	Classify(ctx context.Context, text string) (Finding, error)
}

// The Door is how everybody outside reaches sessions. Permission, limits and
// screening sit behind it, so that no dialect can forget them.
type Door interface {
	// Submit hands a command to its session. It returns when the command's
	// events are durable, or with the reason why nothing was appended.
	Submit(context.Context, Principal, Command) (Receipt, error)
	// Follow follows a log from a cursor. CodeResync: the cursor is not of
	// this log.
	Follow(context.Context, Principal, Scope, Cursor) (Follower, error)
	// Head is where all logs of the tenant end now, by position: who follows
	// what it may read from there knows where it began.
	Head(context.Context, Principal) (Cursor, error)
	Session(context.Context, Principal, SessionID) (Summary, error)
	Sessions(context.Context, Principal, SessionQuery) ([]Summary, error)
	// Runs and Cards list what the principal may see: of everybody, or else
	// its own; of one session, if it names one.
	Runs(context.Context, Principal, RunQuery) ([]RunInfo, error)
	Cards(context.Context, Principal, CardQuery) ([]CardInfo, error)
	// Timers and Effects do the same.
	Timers(context.Context, Principal, TimerQuery) ([]TimerInfo, error)
	Effects(context.Context, Principal, EffectQuery) ([]EffectInfo, error)
	// Plan is the last plan of a session; CodeNotFound: it has none.
	Plan(context.Context, Principal, SessionID) (Plan, error)

	// Settings are those in effect for the principal's tenant. They are changed
	// by a command to its TenantSession.
	Settings(context.Context, Principal) (Settings, error)

	// Missions lists those of a project, newest first; the active one, if there
	// is, is the first. Override is what was chosen for an agent. Both are
	// changed by commands to the TenantSession.
	Missions(ctx context.Context, who Principal, project string, limit int) ([]MissionInfo, error)
	Override(ctx context.Context, who Principal, project, agent string) (Override, error)

	// ShowFile, ShowFolder and ShowTree show the files of the project of the
	// principal's tenant, see Files. CodeNotFound: the tenant has no project.
	ShowFile(ctx context.Context, who Principal, path string) (string, error)
	ShowFolder(ctx context.Context, who Principal, path string) ([]FileEntry, error)
	ShowTree(context.Context, Principal) (FileTree, error)

	// Resume is where a client that keeps no cursor is to follow a session
	// from: the oldest run it is owed, else the start of the open run, else
	// the head.
	Resume(context.Context, Principal, SessionID) (Cursor, error)
	// Delivered says that such a client was shown the end of a run.
	Delivered(context.Context, Principal, SessionID, ...RunID) error
	// Epoch is what cursors of this server begin with.
	Epoch() string

	// May says whether a principal is permitted something that is no command
	// and no session. Like every refusal behind the door, it goes on record.
	May(context.Context, Principal, Action, Resource) error
	// Audited lists what is on record for the principal's tenant, newest first.
	Audited(context.Context, Principal, AuditQuery) ([]AuditRow, error)

	// Stopped lists the agents of the principal's tenant that are stopped. What
	// is for them is refused with CodeStopped; who wants to hear of changes
	// follows the TenantSession.
	Stopped(context.Context, Principal) ([]string, error)
	// SetContext keeps what an agent is to know in every session of the
	// principal, in place of what was kept before. via says how it came.
	SetContext(ctx context.Context, who Principal, agent, text, via string) error
}

// A Scope is what is followed: one session, a tree of them by its root, or,
// when both are empty, the whole tenant.
type Scope struct {
	Session SessionID
	// Below adds the sessions below Session while they work for it, in order
	// of position; the cursor stays a seq of Session. One that is itself below
	// another has only itself.
	Below bool
	Root  SessionID
	// Readable narrows the whole tenant to what the principal may read:
	// everybody's sessions, or else its own.
	Readable bool
}

// A Cursor is where a follower is: the last Seq it has, or the last Position if
// it follows more than one session. Beginning and Live stand for themselves.
type Cursor struct {
	Epoch string // empty: whatever this store's is
	After int64
}

var (
	Beginning = Cursor{}
	Live      = Cursor{After: -1} // only what comes from now on
)

// A Follower sees every event of its scope after its cursor once, in order. It
// is for one goroutine.
type Follower interface {
	// Next waits for events. It fails with CodeUnavailable when the server
	// drains, and with ctx's error.
	Next(context.Context) ([]*Item, error)
	// Close releases what the follower holds. Next must not be called again.
	Close()
}

// An Item is an event on its way to followers. All followers of one process
// share it, so that what is made of the event is made once.
type Item struct {
	Event
	mu   sync.Mutex
	made map[string][]byte
}

// Made returns the bytes kept under key, making them on first use. What make
// returns must depend on the log alone, not on who follows it.
func (i *Item) Made(key string, make func() []byte) []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	if b, ok := i.made[key]; ok {
		return b
	}
	b := make()
	if i.made == nil {
		i.made = map[string][]byte{}
	}
	i.made[key] = b
	return b
}
