package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"parley"
	"parley/pacing"
	"parley/port"
)

// A worker carries out one step, such as a model call or a tool call. It sends
// reports to its actor, and the last one when nothing it started is alive any
// more. The actor listens until then, so sending never blocks for ever.
type worker struct {
	cancel context.CancelFunc
	out    *coalescer // its output until the actor commits it
}

type report struct {
	parley.Report
	step       parley.Step
	last       bool
	pieces     []parley.Report    // the output of the worker before the report
	transcript *parley.Transcript // the conversation, if the worker had to read it; nil: it had not
	settle     func()             // ends the worker's quota hold, once its last report is committed
}

func (r report) settleHold() {
	if r.settle != nil {
		r.settle()
	}
}

// A stepInput is the input of a worker besides its step.
type stepInput struct {
	plan        *parley.Plan
	messages    []parley.Message // the conversation, for a turn
	hasMessages bool             // false: the worker has to read the conversation
	offers      parley.InputID   // the input whose client tools the model may use; zero: none
	out         *coalescer
	transcript  *parley.Transcript // set by the worker, see report
	settle      func()             // likewise; nil: nothing is held
}

// work starts a worker.
func (a *actor) work(step parley.Step) {
	ctx, cancel := context.WithCancel(a.engine.ctx)
	b := &stepInput{plan: a.s.state.Plan, out: newCoalescer(a.outputReady)}
	a.workers[step] = &worker{cancel, b.out}
	if a.owner == "" { // no worker reads it yet, because this is the first
		a.owner = a.s.state.Owner
	}
	if _, ok := step.(parley.CallModel); ok {
		b.messages, b.hasMessages = a.memory.messages()
		b.offers = a.s.state.Run.Offers
	}
	a.engine.wg.Go(func() {
		defer cancel()
		last := a.perform(ctx, step, b)
		last.At = a.engine.Now()
		a.reports <- report{last, step, true, b.out.reports(step, last.At, true), b.transcript, b.settle}
	})
}

// send passes the actor a report of a worker that goes on. The worker's earlier
// output is committed with it.
func (a *actor) send(step parley.Step, out *coalescer, r parley.Report) {
	r.At = a.engine.Now()
	a.reports <- report{Report: r, step: step, pieces: out.reports(step, r.At, true)}
}

// stopWorkers cancels all workers and returns when they have ended.
func (a *actor) stopWorkers() {
	for _, w := range a.workers {
		w.cancel()
		w.out.leave()
	}
	for len(a.workers) > 0 {
		if r := <-a.reports; r.last {
			delete(a.workers, r.step)
			r.settleHold()
		}
	}
}

// perform carries out the step and returns the last report. A report without a
// body says only that the worker has ended.
func (a *actor) perform(ctx context.Context, step parley.Step, b *stepInput) (last parley.Report) {
	defer func() {
		if p := recover(); p != nil {
			last.Body = failed(step, a.panicked(p))
		}
	}()
	if err := a.checkLease(ctx); err != nil {
		a.log.Info("nothing is begun: the session may be another node's", "error", err)
		a.nudge()
		pacing.Sleep(ctx, a.engine.Retry)
		return last
	}
	switch step := step.(type) {
	case parley.CallModel:
		last = parley.Report{Run: step.Run, Turn: step.Turn}
		if step.Agent.Remote {
			last.Body = a.callRemote(ctx, step, b)
		} else {
			last.Body = a.callModel(ctx, step, b)
		}
	case parley.CallTool:
		last = parley.Report{Run: step.Run, Call: step.Call}
		last.Body = a.callTool(ctx, step, b.out)
	case parley.Classify:
		last = parley.Report{Run: step.Run}
		last.Body = a.classify(ctx, step)
	case parley.RunChild:
		last = parley.Report{Run: step.Run, Call: step.Call}
		last.Body = a.runChild(ctx, step)
	case parley.StopChild:
		last.Body = a.stopChild(ctx, step)
	case parley.WatchMission:
		last.Body = a.watchMission(ctx, step)
	case parley.DeliverPrompt:
		last.Body = a.deliverPrompt(ctx, step)
	case parley.Compact:
		if ended := a.compact(ctx, step, b); ctx.Err() == nil {
			last.Body = ended
		}
	case parley.Explain:
		last = parley.Report{Run: step.Run, Call: step.Call}
		last.Body = a.explain(ctx, step, b)
	case parley.ReportChanges:
		last = parley.Report{Run: step.Run}
		last.Body = a.reportChanges(ctx, step)
	case parley.RestoreFiles:
		last = parley.Report{Run: step.Run}
		last.Body = a.restoreFiles(ctx, step)
	case parley.Evaluate:
		last.Body = a.evaluate(ctx, step, b)
	case parley.WriteTitle:
		last.Body = a.writeTitle(ctx, step, b)
	}
	return last
}

