package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"parley"
	"parley/checker"
)

// A session is exported as JSON lines: a header, the definitions of the agents
// in the log, and the log in the format of the native dialect.

const (
	fileKind    = "session"
	fileVersion = 1

	maxLine = 64 << 20 // an output has up to MaxOutput bytes, and JSON may need six for each
)

type header struct {
	Parley  string           `json:"parley"`
	Version int              `json:"version"`
	Session parley.SessionID `json:"session"`
	Tenant  parley.TenantID  `json:"tenant"`
	Epoch   string           `json:"epoch"`
	Head    parley.Seq       `json:"head"`
}

type definitionLine struct {
	Definition *parley.Agent `json:"definition"`
}

func writeLine(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// agentOf returns the agent that an event refers to, if any.
func agentOf(body parley.EventBody) parley.AgentRef {
	switch b := body.(type) {
	case parley.InputReceived:
		return b.Agent
	case parley.RunStarted:
		return b.Agent
	}
	return parley.AgentRef{}
}

// A sessionFile is an exported session.
type sessionFile struct {
	header
	agents map[string]parley.Agent // by digest
	log    []parley.Event
	state  parley.State // folded from the log; its tenant and id are those of the file
}

// readSession reads an exported session and trusts none of it. The log must be
// one that an engine can have written, complete except for what retention
// deletes. The file must hold everything that a server needs to continue the
// session.
func readSession(from io.Reader) (*sessionFile, error) {
	f := &sessionFile{agents: map[string]parley.Agent{}}
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	n := 0
	for lines.Scan() {
		n++
		if err := f.line(n, lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if n == 0 {
		return nil, errors.New("there is nothing in it")
	}
	return f, f.whole()
}

func (f *sessionFile) line(n int, line []byte) error {
	if n == 1 {
		return f.begin(line)
	}
	var d definitionLine
	if err := json.Unmarshal(line, &d); err != nil {
		return fmt.Errorf("a line is not of an exported session: %w", err)
	}
	if d.Definition != nil {
		if len(f.log) > 0 {
			return errors.New("definitions come before the log")
		}
		f.agents[d.Definition.Digest()] = *d.Definition
		return nil
	}
	var e parley.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	e.At = e.At.UTC().Truncate(time.Microsecond) // as the store would keep it
	if err := kept(line, e); err != nil {
		return err
	}
	last := parley.Event{}
	if len(f.log) > 0 {
		last = f.log[len(f.log)-1]
	}
	switch {
	case e.Session != f.Session || e.Root != f.Session:
		return fmt.Errorf("it is of session %s below %s, and the file of %s", e.Session, e.Root, f.Session)
	case e.Seq <= last.Seq:
		return fmt.Errorf("seq %d comes after seq %d", e.Seq, last.Seq)
	}
	f.log = append(f.log, e)
	f.state = parley.Fold(f.state, e)
	return nil
}

func (f *sessionFile) begin(line []byte) error {
	if err := json.Unmarshal(line, &f.header); err != nil || f.Parley != fileKind {
		return errors.New("this is not the header of an exported session; make one with parley export")
	}
	switch {
	case f.Version != fileVersion:
		return fmt.Errorf("the file has version %d, and this release reads version %d; import it with the release "+
			"that wrote it", f.Version, fileVersion)
	case !f.Session.Valid():
		return fmt.Errorf("%q is not a valid session id; it is a UUID of version 4", f.Session)
	}
	f.state = parley.NewState(f.Tenant, f.Session)
	return nil
}

// whole makes the checks that need the whole file.
func (f *sessionFile) whole() error {
	if f.state.Head != f.Head {
		return fmt.Errorf("the file is not complete: its log ends at seq %d, and its header says %d", f.state.Head,
			f.Head)
	}
	if wrong := checker.CheckTrimmed(f.log); len(wrong) > 0 {
		return fmt.Errorf("the log in the file is not valid: %w", wrong[0])
	}
	need := []parley.AgentRef{}
	if f.state.Run != nil {
		need = append(need, f.state.Run.Agent)
	}
	for _, w := range f.state.Queue {
		need = append(need, w.Agent)
	}
	for _, ref := range need {
		if _, ok := f.agents[ref.Digest]; !ok {
			return fmt.Errorf("the definition %s of agent %s is missing, and open runs need it", ref.Digest, ref.Name)
		}
	}
	return nil
}

// kept reports the first part of a line that would be lost by storing the event as
// this release reads it: a field of a later release, or a value in another notation
// than Parley's.
func kept(line []byte, e parley.Event) error {
	again, err := json.Marshal(e)
	if err != nil || bytes.Equal(line, again) {
		return err
	}
	var given, have map[string]any
	if err := errors.Join(decode(line, &given), decode(again, &have)); err != nil {
		return err
	}
	if given["version"] != have["version"] {
		return nil // an older version, which this release has converted
	}
	if path, ok := same(given, have); !ok {
		return fmt.Errorf("%s of this %s would not be kept as it is; import it with the release that wrote it", path,
			parley.TypeOf(e.Body))
	}
	return nil
}

func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// same reports whether have contains everything in given, and else the path of
// the first difference. Additional fields in have are ignored, because this
// release has added them.
func same(given, have any) (path string, ok bool) {
	switch g := given.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		for key, value := range g {
			if path, ok := same(value, h[key]); !ok {
				return key + dotted(path), false
			}
		}
		return "", true
	case []any:
		h, _ := have.([]any)
		if len(g) != len(h) {
			return "", false
		}
		for i := range g {
			if path, ok := same(g[i], h[i]); !ok {
				return path, false
			}
		}
		return "", true
	}
	return "", given == have
}

func dotted(path string) string {
	if path == "" {
		return ""
	}
	return "." + path
}
