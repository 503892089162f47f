package port

import (
	"context"
	"sync"
	"time"

	"parley"
)

// The Door is the interface through which dialects reach sessions. Permission
// checks, limits and screening are behind it, so that no dialect can forget
// them.
type Door interface {
	// Submit sends a command to its session. It returns when the command's
	// events are durable, or with the reason why no event was appended.
	Submit(context.Context, Principal, parley.Command) (Receipt, error)
	// Follow follows a log from a cursor. CodeResync: the cursor is not from
	// this log.
	Follow(context.Context, Principal, Scope, Cursor) (Follower, error)
	// Head returns the current end of all logs of the tenant, as a position. A
	// client can follow the sessions that it may read from this cursor, and so
	// knows where it began.
	Head(context.Context, Principal) (Cursor, error)
	Session(context.Context, Principal, parley.SessionID) (Summary, error)
	Sessions(context.Context, Principal, SessionQuery) ([]Summary, error)
	// Mark changes the principal's marks on a session, and returns them.
	Mark(context.Context, Principal, MarkChange) (Marks, error)
	// Runs and Cards list entries that the principal may see: of all owners, or
	// only its own, depending on its permissions. A query can select one
	// session.
	Runs(context.Context, Principal, RunQuery) ([]RunInfo, error)
	Cards(context.Context, Principal, CardQuery) ([]CardInfo, error)
	// Timers and Effects follow the same rule.
	Timers(context.Context, Principal, TimerQuery) ([]TimerInfo, error)
	Effects(context.Context, Principal, EffectQuery) ([]EffectInfo, error)
	// Search finds passages of messages in the same sessions.
	Search(context.Context, Principal, SearchQuery) (Found, error)
	// Grants lists the grants of a session, oldest first.
	Grants(context.Context, Principal, parley.SessionID) ([]parley.GrantInfo, error)
	// ServersOff lists the MCP servers that a session does not use.
	ServersOff(context.Context, Principal, parley.SessionID) ([]string, error)
	// Plan returns the last plan of a session; CodeNotFound: it has none.
	Plan(context.Context, Principal, parley.SessionID) (parley.Plan, error)

	// TurnRequest returns the model request of a turn of a run, by its number. CodeNotFound: there is no such turn, or
	// its agent is remote.
	TurnRequest(ctx context.Context, who Principal, session parley.SessionID, run parley.RunID,
		number int) (TurnRequest, error)

	// Settings returns the settings in effect for the principal's tenant. They
	// are changed by a command to its TenantSession.
	Settings(context.Context, Principal) (parley.Settings, error)

	// Missions lists the missions of a project, newest first; an active mission is the first. The project may be one
	// that the server no longer has. EveryProject lists the missions of all projects. Override returns the override of
	// an agent. Commands to the TenantSession change both.
	Missions(ctx context.Context, who Principal, project string, limit int) ([]MissionInfo, error)
	Override(ctx context.Context, who Principal, project, agent string) (parley.Override, error)

	// Projects lists the projects of the principal's tenant, the first one first.
	Projects(context.Context, Principal) ([]Project, error)
	// Project returns the project of a tenant with this root or id. An empty
	// name means the first project or, if the tenant has none, a Project
	// without a root. CodeInvalid: there is no such project; the message lists
	// the existing projects.
	Project(tenant parley.TenantID, name string) (Project, error)

	// ShowFile, ShowFolder and ShowTree show the files of a project of the
	// principal's tenant, see Files. CodeNotFound: the tenant has no project.
	ShowFile(ctx context.Context, who Principal, project, path string) (string, error)
	ShowFolder(ctx context.Context, who Principal, project, path string) ([]FileEntry, error)
	ShowTree(ctx context.Context, who Principal, project string) (FileTree, error)

	// Resume returns the cursor from which a client without a cursor must
	// follow a session: the oldest run that it must still get, else the start
	// of the open run, else the head.
	Resume(context.Context, Principal, parley.SessionID) (Cursor, error)
	// Delivered records that a client without a cursor got the end of a run.
	Delivered(context.Context, Principal, parley.SessionID, ...parley.RunID) error
	// Epoch returns the epoch of the store, with which cursors begin.
	Epoch() string

	// May reports whether a principal may perform an action that is neither a
	// command nor about a session. The audit records a refusal, like every
	// refusal behind the door.
	May(context.Context, Principal, parley.Action, Resource) error
	// Audited lists the audit records of the principal's tenant, newest first.
	Audited(context.Context, Principal, AuditQuery) ([]AuditRow, error)

	// Users lists users of the principal's tenant in the order of their ids, starting after the given one.
	Users(ctx context.Context, who Principal, after parley.PrincipalID, limit int) ([]UserInfo, error)

	// Usage returns the usage on the day of a time, today if the time is zero. See UsageReport.
	Usage(ctx context.Context, who Principal, at time.Time) (UsageReport, error)

	// Retain applies the retention rules of the tenant now; dry: it only reports what they would delete.
	Retain(ctx context.Context, who Principal, dry bool) (RetentionReport, error)
	// LegalHolds lists the legal holds of the tenant, and Hold sets or releases one.
	LegalHolds(context.Context, Principal) (LegalHolds, error)
	Hold(context.Context, Principal, HoldChange) (LegalHold, error)
	// Erase permanently deletes the conversations of a user of the principal's tenant, and the user's words in others.
	Erase(ctx context.Context, who Principal, user parley.PrincipalID) (ErasureReport, error)

	// Stopped lists the stopped agents of a project of the principal's tenant;
	// an empty project is the first. Requests to a stopped agent are refused
	// with CodeStopped. To learn of changes, follow the TenantSession.
	Stopped(ctx context.Context, who Principal, project string) ([]string, error)
	// SetContext replaces the text that an agent of a project (empty: the
	// first) gets in every session of the principal there. via is the way in which the request arrived.
	SetContext(ctx context.Context, who Principal, project, agent, text, via string) error
}

