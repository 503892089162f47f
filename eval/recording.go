// Package eval compares recorded sessions with runs of the same inputs, and checks the answers. It is pure: it works on
// events and texts, and its callers talk to the server.
package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"parley"
)

// A Recording contains the inputs of a session, each with its answer.
type Recording struct {
	Session   parley.SessionID `json:"session"`
	Agent     string           `json:"agent,omitempty"`  // agent of the session; empty: the default agent
	Forked    parley.Seq       `json:"forked,omitempty"` // seq of a fork's event with earlier messages; zero: none
	Images    int              `json:"images,omitempty"` // number of images in inputs, which are not recorded
	Exchanges []Exchange       `json:"exchanges"`
}

// An Exchange is an input and the answer of the agent.
type Exchange struct {
	Input   string         `json:"input"`
	Mode    parley.RunMode `json:"mode,omitempty"`
	Agent   string         `json:"agent,omitempty"`
	Model   string         `json:"model,omitempty"` // model of the last turn
	Answer  string         `json:"answer"`
	Calls   []Call         `json:"calls"`
	Usage   parley.Usage   `json:"usage"`
	Took    Duration       `json:"took_ms"` // time of model calls, without tools and people
	Outcome parley.Outcome `json:"outcome,omitempty"`
	Message string         `json:"message,omitempty"` // why the run did not complete

	synthetic bool
	run       parley.RunID
	said      bool // the answer ends with a complete paragraph
}

// A Call is a call of a tool.
type Call struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Result    string `json:"result,omitempty"`
	Failed    bool   `json:"failed,omitempty"`
	Ended     bool   `json:"-"` // the result is known

	id parley.CallID
}

// A Duration is a number of milliseconds in JSON.
type Duration time.Duration

func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).Milliseconds()) }

func (d *Duration) UnmarshalJSON(raw []byte) error {
	var ms int64
	err := json.Unmarshal(raw, &ms)
	*d = Duration(time.Duration(ms) * time.Millisecond)
	return err
}

// A Recorder makes a Recording from the events of a session. The zero value is ready to use.
type Recorder struct {
	recording Recording
	inputs    map[parley.InputID]parley.InputReceived
	turn      time.Time // start of the open turn
}

// Add adds an event. The session of the first event is recorded; events of other sessions are ignored.
func (r *Recorder) Add(e parley.Event) {
	if r.inputs == nil {
		r.inputs, r.recording.Session = map[parley.InputID]parley.InputReceived{}, e.Session
	}
	if e.Session != r.recording.Session {
		return
	}
	switch b := e.Body.(type) {
	case parley.SessionOpened:
		r.recording.Agent = b.Agent
	case parley.SessionForked:
		if len(b.Messages) > 0 {
			r.recording.Forked = e.Seq
		}
	case parley.InputReceived:
		r.inputs[parley.InputID(e.Seq)] = b
	case parley.InputAdopted:
		in := r.inputs[b.Input]
		delete(r.inputs, b.Input)
		r.recording.Images += len(in.Images)
		r.recording.Exchanges = append(r.recording.Exchanges, Exchange{Input: in.Content, Mode: in.Mode,
			Agent: in.Agent.Name, Calls: []Call{}, synthetic: in.Synthetic, run: e.Run})
	default:
		if n := len(r.recording.Exchanges); n > 0 && r.recording.Exchanges[n-1].run == e.Run {
			r.answer(&r.recording.Exchanges[n-1], e)
		}
	}
}

