package bench

// A scenario is one kind of load.
type scenario struct {
	name  string
	about string
	// anyServer reports whether the scenario can use a server that already runs.
	anyServer bool
	run       func(*trial) error
}

var scenarios = []scenario{
	{"runs", "capacity: short answers in 50 sessions at once, closed loop", true, runRuns},
	{"first", "first token: messages at fixed times, one at a time and in bursts of 50", true, runFirst},
	{"stream", "added per token: one stream and 50 streams at 50 tokens per second", true, runStream},
	{"followers", "one session with 200 followers at 50 tokens per second", true, runFollowers},
	{"fan", "one session with 1,000 followers, closed loop, with 1 and with 32 tokens under way", true, runFan},
	{"fan-growth", "the cost of a delivery with 100 to 10,000 followers", false, runFanGrowth},
	{"viewers", "1,000 sessions with one follower each, closed loop", true, runViewers},
	{"piece", "1,000 streams at 30 tokens per second", true, runPiece},
	{"start", "from a message to its durable start, 1,000 per second in 1,000 sessions", true, runStart},
	{"memory", "memory of a fresh server, and after 500 sessions with 4 runs", false, runMemory},
	{"idle", "memory of idle connections, 1,000 to 10,000", false, runIdle},
	{"sessions", "memory of sessions at rest with 100 events each", false, runSessions},
	{"cold", "start of the server to its first session, empty and with 10,000 sessions", false, runCold},
	{"append", "the store alone: durable events per second of 1 to 1,000 writers", false, runAppend},
	{"resume", "logs of 10 to 100,000 events, the last ten events, and 1,000 clients that resume at once", false,
		runResume},
	{"list", "the list of sessions with 100 to 10,000 stored", false, runList},
	{"conversation", "the first token in conversations of 10 to 1,000 runs", false, runConversation},
	{"import", "parley import of sessions with 1,000 to 100,000 chunks", false, runImport},
	{"timer", "1,000 follow-ups that are due within a second", false, runTimer},
	{"outbox", "answers that are owed to 64 clients which come back", false, runOutbox},
	{"slow", "1,000 readers that hardly read while an agent streams 100 MB", false, runSlow},
	{"churn", "clients that connect, ask and leave, closed loop", true, runChurn},
	{"inputs", "400 messages of 1 MB at once", false, runInputs},
	{"keepalive", "HTTP connections that are left open", false, runKeepAlive},
	{"crash", "kill -9 while agents stream: nothing that was shown is lost", false, runCrash},
	{"nodes", "several nodes on one PostgreSQL database: lag, deliveries, appends and commands across nodes", false,
		runNodes},
	{"load", "agent loop protocol: 100 connections with 4 inputs under way each, closed loop", true, runLoad},
}

// Scenarios lists the scenarios, each with a description.
func Scenarios() (list [][2]string) {
	for _, s := range scenarios {
		list = append(list, [2]string{s.name, s.about})
	}
	return list
}
