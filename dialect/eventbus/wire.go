// Package eventbus speaks the event bus protocol: GET /api/events and its other
// requests.
//
//	client                          server
//	GET /api/events --------------> id: epoch-seq
//	                                data: {"id","seq","rev","ts_ms","kind","phase"?,…}   …
//	POST /api/chat ---------------> {"status":"started"|"queued","session_id","run_id"?}
//
// All clients get the same messages under the same seq, as far as they may read them, and can resume after any message.
// An event of the log is at most eight messages. So seq = position * 8 + index needs no counter and no memory: see
// docs/adr/0016.
package eventbus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/dialect"
)

// perEvent is the maximum number of messages for an event.
const perEvent = 8

// message is the document's UiSseMessage. Empty fields are left out, except
// that Text may be present and empty.
type message struct {
	ID          string           `json:"id"`
	Seq         int64            `json:"seq"`
	Rev         int64            `json:"rev"` // same as seq
	TsMs        int64            `json:"ts_ms"`
	Kind        string           `json:"kind"`
	Phase       string           `json:"phase,omitempty"`
	Text        *string          `json:"text,omitempty"`
	AgentID     string           `json:"agent_id,omitempty"`
	SessionID   parley.SessionID `json:"session_id,omitempty"`
	SessionName string           `json:"session_name,omitempty"` // name that the client gave the session
	ProjectRoot string           `json:"project_root,omitempty"`
	Data        any              `json:"data,omitempty"`
}

// under returns the message for a client that knows its session by a name.
func (m message) under(name string) message {
	m.SessionID, m.SessionName = parley.SessionID(name), ""
	if q, ok := m.Data.(queue); ok {
		q.Items = slices.Clone(q.Items)
		for i := range q.Items {
			q.Items[i].SessionID = m.SessionID
		}
		m.Data = q
	}
	return m
}

// The types of Data, by kind and phase.
type (
	// descent names the run that delegated to a sub-agent. For other agents parent_id is null.
	descent struct {
		Parent *string `json:"parent_id"`               // the agent
		Run    *string `json:"parent_run_id,omitempty"` // its run, as in /api/agent-runs
	}
	said struct { // message
		From string `json:"from"`
		To   string `json:"to"`
		Role string `json:"role"` // user, assistant
		// Input and Images belong to a received input: its id for withdrawing
		// it, and its number of images.
		Input  string `json:"input_id,omitempty"`
		Images int    `json:"images,omitempty"`
		// Retry is the state of a retry: retrying, answered, gave_up or ended.
		Retry string `json:"retry,omitempty"`
	}
	activity struct {
		Status    string  `json:"status"`
		Detail    *string `json:"detail"`
		Lifecycle string  `json:"lifecycle"`       // doing, done
		Model     string  `json:"model,omitempty"` // the model, while it loads
		descent
	}
	queue struct {
		Items     []queued `json:"items"`
		Withdrawn string   `json:"withdrawn,omitempty"` // id of an input that was withdrawn unread
	}
	queued struct {
		ID        string           `json:"id"`
		AgentID   string           `json:"agent_id"`
		SessionID parley.SessionID `json:"session_id"`
		Preview   string           `json:"preview"`
		Timestamp int64            `json:"timestamp"` // seconds
	}
	thinking struct { // token of a thinking
		Thinking bool `json:"thinking"`
	}
	textSegment struct {
		descent
	}
	blockStart struct { // content_block start
		Block string          `json:"block_id"`
		Type  string          `json:"block_type"` // tool_use
		Tool  string          `json:"tool"`
		Args  json.RawMessage `json:"args"`
		descent
	}
	blockUpdate struct { // content_block update
		Block   string `json:"block_id"`
		Status  string `json:"status"` // done, failed, denied, cancelled, unknown, blocked
		Summary string `json:"summary"`
		IsError bool   `json:"is_error"`
		// Duration is how long the tool ran, not counting the time for an approval.
		Duration *int64 `json:"duration_ms,omitempty"`
		descent
	}
	toolProgress struct {
		Tool   string `json:"tool"`
		Line   string `json:"line"`
		Stream string `json:"stream"`             // stdout
		Block  string `json:"block_id,omitempty"` // as in content_block
	}
	askUser struct {
		Question  string     `json:"question_id"`
		Questions []question `json:"questions"`
		ExpiresAt *time.Time `json:"expires_at,omitempty"`
	}
	question struct {
		Question    string   `json:"question"`
		Header      string   `json:"header"`
		Options     []option `json:"options"`
		MultiSelect bool     `json:"multi_select"`
	}
	option struct {
		Label       string  `json:"label"`
		Description *string `json:"description"`
		Preview     *string `json:"preview"`
	}
	resolved struct { // widget_resolved
		Widget     string   `json:"widget_id"`
		Widgets    []string `json:"widget_ids,omitempty"` // if there are several
		Resolution string   `json:"resolution"`
	}
	planUpdate struct { // run plan_update
		Plan plan `json:"plan"`
	}
	plan struct {
		Summary string            `json:"summary"`
		Items   []parley.PlanItem `json:"items"`
		Status  parley.PlanStatus `json:"status"`
		Text    string            `json:"plan_text,omitempty"`
	}
	changeReport struct { // run change_report
		Run       string       `json:"run"` // name of the run in the native protocol
		Files     []fileChange `json:"files"`
		Truncated int          `json:"truncated_count"`
	}
	changesUndone struct { // run changes_undone
		Run     string              `json:"run"`
		Files   []parley.UndoneFile `json:"files"`
		Problem string              `json:"problem,omitempty"` // why the files were not restored
	}
	fileChange struct {
		Path    string `json:"path"`
		Summary string `json:"summary"`
		Diff    string `json:"diff"`
	}
	subagent struct { // run subagent_spawned, subagent_result
		descent
		Subagent string           `json:"subagent_id"`
		Session  parley.SessionID `json:"subagent_session_id"`
		Task     string           `json:"task,omitempty"`
		Outcome  *outcome         `json:"outcome,omitempty"`
	}
	runOutcome struct { // run outcome
		Outcome outcome `json:"outcome"`
	}
	// outcome is the result of a run: a task, a proposed plan, or none besides
	// its messages.
	outcome struct {
		Type    string         `json:"type"` // task, plan, none
		Run     parley.Outcome `json:"run_status"`
		Message string         `json:"message,omitempty"` // for a run that was not completed
		*task
		*plan
	}
	task struct {
		Title      string   `json:"title"`
		Stories    []string `json:"user_stories"`
		Acceptance []string `json:"acceptance_criteria"`
		Wireframe  *string  `json:"mermaid_wireframe"`
	}
	contextUsage struct { // run context_usage
		AgentID    string `json:"agent_id"`
		Stage      string `json:"stage"` // turn, compaction
		Messages   int    `json:"message_count"`
		Chars      *int   `json:"char_count"`
		Tokens     int    `json:"estimated_tokens"`
		Limit      int    `json:"token_limit"`
		Prompt     *int   `json:"actual_prompt_tokens"`
		Completion *int   `json:"actual_completion_tokens"`
		Compressed bool   `json:"compressed"`
		Summaries  int    `json:"summary_count"`
	}
	modelFallback struct {
		Preferred string `json:"preferred"`
		Actual    string `json:"actual"`
		Reason    string `json:"reason"`
		// The same two values under the names of the original server.
		PreferredModel string `json:"preferred_model"`
		ActualModel    string `json:"actual_model"`
	}
	turnComplete struct {
		Duration *int64 `json:"duration_ms"`
		Tokens   *int   `json:"context_tokens"`
		descent
	}
	resync struct { // run resync
		Reason string `json:"reason"` // broadcast_lag, unknown_epoch, beyond_head, unknown_id
		Lagged *int64 `json:"lagged_count"`
	}
)

