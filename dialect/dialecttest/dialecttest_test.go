package dialecttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"parley"
	"parley/checker"
	"parley/dialect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// toy is a dialect that shows runs. Tests break it on purpose.
type toy = Dialect[int]

type frame struct {
	Run  parley.RunID `json:"run"`
	Text string       `json:"text"`
}

func newToy() toy {
	d := toy{
		Name:   "toy",
		Views:  map[string]int{"": 0, "loud": 1},
		Starts: FromRuns,
		Project: func(loud int, e parley.Event) (int, []dialect.Frame) {
			switch b := e.Body.(type) {
			case parley.RunStarted:
				return loud, []dialect.Frame{{Body: frame{e.Run, strings.Repeat("!", loud) + b.Request}}}
			case parley.SessionDeleted:
				return loud, []dialect.Frame{{Close: &dialect.Goodbye{Code: 1000, Reason: "over"}}}
			}
			return loud, nil
		},
		Decode: func(message []byte) Decoded {
			if string(message) == "no" {
				return Decoded{Refusal: "why", Request: "r"}
			}
			return Decoded{Command: parley.Command{ID: "1", Session: Session,
				Do: parley.RenameSession{Title: string(message)}}}
		},
		Ignored: map[string]string{},
	}
	for _, name := range parley.EventTypes() {
		if name != "RunStarted" && name != "SessionDeleted" {
			d.Ignored[name] = "not of interest"
		}
	}
	return d
}

const toyTranscript = `Proves a clause of the document.

-- log --
# Said once.
{"type":"SessionOpened","body":{"owner":"ann"}}
{"type":"InputReceived","body":{"content":"Hello","request":"r1","agent":{"name":"coder"},"busy":"queue"}}
{"type":"RunStarted","body":{"input":2,"request":"r1","agent":{"name":"coder"}}}
{"type":"InputAdopted","body":{"input":2,"request":"r1"}}
{"type":"InputReceived","body":{"content":"Wait","agent":{"name":"coder"},"busy":"queue"}}
{"type":"RunFinished","body":{"outcome":"cancelled","usage":{}}}
{"type":"InputWithdrawn","body":{"input":5,"reason":"deleted"}}
{"type":"SessionDeleted"}
-- frames --
{"run":3,"text":"r1"}
close 1000 over
-- frames loud after=4 --
{"run":3,"text":"!r1"}
close 1000 over
-- frames after=6 --
close 1000 over
-- frames after=6 from=3 --
{"run":3,"text":"r1"}
close 1000 over
-- in --
# Two messages.
no

a title
-- commands --
# Two messages.
{"refusal":"why","request":"r"}

{"command":"RenameSession","Title":"a title","id":"1"}
`

// judge returns all errors that Run finds in one transcript.
func judge(d toy, text string) error {
	a := txtar.Parse([]byte(text))
	played, err := d.play(a)
	p := problems{}
	p.add(err)
	p.add(compare(a, played))
	var logs [][]parley.Event
	for _, f := range a.Files {
		if log, err := readLog(string(f.Data)); f.Name == "log" && err == nil {
			logs = append(logs, log)
		}
	}
	p.add(d.complete(logs))
	return p.err()
}

func TestAGoodTranscriptPasses(t *testing.T) {
	if err := judge(newToy(), toyTranscript); err != nil {
		t.Error(err)
	}
}

