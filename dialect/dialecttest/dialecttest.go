// Package dialecttest tests dialects with transcripts: files that show a log and the frames of a client, or the
// messages of a client and their meaning. Writing them needs no Go, and they are documentation that stays correct.
//
// # Transcripts
//
// A transcript is a txtar file in the testdata of a dialect. The comment at its top says which clause of a document or
// of the design it tests, and which mistake of the original server it keeps from coming back. Any number of sections
// follow:
//
//	-- log --               events, one per line
//	-- frames --            the frames for a client that follows that log, byte for byte,
//	                        one per line; "close CODE REASON" ends a connection
//	-- frames NAME --       the same in another of the dialect's views
//	-- frames after=7 --    the frames for a client that connects when the log ends at
//	                        seq 7; with from=3, it starts at seq 3, another start that
//	                        the dialect allows
//
//	-- in --                messages of a client, one per line
//	-- commands --          the meaning of each message
//
// Every frames section belongs to the log above it. Empty lines and lines that begin with # are for the reader; those
// of in are repeated in commands.
//
// A line of a log is a line of the native log that has only the fields that matter. Missing fields have these values:
//
//	seq            1, or one more than in the line above
//	session        Session
//	root           the session of the first line
//	position       seq; after a line of another session, one more than above
//	at             Begin and 10 ms for every seq
//	run            the open run, in events that belong to one
//	by             empty
//	body           {}
//
// so that this is a log:
//
//	{"type":"SessionOpened","body":{"owner":"ann"}}
//	{"type":"InputReceived","body":{"content":"Hello","request":"r1","agent":{"name":"coder"},"busy":"queue"}}
//	{"type":"RunStarted","body":{"input":2,"request":"r1","agent":{"name":"coder"}}}
//
// A log that begins with seq 1 must pass the checker, so that no transcript shows an impossible log. A log may begin
// later, as a follower's cursor may. The log of a session may contain lines of its sub-agents; then sections count
// positions instead of seqs.
//
// With -update, the expected sections are rewritten, and added where they are missing:
//
//	go test ./dialect/threadchat -update
//
// # Other checks
//
// Every event type is either shown in some transcript of a dialect or listed as ignored, with a reason; never both. A
// client that connects in the middle of a log gets the same frames as the other clients from there on. Project is pure.
// The last two also hold for random logs and, in dialects that show the cards of sub-agents, for random trees: each
// card is shown, closed once, and nothing else of sub-agents is shown.
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

// A Dialect describes a dialect for the tests.
type Dialect[V any] struct {
	Name    string
	Project dialect.Project[V]
	// Views are the initial views of connections, by the name in a frames
	// section. The default view has an empty name.
	Views map[string]V
	// Starts returns the events, as indexes, at which a connection may start when the log has just these events. The
	// usual start comes first. Nil: a connection starts after all of them.
	Starts func(log []parley.Event) []int
	// Ignored has the reason for every event type that is never shown.
	Ignored map[string]string
	// Trees is set if Project takes the logs of a session and of those below it
	// as one log.
	Trees bool
	// OneAtATime is set if the dialect requests one approval after the other.
	// Its connections tell clients that an approval is closed, except the
	// client that decided it.
	OneAtATime bool
	// Decode decodes a message of a client. Nil: the dialect has no messages
	// from clients.
	Decode func(message []byte) Decoded
}

// FromRuns is the Starts of dialects whose clients get whole runs. A connection
// starts at the beginning of the open run, or else at the head. If the client
// is owed an older run, it starts at the beginning of that run.
func FromRuns(log []parley.Event) []int {
	usual := len(log)
	var runs []int
	for i, e := range log {
		if e.Session != log[0].Session {
			continue // an event of a sub-agent
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

// Run tests a dialect with the transcripts in testdata.
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

// Logs returns all logs of the transcripts in testdata, for other tests.
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

// Sessions returns the logs that have only one session.
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

// report reports every one of joined errors.
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
