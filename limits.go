package parley

import "time"

// Every limit that does not depend on configuration. Limits that an operator or a
// tenant can change have their default here and their flag or setting elsewhere.

// Texts, in bytes unless a comment says otherwise.
const (
	MaxContent          = 1 << 20  // one input
	MaxSearch           = 1 << 10  // a search query
	MaxNote             = 8 << 10  // a note, a title, the answers to a card
	MaxName             = 128      // the name of a request, an agent, a setting
	maxUser             = 256      // the id of a principal
	maxTitleRunes       = 60       // a title, in characters
	MaxOutput           = 4 << 20  // everything that a model says in one turn
	MaxArguments        = 1 << 20  // the arguments of one tool call
	MaxResult           = 1 << 20  // the result of one tool call
	MaxVendorError      = 2 << 10  // the message of a VendorError
	MaxExplanation      = 8 << 10  // the explanation of an approval
	maxPlan             = 32 << 10 // a plan that a person has edited
	MaxContext          = 64 << 10 // the context of a user
	MaxMemo             = 1 << 20  // the data of one Memo
	MaxSummary          = 64 << 10 // the summary that replaces a conversation
	maxInstructions     = 64 << 10 // of a custom agent
	maxDescription      = 1024     // of a custom agent
	MaxSkillText        = 64 << 10 // a skill with its arguments
	MaxSkillDescription = 1024     // of a skill: every model gets it
	maxForked           = 8 << 20  // the conversation that a fork begins with
	MaxMission          = 16 << 10 // the text of a mission
	MaxIdlePrompt       = 4 << 10
	maxReason           = 1 << 10   // the reason of a follow-up
	maxFollowUp         = 4 << 10   // the message of a follow-up
	MaxDiff             = 12000     // the diff of one file, in characters
	MaxShownFile        = 1 << 20   // a project file that people can view
	maxClientToolBytes  = 128 << 10 // names, descriptions and schemas of the tools that a client offers
)

// Counts.
const (
	MaxQueue       = 32   // inputs waiting in one session
	MaxCuts        = 3    // cuts of one run before it is interrupted
	defaultTurns   = 50   // of one run, unless its agent or tenant chooses otherwise
	MaxCalls       = 64   // tool calls of one turn
	MaxRemoteCalls = 1024 // tool calls that a remote agent may report in one turn
	maxDepth       = 2    // levels of sub-agents, unless the tenant chooses otherwise
	MaxChildren    = 16   // sub-agents of one session at the same time
	// percent of the window at which a context is compacted, unless the tenant chooses otherwise
	compactAt        = 80
	MaxFollowUps     = 10  // pending in one session, whatever the configuration
	MostConsecutive  = 100 // the most that max_consecutive can be
	MaxFilesChanged  = 20  // files in one FilesChanged
	maxUndone        = 32  // runs of one session for which the log alone refuses a second undo
	MaxShownEntries  = 5000
	MaxShownDepth    = 12
	maxMade          = 100 // custom agents of one tenant
	maxGrants        = 100 // of one session; a new grant replaces the oldest
	MaxSkills        = 64
	MaxServerTools   = 128     // tools of one server
	maxToolName      = 64      // bytes of a tool's name with its server's name: a limit of model vendors
	maxMissionAgents = 32      // agents for which one mission has choices
	MaxTickets       = 100     // unused tickets of one principal
	MaxEndedMissions = 100     // in a list; the log has all
	maxOverrides     = 100     // of one tenant
	maxClientTools   = 128     // offered by a client for one run
	MaxEarlier       = 10_000  // earlier messages of an input
	maxEarlierCalls  = 1 << 20 // more calls than a request can hold

	// freeAttempts is the number of attempts to deliver an effect without a
	// pause. Connections break, and a client that loses its connection after
	// every frame must still get everything in the end. After maxAttempts the
	// effect is set aside.
	freeAttempts = 256
	maxAttempts  = freeAttempts + 13
)

// Times.
const (
	minDelay       = time.Second // of a follow-up
	maxDelay       = 30 * 24 * time.Hour
	MostCooldownMS = 24 * 60 * 60 * 1000
	// defaultIdleInterval applies to agents for which no interval is chosen.
	defaultIdleInterval = time.Minute
	MaxIdleInterval     = 30 * 24 * time.Hour
	// EffectLife is how long the server tries to deliver an effect.
	EffectLife = 24 * time.Hour
	// EffectLease is how long an effect counts as being delivered after its last
	// sign of progress.
	EffectLease  = time.Minute
	longestPause = 10 * time.Minute // between attempts to deliver an effect
	// keepTransient is how long a transient session is kept after its last event.
	keepTransient = 7 * 24 * time.Hour
	// MaxTicketLife lets a store forget tickets without a clock. A new ticket
	// proves that all tickets that end this much earlier have expired, even if the
	// clocks of two servers differ by some seconds.
	MaxTicketLife = time.Minute
)
