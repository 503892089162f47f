// Package acp reaches agents that are programs which speak the Agent Client
// Protocol: JSON-RPC over the pipes of a process that Parley starts.
//
// Each session of Parley has a process of its own for each such agent, which is
// started with the first message, kept for some time after an answer, and started
// again if it has died. The program's requests for files and terminals become calls
// of the server's own tools, so that policy, people and the sandbox have the word
// they always have; its requests for permission become approvals. This package
// touches no file and runs no command itself.
//
// Goroutines: three per process, which run it, serve its connection and wait for an
// answer. Programs.Close waits for all of them.
//
// Locks, none held across I/O: Programs.mu guards which processes there are and who
// uses them, answer.mu what a program has asked for. Neither is taken while the other
// is held.
package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/port"
	"parley/transport/jsonrpc"
)

// Options of Programs.
type Options struct {
	Log *slog.Logger
	// Run runs a program until nothing of it is left, or ctx ends, and says how it
	// ended. An error: it did not start.
	Run     func(ctx context.Context, p Launch) (ended string, err error)
	Env     func(name string) (string, bool) // the variables of the server
	Version string
	Times   Times
	Most    int // programs at the same time; zero: 64
}

// A Launch is a program to be run.
type Launch struct {
	Argv   []string
	Env    []string
	Root   string   // the folder of the project, where it starts
	Input  *os.File // what it reads
	Reply  *os.File // what it writes
	Stderr io.Writer
}

// Times are how patient everybody is. What is zero is the default.
type Times struct {
	Start   time.Duration // to begin to speak; 1 min
	Silence time.Duration // in the middle of an answer, while nobody is asked; 10 min
	Cancel  time.Duration // to end an answer that nobody wants; 5 s
	End     time.Duration // to end after its pipe was closed; 2 s
	Idle    time.Duration // that a program is kept after an answer; 10 min
}

func (t Times) orDefault() Times {
	or := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	or(&t.Start, time.Minute)
	or(&t.Silence, 10*time.Minute)
	or(&t.Cancel, 5*time.Second)
	or(&t.End, 2*time.Second)
	or(&t.Idle, 10*time.Minute)
	return t
}

const (
	maxLine     = 8 << 20 // bytes of one message from a program: a file that is written, twice
	maxUnsent   = 16 << 20
	maxBroken   = 16   // lines of one program that say nothing: more, and it is no agent
	maxSessions = 4096 // sessions that programs that have ended can be asked to load
)

// Programs is a port.Remotes for agents with a command.
type Programs struct {
	Options
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex // guards the following; see the package comment
	running  map[key]*program
	sessions map[key]known // what programs that have ended knew
	failures map[string]failure
	closed   bool
}

var _ port.Remotes = (*Programs)(nil)

// A key is a session and the agent that it talks to, as it is started.
type key struct {
	tenant  parley.TenantID
	session parley.SessionID
	agent   string
	started string // command, variables and folder
}

// A failure is why a program did not start the last time.
type failure struct {
	err error
	at  time.Time
}

