package parley

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
)

// An Audit is the record of one security decision or one exchange of messages.
// A record about events is written in the transaction that appends them. A
// record about a refusal is written before the refusal is sent.
type Audit struct {
	At       time.Time
	By       PrincipalID // empty: the server itself, or an unknown sender
	Action   string
	Resource string // kind of the subject: session, agent, approval, tool
	ID       string // id of the subject
	Source   string // how the request arrived: websocket, http, system
	Metadata json.RawMessage
}

// Actions of records that are written with events.
const (
	auditMessage         = "message.sent"     // by HTTP
	auditMessageWS       = "agent.message.ws" // by WebSocket
	AuditMessageBlocked  = "message.blocked"
	auditApproval        = "approval.resolved"
	auditGrantRevoked    = "grant.revoked"
	auditUndo            = "changes.undone"
	auditToolStarted     = "tool.started"
	auditToolExecuted    = "tool.executed"
	auditToolFailed      = "tool.failed"
	auditToolBlocked     = "tool.blocked"
	auditToolResolved    = "tool.resolved"
	auditPlan            = "plan.decided"
	auditSettings        = "settings.changed"
	auditToolsAccepted   = "tools.accepted"
	auditSessionHalted   = "session.halted"
	auditSessionReopened = "session.reopened"
	auditSessionDeleted  = "session.deleted"
	auditSessionRenamed  = "session.renamed"
	auditSessionForked   = "session.forked"
	auditAgentStarted    = "agent.started"
	auditAgentStopped    = "agent.stopped"
	auditAgentMade       = "agent.created" // or changed
	auditAgentDeleted    = "agent.deleted"
	auditMissionSet      = "mission.set"
	auditMissionCleared  = "mission.cleared"
	auditOverride        = "agent.overridden"
	auditWebhookSet      = "webhook.set"
	auditWebhookRemoved  = "webhook.removed"
	auditServersChosen   = "tool_servers.chosen" // for one session
)

// Metadata encodes the additional fields of a record as a JSON object.
func Metadata(values map[string]any) json.RawMessage {
	raw, err := json.Marshal(values)
	if err != nil {
		panic(err) // only plain values are passed
	}
	return raw
}

// quoted matches what the reason of a blocked call quotes: a path, an argument. It may be text of a person.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)

