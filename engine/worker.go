package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

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
	a.engine.wg.Go(func() {
		defer cancel()
		last := a.perform(ctx, step)
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
func (a *actor) perform(ctx context.Context, step parley.Step) (last parley.Report) {
	switch step := step.(type) {
	case parley.CallModel:
		last = parley.Report{Run: step.Run, Turn: step.Turn}
		defer func() {
			if p := recover(); p != nil {
				last.Body = parley.ModelFailed{Code: parley.CodeInternal, Message: a.panicked(p)}
			}
		}()
		last.Body = a.callModel(ctx, step)
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
	agent, err := a.definition(ctx, step.Agent)
	if err != nil {
		return parley.ToolEnded{Outcome: parley.CallFailed, Result: parley.MessageOf(err)}
	}
	out := a.coalesce(func(_ parley.OutputKind, text string) {
		a.reports <- report{Report: parley.Report{At: a.engine.Now(), Run: step.Run, Call: step.Call, Body: parley.ToolPiece{Text: text}}, step: step}
	})
	defer out.close()
	result, err := a.engine.Tools.Perform(ctx, agent, step.Name, step.Args, func(text string) { out.say(parley.Text, text) })
	out.close()
	switch {
	case err == nil:
		return parley.ToolEnded{Outcome: parley.CallSucceeded, Result: result}
	case ctx.Err() != nil:
		return nil // stopped, and nothing to tell
	}
	return parley.ToolEnded{Outcome: parley.CallFailed, Result: parley.MessageOf(err)}
}

// definition is the agent as the run started with it.
func (a *actor) definition(ctx context.Context, ref parley.AgentRef) (parley.Agent, error) {
	return a.engine.Store.Tenant(a.tenant).Definition(ctx, ref.Digest)
}

const (
	modelAttempts = 3
	retryAfter    = 500 * time.Millisecond // doubled each time
)

// callModel has the model speak a turn. It is tried again, with patience, for
// as long as nothing was shown: after that only Decide knows what to do.
func (a *actor) callModel(ctx context.Context, step parley.CallModel) parley.ReportBody {
	request, agent, err := a.request(ctx, step)
	if err != nil {
		return a.modelFailed(ctx, err)
	}
	shown := false
	out := a.coalesce(func(kind parley.OutputKind, text string) {
		a.reports <- report{Report: parley.Report{At: a.engine.Now(), Run: step.Run, Turn: step.Turn, Body: parley.ModelPiece{Kind: kind, Text: text}}, step: step}
	})
	defer out.close()
	pause := retryAfter
	for attempt := 1; ; attempt++ {
		ended, err := a.stream(ctx, request, agent, func(kind parley.OutputKind, text string) {
			shown = true
			out.say(kind, text)
		})
		if err == nil {
			out.close()
			return ended
		}
		if shown || attempt == modelAttempts || !mayHelp(err) || !sleep(ctx, pause) {
			out.close()
			return a.modelFailed(ctx, err)
		}
		a.log.Info("model call failed and is tried again", "attempt", attempt, "error", err)
		pause *= 2
	}
}

func (a *actor) request(ctx context.Context, step parley.CallModel) (parley.ModelRequest, parley.Agent, error) {
	agent, err := a.definition(ctx, step.Agent)
	if err != nil {
		return parley.ModelRequest{}, agent, err
	}
	log, err := a.engine.Store.Tenant(a.tenant).Spoken(ctx, a.session)
	if err != nil {
		return parley.ModelRequest{}, agent, err
	}
	return parley.ModelRequest{
		Model:        agent.Model,
		Instructions: agent.Instructions,
		Messages:     parley.Conversation(log),
		Tools:        a.engine.Tools.Specs(agent),
	}, agent, nil
}

func (a *actor) stream(ctx context.Context, request parley.ModelRequest, agent parley.Agent, say func(parley.OutputKind, string)) (parley.ModelEnded, error) {
	var ended parley.ModelEnded
	for said, err := range a.engine.Model.Stream(ctx, request) {
		switch {
		case err != nil:
			return ended, err
		case ctx.Err() != nil:
			return ended, ctx.Err()
		case said.Text != "":
			say(parley.Text, said.Text)
		case said.Thinking != "":
			say(parley.Thinking, said.Thinking)
		case said.Call != nil:
			ended.Calls = append(ended.Calls, parley.CallAsked{
				Name: said.Call.Name, Arguments: said.Call.Arguments, Provider: said.Call.Provider,
				Verdict: a.engine.Tools.Judge(agent, said.Call.Name, said.Call.Arguments),
				Expires: a.engine.Now().Add(a.engine.CardLife).UTC().Truncate(time.Microsecond),
			})
		case said.Done != nil:
			ended.Stop, ended.Usage = said.Done.Stop, said.Done.Usage
			return ended, nil
		}
	}
	return ended, parley.Errorf(parley.CodeUnavailable, "The model stopped in the middle of its answer.")
}

func (a *actor) modelFailed(ctx context.Context, err error) parley.ReportBody {
	if ctx.Err() != nil {
		return nil // nobody wants it any more, or the server stops
	}
	a.log.Warn("model call failed", "error", err)
	message := parley.MessageOf(err)
	if parley.CodeOf(err) == parley.CodeInternal {
		message = "The model could not answer."
	}
	return parley.ModelFailed{Code: parley.CodeModel, Message: message}
}

func mayHelp(err error) bool {
	code := parley.CodeOf(err)
	return code == parley.CodeOverloaded || code == parley.CodeUnavailable
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
