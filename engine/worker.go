package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"parley"
)

// A worker makes one step true: a model call or a tool call. It sends reports
// to its actor, and one that is the last when nothing it started is alive any
// more. The actor listens until then, so sending never blocks for ever.
type worker struct {
	cancel context.CancelFunc
}

type report struct {
	parley.Report
	step parley.Step
	last bool
}

// work starts a worker.
func (a *actor) work(step parley.Step) {
	ctx, cancel := context.WithCancel(a.engine.ctx)
	a.workers[step] = &worker{cancel}
	if a.owner == "" { // before anybody reads it: there is no earlier worker
		a.owner = a.s.state.Owner
	}
	plan := a.s.state.Plan
	a.engine.wg.Go(func() {
		defer cancel()
		last := a.perform(ctx, step, plan)
		last.At = a.engine.Now()
		a.reports <- report{last, step, true}
	})
}

// stopWorkers returns when all are gone.
func (a *actor) stopWorkers() {
	for _, w := range a.workers {
		w.cancel()
	}
	for len(a.workers) > 0 {
		if r := <-a.reports; r.last {
			delete(a.workers, r.step)
		}
	}
}

// perform does the step and returns the last report. One without a body says
// only that the worker is gone.
func (a *actor) perform(ctx context.Context, step parley.Step, plan *parley.Plan) (last parley.Report) {
	switch step := step.(type) {
	case parley.CallModel:
		last = parley.Report{Run: step.Run, Turn: step.Turn}
		defer func() {
			if p := recover(); p != nil {
				last.Body = parley.ModelFailed{Code: parley.CodeInternal, Message: a.panicked(p)}
			}
		}()
		if step.Agent.Remote {
			last.Body = a.callRemote(ctx, step)
		} else {
			last.Body = a.callModel(ctx, step, plan)
		}
	case parley.Classify:
		last = parley.Report{Run: step.Run}
		defer func() {
			if p := recover(); p != nil {
				last.Body = parley.ScreenEnded{Input: step.Input, Finding: parley.Finding{Verdict: parley.ScreenBlock, Reason: a.panicked(p)}}
			}
		}()
		last.Body = a.classify(ctx, step)
	case parley.RunChild:
		last = parley.Report{Run: step.Run, Call: step.Call}
		defer func() {
			if p := recover(); p != nil {
				last.Body = parley.ChildEnded{Child: step.Child, Outcome: parley.Failed, Result: a.panicked(p)}
			}
		}()
		last.Body = a.runChild(ctx, step)
	case parley.StopChild:
		last.Body = a.stopChild(ctx, step)
	case parley.WatchMission:
		last.Body = a.watchMission(ctx, step)
	case parley.DeliverPrompt:
		defer func() {
			if p := recover(); p != nil {
				last.Body = parley.PromptDelivered{Prompt: step.Prompt, Code: parley.CodeInternal, Message: a.panicked(p)}
			}
		}()
		last.Body = a.deliverPrompt(ctx, step)
	case parley.Compact:
		defer func() {
			if p := recover(); p != nil {
				last.Body = parley.CompactionEnded{Since: step.Since, Code: parley.CodeInternal, Message: a.panicked(p)}
			}
		}()
		if ended := a.compact(ctx, step); ctx.Err() == nil {
			last.Body = ended
		}
	case parley.Explain:
		last = parley.Report{Run: step.Run, Call: step.Call}
		defer func() {
			if p := recover(); p != nil {
				last.Body = parley.ExplanationEnded{Text: "Unable to generate an explanation for this call. " + a.panicked(p)}
			}
		}()
		last.Body = a.explain(ctx, step)
	case parley.ReportChanges:
		last = parley.Report{Run: step.Run}
		defer func() {
			if p := recover(); p != nil {
				a.panicked(p)
				last.Body = parley.ChangesFound{Turns: step.Turns}
			}
		}()
		last.Body = a.reportChanges(ctx, step)
	case parley.Evaluate:
		defer func() {
			if p := recover(); p != nil {
				last.Body = parley.EvaluationEnded{Run: step.Run, Code: parley.CodeInternal, Message: a.panicked(p)}
			}
		}()
		last.Body = a.evaluate(ctx, step)
	case parley.CallTool:
		last = parley.Report{Run: step.Run, Call: step.Call}
		defer func() {
			if p := recover(); p != nil {
				last.Body = parley.ToolEnded{Outcome: parley.CallFailed, Result: a.panicked(p)}
			}
		}()
		last.Body = a.callTool(ctx, step)
	}
	return last
}

