package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/google/uuid"

	"parley"
	"parley/client"
)

// chatCommand is a session in a terminal: it reads a line and prints everything
// that the agent does in response. It follows the session's log with a cursor, so
// it reconnects by itself and prints nothing twice. Inputs that may not have
// reached the server are sent again under the same id.
type chatCommand struct {
	Server  string `placeholder:"URL" help:"Address of the server (default: $PARLEY_SERVER, or the server of this folder, or http://127.0.0.1:8080, or a server that the chat starts for itself)."`
	Thread  string `placeholder:"ID" aliases:"session" help:"Thread to continue, by its id or the beginning of it (default: a new thread)."`
	Agent   string `placeholder:"NAME" help:"Agent to talk to (default: the first agent of the server)."`
	Project string `placeholder:"DIR" help:"Project of a new thread: its folder on the server, or its id (default: the project of this folder, or the first)."`
	Token   string `placeholder:"TEXT" help:"Access token, for a server with --auth jwt; parley token prints one. Prefer the variable: other users of the machine can see flags. ($PARLEY_TOKEN)"`
	Plain   bool   `help:"Print lines instead of using the whole screen. This is the default if standard input or output is not a terminal."`
}

const usualServer = "http://127.0.0.1:8080"

func (c chatCommand) Run(p *program) error {
	if c.Token == "" {
		c.Token, _ = p.env("PARLEY_TOKEN")
	}
	if c.Server == "" {
		c.Server, _ = p.env("PARLEY_SERVER")
	}
	named := c.Server != ""
	if !c.Plain && p.hasScreen() {
		return c.fullScreen(p)
	}
	if err := checkThread(c.Thread); err != nil {
		return err
	}
	if !named {
		to, err := p.connectOrStart(p.ctx, serverFlags{Token: c.Token}, settingsFor(c.Project)...)
		if err != nil {
			return err
		}
		defer to.close()
		c.Server = to.Address()
	}
	if !strings.Contains(c.Server, "://") {
		c.Server = "http://" + c.Server
	}
	if _, err := url.Parse(c.Server); err != nil {
		return fmt.Errorf("--server %s is not an address; write it like http://127.0.0.1:8080", c.Server)
	}
	session, in, elsewhere, err := c.thread(p)
	if err != nil {
		return err
	}
	if elsewhere != "" {
		fmt.Fprintln(p.stdout, worksElsewhere(c.Server, elsewhere))
	}
	c.Thread = string(session)
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)

	_, plain := p.env("NO_COLOR")
	t := &chat{chatCommand: c, in: in, lines: readLines(ctx, p.stdin), interrupts: interrupts,
		patient:  !isTerminal(p.stdin),
		terminal: terminal{out: p.stdout, session: session, color: isTerminal(p.stdout) && !plain},
		server: &serverClient{address: strings.TrimSuffix(c.Server, "/"), token: c.Token, session: session,
			project: c.Project}}
	defer t.server.close()
	err = t.run(ctx)
	t.line()
	if t.cost > 0 {
		fmt.Fprintf(p.stdout, "This chat has cost %s.", dollars(t.cost))
	}
	if !t.reached {
		return err
	}
	again := "parley chat --thread " + c.Thread
	if named && c.Server != usualServer {
		again += " --server " + c.Server
	}
	fmt.Fprintf(p.stdout, "\nGo on with: %s\n", again)
	if err == nil && t.patient && t.failure != "" { // a script reads the exit code
		err = fmt.Errorf("the last message was not answered: %s", t.failure)
	}
	return err
}

