package parley

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

type (
	TenantID    string // [a-z0-9][a-z0-9-]{0,62}
	PrincipalID string
	SessionID   string // UUID version 4, lower case; (tenant, id) is the key
	CommandID   string // chosen by the sender of the command; repeats have one effect

	Seq      int64 // 1, 2, 3… within a session
	Position int64 // order within a tenant; grows, may have gaps

	// The ids of things inside a session: the Seq of the event that created
	// them.
	InputID  Seq
	RunID    Seq
	TurnID   Seq
	OutputID Seq
	CallID   Seq
	CardID   Seq
	TimerID  Seq
	GrantID  Seq
)

// An Event is one fact of a session. Events are immutable.
type Event struct {
	Session  SessionID
	Seq      Seq
	Position Position // assigned by the store when the event is committed
	Root     SessionID
	At       time.Time // UTC, whole microseconds, never before the event in front of it
	Run      RunID     // zero outside a run
	By       PrincipalID
	Body     EventBody
}

// An EventBody is one of the closed set in bodyTypes, named in the past tense.
// Each type is in the file of its subject. The name of the Go type is stored and
// shown.
type EventBody interface {
	// fold returns the state after the event. It does not modify anything that
	// the given state points to, and ignores what the event says about things
	// that are not open.
	fold(State, Event) State
}

// Unreadable stands for a stored event that cannot be decoded, in a read of
// several logs. It is never stored itself.
type Unreadable struct {
	Type string `json:"type"` // the type in its row
}

func (Unreadable) fold(s State, _ Event) State { return s }

// A bodyType describes how one type of event is stored. Fields may be added to
// a body under the same version. Any other change raises the version and adds
// an upcaster. The upcaster converts the stored JSON of the version that is its
// key to the next version.
type bodyType struct {
	name    string
	version int
	decode  func(json.RawMessage) (EventBody, error)
	upcast  map[int]func(json.RawMessage) (json.RawMessage, error)
}

// bodyTypes are all types of events, by name.
var bodyTypes = byName(
	v1[SessionOpened](),
	v1[SessionForked](),
	v1[SessionRenamed](),
	v1[SessionHalted](),
	v1[SessionReopened](),
	v1[SessionDeleted](),
	v1[InputReceived](),
	v1[InputScreened](),
	v1[InputAdopted](),
	v1[InputWithdrawn](),
	v1[RunStarted](),
	v1[RunFinished](),
	v1[TurnStarted](),
	v1[TurnFinished](),
	v1[OutputStarted](),
	bodyType{name: "OutputAppended", version: 1, decode: decodeOutputAppended},
	v1[OutputFinished](),
	v1[ToolCallRequested](),
	v1[ToolCallBlocked](),
	v1[ToolCallStarted](),
	v1[ToolOutputAppended](),
	v1[ToolCallFinished](),
	v1[ToolCallResolved](),
	v1[ApprovalRequested](),
	v1[ApprovalDecided](),
	v1[QuestionAsked](),
	v1[QuestionAnswered](),
	v1[ExplanationRequested](),
	v1[ApprovalExplained](),
	v1[PlanChanged](),
	v1[FilesChanged](),
	v1[UndoRequested](),
	v1[ChangesUndone](),
	v1[ChildSpawned](),
	v1[ChildReturned](),
	v1[ContextMeasured](),
	v1[CompactionStarted](),
	v1[ContextCompacted](),
	v1[CompactionFailed](),
	v1[ModelFellBack](),
	v1[ProblemReported](),
	v1[AgentStarted](),
	v1[AgentStopped](),
	v1[AgentChanged](),
	v1[SettingsChanged](),
	v1[ToolsAccepted](),
	v1[MissionSet](),
	v1[MissionCleared](),
	v1[OverrideSet](),
	v1[AgentPrompted](),
	v1[PromptSettled](),
	v1[EffectEnqueued](),
	v1[WebhookChanged](),
	v1[EffectCancelled](),
	v1[GrantRevoked](),
	v1[ToolServersChosen](),
	v1[TimerSet](),
	v1[TimerPostponed](),
	v1[TimerFired](),
	v1[TimerCancelled](),
	v1[FollowUpEvaluated](),
	v1[LateResultNoted](),
)

func byName(types ...bodyType) map[string]bodyType {
	names := map[string]bodyType{}
	for _, t := range types {
		names[t.name] = t
	}
	return names
}

