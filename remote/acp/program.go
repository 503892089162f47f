package acp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"parley"
	"parley/port"
	"parley/transport/jsonrpc"
)

// A program is a process that answers for one session of Parley.
type program struct {
	*Programs
	key
	conn    *jsonrpc.Conn
	in, out *os.File
	ctx     context.Context
	stop    context.CancelFunc
	served  chan struct{} // closed when its connection has ended
	gone    chan struct{} // closed when the process and the connection have ended
	stderr  tail
	ended   string // how the process ended; set before gone is closed
	failed  error  // why it did not start; set before gone is closed
	silly   error  // why it was killed; set before gone is closed
	heard   atomic.Int64
	current atomic.Pointer[answer]
	broken  int // number of invalid lines; used by the reader only

	busy  bool        // guarded by Programs.mu
	since time.Time   // guarded by Programs.mu; end of the last use
	idle  *time.Timer // guarded by Programs.mu

	loads bool  // guarded by Programs.mu; changed by the user of the program
	known known // guarded by Programs.mu; changed by the user of the program
	spent int64 // what the session has cost so far, in millionths of a US dollar
}

// known is the part of a conversation that a program has.
type known struct {
	session string // the program's id for it
	given   int    // number of messages of the conversation
	digest  [32]byte
}

func newProgram(p *Programs, k key, agent string, in, out *os.File) *program {
	at := &program{Programs: p, key: k, in: in, out: out, served: make(chan struct{}), gone: make(chan struct{}),
		busy: true, since: time.Now()}
	at.ctx, at.stop = context.WithCancel(p.ctx)
	at.conn = jsonrpc.New(out, in, at, jsonrpc.Options{MaxLine: maxLine, MaxUnsent: maxUnsent})
	at.idle = time.AfterFunc(time.Hour, at.retire)
	at.idle.Stop()
	return at
}

// run runs the process.
func (at *program) run(l Launch) {
	ended, err := at.Run(at.ctx, l)
	at.ended, at.failed = ended, err
	l.Input.Close() // writers get an error
	l.Reply.Close() // readers get end of file after the written data
	select {
	case <-at.served:
	case <-at.ctx.Done():
		at.conn.Close()
		at.out.Close()
		<-at.served
	}
	at.stop()
	at.forget(at)
	close(at.gone)
	if err == nil && ended != "" {
		at.Log.Info("the program of an agent has ended", "agent", at.agent, "how", ended, "last", at.stderr.last())
	}
}

// serve runs the connection to the process.
func (at *program) serve() {
	defer close(at.served)
	unhook := context.AfterFunc(at.ctx, func() {
		at.conn.Close()
		at.out.Close()
		at.in.Close()
	})
	err := at.conn.Serve()
	unhook()
	at.in.Close()
	at.out.Close()
	if _, silly := errors.AsType[sillyProgram](err); silly || errors.Is(err, jsonrpc.ErrUnsent) {
		at.Log.Warn("the program of an agent is ended", "agent", at.agent, "reason", err)
		at.silly = err
		at.stop()
	}
}

func (at *program) over() bool {
	select {
	case <-at.served:
		return true
	case <-at.ctx.Done():
		return true
	default:
		return false
	}
}

func (at *program) kill() { at.stop() }

// finish closes the connection, and kills the program if it does not end in time. It returns when the program is gone.
func (at *program) finish() {
	at.conn.Close()
	at.in.Close()
	timer := time.NewTimer(at.Times.End)
	defer timer.Stop()
	select {
	case <-at.gone:
	case <-timer.C:
		at.kill()
		<-at.gone
	}
}

// retire ends a program that has been idle for too long.
func (at *program) retire() {
	at.mu.Lock()
	if at.busy || at.closed {
		at.mu.Unlock()
		return
	}
	at.busy = true
	at.wg.Add(1)
	at.mu.Unlock()
	defer at.wg.Done()
	at.finish()
}

// release makes the program available to other callers.
func (at *program) release() {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.busy, at.since = false, time.Now()
	if !at.over() {
		at.idle.Reset(at.Times.Idle)
	}
}

// lastWords returns why a program that is gone has ended, or "" if that is not known.
func (at *program) lastWords() string {
	switch {
	case at.silly != nil:
		return at.silly.Error()
	case at.failed != nil:
		return at.failed.Error()
	case at.ended == "":
		return ""
	}
	if last := at.stderr.last(); last != "" {
		return fmt.Sprintf("it ended with %s: %.300s", at.ended, last)
	}
	return "it ended with " + at.ended
}

