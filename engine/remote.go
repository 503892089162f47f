package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/port"
)

// errNoRemotes is returned if a log names a remote agent, and this server has none.
var errNoRemotes = parley.Errorf(parley.CodeUnavailable, "This server is not set up for remote agents.")

// callRemote carries out a turn of a remote agent. It takes no slot of the
// model calls: it may wait for a person for a day, and costs only a goroutine.
func (a *actor) callRemote(ctx context.Context, step parley.CallModel, b *stepInput) parley.ReportBody {
	// It holds no quota while it runs: its usage is not known before, and it may wait for a person for a day.
	if err := a.engine.checkQuotas(ctx, a.tenant, a.owner); err != nil {
		return a.modelFailed(ctx, step.Run, err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if s := step.Agent.Seconds; s > 0 {
		// A remote turn has no boundaries between steps at which the limit could be checked.
		late := parley.Errorf(parley.CodeBudget, "The run took longer than the %d seconds it may take.", s)
		timer := time.AfterFunc(time.Duration(s)*time.Second, func() { stop(late) })
		defer timer.Stop()
	}
	r := &remoteTurn{actor: a, step: step, stop: stop, brief: b}
	r.guard = a.guardOutput(b.out.say)
	defer func() { // also if it panics
		stop(nil)
		r.follower.Wait()
		r.guard.flush()
	}()
	ended, err := r.perform(ctx)
	r.guard.flush()
	if cause := context.Cause(ctx); errors.Is(err, context.Canceled) && parley.CodeOf(cause) != parley.CodeInternal {
		err = cause
	}
	switch {
	case errors.Is(err, errLeaked):
		a.log.Warn("a remote agent said its canary; the session is halted", "run", step.Run, "agent",
			step.Agent.Name)
		return parley.CanaryLeaked{}
	case errors.Is(err, context.Canceled):
		return nil // the turn is no longer wanted, or the server stops
	case err != nil:
		a.log.Warn("a remote agent failed", "run", step.Run, "agent", step.Agent.Name, "error", err)
		if parley.CodeOf(err) == parley.CodeInternal {
			return parley.ModelFailed{Code: parley.CodeModel, Message: "The agent could not answer."}
		}
		return parley.ModelFailed{Code: parley.CodeOf(err), Message: r.clean(parley.MessageOf(err), parley.MaxNote)}
	}
	return ended
}

// A remoteTurn is one turn of a remote agent. Everything that the agent sends
// passes the same filters as the output of models and tools.
type remoteTurn struct {
	*actor
	step      parley.CallModel
	agent     parley.Agent
	stop      context.CancelCauseFunc
	brief     *stepInput
	guard     *outputGuard
	said      int // bytes of text
	calls     int
	following bool // the agent has asked for a call, so the log is followed

	follower sync.WaitGroup // for the goroutine that follows the log
}

func (r *remoteTurn) report(body parley.ReportBody) {
	r.send(r.step, r.brief.out, parley.Report{Run: r.step.Run, Turn: r.step.Turn, Body: body})
}

func (r *remoteTurn) perform(ctx context.Context) (parley.ReportBody, error) {
	if r.engine.Remotes == nil {
		return nil, errNoRemotes
	}
	var request port.RemoteRequest
	err := r.retry(ctx, func() (err error) {
		request, err = r.request(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.agent = request.Agent
	answer, err := r.engine.Remotes.Ask(ctx, request)
	if err != nil {
		return nil, err
	}
	for said, err := range answer.Said() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && r.guard.check(otherText(said)) != nil {
			err = errLeaked
		}
		if err != nil {
			if r.guard.check(parley.MessageOf(err)) != nil {
				err = errLeaked
			}
			return nil, err
		}
		switch {
		case said.Done:
			return parley.ModelEnded{Stop: cmp.Or(said.End.Stop, parley.StopEnd), Usage: said.End.Usage,
				Context: said.End.Context}, nil
		case said.Halt != nil:
			r.log.Warn("a remote agent halts its session", "agent", r.agent.Name)
			return parley.RemoteHalted{Reason: r.haltReason(said.Halt.Reason)}, nil
		case said.Text != "":
			err = r.writeText(parley.Text, said.Text)
		case said.Thinking != "":
			err = r.writeText(parley.Thinking, said.Thinking)
		default:
			err = r.handleFrame(ctx, answer, said)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, parley.Errorf(parley.CodeInterrupted, "The agent stopped in the middle of its answer.")
}

func (r *remoteTurn) writeText(kind parley.OutputKind, text string) error {
	if r.said += len(text); r.said > parley.MaxOutput {
		return parley.Errorf(parley.CodeTooLarge, "The answer is longer than %d bytes, the limit of "+
			"one turn.", parley.MaxOutput)
	}
	return r.guard.write(kind, text)
}

// otherText returns the text of a frame that does not pass through the outputGuard.
func otherText(s port.RemoteSaid) string {
	switch {
	case s.Tool != nil:
		return strings.Join([]string{s.Tool.Name, s.Tool.Arguments, s.Tool.Result, s.Tool.Blocked}, "\n")
	case s.Approval != nil:
		return strings.Join([]string{s.Approval.Name, s.Approval.Arguments, s.Approval.Connector, s.Approval.Risk,
			s.Approval.Target}, "\n")
	case s.Began != nil:
		return s.Began.Name + "\n" + s.Began.Arguments
	case s.Call != nil:
		return s.Call.Name + "\n" + s.Call.Arguments
	case s.Plan != nil:
		return parley.Plan{Summary: s.Plan.Summary, Items: s.Plan.Items}.String()
	}
	return s.Trouble
}

// request returns the request for the agent, with the conversation.
func (r *remoteTurn) request(ctx context.Context) (port.RemoteRequest, error) {
	agent, messages, err := r.turnInput(ctx, r.step, r.brief)
	if err != nil {
		return port.RemoteRequest{}, err
	}
	request := port.RemoteRequest{Tenant: r.tenant, Session: r.session, Agent: agent,
		Context: r.userContext(ctx, agent.Name), Messages: messages, Root: r.currentProject().Root}
	if !parley.IsBlank(agent.Instructions) {
		request.Instructions = r.guard.instructions(agent.Instructions)
	}
	if r.guard.canary != nil {
		request.Canary = r.guard.canary.Word()
	}
	return request, nil
}

// handleFrame handles a frame that is not text. Text that was held back goes out before it.
func (r *remoteTurn) handleFrame(ctx context.Context, answer port.RemoteAnswer, said port.RemoteSaid) error {
	r.guard.flush()
	if said.Tool == nil || said.Tool.Key == "" { // with a key it was counted when it began
		r.calls++
	}
	if r.calls > parley.MaxRemoteCalls {
		return parley.Errorf(parley.CodeTooLarge, "The agent reported more than %d things in one turn.",
			parley.MaxRemoteCalls)
	}
	switch {
	case said.Tool != nil:
		r.tool(ctx, *said.Tool)
	case said.Began != nil:
		b := *said.Began
		b.Name, b.Arguments = r.name(b.Name), r.arguments(b.Arguments)
		r.report(b)
	case said.Approval != nil:
		r.approval(ctx, answer, *said.Approval)
	case said.Call != nil:
		r.call(ctx, answer, *said.Call)
	case said.Drop != "":
		r.report(parley.RemoteDropped{Key: said.Drop})
	case said.Plan != nil:
		r.report(parley.RemotePlanned{PlanUpdate: r.plan(*said.Plan)})
	case said.Trouble != "":
		r.report(parley.RemoteTrouble{Message: r.clean(said.Trouble, parley.MaxNote)})
	}
	return nil
}

func (r *remoteTurn) tool(ctx context.Context, t parley.RemoteTool) {
	t.Name, t.Arguments = r.name(t.Name), r.arguments(t.Arguments)
	if t.Blocked != "" {
		t.Blocked = r.clean(t.Blocked, parley.MaxNote)
		r.report(t)
		return
	}
	if ended, ok := r.toolEnded(ctx, port.ToolResult{Text: parley.CleanText(t.Result),
		Failed: t.Outcome == parley.CallFailed}, nil).(parley.ToolEnded); ok {
		t.Outcome, t.Result, t.Finding = ended.Outcome, ended.Result, ended.Finding
	}
	r.report(t)
	if !r.mayUse(t.Name) {
		r.log.Warn("a remote agent used a tool that is not in its list", "agent", r.agent.Name, "tool", t.Name)
		r.report(parley.RemoteTrouble{Message: fmt.Sprintf("The agent used %s, which is not in its list of tools.",
			t.Name)})
	}
}

// approval asks a person to approve a call, unless the call cannot be allowed.
func (r *remoteTurn) approval(ctx context.Context, answer port.RemoteAnswer, ask port.RemoteApproval) {
	name := r.name(ask.Name)
	refuse := func(reason string) {
		r.report(parley.RemoteTool{Name: name, Blocked: reason})
		answer.Decide(port.RemoteDecision{Key: ask.Key, Note: reason})
	}
	switch {
	case !r.mayUse(name) || name != ask.Name:
		refuse(fmt.Sprintf("%s is not in the agent's list of tools", name))
		return
	case len(ask.Arguments) > parley.MaxArguments:
		refuse(fmt.Sprintf("the arguments of a call have at most %d bytes", parley.MaxArguments))
		return
	case parley.CleanText(ask.Arguments) != ask.Arguments:
		refuse("the arguments contain characters that cannot be shown")
		return
	case r.engine.Screen != nil && r.engine.Screen.HasSecret(r.tenant, ask.Arguments):
		refuse("the arguments contain a secret of the server or of an MCP server")
		return
	}
	r.startFollowing(ctx, answer)
	r.report(parley.RemoteAsked{Key: ask.Key, Name: name, Arguments: ask.Arguments, Show: r.show(ask),
		Digest:  r.digest(ask),
		Expires: r.engine.Now().Add(r.engine.CardLife).UTC().Truncate(time.Microsecond)})
}

// call makes the server carry out a tool call for the agent, as policy and people allow.
func (r *remoteTurn) call(ctx context.Context, answer port.RemoteAnswer, c port.RemoteCall) {
	r.startFollowing(ctx, answer)
	r.report(parley.RemoteCalls{CallAsked: r.judge(ctx, r.agent, nil, parley.MessageCall{Provider: c.Key, Name: c.Name,
		Arguments: c.Arguments})})
}

// startFollowing starts to tell the agent what the log says about the calls it asked for.
func (r *remoteTurn) startFollowing(ctx context.Context, answer port.RemoteAnswer) {
	if r.following {
		return
	}
	r.following = true
	r.follower.Add(1)
	r.engine.wg.Go(func() {
		defer r.follower.Done()
		if err := r.followLog(ctx, answer); err != nil && ctx.Err() == nil {
			r.log.Error("the decisions about calls of a remote agent cannot be read", "error", err)
			r.stop(parley.Errorf(parley.CodeInterrupted, "The decision of a person could not be passed on."))
		}
	})
}

func (r *remoteTurn) plan(p parley.PlanUpdate) parley.PlanUpdate {
	said := parley.PlanUpdate{Summary: r.clean(p.Summary, parley.MaxNote)}
	for _, item := range p.Items[:min(len(p.Items), maxPlanItems)] {
		said.Items = append(said.Items, parley.PlanItem{Title: r.clean(item.Title, parley.MaxName*4),
			Description: r.clean(item.Description, parley.MaxNote), Status: item.Status})
	}
	return said
}

const maxPlanItems = 64 // of a remote agent

// show returns the text that a person sees. The arguments are in it byte for
// byte, because the approval covers exactly these.
func (r *remoteTurn) show(ask port.RemoteApproval) string {
	show := ask.Name
	for _, about := range []struct{ what, text string }{{"of", ask.Connector}, {"on", ask.Target},
		{"risk:", ask.Risk}} {
		if about.text != "" {
			show += " " + about.what + " " + r.clean(about.text, parley.MaxName)
		}
	}
	return show + "\n\n" + ask.Arguments
}

func (r *remoteTurn) digest(ask port.RemoteApproval) string {
	h := sha256.New()
	for _, part := range []string{r.agent.Name, r.agent.Address, ask.Connector, ask.Name, ask.Target, ask.Arguments} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

// followLog follows the session's own log and tells the agent what happened to
// the calls it asked for. The log has each outcome first, and once.
func (r *remoteTurn) followLog(ctx context.Context, answer port.RemoteAnswer) error {
	f := r.engine.Feed.Session(r.tenant, r.session, parley.Seq(r.step.Turn))
	defer f.Close()
	open := map[parley.CallID]*followedCall{}
	for {
		items, err := f.Next(ctx)
		if err != nil {
			return err
		}
		for _, i := range items {
			if b, ok := i.Body.(parley.ToolCallRequested); ok && b.Provider != "" {
				open[parley.CallID(i.Seq)] = &followedCall{key: b.Provider, made: b.Made, card: i.Seq}
				continue
			}
			call := callOf(i.Body)
			if ask := open[call]; ask != nil && ask.tellAgent(r.session, answer, i.Event) {
				delete(open, call)
			}
		}
	}
}

// callOf returns the call of an event that tellAgent handles; zero: none.
func callOf(body parley.EventBody) parley.CallID {
	switch b := body.(type) {
	case parley.ApprovalRequested:
		return b.Call
	case parley.ApprovalDecided:
		return b.Call
	case parley.ToolCallStarted:
		return b.Call
	case parley.ToolOutputAppended:
		return b.Call
	case parley.ToolCallBlocked:
		return b.Call
	case parley.ToolCallFinished:
		return b.Call
	}
	return 0
}

// A followedCall is a call that a remote agent wants a person to allow, or the server to make.
type followedCall struct {
	key  string
	made bool // the server makes the call
	card parley.Seq
	note string
}

// tellAgent tells the agent what an event says about the call, and reports whether
// the call is over.
func (ask *followedCall) tellAgent(session parley.SessionID, answer port.RemoteAnswer, e parley.Event) (over bool) {
	ended := func(outcome parley.CallOutcome, text string, exit *int) {
		answer.Made(port.RemoteMade{Key: ask.key, Ended: &port.RemoteResult{Outcome: outcome, Text: text,
			Exit: exit}})
	}
	switch b := e.Body.(type) {
	case parley.ApprovalRequested:
		ask.card = e.Seq
	case parley.ApprovalDecided:
		ask.note = b.Note
	case parley.ToolCallStarted:
		if ask.made {
			answer.Made(port.RemoteMade{Key: ask.key, Started: true})
			return false
		}
		answer.Decide(port.RemoteDecision{Key: ask.key, Card: parley.Ref(session, ask.card), Allowed: true,
			Note: ask.note})
		return true
	case parley.ToolOutputAppended:
		answer.Made(port.RemoteMade{Key: ask.key, Printed: b.Text})
	case parley.ToolCallBlocked:
		ended(parley.CallFailed, b.Reason, nil)
		return true
	case parley.ToolCallFinished:
		if ask.made {
			ended(b.Outcome, b.Printed(), b.Exit)
		} else {
			answer.Decide(port.RemoteDecision{Key: ask.key, Card: parley.Ref(session, ask.card), Note: b.Result})
		}
		return true
	}
	return false
}

func (r *remoteTurn) mayUse(tool string) bool {
	list := r.agent.Tools
	return list == nil || slices.Contains(list, "*") || slices.Contains(list, tool)
}

// clean returns a text of the agent as it may be shown: without secrets and
// control characters, and cut to most bytes.
func (r *remoteTurn) clean(text string, most int) string {
	return shorten(parley.CleanText(r.redacted(strings.ToValidUTF8(text, "\uFFFD"))), most)
}

func (r *remoteTurn) name(name string) string {
	if name = r.clean(name, parley.MaxName); parley.IsBlank(name) {
		return "unnamed"
	}
	return name
}

func (r *remoteTurn) arguments(text string) string {
	if text == "" || len(text) > parley.MaxArguments {
		return ""
	}
	return r.clean(text, parley.MaxArguments)
}

// haltReason returns the reason for a halt in the agent's words. A reason that is blank or holds the canary is
// replaced.
func (r *remoteTurn) haltReason(reason string) string {
	if reason = r.clean(reason, parley.MaxName); parley.IsBlank(reason) || r.guard.check(reason) != nil {
		return parley.CanaryLeak
	}
	return reason
}
