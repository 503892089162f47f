package dialect

import (
	"context"
	"encoding/json"

	"parley"
)

// An Exchange is a request of an open protocol that is answered by the stream of a
// run: the run that answers what the client says, or the rest of a run that waited
// for what the client answers. Clients of these protocols send the answer to a card
// with their next request, so a stream ends where its run waits.
type Exchange struct {
	Door    parley.Door
	Who     parley.Principal
	Session parley.SessionID

	run   parley.RunID // that was open before the request, or is shown
	from  parley.Seq   // of the first event that is read
	asks  bool         // the first input from there on is the client's, and its run is shown
	until place        // where the log ended: a run that waited before did not stay so
	// answered are the cards that the client has answered: it has read the run up to
	// where a stream ended because of them. Nil: it has read nothing.
	answered map[string]bool

	input   parley.InputID // the client's
	mine    bool           // the run that is read is the one that is shown
	asked   bool           // a card that the client has answered was seen
	showing bool           // the client is shown what comes
	reached bool           // the log is read up to until
}

// A place is one in the logs of a session and of those below it.
type place struct {
	session parley.SessionID
	seq     parley.Seq
}

// A Said is something that a client says. A command id is the same for the same
// message of the client, so that it is submitted once; empty: new each time. Again
// is the id if the client wants another answer to a message that has one.
type Said struct {
	ID    parley.CommandID
	Again parley.CommandID
	Do    parley.SubmitInput
}

// An Answered is a card that a client answers.
type Answered struct {
	Card parley.CardInfo
	Do   parley.CommandBody
}

// ClientCall is the kind of a call that the client carries out, in what Open lists.
const ClientCall parley.CardKind = "client"

// ErrWaits refuses a message to a session in which something waits.
var ErrWaits = parley.Errorf(parley.CodeConflict,
	"A tool call of this conversation waits for an answer. Answer it, or "+
		"cancel the run, before you send a message.")

// Open lists what waits in the session and in those below it: cards, and calls that
// the client carries out. A session that is not there yet has nothing, if the
// client is about to open it.
func (x *Exchange) Open(ctx context.Context, opens bool) (list []parley.CardInfo, err error) {
	own := parley.Resource{Kind: parley.OwnSessions, Tenant: x.Who.Tenant}
	if err := x.Door.May(ctx, x.Who, parley.ActMessage, own); err != nil {
		return nil, err
	}
	m, err := x.Door.Session(ctx, x.Who, x.Session)
	if err != nil && parley.CodeOf(err) == parley.CodeNotFound && opens {
		return nil, nil // the message opens it, or is refused
	}
	if err != nil || m.Run == 0 {
		return nil, err
	}
	x.run = m.Run
	if list, err = x.Door.Cards(ctx, x.Who, parley.CardQuery{Root: x.Session}); err != nil {
		return nil, err
	}
	var waits Waits
	err = ReadLog(ctx, x.Door, x.Who, x.Session, parley.Seq(m.Run), m.Head,
		func(e parley.Event) { waits, _ = waits.After(x.Session, e) })
	for _, id := range waits.OfClient() {
		list = append(list, parley.CardInfo{Kind: ClientCall, Session: x.Session, Run: m.Run, Seq: parley.Seq(id),
			Call: id})
	}
	return list, err
}

// Answering reports whether the open run answers a message: the client sends it
// again.
func (x *Exchange) Answering(ctx context.Context, said Said) (is bool) {
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

// begin has the log read from the message that a run answers: those that came later
// may be adopted by the run.
func (x *Exchange) begin(ctx context.Context, run parley.RunID) error {
	x.run, x.from = run, parley.Seq(run)
	return ReadLog(ctx, x.Door, x.Who, x.Session, x.from, x.from, func(e parley.Event) {
		if b, ok := e.Body.(parley.RunStarted); ok {
			x.from = parley.Seq(b.Input)
		}
	})
}

// Again has the rest of a run shown to a client that sends an answer again.
func (x *Exchange) Again(ctx context.Context, run parley.RunID, card string) error {
	m, err := x.Door.Session(ctx, x.Who, x.Session)
	if err == nil {
		err = x.begin(ctx, run)
	}
	x.answered, x.until = map[string]bool{card: true}, place{x.Session, m.Head}
	return err
}

// Submit submits answers, and then messages. The run of the last message is shown,
// or else the run that was answered.
func (x *Exchange) Submit(ctx context.Context, answers []Answered, messages []Said) error {
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
		x.until = place{receipt.Session, receipt.First}
	}
	for n, s := range messages {
		last := n == len(messages)-1
		c := parley.Command{ID: s.ID, Session: x.Session, Via: parley.ViaHTTP, Do: s.Do}
		receipt, err := x.Door.Submit(ctx, x.Who, c)
		if c.ID = s.Again; last && c.ID != "" && err != nil && parley.CodeOf(err) == parley.CodeConflict {
			receipt, err = x.Door.Submit(ctx, x.Who, c)
		}
		if err != nil && (last || !isBad(err)) {
			return err
		}
		x.from, x.asks, x.answered = receipt.First, true, nil
		x.until = place{x.Session, receipt.Last}
	}
	if !x.asks {
		return nil
	}
	// A message that was sent again is shown up to where its run is now.
	m, err := x.Door.Session(ctx, x.Who, x.Session)
	x.until.seq = max(x.until.seq, m.Head)
	return err
}

