package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
)

// errNoRemotes: a log can name an agent elsewhere on a server that reaches none.
var errNoRemotes = parley.Errorf(parley.CodeUnavailable, "This server does not reach agents that run elsewhere.")

// callRemote has an agent that runs elsewhere speak a turn. It takes no slot of
// the models': it may wait for a person for a day, and costs a goroutine.
func (a *actor) callRemote(ctx context.Context, step parley.CallModel, b *brief) parley.ReportBody {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if s := step.Agent.Seconds; s > 0 {
		// No boundary comes in between at which it could be found out.
		late := parley.Errorf(parley.CodeBudget, "The run took longer than the %d seconds it may take.", s)
		timer := time.AfterFunc(time.Duration(s)*time.Second, func() { stop(late) })
		defer timer.Stop()
	}
	r := &remoteTurn{actor: a, step: step, stop: stop, brief: b}
	r.mouth = a.mouth(b.out.say)
	defer func() { // also if it panics
		stop(nil)
		r.waiting.Wait()
		r.mouth.rest()
	}()
	ended, err := r.perform(ctx)
	r.mouth.rest()
	if cause := context.Cause(ctx); errors.Is(err, context.Canceled) && parley.CodeOf(cause) != parley.CodeInternal {
		err = cause
	}
	switch {
	case errors.Is(err, errLeaked):
		a.log.Warn("an agent elsewhere said its canary; the session is halted", "agent", step.Agent.Name)
		return parley.CanaryLeaked{}
	case errors.Is(err, context.Canceled):
		return nil // nobody wants it any more, or the server stops
	case err != nil:
		a.log.Warn("an agent elsewhere failed", "agent", step.Agent.Name, "error", err)
		if parley.CodeOf(err) == parley.CodeInternal {
			return parley.ModelFailed{Code: parley.CodeModel, Message: "The agent could not answer."}
		}
		return parley.ModelFailed{Code: parley.CodeOf(err), Message: r.clean(parley.MessageOf(err), parley.MaxNote)}
	}
	return ended
}

// A remoteTurn is one turn of an agent that runs elsewhere. Whatever it sends is
// foreign: it passes the same filters as what models and tools say.
type remoteTurn struct {
	*actor
	step  parley.CallModel
	agent parley.Agent
	stop  context.CancelCauseFunc
	brief *brief
	mouth *mouth
	said  int // bytes of text
	calls int
	asked bool // a person was, so the log is followed

	waiting sync.WaitGroup // for who follows it
}

func (r *remoteTurn) tell(body parley.ReportBody) {
	r.send(r.step, r.brief.out, parley.Report{Run: r.step.Run, Turn: r.step.Turn, Body: body})
}