// Wire returns all types that clients get, under their names in documents.
func Wire() map[string]any {
	return map[string]any{
		"UiMessage": message{}, "History": page{}, "Started": started{}, "AgentRun": run{},
		"Said": said{}, "Activity": activity{}, "Queue": queue{}, "Queued": queued{}, "Thinking": thinking{},
		"TextSegment": textSegment{},
		"BlockStart":  blockStart{}, "BlockUpdate": blockUpdate{}, "ToolProgress": toolProgress{},
		"AskUser": askUser{}, "Question": question{}, "Option": option{}, "Resolved": resolved{},
		"PlanUpdate": planUpdate{}, "Plan": plan{}, "PlanItem": parley.PlanItem{}, "ChangeReport": changeReport{},
		"ChangesUndone": changesUndone{}, "UndoneFile": parley.UndoneFile{},
		"FileChange": fileChange{},
		"Subagent":   subagent{}, "RunOutcome": runOutcome{}, "Outcome": outcome{}, "Task": task{},
		"ContextUsage": contextUsage{}, "ModelFallback": modelFallback{}, "TurnComplete": turnComplete{},
		"Resync":  resync{},
		"Mission": mission{}, "MissionAgent": missionAgent{}, "FileEntry": entry{},
	}
}

// The answers to an approval, as clients see and send them.
const (
	allowOnce    = "Allow once"
	allowAlways  = "Always allow exactly this"
	allowSimilar = "Always allow similar" // its description is the rule; offered only if there is a rule
	deny         = "Deny"
	denyAndStop  = "Deny and stop the run"
	explain      = "Explain" // the card stays open
)

var decisions = map[string]parley.Decision{allowOnce: parley.AllowOnce, allowAlways: parley.AllowAlways,
	allowSimilar: parley.AllowAlways, deny: parley.Deny, denyAndStop: parley.DenyAndStop}

// approvalOptions returns the options of an approval.
func approvalOptions(b parley.ApprovalRequested) []option {
	list := options(allowOnce, allowAlways)
	if b.Similar.Text != "" {
		list = append(list, option{Label: allowSimilar, Description: &b.Similar.Text})
	}
	return append(list, options(deny, denyAndStop, explain)...)
}

// The answers to a call of unknown outcome.
const (
	runAgain   = "Run it again"
	markAsDone = "It was done"
	abandonRun = "Stop the run"
)

var resolutions = map[string]parley.Resolution{runAgain: parley.Rerun, markAsDone: parley.MarkDone,
	abandonRun: parley.Abandon}

func options(labels ...string) (list []option) {
	for _, l := range labels {
		list = append(list, option{Label: l})
	}
	return list
}

// runName returns the name of a run in this dialect.
func runName(session parley.SessionID, run parley.RunID) string {
	return fmt.Sprintf("run-%s-%d", session, run)
}

// parseRun parses a name made by runName.
func parseRun(name string) (parley.SessionID, parley.RunID, bool) {
	rest, _ := strings.CutPrefix(name, "run-")
	i := strings.LastIndexByte(rest, '-')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(rest[i+1:], 10, 64)
	session, run := parley.SessionID(rest[:i]), parley.RunID(n)
	return session, run, err == nil && n > 0 && session.Valid() && runName(session, run) == name
}

// clip returns the first characters of s, and "..." if there are more.
func clip(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "..."
		}
		n++
	}
	return s
}

// Messages describes the messages of the socket at /api/events. They have kinds
// instead of types.
func Messages() dialect.Messages { return dialect.Messages{Sent: map[string]any{"": message{}}} }
