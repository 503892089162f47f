// Package dialecttest proves dialects by transcripts: files that show a log and
// what a client is shown of it, or what a client sends and what that means. They
// need no Go to write, and read as documentation that cannot go stale.
//
// # Transcripts
//
// A transcript is a txtar file in the testdata of a dialect. The comment at its
// top says which clause of a document or of the design it proves, and which
// mistake of the original it keeps from coming back. Sections follow, any number
// of them:
//
//	-- log --               events, one per line
//	-- frames --            what who follows that log is shown, byte for byte, one
//	                        frame per line; "close CODE REASON" ends a connection
//	-- frames NAME --       the same through another of the dialect's views
//	-- frames after=7 --    the same to who connects when the log ends at seq 7;
//	                        with from=3, and starts at another place it may, seq 3
//
//	-- in --                what a client sends, one message per line
//	-- commands --          what each of them means
//
// Every frames section is about the log above it. Empty lines, and lines that
// begin with #, are for the reader; those of in are repeated in commands.
//
// A line of a log is a line of the native log, of which only what matters has
// to be written. The rest is filled in:
//
//	seq            1, or one more than in the line above
//	session        Session
//	root           the session of the first line
//	position       seq; from where another session comes, one more than above
//	at             Begin and 10 ms for every seq
//	run            the open run, in events that belong to one
//	by             nobody
//	body           {}
//
// so that this is a log:
//
//	{"type":"SessionOpened","body":{"owner":"ann"}}
//	{"type":"InputReceived","body":{"content":"Hello","request":"r1","agent":{"name":"coder"},"busy":"queue"}}
//	{"type":"RunStarted","body":{"input":2,"request":"r1","agent":{"name":"coder"}}}
//
// A log that begins with seq 1 must pass the checker, so that no transcript can
// show what cannot happen. One may begin later, as a follower's cursor may. The
// logs of sub-agents may stand between the lines of the session they work for;
// where a section counts seqs, it counts positions then.
//
// With -update the expected sections are written anew, and added where they are
// missing:
//
//	go test ./dialect/threadchat -update
//
// # What is proved besides
//
// Every type of event is shown in some transcript of a dialect or is listed as
// ignored, with a reason; never both. Whoever connects in the middle of a log is
// shown what the others are shown from there on. Project is pure. The last two
// hold for random logs as well, and for random trees in dialects that show cards of
// sub-agents: each of them is shown, closed once, and nothing else of theirs is.
package dialecttest

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
)

var update = flag.Bool("update", false, "rewrite what transcripts expect")

// A Dialect is what the harness has to know of one.
type Dialect[V any] struct {
	Name    string
	Project dialect.Project[V]
	// Views are those of fresh connections, by the name a frames section gives;
	// the one it gets by default has none.
	Views map[string]V
	// Starts lists where a connection may start that is made when the log holds
	// just these events, as indexes of events; first where it usually does. Nil:
	// behind them all.
	Starts func(log []parley.Event) []int
	// Ignored gives the reason for every type of event that is never shown.
	Ignored map[string]string
	// Trees: Project takes the logs of a session and of those below it as one.
	Trees bool
	// OneAtATime: approvals are asked for one after the other, and said to be
	// closed by the connection, to who has not decided them.
	OneAtATime bool
	// Decode reads what a client sends. Nil: the dialect takes no messages.
	Decode func(message []byte) Decoded
}

// FromRuns is for dialects whose clients see runs whole: a connection starts at
// the beginning of the run that is open, else at the head, or else, if it is
// owed an older run, at the beginning of that.
func FromRuns(log []parley.Event) []int {
	usual := len(log)
	var runs []int
	for i, e := range log {
		if e.Session != log[0].Session {
			continue // of a sub-agent
		}
		switch e.Body.(type) {
		case parley.RunStarted:
			usual, runs = i, append(runs, i)
		case parley.RunFinished:
			usual = len(log)
		}
	}
	return append([]int{usual}, runs...)
}

// Run proves a dialect by the transcripts in testdata.
func Run[V any](t *testing.T, d Dialect[V]) {
	for _, name := range glob(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a := parse(t, name)
			played, err := d.play(a)
			report(t, err)
			if *update {
				save(t, name, played)
			} else {
				report(t, compare(a, played))
			}
		})
	}
	t.Run("EveryEventHasAPlace", func(t *testing.T) {
		report(t, d.complete(Logs(t)))
	})
	t.Run("AnyLog", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			log := AnyLog(t)
			if err := d.consistent(log, rapid.IntRange(0, len(log)-1).Draw(t, "connects")); err != nil {
				t.Fatalf("%v\nin the log\n%s", err, Lines(log))
			}
		})
	})
	if !d.Trees {
		return
	}
	t.Run("AnyTree", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			log := AnyTree(t)
			err := d.consistent(log, rapid.IntRange(0, len(log)-1).Draw(t, "connects"))
			if err == nil {
				err = d.cards(log)
			}
			if err != nil {
				t.Fatalf("%v\nin the log\n%s", err, Lines(log))
			}
		})
	})
}

// Logs are all logs of the transcripts in testdata, for tests of other things
// that ought to hold for them.
func Logs(t testing.TB) (logs [][]parley.Event) {
	t.Helper()
	for _, name := range glob(t) {
		for _, f := range parse(t, name).Files {
			if f.Name != "log" {
				continue
			}
			log, err := readLog(string(f.Data))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			logs = append(logs, log)
		}
	}
	return logs
}

// Sessions are those of the logs that are of one session.
func Sessions(t testing.TB) [][]parley.Event {
	t.Helper()
	return slices.DeleteFunc(Logs(t), func(log []parley.Event) bool { return len(apart(log)) > 1 })
}

func glob(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no transcripts in testdata (%v)", err)
	}
	return files
}

func parse(t testing.TB, name string) *txtar.Archive {
	t.Helper()
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func save(t testing.TB, name string, a *txtar.Archive) {
	t.Helper()
	if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// report reports every error that was joined.
func report(t testing.TB, err error) {
	t.Helper()
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			report(t, err)
		}
	} else if err != nil {
		t.Error(err)
	}
}

// problems collects errors.
type problems []error

func (p *problems) add(err error) {
	if err != nil {
		*p = append(*p, err)
	}
}

func (p problems) err() error { return errors.Join(p...) }
