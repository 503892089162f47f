package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"parley"
	"parley/client"
)

// oneRun is the run of one input, with the state of its display.
type oneRun struct {
	*runCommand
	program    *program
	connection *connection
	stop       context.CancelCauseFunc
	session    parley.SessionID
	request    string // the request id of the input
	cursor     string
	received   bool         // the log contains the input
	run        parley.RunID // zero before the run has begun
	done       bool

	progress terminal // printed to standard error
	spoken   text     // printed to standard output
	joined   bool     // both go to a terminal, so they share its lines
}

// text prints all outputs of a run as one text.
type text struct {
	to     io.Writer
	plain  bool // the reader is a terminal, so control sequences are made visible
	shown  int  // printed bytes of the open output
	spoke  bool // an output was printed before the open one
	cut    bool // the last output was incomplete
	inLine bool
}

// begin finds a server, opens the session and sends the input.
func (r *oneRun) begin(ctx context.Context, content string, images [][]byte) (err error) {
	p := r.program
	r.connection, err = p.connectOrStart(ctx, r.serverFlags, settingsFor(r.Project)...)
	if err != nil {
		return err
	}
	s, elsewhere, err := r.open(ctx, r.connection)
	if err != nil {
		return err
	}
	if elsewhere != "" {
		fmt.Fprintln(p.stderr, worksElsewhere(r.connection.Address(), elsewhere))
	}
	r.session = s.ID
	_, plain := p.env("NO_COLOR")
	r.progress = terminal{out: p.stderr, session: s.ID, color: isTerminal(p.stderr) && !plain}
	r.spoken = text{to: p.stdout, plain: isTerminal(p.stdout)}
	r.joined = isTerminal(p.stdout) && isTerminal(p.stderr)
	for u, err := range r.connection.Read(ctx, s.ID, s.Head-1) { // find the cursor: a tree is followed by position
		if err != nil {
			return err
		}
		r.cursor = strconv.FormatInt(int64(u.Event.Position), 10)
	}
	project := "" // empty: the session's project; the server refuses any other
	if r.Project != "" {
		if project, _, err = r.connection.projectHere(ctx, r.Project); err != nil {
			return err
		}
	}
	_, err = r.connection.Submit(ctx, s.ID, client.Input{Content: content, Agent: r.Agent, Model: r.Model,
		Project: project, Images: images, Request: r.request, Key: r.request})
	if _, refused := errors.AsType[*client.Error](err); refused && r.Session == "" {
		_ = r.connection.Delete(ctx, s.ID) // remove the empty session; an error here matters less than the refusal
	}
	return err
}

