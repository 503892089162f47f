package dialect

import "maps"

// Types of events that dialects ignore, with the reason. The native dialect shows every event.
var (
	// Bookkeeping lists events that only the native dialect shows.
	Bookkeeping = map[string]string{
		"UndoRequested":     "what came of it is shown",
		"SessionForked":     "the conversation before a fork is shown by the native protocol only",
		"InputScreened":     "a run that is blocked says so when it ends",
		"EffectEnqueued":    "a bookmark for clients that come back, not a message",
		"EffectCancelled":   "a bookmark for clients that come back, not a message",
		"ToolServersChosen": "tool servers are shown by the native protocol only",
		"GrantRevoked":      "grants are shown by the native protocol only",
		"TimerPostponed":    "a follow-up is shown when it comes",
		"TimerCancelled":    "a follow-up is shown when it comes",
		"FollowUpEvaluated": "a follow-up is shown when it comes",
		"LateResultNoted":   "shown in the native log only",
		"AgentPrompted":     "an idle prompt is shown when its session takes it",
		"PromptSettled":     "an idle prompt is shown when its session takes it",
		"WebhookChanged":    "webhooks are not visible to clients",
		"ToolsAccepted":     "offers of tool servers are not visible to clients",
	}
	// TenantFacts lists events of the tenant's own session, which is not a conversation.
	TenantFacts = map[string]string{
		"AgentStarted":    "a fact of the tenant, not of a conversation",
		"AgentStopped":    "a fact of the tenant, not of a conversation",
		"AgentChanged":    "a fact of the tenant, not of a conversation",
		"SettingsChanged": "a fact of the tenant, not of a conversation",
		"MissionSet":      "a fact of the tenant, not of a conversation",
		"MissionCleared":  "a fact of the tenant, not of a conversation",
		"OverrideSet":     "a fact of the tenant, not of a conversation",
	}
)

// Ignoring merges tables of ignored event types.
func Ignoring(tables ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}