// AuditOf returns the records for the events that in led to. A record has ids, names and numbers, but no text of a
// person: an erasure deletes no record.
func AuditOf(in In, events []Event) []Audit {
	source := "system"
	if c, ok := in.(Command); ok && c.Via != "" {
		source = c.Via
	}
	var records []Audit
	for _, e := range events {
		record := func(action, resource, id string, values map[string]any) {
			values["session"], values["seq"] = e.Session, e.Seq
			from := source
			if e.By == "" {
				from = "system"
			}
			records = append(records, Audit{e.At, e.By, action, resource, id, from, Metadata(values)})
		}
		call := func(id CallID) string { return Ref(e.Session, Seq(id)) }
		switch b := e.Body.(type) {
		case InputReceived:
			action := auditMessage
			if source == ViaWebSocket {
				action = auditMessageWS
			}
			record(action, "agent", b.Agent.Name, b.audited())
		case InputScreened:
			if b.Finding.Verdict == ScreenBlock {
				by, _, _ := strings.Cut(b.Finding.Reason, ":") // the rest is text of a model, which may repeat the input
				record(AuditMessageBlocked, "session", string(e.Session),
					map[string]any{"reason": by, "score": b.Finding.Score, "input": b.Input})
			}
		case ApprovalDecided:
			record(auditApproval, "approval", Ref(e.Session, Seq(b.Card)), b.audited(call(b.Call)))
		case GrantRevoked:
			record(auditGrantRevoked, "grant", Ref(e.Session, Seq(b.Grant)), map[string]any{})
		case UndoRequested:
			record(auditUndo, "run", Ref(e.Session, Seq(b.Run)), map[string]any{})
		case ToolServersChosen:
			record(auditServersChosen, "session", string(e.Session), map[string]any{"off": b.Off})
		case ToolCallStarted:
			record(auditToolStarted, "tool", call(b.Call), map[string]any{"attempt": b.Attempt})
		case ToolCallBlocked:
			record(auditToolBlocked, "tool", call(b.Call), map[string]any{"tool_name": b.Name,
				"reason": quoted.ReplaceAllString(b.Reason, `"…"`)})
		case ToolCallFinished:
			values := map[string]any{"tool_name": b.Name}
			if b.Finding != nil {
				values["flagged"], values["score"] = b.Finding.Reason, b.Finding.Score
			}
			switch b.Outcome {
			case CallSucceeded:
				record(auditToolExecuted, "tool", call(b.Call), values)
			case CallFailed, CallUnknown:
				values["outcome"] = b.Outcome
				record(auditToolFailed, "tool", call(b.Call), values)
			}
		case SettingsChanged:
			record(auditSettings, "tenant", "", map[string]any{"values": b.Values})
		case ToolsAccepted:
			record(auditToolsAccepted, "tool_server", b.Server, map[string]any{"tools": b.Tools, "first": b.First})
		case PlanChanged:
			if e.By != "" { // otherwise an agent changed the plan
				record(auditPlan, "session", string(e.Session), map[string]any{"status": b.Status})
			}
		case ToolCallResolved:
			record(auditToolResolved, "tool", call(b.Call), map[string]any{"resolution": b.Resolution})
		case WebhookChanged:
			action := auditWebhookSet
			if b.Hook == (Hook{}) {
				action = auditWebhookRemoved
			}
			record(action, "session", string(e.Session), map[string]any{"target": b.Target, "events": b.Events()})
		case SessionHalted:
			about := map[string]any{"reason": b.Reason}
			if e.By != "" { // a reason in the words of a person is only in the log, from which it can be erased
				about = map[string]any{"bytes": len(b.Reason)}
			}
			record(auditSessionHalted, "session", string(e.Session), about)
		case SessionReopened:
			record(auditSessionReopened, "session", string(e.Session), map[string]any{})
		case SessionForked:
			record(auditSessionForked, "session", string(e.Session), map[string]any{"source": b.Source, "at": b.At})
		case SessionRenamed:
			record(auditSessionRenamed, "session", string(e.Session), map[string]any{"bytes": len(b.Title)})
		case SessionDeleted:
			record(auditSessionDeleted, "session", string(e.Session), map[string]any{})
		case MissionSet:
			record(auditMissionSet, "tenant", "", map[string]any{"project": b.Project, "bytes": len(b.Text),
				"agents": len(b.Agents)})
		case MissionCleared:
			record(auditMissionCleared, "tenant", "", map[string]any{"project": b.Project, "mission": b.Mission})
		case OverrideSet:
			record(auditOverride, "agent", b.Agent, map[string]any{"project": b.Project, "prompt": b.Prompt != nil,
				"interval": b.Seconds})
		case AgentStarted:
			record(auditAgentStarted, "agent", b.Agent, map[string]any{})
		case AgentStopped:
			record(auditAgentStopped, "agent", b.Agent, map[string]any{})
		case AgentChanged:
			switch {
			case b.Made && b.Gone:
				record(auditAgentDeleted, "agent", b.Agent, map[string]any{})
			case b.Made:
				record(auditAgentMade, "agent", b.Agent, map[string]any{"digest": b.Digest})
			}
		}
	}
	return records
}

// audited returns the metadata of the record of a message.
func (b InputReceived) audited() map[string]any {
	values := map[string]any{"bytes": len(b.Content)}
	if b.Request != "" {
		values["request"] = b.Request
	}
	if b.Finding != nil {
		values["flagged"], values["score"] = b.Finding.Reason, b.Finding.Score
	}
	return values
}

// audited returns the metadata of the record of a decision about a call.
func (b ApprovalDecided) audited(call string) map[string]any {
	values := map[string]any{"decision": b.Decision, "call": call}
	if b.Scope != "" {
		values["scope"] = b.Scope
	}
	return values
}
