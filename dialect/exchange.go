package dialect

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"parley"
	"parley/port"
	"parley/transport"
)

// An Exchange is a request of an open protocol whose answer is the stream of a run. It is either the run that answers
// the client's message, or the rest of a run that waited for the client's answer to a card. Clients of these protocols
// answer a card with their next request, so a stream ends when its run waits.
type Exchange struct {
	Door    port.Door
	Who     port.Principal
	Session parley.SessionID
	Agents  port.ProjectAgents
	Agent   string // agent that the request names

	run         parley.RunID // run that was open before the request, or the run to show
	from        parley.Seq   // seq of the first event to read
	awaitsInput bool         // the first input at or after from is the client's; show its run
	lastAnswer  place        // event of the client's last answer
	// answered has the cards that the client has answered. The client has read the run up to the point where a stream
	// ended because of them. Nil: the client has read nothing.
	answered map[string]bool
	readUpTo place // event that the client has read up to; zero: no pause found

	input      parley.InputID // the client's input
	isShownRun bool           // the run that is being read is the run to show
	showing    bool           // frames are sent to the client
	current    bool           // all past events were read: open cards are really open
}

// place is an event in the log of a session or of one below it.
type place struct {
	session parley.SessionID
	seq     parley.Seq
}

// A ClientMessage is a message of a client. The command ID is the same for the same message of the client, so that it
// is submitted only once; empty: new each time. Again is the id to use if the client wants another answer to a message
// that already has one.
type ClientMessage struct {
	ID    parley.CommandID
	Again parley.CommandID
	Do    parley.SubmitInput
}

// An CardAnswer is the client's answer to a card.
type CardAnswer struct {
	Card port.CardInfo
	Do   parley.CommandBody
}

// ClientCall is the kind of card that Enter lists for a call that the client carries out.
const ClientCall parley.CardKind = "client"

// ErrWaits refuses a message to a session that waits for an answer.
var ErrWaits = parley.Errorf(parley.CodeConflict,
	"A tool call of this conversation waits for an answer. Answer it, or "+
		"cancel the run, before you send a message.")

// Enter finds the project and the session that a request means, and names the session and the agent in the client's
// messages. It lists the open cards of the session and of those below it, and the calls that the client carries out.
// For a session that the messages are about to open, the list is empty. Enter also refuses a request for an agent that
// does not exist: Submit checks the agent only for messages, not for answers.
func (x *Exchange) Enter(ctx context.Context, r *http.Request, body Object, session string, messages []ClientMessage) (
	open []port.CardInfo, err error) {
	if x.Door, _, err = InProjectOf(x.Door, x.Who.Tenant, r, body); err != nil {
		return nil, err
	}
	var label string
	if x.Session, label, err = SessionNamed(x.Who, session); err != nil {
		return nil, err
	}
	for i := range messages {
		messages[i].Do.Agent.Name, messages[i].Do.Name = x.Agent, label
	}
	return x.open(ctx, len(messages) > 0)
}

// open lists the open cards and calls. It also refuses an agent that does not exist. opens says that the client is about
// to open the session.
func (x *Exchange) open(ctx context.Context, opens bool) (list []port.CardInfo, err error) {
	own := port.Resource{Kind: port.OwnSessions, Tenant: x.Who.Tenant}
	if err := x.Door.May(ctx, x.Who, parley.ActMessage, own); err != nil {
		return nil, err
	}
	m, err := x.Door.Session(ctx, x.Who, x.Session)
	if err != nil && parley.CodeOf(err) == parley.CodeNotFound && opens {
		return nil, nil // the message opens the session, or is refused
	}
	if err == nil {
		_, err = x.Agents.Of(m.Project).Agent(x.Who.Tenant, x.Agent)
	}
	if err != nil || m.Run == 0 {
		return nil, err
	}
	x.run = m.Run
	if list, err = x.Door.Cards(ctx, x.Who, port.CardQuery{Root: x.Session}); err != nil {
		return nil, err
	}
	var waits Waits
	err = ReadLog(ctx, x.Door, x.Who, x.Session, parley.Seq(m.Run), m.Head,
		func(e parley.Event) { waits, _ = waits.After(x.Session, e) })
	for _, id := range waits.OfClient() {
		list = append(list, port.CardInfo{Kind: ClientCall, Session: x.Session, Run: m.Run, Seq: parley.Seq(id),
			Call: id})
	}
	return list, err
}