func TestBadTranscriptsFail(t *testing.T) {
	const opened = `{"type":"SessionOpened","body":{"owner":"ann"}}`
	for _, test := range []struct{ name, old, new, want string }{
		{"no source", "a clause of the document", "something", "does not say which clause"},
		{"other frames", `"text":"r1"`, `"text":"r2"`, "section 2, frames:"},
		{"other frames in a view", `"text":"!r1"`, `"text":"r1"`, "section 3, frames loud after=4:"},
		{"a frame too few", "close 1000 over\n-- frames loud", "-- frames loud", "section 2, frames:"},
		{"other commands", `"Title":"a title"`, `"Title":"another"`, "section 7, commands:"},
		{"no frames", toyTranscript[strings.Index(toyTranscript, "-- frames --"):strings.Index(toyTranscript,
			"-- in --")], "", "-update adds them"},
		{"no commands", toyTranscript[strings.Index(toyTranscript, "-- commands --"):], "", "-update adds them"},
		{"frames of nothing",
			toyTranscript[strings.Index(toyTranscript, "-- log --"):strings.Index(toyTranscript, "-- frames --")], "",
			"no log stands before it"},
		{"commands of nothing",
			toyTranscript[strings.Index(toyTranscript, "-- in --"):strings.Index(toyTranscript, "-- commands --")], "",
			"no section in stands right before it"},
		{"unknown section", "-- frames after=6 --", "-- frame --", "no such section"},
		{"unknown view", "frames loud", "frames silent", `no view "silent"`},
		{"beyond the log", "after=6", "after=60", "60 is not of the log"},
		{"from nowhere", "after=6 from=3", "from=3", "a connection cannot start from=3"},
		{"from the middle", "after=6 from=3", "after=6 from=4", "a connection cannot start from=4"},
		{"an empty log",
			toyTranscript[strings.Index(toyTranscript, opened):strings.Index(toyTranscript, "-- frames --")], "",
			"the log is empty"},
		{"an illegal log", `"outcome":"cancelled"`, `"outcome":"completed"`, "did not adopt its input"},
		{"an illegal log that begins later", opened, `{"seq":7,"type":"SessionReopened"}` + "\n" +
			`{"seq":9,"type":"SessionReopened"}`, "seq 9 cannot follow seq 7"},
		{"a gap", `{"type":"SessionDeleted"`, `{"seq":10,"type":"SessionDeleted"`, "expected seq 8"},
		{"an unknown event", "SessionDeleted", "SessionForgotten", `unknown event type "SessionForgotten"`},
		{"a misspelt key", `{"type":"SessionDeleted"`, `{"ran":1,"type":"SessionDeleted"`, `unknown field "ran"`},
		{"a misspelt key of a body", `"outcome":"cancelled"`, `"outcome":"cancelled","cod":"x"`, `unknown field "cod"`},
		{"two events in a line", opened, opened + opened, "something follows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !strings.Contains(toyTranscript, test.old) {
				t.Fatalf("%q is not in the transcript", test.old)
			}
			fails(t, judge(newToy(), strings.Replace(toyTranscript, test.old, test.new, 1)), test.want)
		})
	}
	t.Run("no sections", func(t *testing.T) { fails(t, judge(newToy(), "The document.\n"), "there are no sections") })
}