// thread finds the session of the chat, and sets the project of a new one, as in the full screen. If the server has
// several projects, in is a text that names the project. elsewhere is as in projectHere. If the server does not list
// its projects, the chat continues without one or fails later.
func (c *chatCommand) thread(p *program) (session parley.SessionID, in, elsewhere string, err error) {
	to, err := p.newClient(c.Server, serverFlags{Token: c.Token})
	if err != nil {
		return "", "", "", err
	}
	defer to.Close()
	project := ""
	if c.Thread == "" {
		session = parley.SessionID(uuid.NewString())
	} else if session, err = sessionNamed(p.ctx, to, c.Thread); err != nil {
		return "", "", "", err
	} else if s, err := to.Session(p.ctx, session); err == nil { // an existing thread has a project
		project = s.Project
	}
	if c.Thread == "" || c.Project != "" {
		if here, away, err := (&connection{Client: to}).projectHere(p.ctx, c.Project); err == nil {
			c.Project, project, elsewhere = here, here, away
		}
	}
	if projects, err := to.Projects(p.ctx); err == nil && len(projects) > 1 {
		in = " in " + client.ProjectName(projects, project)
	}
	return session, in, elsewhere, nil
}

// isTerminal reports whether a stream is a terminal. Other devices, such as /dev/null, are no terminals.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// readLines stops delivering lines when the program ends. A read from a terminal cannot be interrupted.
func readLines(ctx context.Context, r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewReader(r); ; {
			line, err := in.ReadString('\n')
			if line != "" {
				select {
				case lines <- strings.TrimRight(line, "\r\n"):
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// A chat is the conversation of one person in one session.
type chat struct {
	terminal
	chatCommand
	in         string // text that names the project; empty if the server has only one
	server     *serverClient
	lines      <-chan string // nil after the end of the input
	interrupts <-chan os.Signal
	patient    bool // not interactive: each line waits until the previous inputs have ended
	sent       []*input
	reached    bool   // the server was reached once
	failure    string // why the last message was not answered; empty if it was answered or the person stopped it
}

// An input is a message whose run has not ended.
type input struct {
	id, content string
	taken       bool // the server has accepted it
}

var errLeft = errors.New("the person left")

func (t *chat) run(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		entered, err := t.connected(ctx)
		if entered {
			t.reached, attempt = true, 0
		}
		switch {
		case errors.Is(err, errLeft):
			return nil
		case !errors.Is(err, errAway):
			return err
		case !t.reached:
			return fmt.Errorf("cannot reach %s; is `parley serve` running there? Another address is given with "+
				"--server or PARLEY_SERVER (%w)", t.Server, err)
		}
		if attempt == 0 {
			t.line()
			t.say("(the server is gone; the chat continues when it is back)\n")
		}
		select {
		case <-time.After(min(time.Second<<min(attempt, 3), 5*time.Second)):
		case <-t.interrupts:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// connected enters the session and talks until the connection is lost.
func (t *chat) connected(ctx context.Context) (entered bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stream *eventStream
	demo, hint := false, ""
	if err := t.unlessInterrupted(cancel, func() (err error) {
		if !t.reached {
			demo, hint = t.server.demo(ctx)
		}
		stream, err = t.server.enter(ctx, t.Agent)
		return err
	}); err != nil {
		return false, err
	}
	if hint != "" {
		t.note(red, "("+hint+")")
	}
	if !t.reached {
		try := ""
		if demo {
			try = " Try: hello, /tour"
		}
		t.say("Thread " + t.Thread + t.in + ". Ctrl-C stops an answer, Ctrl-D leaves." + try + "\n")
	}
	return true, t.talk(ctx, stream)
}

// unlessInterrupted runs do until it ends or the person presses Ctrl-C.
func (t *chat) unlessInterrupted(cancel func(), do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-t.interrupts:
		cancel()
		<-done
		return errLeft
	}
}

// talk handles events and lines until the person leaves or the connection is lost.
func (t *chat) talk(ctx context.Context, stream *eventStream) error {
	defer stream.close()
	for _, in := range slices.Clone(t.sent) {
		if err := t.ask(ctx, in); err != nil { // if the server has the input already, this changes nothing
			return err
		}
	}
	t.ready()
	stopping := false // Ctrl-C was pressed, and no event or line has come since
	for {
		lines := t.lines
		if t.patient && len(t.sent) > 0 && t.card() == nil {
			lines = nil
		}
		select {
		case e, ok := <-stream.events:
			if !ok {
				return t.server.away(stream.err)
			}
			stopping = false
			if t.heard(e); t.gone {
				return errLeft
			}
		case line, ok := <-lines:
			stopping = false
			if !ok {
				if t.lines = nil; !t.patient {
					return errLeft
				}
			} else if err := t.enter(ctx, line); err != nil {
				return err
			}
		case <-t.interrupts:
			if stopping {
				return errLeft
			}
			stopping = true
			if err := t.interrupt(ctx); err != nil {
				return err
			}
		}
		if t.lines == nil && (len(t.sent) == 0 || t.card() != nil) {
			return errLeft
		}
	}
}

// ready shows the prompt if no input, run or card is open.
func (t *chat) ready() {
	if len(t.sent) == 0 && t.open == 0 && t.card() == nil {
		t.prompt()
	}
}

// heard shows an event, and removes inputs that have ended.
func (t *chat) heard(e parley.Event) {
	if in, ok := e.Body.(parley.InputReceived); ok && e.Session == t.session && !t.mine(in.Request) {
		t.line()
		if in.Synthetic {
			t.say("(the agent sends a message on its own)\n")
		} else {
			t.say("(another client) > " + in.Content + "\n")
		}
	}
	answered := t.requests
	t.show(e)
	if e.Session != t.session {
		return
	}
	switch b := e.Body.(type) {
	case parley.RunFinished:
		if t.failure = cmp.Or(b.Message, string(b.Outcome)); answeredOrStopped[b.Outcome] {
			t.failure = ""
		}
		t.forget(answered...)
		t.ready()
	case parley.InputWithdrawn:
		t.forget(b.Request)
		t.ready()
	}
}

// answeredOrStopped are the outcomes of runs that did not fail: the agent finished,
// or the person stopped it.
var answeredOrStopped = map[parley.Outcome]bool{parley.Completed: true, parley.Cancelled: true, parley.Denied: true}

func (t *chat) mine(request string) bool {
	return slices.ContainsFunc(t.sent, func(in *input) bool { return in.id == request })
}

func (t *chat) forget(requests ...string) {
	t.sent = slices.DeleteFunc(t.sent, func(in *input) bool { return slices.Contains(requests, in.id) })
}

// ask sends an input unless the server has accepted it. An input that the server refuses is removed.
func (t *chat) ask(ctx context.Context, in *input) error {
	if in.taken {
		return nil
	}
	body := map[string]any{"content": in.content, "request": in.id, "busy": parley.Steer}
	if t.Agent != "" {
		body["agent"] = t.Agent
	}
	err := t.server.post(ctx, "/sessions/"+t.Thread+"/inputs", in.id, body)
	if r, is := errors.AsType[*refusal](err); is {
		t.say("(" + r.Error() + ")\n")
		t.failure = r.Error()
		t.forget(in.id)
		t.ready()
		return nil
	}
	in.taken = err == nil
	return err
}

// enter sends a line that the person typed: an answer to the open card, or a
// new message.
func (t *chat) enter(ctx context.Context, line string) error {
	t.typed()
	card := t.card()
	if card == nil {
		if strings.TrimSpace(line) == "" {
			t.ready()
			return nil
		}
		in := &input{id: "chat-" + uuid.NewString(), content: line}
		t.sent = append(t.sent, in)
		return t.ask(ctx, in)
	}
	asked := *card
	body := t.answer(line)
	if body == nil {
		return nil // the card needs more answers
	}
	err := t.server.post(ctx, asked.path(), "", body)
	if r, is := errors.AsType[*refusal](err); is {
		// Another client has answered the card; the log shows the answer.
		t.say("(" + r.Error() + ")\n")
		return nil
	}
	if err != nil {
		t.putBack(asked)
	}
	return err
}

// interrupt cancels the current run or the oldest input. If there is none, it prints how to leave.
func (t *chat) interrupt(ctx context.Context) error {
	body := map[string]any{}
	switch {
	case t.open != 0:
	case len(t.sent) > 0:
		body["request"] = t.sent[0].id
	default:
		t.line()
		t.say("(Ctrl-C again, or Ctrl-D, leaves)\n")
		t.prompt()
		return nil
	}
	err := t.server.post(ctx, "/sessions/"+t.Thread+"/cancel", "", body)
	if _, is := errors.AsType[*refusal](err); is {
		return nil // the run has just ended
	}
	return err
}
