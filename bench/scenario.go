package bench

// A scenario is one kind of load.
type scenario struct {
	name  string
	about string
	// anyServer: it can be run against a server that runs already.
	anyServer bool
	run       func(*trial) error
}

var scenarios = []scenario{
	{"runs", "capacity: short answers in 50 sessions at once, closed loop", true, runRuns},
	{"first", "first token: messages at fixed times, one at a time and in bursts of 50", true, runFirst},
	{"stream", "added per token: one stream and 50 streams at 50 tokens per second", true, runStream},
	{"followers", "one session with 200 followers at 50 tokens per second", true, runFollowers},
	{"fan", "one session with 1,000 followers, closed loop, with 1 and with 32 tokens under way", true, runFan},
	{"viewers", "1,000 sessions with one follower each, closed loop", true, runViewers},
	{"piece", "1,000 streams at 30 tokens per second", true, runPiece},
	{"start", "from a message to its durable start, 1,000 per second in 1,000 sessions", true, runStart},
}

// Scenarios lists the scenarios with a sentence each.
func Scenarios() (list [][2]string) {
	for _, s := range scenarios {
		list = append(list, [2]string{s.name, s.about})
	}
	return list
}