func TestBrokenDialectsFail(t *testing.T) {
	var calls int
	show := func(change func(loud int, e parley.Event, f []dialect.Frame) (int, []dialect.Frame)) func(*toy) {
		return func(d *toy) {
			project := d.Project
			d.Project = func(loud int, e parley.Event) (int, []dialect.Frame) {
				v, frames := project(loud, e)
				return change(v, e, frames)
			}
		}
	}
	decode := func(decoded Decoded) func(*toy) {
		return func(d *toy) { d.Decode = func([]byte) Decoded { return decoded } }
	}
	rename := parley.Command{Session: Session, Do: parley.RenameSession{Title: "x"}}
	for _, test := range []struct {
		name  string
		spoil func(*toy)
		want  string
	}{
		{"forgets an event", func(d *toy) { delete(d.Ignored, "TurnStarted") }, "neither shows TurnStarted in any " +
			"transcript nor says why"},
		{"ignores for no reason", func(d *toy) { d.Ignored["TurnStarted"] = "" }, "ignores TurnStarted for no reason"},
		{"ignores what is no event", func(d *toy) { d.Ignored["TurnEnded"] = "gone" },
			"ignores TurnEnded, which is no event"},
		{"shows what it ignores", func(d *toy) { d.Ignored["RunStarted"] = "not of interest" },
			"says that RunStarted is ignored (not of interest) and shows it"},
		{"shows in one view what it ignores",
			show(func(loud int, e parley.Event, f []dialect.Frame) (int, []dialect.Frame) {
				if _, ok := e.Body.(parley.InputReceived); ok && loud == 1 {
					f = []dialect.Frame{{Body: frame{}}}
				}
				return loud, f
			}), "says that InputReceived is ignored"},
		{"remembers what late comers cannot know",
			show(func(loud int, e parley.Event, f []dialect.Frame) (int, []dialect.Frame) {
				return loud + 1, f
			}), "who connects after seq"},
		{"starts in the middle of a run", func(d *toy) {
			d.Starts = nil
			show(func(loud int, e parley.Event, f []dialect.Frame) (int, []dialect.Frame) {
				switch e.Body.(type) {
				case parley.RunStarted:
					return 9, f
				case parley.InputWithdrawn:
					return loud, []dialect.Frame{{Body: frame{Text: fmt.Sprint(loud)}}}
				}
				return loud, f
			})(d)
			delete(d.Ignored, "InputWithdrawn")
		}, "who connects after seq 3: seq 7 is shown as"},
		{"is not pure", show(func(loud int, e parley.Event, f []dialect.Frame) (int, []dialect.Frame) {
			if _, ok := e.Body.(parley.RunStarted); ok {
				calls++
				f = []dialect.Frame{{Body: frame{Text: fmt.Sprint(calls)}}}
			}
			return loud, f
		}), "projecting is not pure"},
		{"speaks after goodbye", show(func(loud int, e parley.Event, f []dialect.Frame) (int, []dialect.Frame) {
			if len(f) > 0 {
				f = append(f, dialect.Frame{Body: frame{}})
			}
			return loud, f
		}), "a frame follows the end of the connection"},
		{"shows nothing, as a frame", show(func(loud int, e parley.Event, f []dialect.Frame) (int, []dialect.Frame) {
			return loud, append(f, dialect.Frame{})
		}), "either a body or the end"},
		{"shows no object", show(func(loud int, e parley.Event, f []dialect.Frame) (int, []dialect.Frame) {
			return loud, []dialect.Frame{{Body: "hello"}}
		}), "is not a JSON object"},
		{"takes no messages", func(d *toy) { d.Decode = nil }, "toy takes no messages"},
		{"decodes to nothing", decode(Decoded{Request: "r"}), "not either a command or a refusal"},
		{"decodes to both", decode(Decoded{Command: rename, Refusal: "no"}), "not either a command or a refusal"},
		{"keeps part of a refused command", decode(Decoded{Command: parley.Command{ID: "x"}, Refusal: "no"}),
			"leaves something of a command"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newToy()
			test.spoil(&d)
			fails(t, judge(d, toyTranscript), test.want)
		})
	}
}

func fails(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, want an error with %q", err, want)
	}
}

// TestUpdate: the output of -update passes, whether the expected sections were
// stale or missing.
func TestUpdate(t *testing.T) {
	good := txtar.Parse([]byte(toyTranscript))
	section := func(name string) txtar.File {
		return good.Files[slices.IndexFunc(good.Files, func(f txtar.File) bool { return f.Name == name })]
	}
	stale := &txtar.Archive{Comment: good.Comment, Files: slices.Clone(good.Files)}
	for i, f := range stale.Files {
		if f.Name != "log" && f.Name != "in" {
			stale.Files[i].Data = []byte("stale\n")
		}
	}
	for _, test := range []struct {
		name      string
		old, want *txtar.Archive
	}{
		{"stale", stale, good},
		{"missing", &txtar.Archive{Comment: good.Comment, Files: []txtar.File{section("log"), section("in")}},
			&txtar.Archive{Comment: good.Comment, Files: []txtar.File{section("log"), section("frames"), section("in"),
				section("commands")}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			played, err := newToy().play(test.old)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(txtar.Format(played)); got != string(txtar.Format(test.want)) {
				t.Errorf("written was\n%s", got)
			}
		})
	}
}

