package main

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/google/uuid"

	"parley"
	"parley/client"
	"parley/dialect"
	"parley/dialect/acp"
	"parley/port"
	"parley/transport/jsonrpc"
)

// modeAct is the editor's name of the mode in which runs do more than plan.
const modeAct = "act"

// An acpSession is a session that an editor has open. One goroutine follows its log.
type acpSession struct {
	*editor
	id     parley.SessionID
	own    string // prefix of the request ids of its prompts
	head   parley.Seq
	show   bool // also show the earlier messages
	ctx    context.Context
	stop   context.CancelFunc
	caught chan struct{} // closed when everything up to head was shown
	gone   chan struct{} // closed when run has stopped following the log

	mu      sync.Mutex // guards the fields below; leaf
	mode    string
	prompts map[string]jsonrpc.Answer     // prompts that wait for the end of a run
	asked   map[string]context.CancelFunc // cards that the editor shows
	err     *acp.Error                    // why run stopped following the log
	over    bool                          // prompts are answered no more
}

// follow opens a session for the editor and follows its log from the beginning. If
// the session is already open, it is replaced.
func (e *editor) follow(about port.Summary, show bool) *acpSession {
	s := &acpSession{editor: e, id: about.ID, own: "acp-" + uuid.NewString() + "-", head: about.Head, show: show,
		caught: make(chan struct{}), gone: make(chan struct{}), mode: modeAct, prompts: map[string]jsonrpc.Answer{},
		asked: map[string]context.CancelFunc{}}
	s.ctx, s.stop = context.WithCancel(e.ctx)
	e.mu.Lock()
	before := e.sessions[s.id]
	e.sessions[s.id] = s
	e.mu.Unlock()
	if before != nil {
		before.stop()
		<-before.gone
	}
	e.wg.Go(s.run)
	return s
}

func (s *acpSession) modes() any {
	type mode struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	return map[string]any{"currentModeId": modeAct, "availableModes": []mode{
		{modeAct, "Act", "The agent does what it is asked."},
		{string(parley.ModePlan), "Plan", "The agent proposes a plan and changes nothing."}}}
}

func (s *acpSession) failed() *acp.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return acp.Refused(parley.CodeClosed, "The session was closed.")
	}
	return s.err
}

// run follows the log until the session is closed. If the server cannot be reached,
// run waits for it.
func (s *acpSession) run() {
	defer s.leave()
	f := &acpFollower{acpSession: s, view: s.newView(), open: map[string]acp.Ask{}}
	if s.head == 0 {
		f.catchUp()
	}
	for u, err := range s.patient.Follow(s.ctx, client.Log{Session: s.id, Tree: true}, "") {
		switch {
		case err != nil:
			if s.ctx.Err() == nil {
				s.fail(toEditor(err))
			}
			return
		case u.Lost != nil:
			s.log.Warn("the server is away", "session", s.id, "reason", u.Lost)
		case u.Resync != nil: // every event comes again; the editor has already seen them
			s.log.Warn("the log of the session begins anew", "session", s.id, "reason", u.Resync.Message)
			about, err := s.patient.Session(s.ctx, s.id)
			if err != nil {
				s.fail(toEditor(err))
				return
			}
			f.view, f.again = s.newView(), about.Head
			s.answerAll(
				acp.Refused(parley.CodeResync, "The server was restored, and what became of this is not known."))
		default:
			if over := f.take(u.Event); over {
				return
			}
		}
	}
}

func (s *acpSession) newView() acp.View {
	return acp.View{Notices: dialect.Notices{Console: s.server.Address()}, Session: s.id, Own: s.own}
}

// An acpFollower shows events to an editor.
type acpFollower struct {
	*acpSession
	view  acp.View
	live  bool               // the events are new, not from before the session was opened
	open  map[string]acp.Ask // cards that were open when the session was loaded
	again parley.Seq         // after a resync, events up to here come a second time
}

// take shows an event, and reports whether the session is over.
func (f *acpFollower) take(e parley.Event) (over bool) {
	var frames []dialect.Frame
	f.view, frames = acp.Project(f.view, e)
	repeated := f.again > 0
	if e.Session == f.id && e.Seq >= f.again {
		f.again = 0
	}
	for _, frame := range frames {
		if frame.Close != nil {
			f.fail(acp.Refused(parley.CodeNotFound, "The session was deleted."))
			return true
		}
		if repeated {
			continue
		}
		if f.showFrame(frame.Body) != nil {
			return true
		}
	}
	if !f.live && e.Session == f.id && e.Seq >= f.head {
		f.catchUp()
	}
	return false
}

// catchUp marks the end of the earlier events, and asks the cards that are still
// open.
func (f *acpFollower) catchUp() {
	f.live = true
	close(f.caught)
	for _, ask := range f.open {
		f.ask(ask)
	}
	f.open = nil
}

