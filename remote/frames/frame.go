package frames

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// MaxFrame is the maximum size of the JSON of a frame, in bytes.
const MaxFrame = 4 << 20

// A Frame is one message between Parley and an agent.
type Frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Payload json.RawMessage `json:"payload"`
}

// Types of frames. Those from typeCancel on are extensions: agents may not
// implement them.
const (
	typeConfigUpdate = "config_update" // to the agent
	typeMessage      = "message"
	typePing         = "ping"
	typeResume       = "connector_action_resume"

	typeHeartbeat    = "heartbeat" // from the agent
	typeChunk        = "chunk"
	typeRuntimeEvent = "runtime_event"
	typeApproval     = "approval_required"
	typeConfigAck    = "config_ack"
	typeToolBlocked  = "tool_blocked"
	typeToolExecuted = "tool_executed"
	typeToolFailed   = "tool_failed"
	typeSessionHalt  = "session_halt"
	typePong         = "pong"
	typeError        = "error"

	typeCancel = "cancel" // extensions, to the agent
	typeDenied = "connector_action_denied"
)

type (
	messagePayload struct {
		Role     string        `json:"role"`
		Content  string        `json:"content"`
		Messages []chatMessage `json:"messages,omitempty"`
		Session  string        `json:"session_id"`
	}
	chatMessage struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	configPayload struct {
		Config       struct{}   `json:"config"`
		Tools        []string   `json:"tool_allowlist"` // empty: all
		Policies     struct{}   `json:"tool_policies"`
		CanaryTokens []string   `json:"canary_tokens"`
		Connectors   []struct{} `json:"connectors"`
	}
	resumePayload struct {
		Action    string `json:"action_id"`
		Approval  string `json:"approval_id"`
		Connector string `json:"connector_id"`
		Tool      string `json:"tool_name"`
		Arguments string `json:"arguments"`
		Risk      string `json:"risk_class"`
	}
	deniedPayload struct {
		Action   string `json:"action_id"`
		Approval string `json:"approval_id"`
		Tool     string `json:"tool_name"`
		Reason   string `json:"reason"`
	}

	chunkPayload struct {
		Content string `json:"content"`
		Done    bool   `json:"done"`
	}
	ackPayload struct {
		Applied bool `json:"applied"`
	}
	errorPayload struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	toolPayload struct {
		Tool      string   `json:"tool_name"`
		Connector string   `json:"connector_name"`
		Error     string   `json:"error"`
		Reason    string   `json:"reason"`
		Arguments argument `json:"arguments"` // extension
		Result    string   `json:"result"`    // extension
		Continues bool     `json:"continues"` // extension: the agent continues after this
	}
	approvalPayload struct {
		ConnectorID string   `json:"connector_id"`
		Connector   string   `json:"connector_name"`
		Tool        string   `json:"tool_name"`
		Arguments   argument `json:"arguments"`
		Risk        string   `json:"risk_class"`
		Target      string   `json:"target_type"`
		Continues   bool     `json:"continues"` // extension: the agent continues, so it must also be told of a denial
	}
	haltPayload struct {
		Reason string `json:"reason"`
		Token  string `json:"token"` // the leaked secret; it must not be passed on
	}
	eventPayload struct {
		Type    string `json:"event_type"`
		Title   string `json:"title"`
		Summary string `json:"summary"`
		Status  string `json:"status"`
	}
)

// An argument is JSON in a string. Some agents send the JSON itself instead.
type argument string

func (a *argument) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		*a = argument(text)
		return nil
	}
	*a = argument(raw)
	return nil
}

var errOversized = fmt.Errorf("a frame is longer than %d bytes", MaxFrame)

// A brokenFrame is the error for a frame that is complete but cannot be decoded. The frames after it can be read.
type brokenFrame struct{ error }

// encode returns a frame as sent over the connection.
func encode(kind, id string, payload any) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Type    string `json:"type"`
		ID      string `json:"id"`
		Payload any    `json:"payload"`
	}{kind, id, payload})
	if err != nil {
		return nil, err
	}
	raw := bytes.TrimSuffix(body.Bytes(), []byte("\n"))
	if len(raw) > MaxFrame {
		return nil, errOversized
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(raw)), uint32(len(raw))), raw...), nil
}

// read reads a frame. It calls begun after the length, before it waits for the
// rest.
func read(r io.Reader, begun func()) (Frame, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return Frame{}, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > MaxFrame {
		return Frame{}, errOversized
	}
	begun()
	// The buffer grows with the received data: the length alone must not allocate memory.
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	var f Frame
	if err := json.Unmarshal(body.Bytes(), &f); err != nil {
		return Frame{}, brokenFrame{err}
	}
	if f.Type == "" {
		return Frame{}, brokenFrame{errors.New("a frame has no type")}
	}
	return f, nil
}

// Times are timeouts. Zero stands for the default.
type Times struct {
	Dial    time.Duration // to connect; 5 s
	Ack     time.Duration // to acknowledge a configuration; 5 s
	Ping    time.Duration // interval of pings; 10 s
	Dead    time.Duration // without a frame, until the connection counts as dead; 30 s
	Write   time.Duration // to write a frame; 10 s
	Silence time.Duration // without a frame during an answer; 5 min
	Last    time.Duration // after a frame that may have been the last of an answer; 10 s
	Backoff time.Duration // between attempts to connect: at first 200 ms, then doubled up to 64 times that
}

func (t Times) orDefault() Times {
	or := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	or(&t.Dial, 5*time.Second)
	or(&t.Ack, 5*time.Second)
	or(&t.Ping, 10*time.Second)
	or(&t.Dead, 30*time.Second)
	or(&t.Write, 10*time.Second)
	or(&t.Silence, 5*time.Minute)
	or(&t.Last, 10*time.Second)
	or(&t.Backoff, 200*time.Millisecond)
	return t
}