// Answering reports whether the open run answers this message, which means that
// the client sent it again.
func (x *Exchange) Answering(ctx context.Context, said ClientMessage) (is bool) {
	read := func(seq parley.Seq, each func(parley.Event)) {
		if err := ReadLog(ctx, x.Door, x.Who, x.Session, seq, seq, each); err != nil {
			is = false
		}
	}
	if x.run == 0 || said.ID == "" {
		return false
	}
	read(parley.Seq(x.run), func(e parley.Event) {
		if b, ok := e.Body.(parley.RunStarted); ok {
			read(parley.Seq(b.Input), func(e parley.Event) {
				b, ok := e.Body.(parley.InputReceived)
				is = ok && b.Command == said.ID
			})
		}
	})
	return is
}

// begin sets the run, and the start of reading to the input that the run answers: the run may also adopt later inputs.
func (x *Exchange) begin(ctx context.Context, run parley.RunID) error {
	x.run, x.from = run, parley.Seq(run)
	return ReadLog(ctx, x.Door, x.Who, x.Session, x.from, x.from, func(e parley.Event) {
		if b, ok := e.Body.(parley.RunStarted); ok {
			x.from = parley.Seq(b.Input)
		}
	})
}

// Again prepares to show the rest of a run to a client that sends an answer again.
func (x *Exchange) Again(ctx context.Context, run parley.RunID, card string) error {
	m, err := x.Door.Session(ctx, x.Who, x.Session)
	if err != nil {
		return err
	}
	x.answered, x.lastAnswer = map[string]bool{card: true}, place{x.Session, m.Head}
	return x.begin(ctx, run)
}

// check reports why a part of a request is invalid. A request must not be refused after a part of it was submitted.
func check(answers []CardAnswer, messages []ClientMessage) error {
	for _, a := range answers {
		if err := a.Do.Rules().Check(); err != nil {
			return err
		}
		if do, ok := a.Do.(parley.AnswerQuestion); ok && len(do.Answers) != len(a.Card.Questions) {
			return Invalid("%d answers are needed, one for each question", len(a.Card.Questions))
		}
	}
	if len(messages) == 0 {
		return nil
	}
	last := messages[len(messages)-1].Do
	if parley.IsBlank(parley.CleanText(last.Content)) {
		return parley.Errorf(parley.CodeEmpty, "The message is empty.")
	}
	return last.Rules().Check()
}

// Submit submits answers, and then messages. Stream then shows the run of the last message or, without messages, the
// run that was answered.
func (x *Exchange) Submit(ctx context.Context, answers []CardAnswer, messages []ClientMessage) error {
	if err := check(answers, messages); err != nil {
		return err
	}
	if len(answers) > 0 {
		if err := x.begin(ctx, x.run); err != nil {
			return err
		}
		x.answered = map[string]bool{}
	}
	for _, a := range answers {
		receipt, err := x.Door.Submit(ctx, x.Who, parley.Command{Session: a.Card.Session, Via: parley.ViaHTTP,
			Do: a.Do})
		if err != nil {
			return err
		}
		x.answered[parley.Ref(a.Card.Session, a.Card.Seq)] = true
		if receipt.First != 0 {
			x.lastAnswer = place{receipt.Session, receipt.First}
		}
	}
	for n, s := range messages {
		last := n == len(messages)-1
		c := parley.Command{ID: s.ID, Session: x.Session, Via: parley.ViaHTTP, Do: s.Do}
		receipt, err := x.Door.Submit(ctx, x.Who, c)
		if c.ID = s.Again; last && c.ID != "" && err != nil && parley.CodeOf(err) == parley.CodeConflict {
			receipt, err = x.Door.Submit(ctx, x.Who, c)
		}
		if err != nil && (last || !isPermanent(err)) {
			return err
		}
		x.from, x.awaitsInput, x.answered = receipt.First, true, nil
	}
	return nil
}