// answer adds an event of a run to an exchange.
func (r *Recorder) answer(x *Exchange, e parley.Event) {
	switch b := e.Body.(type) {
	case parley.TurnStarted:
		x.Model, r.turn = b.Model, e.At
	case parley.ModelFellBack:
		x.Model = b.Actual
	case parley.TurnFinished:
		x.Usage = x.Usage.Plus(b.Usage)
		x.Took += Duration(e.At.Sub(r.turn))
	case parley.OutputFinished:
		if b.Kind != parley.Text {
			return
		}
		if x.said && b.Text != "" {
			x.Answer += "\n\n" // the texts of two turns are two paragraphs
		}
		x.Answer += b.Text
		x.said = !b.Incomplete && x.Answer != ""
	case parley.ToolCallRequested:
		if b.RerunOf == 0 {
			x.Calls = append(x.Calls, Call{Name: b.Name, Arguments: b.Arguments, id: parley.CallID(e.Seq)})
		}
	case parley.ToolCallBlocked:
		x.end(b.Call, "Blocked: "+b.Reason, false)
	case parley.ToolCallFinished:
		if b.Outcome != parley.CallCancelled && b.Outcome != parley.CallUnknown {
			x.end(b.Call, b.Result, b.Outcome == parley.CallFailed)
		}
	case parley.RunFinished:
		for i, other := range r.recording.Exchanges {
			if other.run == e.Run { // an input that steered the run ends with it, too
				r.recording.Exchanges[i].Outcome, r.recording.Exchanges[i].Message = b.Outcome, b.Message
			}
		}
	}
}

func (x *Exchange) end(call parley.CallID, result string, failed bool) {
	i := slices.IndexFunc(x.Calls, func(c Call) bool { return c.id == call })
	if i >= 0 {
		x.Calls[i].Result, x.Calls[i].Failed, x.Calls[i].Ended = result, failed, true
	}
}

// Recording returns the conversation so far, without autonomous messages.
func (r *Recorder) Recording() Recording {
	all := r.recording
	all.Exchanges = slices.DeleteFunc(slices.Clone(all.Exchanges), func(x Exchange) bool { return x.synthetic })
	return all
}

// longestLine is the maximum length of a line, more than the largest event needs.
const longestLine = 64 << 20

// Read reads a recording from the lines of parley log --json or parley export.
func Read(from io.Reader) (Recording, error) {
	var r Recorder
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), longestLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var head struct {
			Type       string
			Parley     string          // in the header of an export
			Definition json.RawMessage // in an export, for each agent
		}
		if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
			return Recording{}, &LineError{n, fmt.Errorf("this is not JSON: %w", err)}
		}
		if head.Parley != "" || head.Definition != nil {
			continue
		}
		var e parley.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return Recording{}, &LineError{n, fmt.Errorf("this is not an event of a session: %w", err)}
		}
		r.Add(e)
	}
	if err := lines.Err(); err != nil {
		return Recording{}, &LineError{n + 1, err}
	}
	all := r.Recording()
	if len(all.Exchanges) == 0 {
		return all, errors.New("the recording has no input that was answered; write one with parley log --json")
	}
	return all, nil
}

// A LineError is an error in a line of a file.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Results contain the results of recorded calls. Calls with the same name and arguments get their results in order; the
// last one is repeated.
type Results map[string][]Call

// Results returns the results of all calls in the recording.
func (r Recording) Results() Results {
	list := Results{}
	for _, x := range r.Exchanges {
		for _, c := range x.Calls {
			if c.Ended {
				list[c.key()] = append(list[c.key()], c)
			}
		}
	}
	return list
}

// Next returns the result of a call. If the recording has none, the call fails with a text for the model.
func (r Results) Next(name, arguments string) (result string, failed bool) {
	key := Call{Name: name, Arguments: arguments}.key()
	list := r[key]
	if len(list) == 0 {
		return fmt.Sprintf("This is a replay of a recorded conversation. The recording has no call of %s with these "+
			"arguments, so the call was not carried out.", name), true
	}
	if len(list) > 1 {
		r[key] = list[1:]
	}
	return list[0].Result, list[0].Failed
}

// key is the same for calls that differ only in the formatting of their JSON.
func (c Call) key() string { return c.Name + " " + canonical(c.Arguments) }

func canonical(arguments string) string {
	var value any
	d := json.NewDecoder(bytes.NewReader([]byte(arguments)))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return arguments
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return arguments
	}
	return string(raw)
}