func (r *remoteTurn) perform(ctx context.Context) (parley.ReportBody, error) {
	if r.engine.Remotes == nil {
		return nil, errNoRemotes
	}
	var request parley.RemoteRequest
	err := r.patiently(ctx, func() (err error) {
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
		if err == nil && r.mouth.check(words(said)) != nil {
			err = errLeaked
		}
		if err != nil {
			if r.mouth.check(parley.MessageOf(err)) != nil {
				err = errLeaked
			}
			return nil, err
		}
		switch {
		case said.Done:
			return parley.ModelEnded{Stop: parley.StopEnd}, nil
		case said.Halt != nil:
			r.log.Warn("an agent elsewhere halts its session", "agent", r.agent.Name)
			return parley.RemoteHalted{Reason: r.haltReason(said.Halt.Reason)}, nil
		case said.Text != "":
			if r.said += len(said.Text); r.said > parley.MaxOutput {
				return nil, parley.Errorf(parley.CodeTooLarge, "The answer is longer than %d bytes, the limit of "+
					"one turn.", parley.MaxOutput)
			}
			err = r.mouth.speak(parley.Text, said.Text)
		default:
			err = r.other(ctx, answer, said)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, parley.Errorf(parley.CodeInterrupted, "The agent stopped in the middle of its answer.")
}

// words is everything in what was said that is not let out by the mouth.
func words(s parley.RemoteSaid) string {
	switch {
	case s.Tool != nil:
		return strings.Join([]string{s.Tool.Name, s.Tool.Arguments, s.Tool.Result, s.Tool.Blocked}, "\n")
	case s.Approval != nil:
		return strings.Join([]string{s.Approval.Name, s.Approval.Arguments, s.Approval.Connector, s.Approval.Risk,
			s.Approval.Target}, "\n")
	}
	return s.Trouble
}

// request is the conversation, as the agent is given it.
func (r *remoteTurn) request(ctx context.Context) (parley.RemoteRequest, error) {
	agent, messages, err := r.recallTurn(ctx, r.step, r.brief)
	if err != nil {
		return parley.RemoteRequest{}, err
	}
	request := parley.RemoteRequest{Tenant: r.tenant, Session: r.session, Agent: agent,
		Context: r.known(ctx, agent.Name), Messages: messages}
	if !parley.IsBlank(agent.Instructions) {
		request.Instructions = r.mouth.instructions(agent.Instructions)
	}
	if r.mouth.canary != nil {
		request.Canary = r.mouth.canary.Word()
	}
	return request, nil
}

// other takes what is no text. What was said before it comes before it.
func (r *remoteTurn) other(ctx context.Context, answer parley.RemoteAnswer, said parley.RemoteSaid) error {
	r.mouth.rest()
	if r.calls++; r.calls > parley.MaxRemoteCalls {
		return parley.Errorf(parley.CodeTooLarge, "The agent reported more than %d things in one turn.",
			parley.MaxRemoteCalls)
	}
	switch {
	case said.Tool != nil:
		r.tool(ctx, *said.Tool)
	case said.Approval != nil:
		r.approval(ctx, answer, *said.Approval)
	case said.Trouble != "":
		r.tell(parley.RemoteTrouble{Message: r.clean(said.Trouble, parley.MaxNote)})
	}
	return nil
}

func (r *remoteTurn) tool(ctx context.Context, t parley.RemoteTool) {
	t.Name, t.Arguments = r.name(t.Name), r.arguments(t.Arguments)
	if t.Blocked != "" {
		t.Blocked = r.clean(t.Blocked, parley.MaxNote)
		r.tell(t)
		return
	}
	if ended, ok := r.toolEnded(ctx, parley.ToolResult{Text: parley.CleanText(t.Result),
		Failed: t.Outcome == parley.CallFailed}, nil).(parley.ToolEnded); ok {
		t.Outcome, t.Result, t.Finding = ended.Outcome, ended.Result, ended.Finding
	}
	r.tell(t)
	if !r.mayUse(t.Name) {
		r.log.Warn("an agent elsewhere used a tool that is not in its list", "agent", r.agent.Name, "tool", t.Name)
		r.tell(parley.RemoteTrouble{Message: fmt.Sprintf("The agent used %s, which is not in its list of tools.",
			t.Name)})
	}
}

// approval has a person asked, unless nobody could allow it.
func (r *remoteTurn) approval(ctx context.Context, answer parley.RemoteAnswer, ask parley.RemoteApproval) {
	name := r.name(ask.Name)
	refuse := func(reason string) {
		r.tell(parley.RemoteTool{Name: name, Blocked: reason})
		answer.Decide(parley.RemoteDecision{Key: ask.Key, Note: reason})
	}
	switch {
	case !r.mayUse(name) || name != ask.Name:
		refuse(fmt.Sprintf("%s is not in the agent's list of tools", name))
		return
	case len(ask.Arguments) > parley.MaxArguments:
		refuse(fmt.Sprintf("the arguments of a call have at most %d bytes", parley.MaxArguments))
		return
	case parley.CleanText(ask.Arguments) != ask.Arguments:
		refuse("the arguments cannot be shown as they are")
		return
	case r.engine.Screen != nil && r.engine.Screen.HasSecret(ask.Arguments):
		refuse("the arguments hold one of the server's own secrets")
		return
	}
	if !r.asked {
		r.asked = true
		r.waiting.Add(1)
		r.engine.wg.Go(func() {
			defer r.waiting.Done()
			if err := r.heedPeople(ctx, answer); err != nil && ctx.Err() == nil {
				r.log.Error("what a person decided cannot be read", "error", err)
				r.stop(parley.Errorf(parley.CodeInterrupted, "What a person decided could not be passed on."))
			}
		})
	}
	r.tell(parley.RemoteAsked{Key: ask.Key, Name: name, Arguments: ask.Arguments, Show: r.show(ask),
		Digest:  r.digest(ask),
		Expires: r.engine.Now().Add(r.engine.CardLife).UTC().Truncate(time.Microsecond)})
}

// show is what the agent asks for, with the arguments byte for byte: they are
// what it is given back if a person agrees.
func (r *remoteTurn) show(ask parley.RemoteApproval) string {
	show := ask.Name
	for _, about := range []struct{ what, text string }{{"of", ask.Connector}, {"on", ask.Target},
		{"risk:", ask.Risk}} {
		if about.text != "" {
			show += " " + about.what + " " + r.clean(about.text, parley.MaxName)
		}
	}
	return show + "\n\n" + ask.Arguments
}

func (r *remoteTurn) digest(ask parley.RemoteApproval) string {
	h := sha256.New()
	for _, part := range []string{r.agent.Name, r.agent.Address, ask.Connector, ask.Name, ask.Target, ask.Arguments} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

// heedPeople follows the session's own log and tells the agent what became of
// what it asked for. The log knows it first, and once.
func (r *remoteTurn) heedPeople(ctx context.Context, answer parley.RemoteAnswer) error {
	f := r.engine.Feed.Session(r.tenant, r.session, parley.Seq(r.step.Turn))
	defer f.Close()
	type asked struct {
		key  string
		card parley.Seq
		note string
	}
	open := map[parley.CallID]*asked{}
	for {
		items, err := f.Next(ctx)
		if err != nil {
			return err
		}
		for _, i := range items {
			switch b := i.Body.(type) {
			case parley.ToolCallRequested:
				if b.Provider != "" {
					open[parley.CallID(i.Seq)] = &asked{key: b.Provider, card: i.Seq}
				}
			case parley.ApprovalRequested:
				if ask := open[b.Call]; ask != nil {
					ask.card = i.Seq
				}
			case parley.ApprovalDecided:
				if ask := open[b.Call]; ask != nil {
					ask.note = b.Note
				}
			case parley.ToolCallStarted:
				if ask := open[b.Call]; ask != nil {
					answer.Decide(parley.RemoteDecision{Key: ask.key, Card: parley.Ref(r.session, ask.card),
						Allowed: true, Note: ask.note})
					delete(open, b.Call)
				}
			case parley.ToolCallFinished:
				if ask := open[b.Call]; ask != nil {
					answer.Decide(parley.RemoteDecision{Key: ask.key, Card: parley.Ref(r.session, ask.card),
						Note: b.Result})
					delete(open, b.Call)
				}
			}
		}
	}
}

func (r *remoteTurn) mayUse(tool string) bool {
	list := r.agent.Tools
	return list == nil || slices.Contains(list, "*") || slices.Contains(list, tool)
}

// clean is a text of the agent that may be shown: no secrets, no controls, no
// more of it than is of use.
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

// haltReason is the agent's word for it. What it found is not in it.
func (r *remoteTurn) haltReason(reason string) string {
	if reason = r.clean(reason, parley.MaxName); parley.IsBlank(reason) || r.mouth.check(reason) != nil {
		return parley.CanaryLeak
	}
	return reason
}
