package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley"
	"parley/port"
)

// modelSlot waits until one more model may be called. The caller gives the slot back
// by release.
func (e *Engine) modelSlot(ctx context.Context) (release func(), err error) {
	select {
	case e.modelSlots <- struct{}{}:
		return func() { <-e.modelSlots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// askModel makes a model call that is not a turn of the conversation. The text of
// the answer goes to gather, chunk by chunk; nothing else of it is reported or
// recorded.
func (a *actor) askModel(
	ctx context.Context, b *stepInput, request port.ModelRequest, agent parley.Agent, gather func(text string),
) (parley.ModelEnded, error) {
	_, release, err := a.beginCall(ctx, b, func() (port.ModelRequest, error) { return request, nil })
	if err != nil {
		return parley.ModelEnded{}, err
	}
	defer release()
	ended, err := a.stream(ctx, request, agent, func(kind parley.OutputKind, text string) {
		if kind == parley.Text {
			gather(text)
		}
	}, func(parley.ReportBody) {})
	if err != nil {
		b.settleHold() // the call may be retried, and must not wait for its own hold
	}
	return ended, err
}

// callModel makes the model call of a turn. If the model fails after part of
// the answer was shown, only Decide knows what to do.
func (a *actor) callModel(ctx context.Context, step parley.CallModel, b *stepInput) parley.ReportBody {
	tell := func(body parley.ReportBody) {
		a.send(step, b.out, parley.Report{Run: step.Run, Turn: step.Turn, Body: body})
	}
	var agent parley.Agent
	request, release, err := a.beginCall(ctx, b, func() (request port.ModelRequest, err error) {
		err = a.retry(ctx, func() (err error) {
			request, agent, err = a.request(ctx, step, b)
			return err
		})
		return request, err
	})
	if err != nil {
		return a.modelFailed(ctx, step.Run, err)
	}
	defer release()
	ended, err := a.stream(ctx, request, agent, b.out.say, tell)
	switch {
	case errors.Is(err, errLeaked):
		a.log.Warn("the model said its canary; the session is halted", "run", step.Run)
		return parley.CanaryLeaked{}
	case err != nil:
		return a.withUsage(a.modelFailed(ctx, step.Run, err), ended.Usage, b)
	}
	ended.Prompt = request.Digest()
	return ended
}

func (a *actor) request(ctx context.Context, step parley.CallModel, b *stepInput) (port.ModelRequest, parley.Agent,
	error) {
	agent, messages, err := a.turnInput(ctx, step, b)
	if err != nil {
		return port.ModelRequest{}, agent, err
	}
	specs, caller, err := a.withClientTools(ctx, agent, b.offers)
	if err != nil {
		return port.ModelRequest{}, agent, err
	}
	return port.ModelRequest{
		Model: agent.Model,
		Instructions: a.withUserContext(ctx,
			instructionsFor(agent, step.Mode, b.plan)+a.delegateList(agent)+a.skillsFor(agent), agent.Name),
		Messages: messages,
		Tools:    toolsIn(specs, step.Mode),
		Fallback: agent.Fallback,
	}, caller, nil
}

// stream makes one model call and enforces the limits of a turn.
//
// The usage of a call that ends with an error is estimated.
func (a *actor) stream(ctx context.Context, request port.ModelRequest, agent parley.Agent,
	say func(parley.OutputKind, string), tell func(parley.ReportBody)) (ended parley.ModelEnded, err error) {
	if request.Model == "" && agent.Elsewhere() {
		return ended, parley.Errorf(parley.CodeModel, "This agent is remote, and its file names no model for the "+
			"calls that the server makes itself, such as explanations and summaries.")
	}
	said := 0
	defer func() {
		if err != nil {
			ended.Usage = a.estimate(request, ended.Calls, said)
		}
	}()
	guard := a.guardOutput(say)
	defer guard.flush()
	request.Instructions = guard.instructions(request.Instructions)
	for s, err := range a.engine.Model.Stream(ctx, request) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return ended, err
		}
		if said += len(s.Text) + len(s.Thinking); said > parley.MaxOutput {
			return ended, parley.Errorf(parley.CodeTooLarge, "The answer is longer than %d bytes, the limit of "+
				"one turn.", parley.MaxOutput)
		}
		switch {
		case s.FellBack != nil:
			tell(a.fallingBack(*s.FellBack))
		case s.Retry != nil:
			tell(a.retrying(*s.Retry))
		case s.Text != "":
			if err := guard.write(parley.Text, s.Text); err != nil {
				return ended, err
			}
		case s.Thinking != "":
			if err := guard.write(parley.Thinking, s.Thinking); err != nil {
				return ended, err
			}
		case s.Call != nil:
			if err := guard.check(s.Call.Name + s.Call.Arguments); err != nil {
				return ended, err
			}
			switch n := len(ended.Calls); {
			case n < parley.MaxCalls:
				ended.Calls = append(ended.Calls, a.judge(ctx, agent, request.Tools, *s.Call))
			case n == parley.MaxCalls: // one entry for all further calls
				ended.Calls = append(ended.Calls, excessCall(*s.Call))
			}
		case s.Done != nil:
			ended.Stop, ended.Usage, ended.Memo = s.Done.Stop, s.Done.Usage, s.Done.Memo
			ended.Context = a.measure(request, ended.Usage, said)
			if ended.Usage.Input+ended.Usage.Output == 0 {
				ended.Usage = a.estimate(request, ended.Calls, said)
			}
			if ended.Memo != nil {
				return ended, guard.check(string(ended.Memo.Data))
			}
			return ended, nil
		}
	}
	return ended, parley.Errorf(parley.CodeUnavailable, "The model stopped in the middle of its answer.")
}

// excessCall returns a blocked call that stands for all calls beyond the limit of
// a turn.
func excessCall(c parley.MessageCall) parley.CallAsked {
	return parley.CallAsked{Name: toolName(c.Name), Arguments: "{}", Provider: strings.ToValidUTF8(c.Provider, "\uFFFD"),
		Verdict: parley.Verdict{Kind: parley.VerdictBlock,
			Reason: fmt.Sprintf("a turn has at most %d calls; this one, and all that came after it, were left out",
				parley.MaxCalls)}}
}

// toolName returns the name of a tool, cut to MaxName bytes and made valid UTF-8.
func toolName(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), parley.MaxName)], "\uFFFD")
}

