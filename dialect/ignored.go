package dialect

import "maps"

// Types of events that dialects ignore, with the reason. The native dialect shows every event.
var (
	// Bookkeeping lists events that only the native dialect shows.
	Bookkeeping = map[string]string{
		"UndoRequested":     "its result is shown",
		"SessionForked":     "the conversation before a fork is shown by the native protocol only",
		"InputScreened":     "a run that is blocked says so when it ends",
		"EffectEnqueued":    "a bookmark for clients that come back, not a message",
		"EffectCancelled":   "a bookmark for clients that come back, not a message",
		"ToolServersChosen": "tool servers are shown by the native protocol only",
		"GrantRevoked":      "grants are shown by the native protocol only",
		"TimerPostponed":    "the follow-up is shown when it is due",
		"TimerCancelled":    "the follow-up is shown when it is due",
		"FollowUpEvaluated": "the follow-up is shown when it is due",
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
	// ContextEvents lists events about the context window, for dialects that do not show it.
	ContextEvents = map[string]string{
		"ContextMeasured":   "the context is not visible here",
		"CompactionStarted": "the context is not visible here",
		"ContextCompacted":  "the context is not visible here",
		"CompactionFailed":  "the context is not visible here",
	}
	// FileEvents lists events about files, for dialects that do not show them.
	FileEvents = map[string]string{
		"FilesChanged":  "files are not visible here",
		"ChangesUndone": "files are not visible here",
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