func New(o Options) *Programs {
	o.Times = o.Times.orDefault()
	if o.Most == 0 {
		o.Most = 64
	}
	p := &Programs{Options: o, running: map[key]*program{}, sessions: map[key]known{}, failures: map[string]failure{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Close ends all programs. Answers that are under way end as interrupted.
func (p *Programs) Close(context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.wg.Wait()
	return nil
}

// Unreachable says why an agent's program did not start, for as long as that may
// still be so.
func (p *Programs) Unreachable(tenant parley.TenantID, a parley.Agent) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.failures[failureKey(tenant, a)]; ok && time.Since(f.at) < time.Minute {
		return f.err
	}
	return nil
}

func failureKey(tenant parley.TenantID, a parley.Agent) string {
	return string(tenant) + "\x00" + a.Name + "\x00" + strings.Join(a.Command, "\x00")
}

// Ask hands a conversation to a program. See port.Remotes.
func (p *Programs) Ask(ctx context.Context, r port.RemoteRequest) (port.RemoteAnswer, error) {
	if r.Root == "" {
		return nil, parley.Errorf(parley.CodeUnavailable, "This session has no project in which the agent's program "+
			"could be started.")
	}
	k := key{r.Tenant, r.Session, r.Agent.Name, strings.Join(append(append([]string{r.Root}, r.Agent.Command...),
		r.Agent.Env...), "\x00")}
	at, err := p.take(ctx, k, r)
	if err != nil {
		return nil, err
	}
	a, err := at.prompt(ctx, r)
	if err != nil {
		at.release()
		return nil, err
	}
	return a, nil
}

// take finds or starts the program of a session, for its caller alone until it is
// released.
func (p *Programs) take(ctx context.Context, k key, r port.RemoteRequest) (*program, error) {
	p.mu.Lock()
	at := p.running[k]
	if at != nil && !at.over() {
		defer p.mu.Unlock()
		if at.busy {
			return nil, parley.Errorf(parley.CodeOverloaded, "The agent is still busy with the last message.")
		}
		at.busy = true
		at.idle.Stop()
		return at, nil
	}
	p.mu.Unlock()
	if at != nil {
		<-at.gone
	}
	at, err := p.start(ctx, k, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p.Log.Warn("the program of an agent does not start", "agent", r.Agent.Name, "error", err)
		err = &parley.Error{Code: parley.CodeUnavailable, Err: err,
			Message: fmt.Sprintf("The program of agent %s does not start: %v.", r.Agent.Name, err)}
		p.failures[failureKey(r.Tenant, r.Agent)] = failure{err, time.Now()}
		return nil, err
	}
	delete(p.failures, failureKey(r.Tenant, r.Agent))
	return at, nil
}

// start starts a program and has it say who it is.
func (p *Programs) start(ctx context.Context, k key, r port.RemoteRequest) (*program, error) {
	at, err := p.launch(k, r)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, p.Times.Start)
	defer cancel()
	if err := at.introduce(limited, r); err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("it did not answer within %v", p.Times.Start)
		}
		at.kill()
		<-at.gone
		if why := at.lastWords(); why != "" && ctx.Err() == nil && limited.Err() == nil {
			err = errors.New(why)
		}
		return nil, err
	}
	return at, nil
}

// launch starts the process and its goroutines.
func (p *Programs) launch(k key, r port.RemoteRequest) (*program, error) {
	if err := p.makeRoom(); err != nil {
		return nil, err
	}
	l := Launch{Argv: r.Agent.Command, Root: r.Root}
	for _, name := range r.Agent.Env {
		value, ok := p.Env(name)
		if !ok {
			return nil, fmt.Errorf("it needs %s, which is not set", name)
		}
		l.Env = append(l.Env, name+"="+value)
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		in.Close()
		return nil, err
	}
	at := newProgram(p, k, r.Agent.Name, in, out)
	l.Input, l.Reply, l.Stderr = theirIn, theirOut, &at.stderr
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		for _, f := range []*os.File{theirIn, in, out, theirOut} {
			f.Close()
		}
		return nil, errClosed
	}
	p.running[k] = at
	at.known = p.sessions[k]
	p.wg.Add(2)
	p.mu.Unlock()
	go func() {
		defer p.wg.Done()
		at.run(l)
	}()
	go func() {
		defer p.wg.Done()
		at.serve()
	}()
	return at, nil
}

var errClosed = parley.Errorf(parley.CodeUnavailable, "The server is stopping; come back in a moment.")

// makeRoom ends the program that has been idle longest, if there are too many.
func (p *Programs) makeRoom() error {
	p.mu.Lock()
	var oldest *program
	for _, at := range p.running {
		if !at.busy && (oldest == nil || at.since.Before(oldest.since)) {
			oldest = at
		}
	}
	full := len(p.running) >= p.Most
	if full && oldest != nil {
		oldest.busy = true // nobody else takes it
		oldest.idle.Stop()
	}
	p.mu.Unlock()
	switch {
	case !full:
		return nil
	case oldest == nil:
		return fmt.Errorf("%d programs of agents are at work, and no more may be", p.Most)
	}
	oldest.finish()
	return nil
}

// forget removes a program that is gone, and keeps what can be loaded of it.
func (p *Programs) forget(at *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[at.key] == at {
		delete(p.running, at.key)
	}
	at.idle.Stop()
	if at.loads && at.known.session != "" {
		if len(p.sessions) >= maxSessions {
			clear(p.sessions)
		}
		p.sessions[at.key] = at.known
	}
}

// tail keeps the end of what a program writes to stderr.
type tail struct {
	mu   sync.Mutex // guards text; leaf
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxTail):]...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(p), nil
}

const maxTail = 4 << 10 // bytes

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.text), "\uFFFD")
}

// last is the last line of it that says something.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(t.String()), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// text of an error of the program, with what it says about it.
func errorText(err error) string {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return err.Error()
	}
	text := e.Message
	if text == "" {
		text = fmt.Sprintf("error %d", e.Code)
	}
	if data := string(compact(e.Data)); data != "" && len(data) < 1000 {
		text += " " + data
	}
	return text
}