func (a *actor) panicked(p any) string {
	a.log.Error("a worker panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return "Something went wrong in the server; its log says what."
}

func (a *actor) callTool(ctx context.Context, step parley.CallTool) parley.ReportBody {
	var agent parley.Agent
	err := a.patiently(ctx, func() (err error) {
		agent, err = a.definition(ctx, step.Agent)
		return err
	})
	if err != nil {
		return a.toolEnded(ctx, parley.ToolResult{}, err)
	}
	out := a.coalesce(func(_ parley.OutputKind, text string) {
		a.reports <- report{Report: parley.Report{At: a.engine.Now(), Run: step.Run, Call: step.Call, Body: parley.ToolPiece{Text: text}}, step: step}
	})
	defer out.close()
	live := a.redactor()
	say := func(text string) {
		if text != "" {
			out.say(parley.Text, text)
		}
	}
	if step.Touches {
		a.noteFiles(ctx, step.Run)
	}
	result, err := a.tools(ctx).Perform(ctx, agent, step.Name, step.Args, func(text string) { say(live.Write(text)) })
	say(live.Close())
	out.close()
	return a.toolEnded(ctx, result, err)
}

func (a *actor) toolEnded(ctx context.Context, done parley.ToolResult, err error) parley.ReportBody {
	outcome, result := parley.CallSucceeded, done.Text
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // stopped, and nothing to tell
	case errors.Is(err, parley.ErrFateUnknown):
		outcome, result = parley.CallUnknown, parley.MessageOf(err)
	case err != nil:
		outcome, result = parley.CallFailed, parley.MessageOf(err)
	case done.Failed:
		outcome = parley.CallFailed
	}
	whole := a.redactor()
	result = whole.Write(result) + whole.Close()
	if len(result) > parley.MaxResult {
		result = result[:parley.MaxResult] + "\n(the rest was left out)"
	}
	ended := parley.ToolEnded{Outcome: outcome, Result: strings.ToValidUTF8(result, "\uFFFD"), Exit: done.Exit}
	switch finding, err := a.engine.scan(nil, ended.Result); {
	case err != nil:
		ended.Finding = &parley.Finding{Verdict: parley.ScreenFlag, Reason: "it could not be looked at"}
	case finding.Verdict == parley.ScreenFlag || finding.Verdict == parley.ScreenBlock:
		ended.Finding = &finding
	}
	return ended
}

// definition is the agent as the run started with it.
func (a *actor) definition(ctx context.Context, ref parley.AgentRef) (parley.Agent, error) {
	agent, err := a.engine.Store.Tenant(a.tenant).Definition(ctx, ref.Digest)
	// The default tenant may be another one than when the run started.
	return a.engine.atHome(a.tenant, agent), err
}

const (
	attempts   = 3
	retryAfter = 500 * time.Millisecond // doubled each time
)

// patiently tries something again for as long as that may help. Models are not
// among it: who calls them is patient with them.
func (a *actor) patiently(ctx context.Context, try func() error) error {
	pause := retryAfter
	for attempt := 1; ; attempt++ {
		err := try()
		code := parley.CodeOf(err)
		mayHelp := err != nil && (code == parley.CodeOverloaded || code == parley.CodeUnavailable)
		if !mayHelp || attempt == attempts || !sleep(ctx, pause) {
			return err
		}
		a.log.Info("a call failed and is tried again", "attempt", attempt, "error", err)
		pause *= 2
	}
}