// failed returns the last report of a worker that panicked. why is a message for people.
func failed(step parley.Step, why string) parley.ReportBody {
	switch step := step.(type) {
	case parley.CallModel:
		return parley.ModelFailed{Code: parley.CodeInternal, Message: why}
	case parley.CallTool:
		return parley.ToolEnded{Outcome: parley.CallFailed, Result: why}
	case parley.Classify:
		return parley.ScreenEnded{Input: step.Input, Finding: parley.Finding{Verdict: parley.ScreenBlock, Reason: why}}
	case parley.RunChild:
		return parley.ChildEnded{Child: step.Child, Outcome: parley.Failed, Result: why}
	case parley.StopChild: // the child is left alone, as if it could not be stopped
		return parley.ChildEnded{Child: step.Child, Outcome: parley.Cancelled}
	case parley.DeliverPrompt:
		return parley.PromptDelivered{Prompt: step.Prompt, Code: parley.CodeInternal, Message: why}
	case parley.Compact:
		return parley.CompactionEnded{Since: step.Since, Code: parley.CodeInternal, Message: why}
	case parley.Explain:
		return parley.ExplanationEnded{Text: unexplained + why}
	case parley.ReportChanges:
		return parley.ChangesFound{Turns: step.Turns}
	case parley.RestoreFiles:
		return parley.FilesEnded{Problem: why}
	case parley.Evaluate:
		return parley.EvaluationEnded{Run: step.Run, Code: parley.CodeInternal, Message: why}
	case parley.WriteTitle:
		return parley.TitleWritten{Run: step.Run}
	}
	return nil
}

func (a *actor) panicked(p any) string {
	a.log.Error("a worker panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return "Something went wrong in the server; its log says what."
}

func (a *actor) callTool(ctx context.Context, step parley.CallTool, out *coalescer) parley.ReportBody {
	var agent parley.Agent
	err := a.retry(ctx, func() (err error) {
		agent, err = a.definition(ctx, step.Agent)
		return err
	})
	if err != nil {
		return a.toolEnded(ctx, port.ToolResult{}, err)
	}
	// Each stream has its own filter: output of the other stream in between must not split a secret.
	live := map[parley.Stream]port.Filter{parley.Stdout: a.redactor(), parley.Stderr: a.redactor()}
	say := func(stream parley.Stream, text string) {
		if text != "" {
			out.print(stream, text)
		}
	}
	if step.Touches {
		a.noteFiles(ctx, step.Run)
	}
	if err := a.checkLease(ctx); err != nil { // another node may have taken the session meanwhile
		return nil
	}
	result, err := a.tools(ctx).Perform(ctx, agent, step.Name, step.Args, func(stream parley.Stream, text string) {
		say(stream, live[stream].Write(text))
	})
	say(parley.Stdout, live[parley.Stdout].Close())
	say(parley.Stderr, live[parley.Stderr].Close())
	return a.toolEnded(ctx, result, err)
}

func (a *actor) toolEnded(ctx context.Context, done port.ToolResult, err error) parley.ReportBody {
	outcome, result := parley.CallSucceeded, done.Text
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // the call was stopped; there is nothing to report
	case errors.Is(err, port.ErrFateUnknown):
		outcome, result = parley.CallUnknown, parley.MessageOf(err)
	case err != nil:
		outcome, result = parley.CallFailed, parley.MessageOf(err)
	case done.Failed:
		outcome = parley.CallFailed
	}
	shown := a.redacted(result)
	if done.Exact && shown != result {
		outcome, shown = parley.CallFailed, "It holds something that looks like a secret, so it is not handed out."
	}
	result = shown
	if len(result) > parley.MaxResult {
		result = result[:parley.MaxResult] + "\n(the rest was left out)"
	}
	ended := parley.ToolEnded{Outcome: outcome, Result: strings.ToValidUTF8(result, "\uFFFD"), Exit: done.Exit}
	ended.Finding = a.engine.findingIn(ended.Result)
	return ended
}

// definition returns the agent as it was when the run started.
func (a *actor) definition(ctx context.Context, ref parley.AgentRef) (parley.Agent, error) {
	agent, err := a.engine.definition(ctx, a.tenant, ref.Digest)
	// The project may have gone to another tenant since the run started.
	return a.currentProject().withPermittedTools(a.tenant, agent), err
}

// definitionAndLog returns that agent, and the part of the log that its model gets.
func (a *actor) definitionAndLog(
	ctx context.Context, ref parley.AgentRef, from parley.Seq,
) (parley.Agent, []parley.Event, error) {
	agent, err := a.definition(ctx, ref)
	if err != nil {
		return agent, nil, err
	}
	log, err := a.engine.Store.Tenant(a.tenant).EventsWithoutChunks(ctx, a.session, from)
	return agent, log, err
}

// readEvent reads one event of the actor's session, which must have a body of type T.
func readEvent[T parley.EventBody](ctx context.Context, a *actor, seq parley.Seq) (e parley.Event, body T, err error) {
	events, err := a.engine.Store.Tenant(a.tenant).Events(ctx, a.session, seq-1, 1)
	if err != nil {
		return e, body, err
	}
	if len(events) == 1 {
		if body, ok := events[0].Body.(T); ok {
			return events[0], body, nil
		}
	}
	return e, body, fmt.Errorf("seq %d is no %T", seq, body)
}

const (
	attempts   = 3
	retryAfter = 500 * time.Millisecond // doubled each time
)

// retry retries a call while its error is temporary, up to attempts times.
// The model calls of turns do not use it: Config.Model retries them.
func (a *actor) retry(ctx context.Context, try func() error) error {
	pause := retryAfter
	for attempt := 1; ; attempt++ {
		err := try()
		code := parley.CodeOf(err)
		mayHelp := err != nil && (code == parley.CodeOverloaded || code == parley.CodeUnavailable)
		if !mayHelp || attempt == attempts || !pacing.Sleep(ctx, pause) {
			return err
		}
		a.log.Info("a call failed and is tried again", "attempt", attempt, "error", err)
		pause *= 2
	}
}