// introduce initializes the connection and opens a session in the program.
func (at *program) introduce(ctx context.Context, r port.RemoteRequest) error {
	hello := initializeParams{Version: protocolVersion, Info: info{"parley", at.Version}}
	hello.Capabilities.Files.Read = mayUse(r.Agent, "read_file")
	hello.Capabilities.Files.Write = mayUse(r.Agent, "write_file")
	hello.Capabilities.Terminal = mayUse(r.Agent, "shell")
	var about initializeResult
	if err := at.conn.Call(ctx, methodInitialize, hello, &about); err != nil {
		return errors.New(errorText(err))
	}
	if about.Version != protocolVersion {
		return fmt.Errorf("it speaks version %d of the Agent Client Protocol, not %d", about.Version, protocolVersion)
	}
	at.mu.Lock()
	at.loads = about.Capabilities.Load
	at.mu.Unlock()
	here := sessionParams{Cwd: r.Root, Servers: []struct{}{}}
	if at.loads && at.known.session != "" {
		load := here
		load.Session = at.known.session
		err := at.conn.Call(ctx, methodLoad, load, nil)
		if err == nil {
			return nil
		}
		if _, refused := errors.AsType[*jsonrpc.Error](err); !refused {
			return err
		}
	}
	var made sessionResult
	if err := at.conn.Call(ctx, methodNew, here, &made); err != nil {
		return errors.New(errorText(err))
	}
	if made.Session == "" {
		return errors.New("it opened a session without an id")
	}
	at.knows(known{session: made.Session})
	return nil
}

// knows records the part of the conversation that the program now has.
func (at *program) knows(k known) {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.known = k
}

func mayUse(a parley.Agent, tool string) bool {
	return a.Tools == nil || slices.Contains(a.Tools, "*") || slices.Contains(a.Tools, tool)
}

// prompt sends the program the new part of the conversation.
func (at *program) prompt(ctx context.Context, r port.RemoteRequest) (*answer, error) {
	blocks := at.compose(r)
	if size := len(encode(blocks)); size > maxUnsent/2 {
		return nil, parley.Errorf(parley.CodeTooLarge, "The message is too long for this agent.")
	}
	session := at.known.session
	at.knows(known{session, len(r.Messages), digest(r.Messages)})
	a := newAnswer(ctx, at, r)
	at.heard.Store(time.Now().UnixNano())
	at.current.Store(a)
	at.wg.Go(func() {
		defer close(a.answered)
		var result promptResult
		err := at.conn.Call(at.ctx, methodPrompt, promptParams{session, blocks}, &result)
		a.finish(result, err)
	})
	return a, nil
}

// compose returns the messages that the program does not know. If the conversation was changed, these are all messages.
func (at *program) compose(r port.RemoteRequest) []block {
	var blocks []block
	messages := r.Messages
	n := at.known.given
	if n > 0 && n <= len(messages) && digest(messages[:n]) == at.known.digest {
		messages = messages[n:]
		for len(messages) > 0 && messages[0].Role != parley.RoleUser { // its own answers
			messages = messages[1:]
		}
	} else {
		for _, text := range []string{r.Instructions, r.Context} {
			if !parley.IsBlank(text) {
				blocks = append(blocks, textBlock(text))
			}
		}
	}
	return append(blocks, conversation(messages)...)
}

// conversation returns the last message, after the text of the messages before it.
func conversation(messages []parley.Message) (blocks []block) {
	last := len(messages) - 1
	for last > 0 && messages[last].Role != parley.RoleUser {
		last--
	}
	before := ""
	for i, m := range messages {
		if m.Text == "" || m.Role == parley.RoleTool || i == last {
			continue
		}
		before += fmt.Sprintf("\n%s: %s\n", m.Role, m.Text)
	}
	if before != "" {
		blocks = append(blocks, textBlock("This was said before in this conversation:\n"+before))
	}
	if last >= 0 {
		blocks = append(blocks, textBlock(messages[last].Text))
	}
	return blocks
}

// digest returns a hash of a conversation.
func digest(messages []parley.Message) [32]byte {
	h := sha256.New()
	for _, m := range messages {
		fmt.Fprintf(h, "%s %d:%s", m.Role, len(m.Text), m.Text)
	}
	return [32]byte(h.Sum(nil))
}

// Request handles a request of the program. See jsonrpc.Handler.
func (at *program) Request(method string, params json.RawMessage, respond jsonrpc.Answer) {
	at.heard.Store(time.Now().UnixNano())
	a := at.current.Load()
	if a == nil {
		respond(nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "No message is being answered."))
		return
	}
	a.request(method, params, respond)
}

// Notification handles a notification of the program. It ignores notifications outside an answer, for example while the
// program loads a session: Parley has that history already.
func (at *program) Notification(method string, params json.RawMessage) {
	at.heard.Store(time.Now().UnixNano())
	if a := at.current.Load(); a != nil && method == methodUpdate {
		var u updateParams
		if err := json.Unmarshal(params, &u); err != nil {
			_ = at.Broken(err)
			return
		}
		a.update(u)
	}
}

// Broken counts invalid lines.
func (at *program) Broken(err error) error {
	if at.broken++; at.broken == 1 {
		at.Log.Warn("the program of an agent sends something that is no message; logged once", "agent", at.agent,
			"problem", err)
	}
	if at.broken > maxBroken {
		return sillyProgram{errors.New("it sends lines that are no messages")}
	}
	if isLong(err) {
		return sillyProgram{err}
	}
	return nil
}

// A sillyProgram is the reason to kill a program that breaks the protocol.
type sillyProgram struct{ error }

func isLong(err error) bool { return errors.Is(err, jsonrpc.ErrLong) }