// isPermanent reports whether a message would always be refused, or was submitted before. Clients keep such messages in
// their lists, and they must not prevent later messages from being answered.
func isPermanent(err error) bool {
	switch parley.CodeOf(err) {
	case parley.CodeConflict, parley.CodeBlocked, parley.CodeEmpty, parley.CodeTooLarge, parley.CodeInvalid:
		return true
	}
	return false
}

// Watch prepares to show the open run from its start. ok is false if no run is open.
func (x *Exchange) Watch(ctx context.Context) (ok bool, err error) {
	m, err := x.Door.Session(ctx, x.Who, x.Session)
	if err != nil || m.Run == 0 {
		return false, err
	}
	return true, x.begin(ctx, m.Run)
}

// ServeStop cancels the open run of the session that the path names as id. Its answer says whether a run was open. If it
// fails, it has not answered.
func ServeStop(w http.ResponseWriter, r *http.Request, guard Guard, door port.Door) error {
	who, err := guard.Who(r)
	if err != nil {
		return err
	}
	id, _, err := SessionNamed(who, r.PathValue("id"))
	if err != nil {
		return err
	}
	_, err = door.Submit(r.Context(), who, parley.Command{Session: id, Via: parley.ViaHTTP, Do: parley.CancelRun{}})
	stopped := err == nil
	if parley.CodeOf(err) == parley.CodeNotFound { // no session, or no open run
		_, err = door.Session(r.Context(), who, id)
	}
	if err != nil {
		return err
	}
	WriteJSON(w, http.StatusOK, map[string]bool{"stopped": stopped})
	return nil
}

// ReadRoles reads the roles of the messages of a conversation. last is the index of the last message with a role of the
// agent; 0: there is none.
func ReadRoles(messages []Object, agent ...string) (roles []string, last int, err error) {
	roles = make([]string, len(messages))
	for n, m := range messages {
		if roles[n], err = m.String("role"); err != nil {
			return nil, 0, Invalid("messages[%d]: %s", n, err)
		}
		if slices.Contains(agent, roles[n]) {
			last = n
		}
	}
	return roles, last, nil
}

// ReadTools reads the tools that a client offers and carries out itself.
func ReadTools(o Object) (tools []parley.ClientTool, err error) {
	var list []struct {
		Name, Description       string
		Parameters, InputSchema json.RawMessage
	}
	if err := o.Into("tools", &list, "a list of {name, description, parameters}"); err != nil {
		return nil, err
	}
	for _, t := range list {
		schema := t.Parameters
		if schema == nil {
			schema = t.InputSchema
		}
		tools = append(tools, parley.ClientTool{Name: t.Name, Description: t.Description, Parameters: string(schema)})
	}
	return tools, nil
}

// Follow follows the log from the first relevant event.
func (x *Exchange) Follow(ctx context.Context) (port.Follower, error) {
	return x.Door.Follow(ctx, x.Who, port.Scope{Session: x.Session, Below: true},
		port.Cursor{After: int64(x.from) - 1})
}

// A RunView projects the events of a run into frames, for one stream.
type RunView interface {
	Project(parley.Event) []Frame
	// State reports whether no run is open (ended), the run waits (waits), and its frames say that it waits (paused).
	State() (ended, waits, paused bool)
}