func v1[T EventBody]() bodyType {
	return bodyType{name: reflect.TypeFor[T]().Name(), version: 1, decode: func(raw json.RawMessage) (EventBody,
		error) {
		var body T
		err := json.Unmarshal(raw, &body)
		return body, err
	}}
}

// TypeOf returns the stored name of a body's type.
func TypeOf(body EventBody) string { return reflect.TypeOf(body).Name() }

// IsPiece reports whether the event is a chunk: the event that finishes its
// output or call repeats the text.
func (e Event) IsPiece() bool {
	switch e.Body.(type) {
	case OutputAppended, ToolOutputAppended:
		return true
	}
	return false
}

// EventTypes lists the name of every type of event.
func EventTypes() []string {
	names := make([]string, 0, len(bodyTypes))
	for name := range bodyTypes {
		names = append(names, name)
	}
	return names
}

// EncodeBody returns the stored form of a body.
func EncodeBody(body EventBody) (name string, version int, raw []byte, err error) {
	name = TypeOf(body)
	raw, err = json.Marshal(body)
	return name, bodyTypes[name].version, raw, err
}

// ErrNewer is wrapped by errors about events that a later release has written.
var ErrNewer = errors.New("this release does not know it")

// DecodeBody decodes a body that EncodeBody of this or an earlier release has
// written.
func DecodeBody(name string, version int, raw []byte) (EventBody, error) {
	t, ok := bodyTypes[name]
	if !ok {
		return nil, fmt.Errorf("unknown event type %q: %w", name, ErrNewer)
	}
	if version > t.version {
		return nil, fmt.Errorf("%s version %d, this release knows up to %d: %w", name, version, t.version, ErrNewer)
	}
	if version < 1 {
		return nil, fmt.Errorf("%s has no version %d", name, version)
	}
	msg := json.RawMessage(raw)
	for ; version < t.version; version++ {
		var err error
		if msg, err = t.upcast[version](msg); err != nil {
			return nil, fmt.Errorf("%s version %d: %w", name, version, err)
		}
	}
	body, err := t.decode(msg)
	if err != nil {
		return nil, fmt.Errorf("%s version %d: %w", name, version, err)
	}
	return body, nil
}

// An eventHead is a line of a log without the body, which comes last.
type eventHead struct {
	Session  SessionID   `json:"session"`
	Seq      Seq         `json:"seq"`
	Position Position    `json:"position"`
	Root     SessionID   `json:"root"`
	At       time.Time   `json:"at"`
	Run      RunID       `json:"run"`
	By       PrincipalID `json:"by"`
	Type     string      `json:"type"`
	Version  int         `json:"version,omitempty"` // of the type; absent: 1
}

type eventLine struct {
	eventHead
	Body json.RawMessage `json:"body"`
}

// MarshalJSON encodes an event as one line of a log. It appends the encoded body itself, because json.Marshal would check
// and copy it once more.
func (e Event) MarshalJSON() ([]byte, error) {
	name, version, raw, err := EncodeBody(e.Body)
	if err != nil {
		return nil, err
	}
	if version == 1 {
		version = 0
	}
	line, err := json.Marshal(eventHead{e.Session, e.Seq, e.Position, e.Root, e.At, e.Run, e.By, name, version})
	if err != nil {
		return nil, err
	}
	line = append(line[:len(line)-1], `,"body":`...)
	return append(append(line, raw...), '}'), nil
}

// UnmarshalJSON decodes a line of a log that this or an earlier release has
// written.
func (e *Event) UnmarshalJSON(data []byte) error {
	var l eventLine
	if err := json.Unmarshal(data, &l); err != nil {
		return err
	}
	body, err := DecodeBody(l.Type, max(l.Version, 1), l.Body)
	if err != nil {
		return err
	}
	*e = Event{l.Session, l.Seq, l.Position, l.Root, l.At, l.Run, l.By, body}
	return nil
}

// Ref returns the name of something inside a session for clients: the session's
// id, a dot and the seq.
func Ref(session SessionID, seq Seq) string {
	return string(session) + "." + strconv.FormatInt(int64(seq), 10)
}

// ParseRef parses the result of Ref.
func ParseRef(ref string) (SessionID, Seq, bool) {
	session, number, _ := strings.Cut(ref, ".")
	seq, err := strconv.ParseInt(number, 10, 64)
	ok := err == nil && seq > 0 && SessionID(session).Valid() && Ref(SessionID(session), Seq(seq)) == ref
	return SessionID(session), Seq(seq), ok
}