// A Receipt is the answer to an accepted command: the position of its events in
// the log. A command that is repeated under its id gets the first receipt
// again.
type Receipt struct {
	Session  parley.SessionID `json:"session"`
	Command  parley.CommandID `json:"command,omitempty"`
	First    parley.Seq       `json:"first,omitempty"` // zero: no events were needed
	Last     parley.Seq       `json:"last"`            // the head after the command
	Repeated bool             `json:"repeated,omitempty"`
}

// A Scope selects the logs of a Follower: one session, a tree of sessions by
// its root, or, if both are empty, the whole tenant.
type Scope struct {
	Session parley.SessionID
	// Below adds the sessions of sub-agents below Session while they work for
	// it, in order of position. The cursor stays a seq of Session. If Session
	// is itself a sub-agent's, Below adds nothing.
	Below bool
	Root  parley.SessionID
	// Readable narrows the whole tenant to the sessions that the principal may
	// read: all of them, or only its own.
	Readable bool
	// Project narrows the whole tenant to the sessions of a project, and to facts
	// of the tenant that do not belong to another project; zero: all projects.
	Project Project
}

// A Cursor is the place of a follower: the last Seq that it has, or the last
// Position if it follows more than one session. Beginning and Live are special
// values.
type Cursor struct {
	Epoch string // empty: this store's epoch
	After int64
}

var (
	Beginning = Cursor{}
	Live      = Cursor{After: -1} // only future events
)

// A Follower returns every event of its scope after its cursor once, in order.
// Only one goroutine may use it.
type Follower interface {
	// Next waits for events. It fails with CodeUnavailable when the server
	// stops, and with ctx's error.
	Next(context.Context) ([]*Item, error)
	// Close releases the resources of the follower. Next must not be called again.
	Close()
}

// A Waker is a Follower that can wake its caller. So a connection needs no
// goroutine while it waits for events.
type Waker interface {
	Follower
	// Take is Next for callers that do not block. If there are no events, Take
	// returns none, and calls wake on any goroutine when there may be some. wake
	// must not block. The next call of Next, Take or Close cancels wake; a call
	// that is already on its way may still come.
	Take(ctx context.Context, wake func()) ([]*Item, error)
}

// A RecentTaker is a Waker that usually has new events in memory.
type RecentTaker interface {
	Waker
	// TakeRecent is Take for callers that must not wait. It returns false if only Take can tell whether there are
	// events, for example because it has to read the store.
	TakeRecent(wake func()) ([]*Item, bool)
}

// An Item is an event on its way to followers. All followers of one process
// share it, so that derived data is computed once.
type Item struct {
	parley.Event
	mu     sync.Mutex
	made   map[string][]byte
	shared []any // by Share
}

// maxShared is how many values Share keeps for an event.
const maxShared = 8

// Share returns a value of the event that fits, or else calls make and keeps the result for others. It keeps only a few
// values, so make may be called again for one that fits.
func (i *Item) Share(fits func(value any) bool, make func() any) any {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, v := range i.shared {
		if fits(v) {
			return v
		}
	}
	v := make()
	if len(i.shared) < maxShared {
		i.shared = append(i.shared, v)
	}
	return v
}

// Made returns the bytes stored under key, and calls make on first use. The
// result of make must depend only on the log, not on the follower.
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
