package engine

import (
	"time"

	"pgregory.net/rapid"

	"parley"
)

func (m *machine) modelSays() parley.ReportBody {
	switch rapid.IntRange(0, 9).Draw(m.t, "model") {
	case 0, 1, 2, 4:
		return parley.ModelPiece{Kind: rapid.SampledFrom([]parley.OutputKind{parley.Text, parley.Thinking}).Draw(m.t,
			"kind"), Text: rapid.StringN(0, 5, -1).Draw(m.t, "text")}
	case 3:
		return parley.ModelFailed{Code: parley.CodeModel, Message: "no"}
	}
	ended := parley.ModelEnded{Stop: parley.StopEnd,
		Context: parley.ContextSize{Tokens: rapid.IntRange(0, 120).Draw(m.t, "tokens"), Limit: 100}}
	for range rapid.IntRange(0, 3).Draw(m.t, "calls") {
		name := rapid.SampledFrom([]string{"read", "put", "do", "write", "ask", "forbidden", "delegate", "plan", "plan",
			"schedule_follow_up", "schedule_follow_up", "cancel_follow_ups"}).Draw(m.t, "tool")
		args := rapid.SampledFrom([]string{`"x"`, `"x y"`, `"X"`, `"z X"`}).Draw(m.t, "arguments")
		ended.Calls = append(ended.Calls, parley.CallAsked{Name: name, Arguments: args,
			Verdict: (&hands{}).Judge(parley.Agent{}, name, args),
			Expires: m.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(m.t, "minutes")) * time.Minute)})
	}
	return ended
}

// remoteSays returns a report of a remote agent.
func (m *machine) remoteSays() parley.ReportBody {
	name := rapid.SampledFrom([]string{"search", "send"}).Draw(m.t, "tool")
	key := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(m.t, "key")
	switch rapid.IntRange(0, 19).Draw(m.t, "remote") {
	case 14:
		return parley.RemoteBegan{Key: key, Name: name}
	case 15:
		return parley.RemoteTool{Key: key, Name: name, Outcome: parley.CallSucceeded}
	case 16, 17:
		tool := rapid.SampledFrom([]string{"read", "put", "do", "write", "forbidden"}).Draw(m.t, "made")
		return parley.RemoteCalls{CallAsked: parley.CallAsked{Name: tool, Arguments: `"x"`, Provider: key,
			Verdict: (&hands{}).Judge(parley.Agent{}, tool, `"x"`),
			Expires: m.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(m.t, "minutes")) * time.Minute)}}
	case 18:
		return parley.RemoteDropped{Key: key}
	case 19:
		return parley.RemotePlanned{PlanUpdate: parley.PlanUpdate{Items: []parley.PlanItem{{Title: key,
			Status: parley.ItemPending}}}}
	case 0, 1, 2, 3:
		return parley.ModelPiece{Kind: parley.Text, Text: rapid.StringN(0, 5, -1).Draw(m.t, "text")}
	case 4, 5, 6:
		return parley.RemoteTool{Name: name,
			Outcome: rapid.SampledFrom([]parley.CallOutcome{parley.CallSucceeded, parley.CallFailed}).Draw(m.t,
				"outcome")}
	case 7:
		return parley.RemoteTool{Name: name, Blocked: "not in its list"}
	case 8, 9, 10:
		return parley.RemoteAsked{Key: "k", Name: name, Arguments: `{"to":"x"}`, Show: "send x", Digest: "d:" + name,
			Expires: m.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(m.t, "minutes")) * time.Minute)}
	case 11:
		return parley.ModelFailed{Code: rapid.SampledFrom([]parley.Code{parley.CodeModel, parley.CodeInterrupted}).Draw(
			m.t, "code"), Message: "no"}
	case 12:
		if rapid.IntRange(0, 7).Draw(m.t, "halts") == 0 {
			return parley.RemoteHalted{Reason: "canary_leak"}
		}
		return parley.RemoteTrouble{Message: "it is slow"}
	}
	return parley.ModelEnded{Stop: parley.StopEnd}
}

// summary returns the result of a compaction: shorter, not shorter, or failed.
func (m *machine) summary(step parley.Compact) parley.CompactionEnded {
	ended := parley.CompactionEnded{Since: step.Since, Upto: m.s.state.Head, Summary: "s", Before: 90,
		After: rapid.IntRange(10, 100).Draw(m.t, "after"), Limit: 100}
	if rapid.IntRange(0, 3).Draw(m.t, "summary") == 0 {
		ended = parley.CompactionEnded{Since: step.Since, Code: parley.CodeModel, Message: "no"}
	}
	return ended
}

func (m *machine) toolSays() parley.ReportBody {
	if rapid.Bool().Draw(m.t, "goes on") {
		return parley.ToolPiece{Text: rapid.StringN(0, 3, -1).Draw(m.t, "output")}
	}
	return parley.ToolEnded{
		Outcome: rapid.SampledFrom([]parley.CallOutcome{parley.CallSucceeded, parley.CallFailed}).Draw(m.t, "outcome"),
		Result:  "r"}
}
