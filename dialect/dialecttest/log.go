package dialecttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/checker"
	"parley/strictjson"
)

// Session is the session of log lines without one.
const Session = parley.SessionID("550e8400-e29b-41d4-a716-446655440000")

// Begin is the time at which logs begin.
var Begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// logLine is a line of a log. Nil fields get their defaults.
type logLine struct {
	Session  *parley.SessionID   `json:"session"`
	Seq      *parley.Seq         `json:"seq"`
	Position *parley.Position    `json:"position"`
	Root     *parley.SessionID   `json:"root"`
	At       *time.Time          `json:"at"`
	Run      *parley.RunID       `json:"run"`
	By       *parley.PrincipalID `json:"by"`
	Type     string              `json:"type"`
	Body     json.RawMessage     `json:"body"`
}

// readLog reads and checks a log.
func readLog(text string) ([]parley.Event, error) {
	var r reader
	for line := range strings.Lines(text) {
		if forReader(line) {
			continue
		}
		if err := r.line([]byte(line)); err != nil {
			return nil, fmt.Errorf("log line %s: %w", strings.TrimSpace(line), err)
		}
	}
	return r.log, legal(r.log)
}

type reader struct {
	log  []parley.Event
	seqs map[parley.SessionID]parley.Seq   // last seq of each session
	runs map[parley.SessionID]parley.RunID // open run of each session
}

func (r *reader) line(raw []byte) error {
	var l logLine
	if err := strictjson.DecodeKnown(raw, &l); err != nil {
		return err
	}
	if r.seqs == nil {
		r.seqs, r.runs = map[parley.SessionID]parley.Seq{}, map[parley.SessionID]parley.RunID{}
	}
	id := or(l.Session, Session)
	run := r.runs[id]
	e := parley.Event{Seq: or(l.Seq, r.seqs[id]+1), By: or(l.By, ""), Session: id, Root: id}
	e.Position = parley.Position(e.Seq)
	if r.seqs[id] = e.Seq; len(r.log) > 0 {
		e.Root = r.log[0].Session
	}
	if len(r.seqs) > 1 {
		e.Position = r.log[len(r.log)-1].Position + 1
	}
	e.At = or(l.At, Begin.Add(time.Duration(e.Position)*10*time.Millisecond))
	e.Position, e.Root = or(l.Position, e.Position), or(l.Root, e.Root)
	if l.Body == nil {
		l.Body = json.RawMessage(`{}`)
	}
	switch {
	case outsideRuns(l.Type):
		e.Run = or(l.Run, 0)
	case l.Type == "RunStarted":
		e.Run = or(l.Run, parley.RunID(e.Seq))
		r.runs[id] = e.Run
	default:
		e.Run = or(l.Run, run)
		r.runs[id] = e.Run
	}
	if l.Type == "RunFinished" {
		r.runs[id] = 0
	}
	e, err := withBody(e, l.Type, l.Body)
	r.log = append(r.log, e)
	return err
}

// outsideRuns reports whether events of a type do not belong to a run.
func outsideRuns(name string) bool {
	switch name {
	case "InputReceived", "InputWithdrawn", "LateResultNoted",
		"CompactionStarted", "ContextCompacted", "CompactionFailed", "AgentStarted", "AgentStopped", "AgentChanged",
		"MissionSet", "MissionCleared", "OverrideSet", "AgentPrompted", "PromptSettled", "GrantRevoked", "ToolServersChosen",
		"TimerPostponed", "TimerFired", "TimerCancelled", "EffectCancelled", "FollowUpEvaluated", "WebhookChanged":
		return true
	}
	return strings.HasPrefix(name, "Session") || name == "SettingsChanged" || name == "ToolsAccepted"
}

// withBody decodes the body as a log does, but refuses unknown keys.
func withBody(e parley.Event, name string, body json.RawMessage) (parley.Event, error) {
	raw, err := json.Marshal(map[string]any{"session": e.Session, "seq": e.Seq, "position": e.Position, "root": e.Root,
		"at": e.At, "run": e.Run, "by": e.By, "type": name, "body": body})
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err == nil {
		err = strictjson.DecodeKnown(body, reflect.New(reflect.TypeOf(e.Body)).Interface())
	}
	return e, err
}

func or[T any](given *T, otherwise T) T {
	if given != nil {
		return *given
	}
	return otherwise
}

// legal checks a log. If the log begins later than seq 1, it checks only what
// is possible without the beginning.
func legal(log []parley.Event) error {
	if len(log) == 0 {
		return errors.New("the log is empty")
	}
	var p problems
	for i, e := range log[1:] {
		if before := log[i]; e.Position <= before.Position || e.At.Before(before.At) {
			p.add(fmt.Errorf("position %d cannot follow position %d", e.Position, before.Position))
		}
	}
	for _, log := range apart(log) {
		if log[0].Seq == 1 {
			p = append(p, checker.CheckTrimmed(log)...)
			continue
		}
		for i, e := range log[1:] {
			if e.Seq != log[i].Seq+1 {
				p.add(fmt.Errorf("seq %d cannot follow seq %d", e.Seq, log[i].Seq))
			}
		}
	}
	return p.err()
}

// apart splits a tree into the logs of its sessions, in order of their first events.
func apart(tree []parley.Event) (logs [][]parley.Event) {
	at := map[parley.SessionID]int{}
	for _, e := range tree {
		i, known := at[e.Session]
		if !known {
			i = len(logs)
			at[e.Session], logs = i, append(logs, nil)
		}
		logs[i] = append(logs[i], e)
	}
	return logs
}

// Trimmed returns a log without the chunks of finished outputs, as a store
// leaves it after a while.
func Trimmed(log []parley.Event) []parley.Event {
	type output struct {
		session parley.SessionID
		id      parley.OutputID
	}
	finished := map[output]bool{}
	for _, e := range log {
		if b, ok := e.Body.(parley.OutputFinished); ok {
			finished[output{e.Session, b.Output}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(log), func(e parley.Event) bool {
		b, ok := e.Body.(parley.OutputAppended)
		return ok && finished[output{e.Session, b.Output}]
	})
}

// Lines returns the lines of a log as it is stored.
func Lines(log []parley.Event) string {
	var b strings.Builder
	for _, e := range log {
		raw, err := json.Marshal(e)
		if err != nil {
			raw = []byte(err.Error())
		}
		b.Write(append(raw, '\n'))
	}
	return b.String()
}

// forReader reports whether a line of a section is only for the reader.
func forReader(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}