// callModel has the model speak a turn. If it breaks off after something was
// shown, only Decide knows what to do.
func (a *actor) callModel(ctx context.Context, step parley.CallModel, plan *parley.Plan) parley.ReportBody {
	select {
	case a.engine.slots <- struct{}{}:
		defer func() { <-a.engine.slots }()
	case <-ctx.Done():
		return nil
	}
	out := a.coalesce(func(kind parley.OutputKind, text string) {
		a.reports <- report{Report: parley.Report{At: a.engine.Now(), Run: step.Run, Turn: step.Turn, Body: parley.ModelPiece{Kind: kind, Text: text}}, step: step}
	})
	defer out.close()
	tell := func(body parley.ReportBody) {
		a.reports <- report{Report: parley.Report{At: a.engine.Now(), Run: step.Run, Turn: step.Turn, Body: body}, step: step}
	}
	var request parley.ModelRequest
	var agent parley.Agent
	err := a.patiently(ctx, func() (err error) {
		request, agent, err = a.request(ctx, step, plan)
		return err
	})
	if err != nil {
		return a.modelFailed(ctx, err)
	}
	ended, err := a.stream(ctx, request, agent, out.say, tell)
	out.close()
	switch {
	case errors.Is(err, errLeaked):
		a.log.Warn("the model said its canary; the session is halted")
		return parley.CanaryLeaked{}
	case err != nil:
		return a.modelFailed(ctx, err)
	}
	return ended
}

func (a *actor) request(ctx context.Context, step parley.CallModel, plan *parley.Plan) (parley.ModelRequest, parley.Agent, error) {
	agent, err := a.definition(ctx, step.Agent)
	if err != nil {
		return parley.ModelRequest{}, agent, err
	}
	log, err := a.engine.Store.Tenant(a.tenant).Spoken(ctx, a.session, step.From)
	if err != nil {
		return parley.ModelRequest{}, agent, err
	}
	return parley.ModelRequest{
		Model:        agent.Model,
		Instructions: a.knowing(ctx, instructed(agent, step.Mode, plan)+a.whoElse(agent)+a.skillsFor(agent), agent.Name),
		Messages:     parley.Conversation(log),
		Tools:        offered(a.tools(ctx).Specs(agent), step.Mode),
		Fallback:     agent.Fallback,
	}, agent, nil
}

// stream has the model speak once, within limits.
func (a *actor) stream(ctx context.Context, request parley.ModelRequest, agent parley.Agent, say func(parley.OutputKind, string), tell func(parley.ReportBody)) (parley.ModelEnded, error) {
	var ended parley.ModelEnded
	if request.Model == "" && agent.Address != "" {
		return ended, parley.Errorf(parley.CodeModel, "This agent runs elsewhere, and its file names no model for what is done about it here.")
	}
	said := 0
	mouth := a.mouth(say)
	defer mouth.rest()
	request.Instructions = mouth.instructions(request.Instructions)
	for s, err := range a.engine.Model.Stream(ctx, request) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return ended, err
		}
		if said += len(s.Text) + len(s.Thinking); said > parley.MaxOutput {
			return ended, parley.Errorf(parley.CodeTooLarge, "The answer is longer than %d bytes, the limit of one turn.", parley.MaxOutput)
		}
		switch {
		case s.FellBack != nil:
			tell(*s.FellBack)
		case s.Text != "":
			if err := mouth.speak(parley.Text, s.Text); err != nil {
				return ended, err
			}
		case s.Thinking != "":
			if err := mouth.speak(parley.Thinking, s.Thinking); err != nil {
				return ended, err
			}
		case s.Call != nil:
			if err := mouth.check(s.Call.Name + s.Call.Arguments); err != nil {
				return ended, err
			}
			switch n := len(ended.Calls); {
			case n < parley.MaxCalls:
				ended.Calls = append(ended.Calls, a.judge(ctx, agent, *s.Call))
			case n == parley.MaxCalls: // that there are more is told once
				ended.Calls = append(ended.Calls, tooMany(*s.Call))
			}
		case s.Done != nil:
			ended.Stop, ended.Usage, ended.Memo = s.Done.Stop, s.Done.Usage, s.Done.Memo
			ended.Context = a.measure(request, ended.Usage, said)
			if ended.Memo != nil {
				return ended, mouth.check(string(ended.Memo.Data))
			}
			return ended, nil
		}
	}
	return ended, parley.Errorf(parley.CodeUnavailable, "The model stopped in the middle of its answer.")
}

