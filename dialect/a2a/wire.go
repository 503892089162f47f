// Package a2a speaks the Agent2Agent protocol, versions 1.0 and 0.3. A context is a session and a task is a run. The id
// of a task names the input of the run, because a client learns of its task before the run starts.
package a2a

import (
	"encoding/json"
	"strings"
	"time"

	"parley"
)

// shape is the protocol version that a client speaks.
type shape string

const (
	v1  shape = "1.0"
	v03 shape = "0.3"
)

// kind returns the type name of an object, which only version 0.3 has.
func (s shape) kind(kind string) string {
	if s == v03 {
		return kind
	}
	return ""
}

// state is the state of a task, as version 0.3 spells it.
type state string

const (
	submitted     state = "submitted"
	working       state = "working"
	inputRequired state = "input-required"
	completed     state = "completed"
	canceled      state = "canceled"
	failed        state = "failed"
	rejected      state = "rejected"
)

var states = []state{submitted, working, inputRequired, completed, canceled, failed, rejected}

func (s state) terminal() bool {
	return s == completed || s == canceled || s == failed || s == rejected
}

// stops reports whether a stream ends in this state: the task has ended or needs a person.
func (s state) stops() bool { return s.terminal() || s == inputRequired }

func (s shape) state(st state) string {
	if s == v03 {
		return string(st)
	}
	return "TASK_STATE_" + strings.ToUpper(strings.ReplaceAll(string(st), "-", "_"))
}

func (s shape) role(role string) string {
	if s == v03 {
		return role
	}
	return "ROLE_" + strings.ToUpper(role)
}

type part struct {
	Kind string  `json:"kind,omitempty"`
	Text *string `json:"text,omitempty"`
	Data any     `json:"data,omitempty"`
}

func (s shape) text(text string) part { return part{Kind: s.kind("text"), Text: &text} }
func (s shape) data(data any) part    { return part{Kind: s.kind("data"), Data: data} }

type message struct {
	Kind      string `json:"kind,omitempty"`
	MessageID string `json:"messageId"`
	ContextID string `json:"contextId"`
	TaskID    string `json:"taskId"`
	Role      string `json:"role"`
	Parts     []part `json:"parts"`
}

type status struct {
	State     string   `json:"state"`
	Message   *message `json:"message,omitempty"`
	Timestamp string   `json:"timestamp"`
}

func timestamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

type artifact struct {
	ArtifactID string `json:"artifactId"`
	Name       string `json:"name,omitempty"`
	Parts      []part `json:"parts"`
}

// metadata is added to a task when it has ended.
type metadata struct {
	Usage   parley.Usage   `json:"usage"`
	Outcome parley.Outcome `json:"outcome,omitempty"`
	Code    parley.Code    `json:"code,omitempty"`
}

type task struct {
	Kind      string     `json:"kind,omitempty"`
	ID        string     `json:"id"`
	ContextID string     `json:"contextId"`
	Status    status     `json:"status"`
	Artifacts []artifact `json:"artifacts,omitempty"`
	History   []message  `json:"history,omitempty"`
	Metadata  *metadata  `json:"metadata,omitempty"`
}

type statusUpdate struct {
	Kind      string    `json:"kind,omitempty"`
	TaskID    string    `json:"taskId"`
	ContextID string    `json:"contextId"`
	Status    status    `json:"status"`
	Final     *bool     `json:"final,omitempty"` // version 0.3 only
	Metadata  *metadata `json:"metadata,omitempty"`
}

type artifactUpdate struct {
	Kind      string   `json:"kind,omitempty"`
	TaskID    string   `json:"taskId"`
	ContextID string   `json:"contextId"`
	Artifact  artifact `json:"artifact"`
	Append    bool     `json:"append,omitempty"`
	LastChunk bool     `json:"lastChunk,omitempty"`
}

// event is one message of a stream. Version 1.0 names its type by the key, version 0.3 by the kind inside.
type event struct {
	shape    shape
	of       parley.InputID
	state    state           // state of the task or status; empty in an artifact
	task     *task           // exactly one of task, status and artifact is set
	status   *statusUpdate   //
	artifact *artifactUpdate //
}

func (e event) body() (key string, body any) {
	switch {
	case e.task != nil:
		return "task", e.task
	case e.status != nil:
		return "statusUpdate", e.status
	}
	return "artifactUpdate", e.artifact
}

func (e event) MarshalJSON() ([]byte, error) {
	key, body := e.body()
	if e.shape == v03 {
		return json.Marshal(body)
	}
	return json.Marshal(map[string]any{key: body})
}

// apply applies an event to a task, as a client does.
func (t *task) apply(e event) {
	switch {
	case e.task != nil:
		*t = *e.task
	case e.status != nil:
		t.Status = e.status.Status
		if e.status.Metadata != nil {
			t.Metadata = e.status.Metadata
		}
	case !e.artifact.Append:
		t.Artifacts = []artifact{e.artifact.Artifact}
	default:
		// A task has one artifact with one text.
		text := *t.Artifacts[0].Parts[0].Text + *e.artifact.Artifact.Parts[0].Text
		t.Artifacts[0].Parts = []part{{Kind: t.Artifacts[0].Parts[0].Kind, Text: &text}}
	}
}