// judge asks policy about a call. A call that cannot be stored byte for byte is
// blocked: after a restart it would differ from what was approved.
func (a *actor) judge(ctx context.Context, agent parley.Agent, offered []parley.ToolSpec, c parley.MessageCall,
) parley.CallAsked {
	asked := parley.CallAsked{Name: c.Name, Arguments: c.Arguments, Provider: c.Provider,
		Expires: a.engine.Now().Add(a.engine.CardLife).UTC().Truncate(time.Microsecond)}
	switch {
	case !utf8.ValidString(c.Name + c.Arguments + c.Provider):
		asked.Name, asked.Provider = strings.ToValidUTF8(c.Name, "\uFFFD"), strings.ToValidUTF8(c.Provider, "\uFFFD")
		asked.Arguments = strings.ToValidUTF8(c.Arguments, "\uFFFD")
		asked.Verdict = parley.Verdict{Kind: parley.VerdictBlock, Reason: "the call is not valid UTF-8"}
	case len(c.Name) > parley.MaxName || len(c.Arguments) > parley.MaxArguments:
		asked.Name, asked.Arguments = toolName(c.Name), "{}"
		asked.Verdict = parley.Verdict{Kind: parley.VerdictBlock,
			Reason: fmt.Sprintf("the name of a tool has at most %d bytes, and its arguments %d", parley.MaxName,
				parley.MaxArguments)}
	case a.engine.Screen != nil && a.engine.Screen.HasSecret(a.tenant, c.Arguments):
		// An approval covers the arguments byte for byte, so the secret cannot
		// be redacted. The call is blocked and the arguments are not stored.
		asked.Arguments = "{}"
		asked.Verdict = parley.Verdict{Kind: parley.VerdictBlock,
			Reason: "the arguments contain a secret of the server or of an MCP server"}
	case slices.ContainsFunc(offered, func(s parley.ToolSpec) bool { return s.Client && s.Name == c.Name }):
		asked.Verdict = parley.Verdict{Kind: parley.VerdictClient, Class: parley.Effectful}
	default:
		asked.Verdict = a.tools(ctx).Judge(agent, c.Name, c.Arguments)
	}
	if v := asked.Verdict; v.Kind == parley.VerdictChild {
		other, err := a.mayDelegate(agent, v.Agent)
		if asked.Verdict.Remote = other.Elsewhere(); err != nil {
			asked.Verdict = parley.Verdict{Kind: parley.VerdictBlock, Reason: parley.MessageOf(err)}
		}
	}
	return asked
}

// withUsage adds the estimated usage of a call that ended with an error to its report, if there are quotas. Otherwise a
// user could use more than a quota by cancelling runs. A call that fails before any output is free.
func (a *actor) withUsage(body parley.ReportBody, used parley.Usage, b *stepInput) parley.ReportBody {
	failed, ok := body.(parley.ModelFailed)
	switch {
	case b.settle == nil: // no quotas
	case ok && used.Output > 0:
		failed.Usage = used
		return failed
	case body == nil && a.engine.ctx.Err() == nil: // the run was cancelled
		return parley.ModelFailed{Usage: used}
	}
	return body
}

func (a *actor) modelFailed(ctx context.Context, run parley.RunID, err error) parley.ReportBody {
	if ctx.Err() != nil {
		return nil // the call is no longer wanted, or the server stops
	}
	a.log.Warn("model call failed", "run", run, "error", err)
	if parley.CodeOf(err) == parley.CodeInternal {
		return parley.ModelFailed{Code: parley.CodeModel, Message: "The model could not answer."}
	}
	return parley.ModelFailed{Code: parley.CodeOf(err), Message: a.quotedError(err), Vendor: a.vendorError(err)}
}

// vendorError returns the vendor's error, without secrets and cut to a limit.
func (a *actor) vendorError(err error) *parley.VendorError {
	e, ok := errors.AsType[*parley.Error](err)
	if !ok || e.Vendor == nil {
		return nil
	}
	return &parley.VendorError{Status: e.Vendor.Status, Message: a.quoted(e.Vendor.Message)}
}

// retrying returns a retry without secrets and cut to a limit.
func (a *actor) retrying(r parley.Retrying) parley.Retrying {
	r.Problem = a.quoted(r.Problem)
	return r
}

// fallingBack returns a fallback whose reason has no secrets and is cut to a limit.
func (a *actor) fallingBack(f parley.FellBack) parley.FellBack {
	f.Reason = a.quoted(f.Reason)
	return f
}

// quoted returns text from outside without the server's secrets, cut to
// MaxVendorError.
func (a *actor) quoted(text string) string { return shorten(a.redacted(text), parley.MaxVendorError) }

// quotedError returns the message of an error, which may quote a vendor.
func (a *actor) quotedError(err error) string { return a.quoted(parley.MessageOf(err)) }