func (f *acpFollower) showFrame(body any) error {
	if update, ok := acp.Words(body); ok {
		if !f.live && !f.show {
			return nil
		}
		if err := f.conn.Room(f.ctx); err != nil {
			return err
		}
		return f.conn.Notify("session/update", map[string]any{"sessionId": f.id, "update": update})
	}
	switch b := body.(type) {
	case acp.Ask:
		if f.live {
			f.ask(b)
		} else {
			f.open[b.ID] = b
		}
	case acp.Closed:
		delete(f.open, b.ID)
		f.mu.Lock()
		withdraw := f.asked[b.ID]
		f.mu.Unlock()
		if withdraw != nil {
			withdraw()
		}
	case acp.Ended:
		f.answer(b.Request, b.Result, b.Error)
	}
	return nil
}

// expect registers a prompt that waits for its answer. It fails if too many prompts are open, or if the session was
// closed or loaded again in the meantime.
func (s *acpSession) expect(request string, answer jsonrpc.Answer) *jsonrpc.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return asRPC(notOpen(s.id))
	case len(s.prompts) >= parley.MaxQueue:
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "%d prompts of this session are not answered yet.", parley.MaxQueue)
	}
	s.prompts[request] = answer
	return nil
}

// answer answers a prompt, if this editor sent it.
func (s *acpSession) answer(request string, result *acp.Result, err *acp.Error) {
	s.mu.Lock()
	answer := s.prompts[request]
	delete(s.prompts, request)
	s.mu.Unlock()
	if answer != nil {
		answer(result, asRPC(err))
	}
}

// ask asks the editor to show a card. The first answer counts, from the editor or
// from another client.
func (s *acpSession) ask(a acp.Ask) {
	if a.Ask == nil {
		return
	}
	ctx, withdraw := context.WithCancel(s.ctx)
	s.mu.Lock()
	s.asked[a.ID] = withdraw
	s.mu.Unlock()
	s.wg.Go(func() {
		defer withdraw()
		err := s.decide(ctx, a)
		s.mu.Lock()
		delete(s.asked, a.ID)
		s.mu.Unlock()
		if errors.Is(err, io.EOF) { // the editor has closed its end and sends no more answers
			s.answerAll(acp.Refused(parley.CodeUnavailable, "The run waits for an approval or an answer, and the "+
				"editor has closed its end of the pipe. Answer in the console: "+s.server.Address()))
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("a card is still open", "card", a.ID, "reason", err)
		}
	})
}

func (s *acpSession) decide(ctx context.Context, a acp.Ask) error {
	params := struct {
		Session parley.SessionID `json:"sessionId"`
		*acp.Permission
	}{s.id, a.Ask}
	var said struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	if err := s.conn.Call(ctx, "session/request_permission", params, &said); err != nil {
		return err
	}
	if said.Outcome.Outcome == "cancelled" {
		return nil // the editor cancels the prompt
	}
	choice, ok := a.Choice(said.Outcome.Option)
	if !ok {
		return errors.New("the editor chose an option that was not offered")
	}
	var err error
	switch {
	case choice.Answers != nil:
		_, err = s.patient.Answer(ctx, a.ID, choice.Answers)
	case choice.Resolution != "":
		_, err = s.patient.Resolve(ctx, a.ID, choice.Resolution, "")
	default:
		_, err = s.patient.Decide(ctx, a.ID, client.Approval{Decision: choice.Decision, Scope: choice.Scope,
			Digest: a.Digest})
	}
	return err
}

// cancel cancels the open prompts of the editor. If there are none, it cancels the
// current run of the session.
func (s *acpSession) cancel() {
	s.mu.Lock()
	var requests []string
	for request := range s.prompts {
		requests = append(requests, request)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, acpPatience)
	defer cancel()
	var err error
	for _, request := range requests {
		_, failed := s.patient.CancelRequest(ctx, s.id, request)
		err = errors.Join(err, failed)
	}
	if requests == nil {
		_, err = s.patient.Cancel(ctx, s.id)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the run was not cancelled", "session", s.id, "reason", err)
	}
}

// fail records why run stopped following the log.
func (s *acpSession) fail(why *acp.Error) {
	s.mu.Lock()
	s.err = why
	s.mu.Unlock()
}

// leave closes the session in this process. The server's session stays.
func (s *acpSession) leave() {
	s.stop()
	s.editor.mu.Lock()
	if s.sessions[s.id] == s {
		delete(s.sessions, s.id)
	}
	s.editor.mu.Unlock()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.answerAll(s.failed())
	close(s.gone)
}

// answerAll answers every open prompt with an error.
func (s *acpSession) answerAll(why *acp.Error) {
	s.mu.Lock()
	prompts := s.prompts
	s.prompts = map[string]jsonrpc.Answer{}
	s.mu.Unlock()
	for _, answer := range prompts {
		answer(nil, asRPC(why))
	}
}