// Locate finds the event that the client has read up to, if the client has answered cards: the first pause of the run
// while one of the answered cards was open. If known lists the cards that the client knows, it is the last pause while
// exactly these were open. view must not have seen any event.
func (x *Exchange) Locate(ctx context.Context, view RunView, known []string) error {
	if x.answered == nil {
		return nil
	}
	f, err := x.Follow(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	open := map[string]bool{}
	return ReadUntil(ctx, f, func(i *port.Item) bool {
		if i.Session == x.lastAnswer.session && i.Seq >= x.lastAnswer.seq {
			return true
		}
		trackCards(open, i.Event)
		view.Project(i.Event)
		if _, _, paused := view.State(); paused && x.clientKnows(open, known) {
			x.readUpTo = place{i.Session, i.Seq}
		}
		return false
	})
}

// trackCards updates the set of open cards and client calls with an event.
func trackCards(open map[string]bool, e parley.Event) {
	if c, ok := Opens(e); ok {
		open[c.ID] = true
	}
	if c, ok := Closes(e); ok {
		delete(open, c.ID)
	}
	switch b := e.Body.(type) {
	case parley.ToolCallRequested:
		if b.Client {
			open[parley.Ref(e.Session, e.Seq)] = true
		}
	case parley.ToolCallFinished:
		if b.Outcome != parley.CallUnknown {
			delete(open, parley.Ref(e.Session, parley.Seq(b.Call)))
		}
	}
}

// clientKnows reports whether the client has read up to a pause at which these cards were open.
func (x *Exchange) clientKnows(open map[string]bool, known []string) bool {
	if known != nil {
		return len(open) == len(known) && !slices.ContainsFunc(known, func(id string) bool { return !open[id] })
	}
	for id := range x.answered {
		if open[id] {
			return x.readUpTo == place{}
		}
	}
	return false
}

// A Shown is the part of an event that a client is shown.
type Shown struct {
	Frames    []Frame
	Begin     bool   // show the run so far before the frames: it starts in the middle, although the run did not pause
	Withdrawn string // reason why the client's message will not be answered; there are no frames
}

// batch is the number of past messages that are sent at once.
const batch = 256

// Stream shows the run up to its end or until it waits. Cards that were already answered before this call do not count.
func (x *Exchange) Stream(ctx context.Context, s *transport.Stream, f port.Follower, view RunView,
	encode func(*port.Item, Shown) []transport.Message) error {
	next := func(i *port.Item) (out []transport.Message, last bool) {
		shown, last := x.next(view, i.Event)
		return encode(i, shown), last
	}
	var out []transport.Message
	var failed error
	last := false
	err := CatchUp(ctx, f, func(i *port.Item) bool {
		var more []transport.Message
		more, last = next(i)
		if out = append(out, more...); len(out) >= batch {
			failed, out = s.Send(out...), nil
		}
		return !last && failed == nil
	})
	if err == nil {
		err = failed
	}
	if err == nil && len(out) > 0 {
		err = s.Send(out...)
	}
	if err != nil {
		return err
	}
	x.current = true
	if _, waits, _ := view.State(); last || x.showing && waits {
		return nil
	}
	return Stream(ctx, s, f, next)
}

func (x *Exchange) next(view RunView, e parley.Event) (s Shown, last bool) {
	own := e.Session == x.Session
	switch b := e.Body.(type) {
	case parley.InputReceived:
		if own && x.awaitsInput && x.input == 0 {
			x.input = parley.InputID(e.Seq)
		}
	case parley.InputWithdrawn:
		if own && x.input != 0 && b.Input == x.input {
			return Shown{Withdrawn: "The message was withdrawn: " + string(b.Reason) + "."}, true
		}
	case parley.RunStarted:
		if own {
			x.isShownRun = x.awaitsInput && b.Input == x.input || !x.awaitsInput && parley.RunID(e.Seq) == x.run
			x.showing = x.isShownRun && x.answered == nil
		}
	}
	frames := view.Project(e)
	ended, waits, _ := view.State()
	switch {
	case !x.isShownRun:
		return s, false
	case x.showing:
	case x.readUpTo == place{} && e.Session == x.lastAnswer.session && e.Seq >= x.lastAnswer.seq:
		x.showing, s.Begin = true, true // another client watches the run, so it did not pause
	default:
		x.showing = x.readUpTo == place{e.Session, e.Seq}
		return s, ended
	}
	s.Frames = frames
	return s, ended || x.current && waits
}