// follow shows the run until it ends or waits for a card.
func (r *oneRun) follow(ctx context.Context) error {
	reported := false
	for {
		for u, err := range r.connection.Follow(ctx, client.Log{Session: r.session, Tree: true}, r.cursor) {
			if err != nil {
				return r.lost(err)
			}
			r.cursor = u.Cursor
			switch {
			case u.Resync != nil:
				return &exitError{exitFailed, errors.New("the server has another history than before: it was " +
					"restored, or it is another server")}
			case u.Lost != nil:
				if !reported {
					r.progress.note(red, "(the server is gone; the run continues when it is back)")
				}
				reported = true
			default:
				reported = false
				if err := r.take(ctx, u); err != nil || r.done {
					return err
				}
			}
			if u.Lost != nil && r.connection.brief {
				break // the server has ended with the other command; find or start another one
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		r.connection.close()
		next, err := r.program.connectOrStart(ctx, r.serverFlags, settingsFor(r.Project)...)
		if err != nil {
			r.connection = nil
			return err
		}
		r.connection = next
	}
}

func (r *oneRun) lost(err error) error {
	if e, ok := errors.AsType[*client.Error](err); ok && e.Code == parley.CodeNotFound {
		return &exitError{exitStopped, errors.New("the session was deleted")}
	}
	return err
}

// take shows an event, and answers a card if --approve allows that.
func (r *oneRun) take(ctx context.Context, u client.Update) error {
	e := u.Event
	if b, ok := e.Body.(parley.InputReceived); ok && b.Request == r.request {
		r.received = true
	}
	if !r.received {
		return nil
	}
	if r.JSON {
		if _, err := fmt.Fprintf(r.program.stdout, "%s\n", u.Line); err != nil {
			return r.closed(err)
		}
	}
	here := e.Session == r.session
	if b, ok := e.Body.(parley.InputAdopted); ok && here && b.Request == r.request {
		r.run = e.Run
	}
	if b, ok := e.Body.(parley.InputWithdrawn); ok && here && b.Request == r.request {
		r.done = true
		return &exitError{exitStopped, errors.New("the message was withdrawn before the agent read it")}
	}
	if r.run == 0 || here && e.Run != r.run && e.Run != 0 {
		return nil // of an earlier run
	}
	if err := r.show(e, here); err != nil {
		return r.closed(err)
	}
	if end, ok := e.Body.(parley.RunFinished); ok && here {
		r.done = true
		return r.end(end)
	}
	return r.card(ctx, e)
}

func (r *oneRun) show(e parley.Event, here bool) error {
	switch e.Body.(type) {
	case parley.OutputStarted, parley.OutputAppended, parley.OutputFinished:
		if here && !r.JSON {
			return r.spoken.show(e)
		}
		return nil
	}
	if r.joined && r.spoken.inLine {
		r.progress.within = true
	}
	if here {
		r.progress.showTalk(e)
	}
	r.progress.showWork(e)
	if r.joined && !r.progress.within {
		r.spoken.inLine = false // a line of progress has ended the line of the answer
	}
	return nil
}

// show prints the part of an output that is not printed yet.
func (t *text) show(e parley.Event) error {
	switch b := e.Body.(type) {
	case parley.OutputStarted:
		if t.shown = 0; b.Kind == parley.Text && t.spoke && !t.cut {
			return t.print("\n\n") // the texts of two turns are two paragraphs
		}
	case parley.OutputAppended:
		return t.speak(b.Kind, b.Offset, b.Text)
	case parley.OutputFinished:
		if b.Kind == parley.Text {
			t.spoke, t.cut = true, b.Incomplete
		}
		return t.speak(b.Kind, 0, b.Text)
	}
	return nil
}

func (t *text) speak(kind parley.OutputKind, offset int, piece string) error {
	skip := max(t.shown-offset, 0)
	if kind != parley.Text || skip >= len(piece) {
		return nil
	}
	t.shown = offset + len(piece)
	if piece = piece[skip:]; t.plain {
		piece = visible(piece)
	}
	return t.print(piece)
}

func (t *text) print(piece string) error {
	t.inLine = piece[len(piece)-1] != '\n'
	_, err := io.WriteString(t.to, piece)
	return err
}

// closed returns the error of a run whose answer cannot be written, and stops the run.
func (r *oneRun) closed(err error) error {
	if !errors.Is(err, errPipe) {
		err = &exitError{1, fmt.Errorf("the answer cannot be written: %w", err)}
	} else {
		err = &exitError{exitPipe, nil}
	}
	r.stop(err)
	return err
}

// end returns the exit code of a run.
func (r *oneRun) end(b parley.RunFinished) error {
	if r.spoken.inLine {
		if err := r.spoken.print("\n"); err != nil {
			return r.closed(err)
		}
	}
	r.progress.note(dim, "(session "+string(r.session)+")")
	code, known := outcomeCodes[b.Outcome]
	switch {
	case !known:
		code = exitFailed
	case code == 0:
		return nil
	}
	return &exitError{code, nil} // the reason is already printed
}

// card answers an approval that --approve allows. Any other card ends the command, and the run keeps waiting.
func (r *oneRun) card(ctx context.Context, e parley.Event) error {
	var asks string
	id := parley.Ref(e.Session, e.Seq)
	how := "allow " + id
	switch b := e.Body.(type) {
	case parley.ApprovalRequested:
		if approves(r.Approve, b) {
			r.progress.note(dim, "  approved (--approve "+r.Approve+")")
			_, err := r.connection.Decide(ctx, id, client.Approval{Decision: parley.AllowOnce, Digest: b.Digest})
			if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == parley.CodeClosed {
				return nil // another client was faster
			}
			return err
		}
		asks = "for your approval of " + b.Name + ":\n" + visible(b.Show)
	case parley.QuestionAsked:
		asks, how = "for an answer:", "answer "+id+" TEXT"
		for _, q := range b.Questions {
			asks += "\n" + visible(q.Question)
		}
	case parley.ToolCallFinished:
		if b.Outcome != parley.CallUnknown {
			return nil
		}
		id = parley.Ref(e.Session, parley.Seq(b.Call))
		asks, how = "because the outcome of a call is unknown: "+visible(b.Result), "resolve "+id+" rerun"
	default:
		return nil
	}
	if r.spoken.inLine {
		_ = r.spoken.print("\n") // the exit code matters more than this error
	}
	answer := "Answer with: parley approvals " + how + r.toServer()
	if r.connection.own != nil {
		answer = "Answer with: parley chat --thread " + string(r.session)
	}
	return &exitError{exitWaiting, fmt.Errorf("the run waits %s\n%s\n(session %s)", asks, answer, r.session)}
}

// toServer returns the flag that names the server, if the command line had one.
func (r *oneRun) toServer() string {
	if r.Server == "" {
		return ""
	}
	return " --server " + r.Server
}

// cancelWithin is how long a cancelled run may take to end.
const cancelWithin = 10 * time.Second

// cancel cancels the run on the server, and shows how it ends.
func (r *oneRun) cancel() {
	if r.connection == nil || r.session == "" || r.done {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.program.ctx), cancelWithin)
	defer stop()
	_, err := r.connection.CancelRequest(ctx, r.session, r.request)
	if err == nil {
		r.spoken.to, r.program.stdout = io.Discard, io.Discard
		err = r.follow(ctx)
	}
	if err != nil && !r.done {
		fmt.Fprintf(r.program.stderr, "(the run could not be cancelled: %v)\n", err)
	}
}