// untold is for calls of models that are no turn: what happens to them besides is
// not on record.
func untold(parley.ReportBody) {}

// tooMany stands for all calls beyond what a turn may have.
func tooMany(c parley.MessageCall) parley.CallAsked {
	return parley.CallAsked{Name: known(c.Name), Arguments: "{}", Provider: strings.ToValidUTF8(c.Provider, "\uFFFD"),
		Verdict: parley.Verdict{Kind: parley.VerdictBlock, Reason: fmt.Sprintf("a turn has at most %d calls; this one, and all that came after it, were left out", parley.MaxCalls)}}
}

// known is the name of a tool as far as it can be one.
func known(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), parley.MaxName)], "\uFFFD")
}

// judge asks policy about a call. What could not be stored byte for byte must
// not run: after a restart it would be something else than was approved.
func (a *actor) judge(ctx context.Context, agent parley.Agent, c parley.MessageCall) parley.CallAsked {
	asked := parley.CallAsked{Name: c.Name, Arguments: c.Arguments, Provider: c.Provider,
		Expires: a.engine.Now().Add(a.engine.CardLife).UTC().Truncate(time.Microsecond)}
	switch {
	case !utf8.ValidString(c.Name + c.Arguments + c.Provider):
		asked.Name, asked.Provider = strings.ToValidUTF8(c.Name, "\uFFFD"), strings.ToValidUTF8(c.Provider, "\uFFFD")
		asked.Arguments = strings.ToValidUTF8(c.Arguments, "\uFFFD")
		asked.Verdict = parley.Verdict{Kind: parley.VerdictBlock, Reason: "the call is not valid UTF-8"}
	case len(c.Name) > parley.MaxName || len(c.Arguments) > parley.MaxArguments:
		asked.Name, asked.Arguments = known(c.Name), "{}"
		asked.Verdict = parley.Verdict{Kind: parley.VerdictBlock, Reason: fmt.Sprintf("the name of a tool has at most %d bytes, and its arguments %d", parley.MaxName, parley.MaxArguments)}
	case a.engine.Screen != nil && a.engine.Screen.HasSecret(c.Arguments):
		// Not altered, because an approval covers what was asked, byte for byte;
		// but not kept either.
		asked.Arguments = "{}"
		asked.Verdict = parley.Verdict{Kind: parley.VerdictBlock, Reason: "the arguments hold one of the server's own secrets"}
	default:
		asked.Verdict = a.tools(ctx).Judge(agent, c.Name, c.Arguments)
	}
	if v := asked.Verdict; v.Kind == parley.VerdictChild {
		other, err := a.mayDelegate(agent, v.Agent)
		if asked.Verdict.Remote = other.Address != ""; err != nil {
			asked.Verdict = parley.Verdict{Kind: parley.VerdictBlock, Reason: parley.MessageOf(err)}
		}
	}
	return asked
}

func (a *actor) modelFailed(ctx context.Context, err error) parley.ReportBody {
	if ctx.Err() != nil {
		return nil // nobody wants it any more, or the server stops
	}
	a.log.Warn("model call failed", "error", err)
	if parley.CodeOf(err) == parley.CodeInternal {
		return parley.ModelFailed{Code: parley.CodeModel, Message: "The model could not answer."}
	}
	return parley.ModelFailed{Code: parley.CodeOf(err), Message: parley.MessageOf(err)}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
