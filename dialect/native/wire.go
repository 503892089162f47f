package native

import (
	"parley"
	"parley/port"
)

// Wire returns the types of all answers, under their names in documents. The lines of logs are events, which have names
// of their own.
func Wire() map[string]any {
	return map[string]any{
		"Me":             me{},
		"Agent":          agentInfo{},
		"Session":        port.Summary{},
		"Run":            runLine{},
		"Card":           cardLine{},
		"Origin":         parley.Origin{},
		"Usage":          parley.Usage{},
		"UsageReport":    port.UsageReport{},
		"UsageOf":        port.UsageOf{},
		"Quota":          port.Quota{},
		"Left":           port.Left{},
		"Erasure":        port.ErasureReport{},
		"Retention":      port.RetentionReport{},
		"KeptSession":    port.KeptSession{},
		"LegalHold":      port.LegalHold{},
		"Spent":          port.Spent{},
		"Question":       parley.Question{},
		"Receipt":        port.Receipt{},
		"Plan":           parley.Plan{},
		"PlanItem":       parley.PlanItem{},
		"AgentDetail":    agentDetail{},
		"Definition":     parley.Agent{},
		"Settings":       parley.Settings{},
		"ToolServer":     port.ToolServer{},
		"ServerTool":     port.ServerTool{},
		"ServerSetup":    port.ServerSetup{},
		"ServerTrial":    port.ServerTrial{},
		"Grant":          parley.GrantInfo{},
		"Timer":          port.TimerInfo{},
		"Effect":         port.EffectInfo{},
		"WebhookInfo":    port.WebhookInfo{},
		"ModelKey":       port.ModelKey{},
		"ModelKeyTrial":  port.ModelKeyTrial{},
		"SessionWebhook": port.SessionWebhook{},
		"WebhookTrial":   port.WebhookTrial{},
		"User":           port.UserInfo{},
		"Node":           Node{},
		"MissionInfo":    port.MissionInfo{},
		"PromptedAgent":  port.PromptedAgent{},
		"IdleChoice":     parley.IdleChoice{},
		"Ticket":         ticketInfo{},
		"AuditEvent":     auditEvent{},
		"SearchAnswer":   searchAnswer{},
		"Passage":        port.Passage{},
		"Mark":           port.Mark{},
		"Skill":          skillInfo{},
		"Refusal":        refusal{},
		"Model":          port.ModelInfo{},
		"TurnRequest":    turnRequest{},
		"RequestMessage": requestMessage{},
		"RequestCall":    requestCall{},
		"RequestImage":   requestImage{},
		"RequestTool":    requestTool{},
		"BranchPoint":    branchPoint{},
	}
}
