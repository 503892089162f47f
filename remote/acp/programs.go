// Package acp connects to agents that are programs with the Agent Client Protocol: JSON-RPC over the pipes of a process
// that Parley starts.
//
// Each session of Parley has its own process for each such agent. The process is started with the first message, kept
// for some time after an answer, and started again if it has died. The program's requests for files and terminals
// become calls of the server's own tools, so policy, approvals and the sandbox apply as for every call. Its requests
// for permission become approvals. This package touches no file and runs no command itself.
//
// Goroutines: three per process, which run it, serve its connection and wait for an answer. Programs.Close waits for
// all of them.
//
// Locks, none held across I/O: Programs.mu guards the processes and their users, answer.mu the open requests of a
// program. Neither is taken while the other is held.
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

// Options are the options of Programs.
type Options struct {
	Log *slog.Logger
	// Run runs a program until all its processes have ended, or ctx ends, and returns how it ended. An error means that
	// it did not start.
	Run     func(ctx context.Context, p Launch) (ended string, err error)
	Env     func(name string) (string, bool) // looks up the server's environment variables
	Version string
	Times   Times
	Most    int // maximum number of running programs; zero: 64
}

// A Launch describes a program to run.
type Launch struct {
	Argv   []string
	Env    []string
	Root   string   // folder of the project, the working directory
	Input  *os.File // stdin of the program
	Reply  *os.File // stdout of the program
	Stderr io.Writer
}

// Times are timeouts. Zero stands for the default.
type Times struct {
	Start   time.Duration // until the program answers after its start; 1 min
	Silence time.Duration // without an update during an answer, except while a request is pending; 10 min
	Cancel  time.Duration // to end a cancelled answer; 5 s
	End     time.Duration // to exit after its pipe was closed; 2 s
	Idle    time.Duration // how long an idle program is kept; 10 min
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
	maxLine     = 8 << 20 // bytes of one message from a program: a written file, with room for escapes
	maxUnsent   = 16 << 20
	maxBroken   = 16   // invalid lines of one program before it is killed
	maxSessions = 4096 // stored sessions of ended programs that can be loaded again
)

// Programs is a port.Remotes for agents with a command.
type Programs struct {
	Options
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex // guards the fields below; see the package comment
	running  map[key]*program
	sessions map[key]known // for programs that have ended
	failures map[string]failure
	closed   bool
}

var _ port.Remotes = (*Programs)(nil)

// A key identifies a session, its agent, and how that agent is started.
type key struct {
	tenant  parley.TenantID
	session parley.SessionID
	agent   string
	started string // command, variables and folder
}

// A failure is the error of the last start of a program.
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

// Unreachable returns the error of the last start of an agent's program, for
// one minute.
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

// Ask sends a conversation to a program. See port.Remotes.
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

// take finds or starts the program of a session. The caller has it alone until
// release.
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

// start starts a program and initializes its connection.
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
		oldest.busy = true // so that no other caller takes it
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

// forget removes a program that is gone. If the program can load its session, forget keeps the session's id.
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
	mu   sync.Mutex // guards text; no other lock is taken under it
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

// last returns the last line that is not blank.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(t.String()), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// errorText returns the text of an error, with the data that a program has added to it.
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