func TestDefaultsOfLogLines(t *testing.T) {
	short, err := readLog(`
		# The run is that of the line above, unless an event is of none.
		{"seq":7,"type":"TurnStarted","run":5,"body":{"number":1}}
		{"type":"InputReceived","by":"ann","body":{"content":"x","agent":{"name":"a"},"busy":"queue"}}
		{"type":"TurnFinished","body":{"turn":7,"stop":"end","usage":{}}}
		{"type":"RunFinished","position":30,"body":{"outcome":"completed","usage":{}}}
		{"type":"RunStarted","position":31,"at":"2026-01-02T03:04:06Z","body":{"input":8,"agent":{"name":"a"}}}
	`)
	if err != nil {
		t.Fatal(err)
	}
	const id = `"session":"550e8400-e29b-41d4-a716-446655440000",`
	const root = `"root":"550e8400-e29b-41d4-a716-446655440000",`
	want := `{` + id + `"seq":7,"position":7,` + root +
		`"at":"2026-01-02T03:04:05.07Z","run":5,"by":"","type":"TurnStarted","body":{"number":1}}
{` + id + `"seq":8,"position":8,` + root + `"at":"2026-01-02T03:04:05.08Z","run":0,"by":"ann","type":"InputReceived","body":{"content":"x","agent":{"name":"a"},"busy":"queue"}}
{` + id + `"seq":9,"position":9,` + root + `"at":"2026-01-02T03:04:05.09Z","run":5,"by":"","type":"TurnFinished","body":{"turn":7,"stop":"end","usage":{}}}
{` + id + `"seq":10,"position":30,` + root + `"at":"2026-01-02T03:04:05.1Z","run":5,"by":"","type":"RunFinished","body":{"outcome":"completed","usage":{}}}
{` + id + `"seq":11,"position":31,` + root + `"at":"2026-01-02T03:04:06Z","run":11,"by":"","type":"RunStarted","body":{"input":8,"agent":{"name":"a"}}}
`
	if got := Lines(short); got != want {
		t.Errorf("read as\n%s", got)
	}
	long, err := readLog(want)
	if err != nil || Lines(long) != want {
		t.Errorf("the whole lines were read as\n%s (%v)", Lines(long), err)
	}
}

// elsewhere has the events that no conversation has, or that random logs cannot
// contain yet.
var elsewhere = map[string]bool{
	"AgentStarted": true, "AgentStopped": true, "AgentChanged": true, "SettingsChanged": true, "ToolsAccepted": true,
	"MissionSet": true, "MissionCleared": true, "OverrideSet": true, "AgentPrompted": true, "PromptSettled": true,
	"FilesChanged": true, "UndoRequested": true, "ChangesUndone": true, "TimerPostponed": true,
	"ModelFellBack": true,
}

// TestAnyLog: random logs are legal, and together they contain every possible
// event.
func TestAnyLog(t *testing.T) {
	missing := slices.DeleteFunc(parley.EventTypes(), func(name string) bool { return elsewhere[name] })
	gen := rapid.Custom(AnyLog)
	for seed := range 3000 {
		log := gen.Example(seed)
		if wrong := append(checker.Check(log), checker.CheckTrimmed(Trimmed(log))...); len(wrong) > 0 {
			t.Fatalf("%v in\n%s", wrong, Lines(log))
		}
		for _, e := range log {
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == parley.TypeOf(e.Body) })
		}
	}
	if len(missing) > 0 {
		t.Errorf("3000 logs are without %v", missing)
	}
}

// TestAnyTree: random trees are legal, and together they contain all relevant
// cases of sub-agents.
func TestAnyTree(t *testing.T) {
	seen := map[string]int{}
	gen := rapid.Custom(AnyTree)
	for seed := range 3000 {
		log := gen.Example(seed)
		if err := legal(log); err != nil {
			t.Fatalf("%v in\n%s", err, Lines(log))
		}
		tree := newBelow(Session)
		depth := map[parley.SessionID]int{}
		for _, e := range log {
			if b, ok := e.Body.(parley.ChildSpawned); ok {
				depth[b.Child] = b.Depth
			}
			if row, ok := e.Row().(parley.CardOpened); ok {
				seen[fmt.Sprintf("%s at depth %d", row.Kind, depth[e.Session])]++
			}
			if _, out := tree.agents[e.Session]; !out {
				seen["one that has returned goes on"]++
			}
			tree.after(e)
			if len(tree.open) > 1 {
				seen["several wait"]++
			}
			if _, ends := e.Body.(parley.RunFinished); ends && e.Session == Session && len(tree.open) > 0 {
				seen["the run ends while one waits"]++
			}
		}
	}
	for _, what := range []string{"approval at depth 1", "question at depth 1", "call at depth 1",
		"approval at depth 2", "question at depth 2",
		"several wait", "the run ends while one waits", "one that has returned goes on"} {
		if seen[what] < 3 {
			t.Errorf("%s: %d times in 3000 trees", what, seen[what])
		}
	}
}
