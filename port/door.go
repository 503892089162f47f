package port

import (
	"context"
	"sync"
	"time"

	"parley"
)

// The Door is how everybody outside reaches sessions. Permission, limits and
// screening sit behind it, so that no dialect can forget them.
type Door interface {
	// Submit hands a command to its session. It returns when the command's
	// events are durable, or with the reason why nothing was appended.
	Submit(context.Context, Principal, parley.Command) (Receipt, error)
	// Follow follows a log from a cursor. CodeResync: the cursor is not of
	// this log.
	Follow(context.Context, Principal, Scope, Cursor) (Follower, error)
	// Head is where all logs of the tenant end now, by position: who follows
	// what it may read from there knows where it began.
	Head(context.Context, Principal) (Cursor, error)
	Session(context.Context, Principal, parley.SessionID) (Summary, error)
	Sessions(context.Context, Principal, SessionQuery) ([]Summary, error)
	// Mark changes what the principal has noted about a session, and returns it.
	Mark(context.Context, Principal, MarkChange) (Marks, error)
	// Runs and Cards list what the principal may see: of everybody, or else
	// its own; of one session, if it names one.
	Runs(context.Context, Principal, RunQuery) ([]RunInfo, error)
	Cards(context.Context, Principal, CardQuery) ([]CardInfo, error)
	// Timers and Effects do the same.
	Timers(context.Context, Principal, TimerQuery) ([]TimerInfo, error)
	Effects(context.Context, Principal, EffectQuery) ([]EffectInfo, error)
	// Search finds passages of messages in those sessions.
	Search(context.Context, Principal, SearchQuery) (Found, error)
	// Grants lists what people allowed for the rest of a session, oldest first.
	Grants(context.Context, Principal, parley.SessionID) ([]parley.GrantInfo, error)
	// ServersOff lists the tool servers that a session does not use.
	ServersOff(context.Context, Principal, parley.SessionID) ([]string, error)
	// Plan is the last plan of a session; CodeNotFound: it has none.
	Plan(context.Context, Principal, parley.SessionID) (parley.Plan, error)

	// TurnRequest is what the model was asked in a turn of a run, by its number. CodeNotFound: there is no such turn,
	// or its agent runs elsewhere.
	TurnRequest(ctx context.Context, who Principal, session parley.SessionID, run parley.RunID,
		number int) (TurnRequest, error)

	// Settings are those in effect for the principal's tenant. They are changed
	// by a command to its TenantSession.
	Settings(context.Context, Principal) (parley.Settings, error)

	// Missions lists the missions of a project, newest first; an active mission is the first. The server need not have
	// the project. EveryProject lists the missions of all projects. Override is what was chosen for an agent. Both are
	// changed by commands to the TenantSession.
	Missions(ctx context.Context, who Principal, project string, limit int) ([]MissionInfo, error)
	Override(ctx context.Context, who Principal, project, agent string) (parley.Override, error)

	// Projects lists those of the principal's tenant, the first one first.
	Projects(context.Context, Principal) ([]Project, error)
	// Project is the one of a tenant that is meant by a root or an id; an empty
	// name is the first, or, with no root, none. CodeInvalid: there is no such
	// project; the message lists those there are.
	Project(tenant parley.TenantID, name string) (Project, error)

	// ShowFile, ShowFolder and ShowTree show the files of a project of the
	// principal's tenant, see Files. CodeNotFound: the tenant has no project.
	ShowFile(ctx context.Context, who Principal, project, path string) (string, error)
	ShowFolder(ctx context.Context, who Principal, project, path string) ([]FileEntry, error)
	ShowTree(ctx context.Context, who Principal, project string) (FileTree, error)

	// Resume is where a client that keeps no cursor is to follow a session
	// from: the oldest run it is owed, else the start of the open run, else
	// the head.
	Resume(context.Context, Principal, parley.SessionID) (Cursor, error)
	// Delivered says that such a client was shown the end of a run.
	Delivered(context.Context, Principal, parley.SessionID, ...parley.RunID) error
	// Epoch is what cursors of this server begin with.
	Epoch() string

	// May says whether a principal is permitted something that is no command
	// and no session. Like every refusal behind the door, it goes on record.
	May(context.Context, Principal, parley.Action, Resource) error
	// Audited lists what is on record for the principal's tenant, newest first.
	Audited(context.Context, Principal, AuditQuery) ([]AuditRow, error)

	// Users lists users of the principal's tenant in order of their ids, after one.
	Users(ctx context.Context, who Principal, after parley.PrincipalID, limit int) ([]UserInfo, error)

	// Usage is what was used on the day of a time, today if that is zero. See UsageReport.
	Usage(ctx context.Context, who Principal, at time.Time) (UsageReport, error)

	// Retain carries out the rules of retention of the tenant now; dry: it only says what they would delete.
	Retain(ctx context.Context, who Principal, dry bool) (RetentionReport, error)
	// LegalHolds lists those of the tenant, and Hold changes one.
	LegalHolds(context.Context, Principal) (LegalHolds, error)
	Hold(context.Context, Principal, HoldChange) (LegalHold, error)
	// Erase deletes for good what a user of the principal's tenant has said.
	Erase(ctx context.Context, who Principal, user parley.PrincipalID) (ErasureReport, error)

	// Stopped lists the agents of a project of the principal's tenant that are
	// stopped; an empty project is the first. What is for them is refused with
	// CodeStopped; who wants to hear of changes follows the TenantSession.
	Stopped(ctx context.Context, who Principal, project string) ([]string, error)
	// SetContext keeps what an agent is to know in every session of the
	// principal, in place of what was kept before. via says how it came.
	SetContext(ctx context.Context, who Principal, agent, text, via string) error
}

// A Receipt is the answer to an accepted command: where in the log its events
// are. A command repeated under its id gets the first receipt again.
type Receipt struct {
	Session  parley.SessionID `json:"session"`
	Command  parley.CommandID `json:"command,omitempty"`
	First    parley.Seq       `json:"first,omitempty"` // zero: nothing had to be appended
	Last     parley.Seq       `json:"last"`            // the head after the command
	Repeated bool             `json:"repeated,omitempty"`
}

// A Scope is what is followed: one session, a tree of them by its root, or,
// when both are empty, the whole tenant.
type Scope struct {
	Session parley.SessionID
	// Below adds the sessions below Session while they work for it, in order
	// of position; the cursor stays a seq of Session. One that is itself below
	// another has only itself.
	Below bool
	Root  parley.SessionID
	// Readable narrows the whole tenant to what the principal may read:
	// everybody's sessions, or else its own.
	Readable bool
	// Project narrows the whole tenant to the sessions of a project, and to those
	// facts of the tenant that are not another project's; zero: it does not.
	Project Project
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

// A Waker is a Follower that can wake its caller. While nothing happens, a
// connection that follows it needs no goroutine for that.
type Waker interface {
	Follower
	// Take is Next for callers that do not wait for events. If there are none, it
	// returns none, and wake is called when there may be some, on any goroutine.
	// wake must not wait for anything. Next, Take and Close end what an earlier
	// Take asked for; a wake that was on its way may still come.
	Take(ctx context.Context, wake func()) ([]*Item, error)
}

// An Item is an event on its way to followers. All followers of one process
// share it, so that what is made of the event is made once.
type Item struct {
	parley.Event
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
