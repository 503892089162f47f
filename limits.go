package parley

import "time"

// Every limit that does not depend on configuration. What an operator or a tenant
// can choose has its default here and its flag or setting elsewhere.

// Texts, in bytes unless a comment says otherwise.
const (
	MaxContent          = 1 << 20  // one input
	MaxSearch           = 1 << 10  // a search
	MaxNote             = 8 << 10  // a note, a title, the answers to a card
	MaxName             = 128      // the name of a request, an agent, a setting
	maxUser             = 256      // the id of a user, as in tokens
	maxTitleRunes       = 60       // a title, in characters
	MaxOutput           = 4 << 20  // everything a model says in one turn
	MaxArguments        = 1 << 20  // the arguments of one tool call
	MaxResult           = 1 << 20  // the result of one tool call
	MaxVendorError      = 2 << 10  // the words of a VendorError
	MaxExplanation      = 8 << 10  // the explanation of an approval
	maxPlan             = 32 << 10 // a plan that a person has edited
	MaxContext          = 64 << 10 // what a user wants an agent to know
	MaxMemo             = 1 << 20  // the data of one Memo
	MaxSummary          = 64 << 10 // the summary that replaces a conversation
	maxInstructions     = 64 << 10 // of a custom agent
	maxDescription      = 1024     // of a custom agent
	MaxSkillText        = 64 << 10 // a skill with its arguments
	MaxSkillDescription = 1024     // of a skill: every model is told
	maxForked           = 8 << 20  // the conversation that a fork begins with
	MaxMission          = 16 << 10 // the text of a mission
	MaxIdlePrompt       = 4 << 10
	maxReason           = 1 << 10   // why an agent wants to come back
	maxFollowUp         = 4 << 10   // what it is told then
	MaxDiff             = 12000     // the diff of one file, in characters
	MaxShownFile        = 1 << 20   // a project file that people are shown
	maxClientToolBytes  = 128 << 10 // names, descriptions and schemas of the tools that a client offers
)

// Counts.
const (
	MaxQueue       = 32   // inputs waiting in one session
	MaxCuts        = 3    // lost model calls of one run
	defaultTurns   = 50   // of one run, unless its agent or tenant chooses otherwise
	MaxCalls       = 64   // tool calls of one turn
	MaxRemoteCalls = 1024 // tool calls that a remote agent may report in one turn
	maxDepth       = 2    // levels of sub-agents, unless the tenant chooses otherwise
	MaxChildren    = 16   // sub-agents of one session at the same time
	// percent of the window at which a context is compacted, unless the tenant chooses otherwise
	compactAt        = 80
	MaxFollowUps     = 10  // waiting in one session, whatever is configured
	MostConsecutive  = 100 // the most that max_consecutive can be
	MaxFilesChanged  = 20  // files in one FilesChanged
	maxUndone        = 32  // runs of one session that a repeated undo is refused for by the log alone
	MaxShownEntries  = 5000
	MaxShownDepth    = 12
	maxMade          = 100 // custom agents of one tenant
	maxGrants        = 100 // of one session; the oldest is forgotten for a new one
	MaxSkills        = 64
	MaxServerTools   = 128     // tools of one server
	maxToolName      = 64      // bytes of a tool's name with its server's: model vendors take no more
	maxMissionAgents = 32      // agents that one mission has choices for
	MaxTickets       = 100     // unused, of one principal
	MaxEndedMissions = 100     // in a list; the log has all
	maxOverrides     = 100     // of one tenant
	maxClientTools   = 128     // that a client offers for one run
	MaxEarlier       = 10_000  // messages that were said before an input
	maxEarlierCalls  = 1 << 20 // more than a request can hold

	// freeAttempts to deliver an effect are made without a pause: connections
	// break, and a client that is lost after every frame must get the whole of it
	// in the end. After maxAttempts the effect is set aside.
	freeAttempts = 256
	maxAttempts  = freeAttempts + 13
)

// Times.
const (
	minDelay       = time.Second // of a follow-up
	maxDelay       = 30 * 24 * time.Hour
	MostCooldownMS = 24 * 60 * 60 * 1000
	// defaultIdleInterval holds for agents for which nobody chooses another.
	defaultIdleInterval = time.Minute
	MaxIdleInterval     = 30 * 24 * time.Hour
	// EffectLife is how long the server tries to deliver an effect.
	EffectLife = 24 * time.Hour
	// EffectLease is how long an effect counts as being delivered if nothing more
	// is heard of it.
	EffectLease  = time.Minute
	longestPause = 10 * time.Minute // between attempts to deliver an effect
	// keepTransient is how long the session of a connection is kept after its last
	// event.
	keepTransient = 7 * 24 * time.Hour
	// MaxTicketLife lets a store forget tickets without a clock: a new ticket shows
	// that tickets which end this much earlier have expired, even if the clocks of
	// two servers differ by some seconds.
	MaxTicketLife = time.Minute
)