// isBad reports whether a message would be refused at any time, or was submitted
// before. Clients keep it in their lists, and it must not keep others from being
// answered.
func isBad(err error) bool {
	switch parley.CodeOf(err) {
	case parley.CodeConflict, parley.CodeBlocked, parley.CodeEmpty, parley.CodeTooLarge, parley.CodeInvalid:
		return true
	}
	return false
}

// Watch has a run shown from its start. ok is false if none is open.
func (x *Exchange) Watch(ctx context.Context) (ok bool, err error) {
	m, err := x.Door.Session(ctx, x.Who, x.Session)
	if err != nil || m.Run == 0 {
		return false, err
	}
	x.until = place{x.Session, m.Head}
	return true, x.begin(ctx, m.Run)
}

// CancelOpen cancels the run that is open in a session. It reports false if none is.
func CancelOpen(ctx context.Context, door parley.Door, who parley.Principal, id parley.SessionID) (bool, error) {
	_, err := door.Submit(ctx, who, parley.Command{Session: id, Via: parley.ViaHTTP, Do: parley.CancelRun{}})
	if err != nil && parley.CodeOf(err) == parley.CodeNotFound { // the session, or a run
		_, err = door.Session(ctx, who, id)
		return false, err
	}
	return err == nil, err
}

// ReadTools reads the tools that a page offers and carries out itself.
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

// Follow follows the log from the first event that counts.
func (x *Exchange) Follow(ctx context.Context) (parley.Follower, error) {
	return x.Door.Follow(ctx, x.Who, parley.Scope{Session: x.Session, Below: true},
		parley.Cursor{After: int64(x.from) - 1})
}

// A RunView makes the frames of a run, for one stream.
type RunView interface {
	Project(parley.Event) []Frame
	// Ended: no run is open. Waits: the run waits. Paused: its frames say so.
	State() (ended, waits, paused bool)
}

// Next reads an event. begin is set where the client is shown a run from its
// middle, although it did not pause. withdrawn: the client's message will not be
// answered.
func (x *Exchange) Next(view RunView, e parley.Event) (frames []Frame, begin bool, withdrawn string, last bool) {
	own := e.Session == x.Session
	x.reached = x.reached || e.Session == x.until.session && e.Seq >= x.until.seq
	if c, ok := Opens(e); ok && x.answered[c.ID] {
		x.asked = true
	}
	switch b := e.Body.(type) {
	case parley.InputReceived:
		if own && x.asks && x.input == 0 {
			x.input = parley.InputID(e.Seq)
		}
	case parley.InputWithdrawn:
		if own && x.input != 0 && b.Input == x.input {
			return nil, false, "The message was withdrawn: " + string(b.Reason) + ".", true
		}
	case parley.ToolCallRequested:
		x.asked = x.asked || b.Client && x.answered[parley.Ref(e.Session, e.Seq)]
	case parley.RunStarted:
		if own {
			x.mine = x.asks && b.Input == x.input || !x.asks && parley.RunID(e.Seq) == x.run
			x.showing = x.mine && x.answered == nil
		}
	}
	frames = view.Project(e)
	ended, waits, paused := view.State()
	switch {
	case !x.mine:
		return nil, false, "", false
	case x.showing:
	case x.reached: // the run never paused: others watch it, too
		x.showing, begin = true, true
	default:
		x.showing = x.asked && paused
		return nil, false, "", false
	}
	return frames, begin, "", ended || x.reached && waits
}
