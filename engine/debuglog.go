package engine

import (
	"log/slog"

	"parley"
)

// logEvents writes to the server's log, for debugging, what happens to a message.
// The names are those of the thread chat document.
func (a *actor) logEvents(events []parley.Event) {
	if !a.log.Enabled(a.engine.ctx, slog.LevelDebug) {
		return
	}
	for _, e := range events {
		switch b := e.Body.(type) {
		case parley.InputReceived:
			kind := "user_message"
			if b.Synthetic {
				kind = "timer_fired"
			}
			if b.Mission != 0 {
				kind = "idle_prompt"
			}
			a.log.Debug("event_published", "type", kind, "sessionKey", a.session, "requestId", b.Request, "seq", e.Seq)
		case parley.RunStarted:
			a.log.Debug("event_processing_started", "requestId", b.Request, "agentId", b.Agent.Name, "run", e.Run)
		case parley.TurnStarted:
			a.log.Debug("graph_invocation_started", "run", e.Run, "turn", b.Number)
		case parley.OutputAppended:
			a.log.Debug("content_chunk_streaming", "run", e.Run, "bytes", len(b.Text))
		case parley.EffectEnqueued:
			a.log.Debug("effect_created", "type", b.Type, "dedupeKey", parley.Ref(a.session, e.Seq), "run", e.Run)
		case parley.TimerSet:
			a.log.Debug("timer_scheduled", "timer", e.Seq, "at", b.At, "by", b.By)
		case parley.RunFinished:
			a.log.Debug("chat_response_completed", "run", e.Run, "outcome", b.Outcome)
		}
	}
}
