package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"parley"
	"parley/client"
	"parley/dialect/acp"
	"parley/port"
	"parley/transport/jsonrpc"
)

// acpCommand lets an editor that speaks the Agent Client Protocol use a server.
type acpCommand struct {
	serverFlags `embed:""`
	Agent       string `placeholder:"NAME" help:"Agent of new sessions (default: the server's first)."`
}

// Help is printed below the usage.
func (*acpCommand) Help() string {
	return `The editor starts this command. docs/dialects/acp.md has its settings.

Example:

  $ parley acp --agent helpful-assistant`
}

func (c *acpCommand) Run(p *program) error {
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	at, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer at.close()
	e := &editor{agent: c.Agent, server: at.Client, log: slog.New(slog.NewTextHandler(p.stderr, nil)),
		sessions: map[parley.SessionID]*acpSession{}}
	token := c.Token
	if token == "" {
		token, _ = p.env("PARLEY_TOKEN")
	}
	if e.patient, err = client.New(at.Address(), client.Options{Token: token, Patient: true}); err != nil {
		return err
	}
	defer e.patient.Close()
	return e.serve(ctx, p.stdin, p.stdout)
}

const (
	acpLine     = 32 << 20 // maximum bytes of one message from an editor
	acpUnsent   = 64 << 20 // maximum bytes of messages that an editor has not read
	acpRequests = 64       // maximum open requests of an editor, not counting prompts
	acpPatience = time.Minute
	acpLinger   = time.Minute // for each line to an editor that has closed its end of the pipe
)

// An editor is the connection to the editor at the other end of the pipes. It has
// one goroutine for the connection, one for each request to the server, and one for
// each open session. serve waits for all of them.
type editor struct {
	agent   string
	server  *client.Client // fails at once if the server cannot be reached
	patient *client.Client // waits until the server can be reached
	log     *slog.Logger
	conn    *jsonrpc.Conn
	ctx     context.Context
	wg      sync.WaitGroup

	mu       sync.Mutex // guards the fields below; leaf
	sessions map[parley.SessionID]*acpSession
	requests int
}

// serve handles messages until the editor closes its pipe, and answers the requests
// that came before.
func (e *editor) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	e.ctx = ctx
	e.conn = jsonrpc.New(in, out, e, jsonrpc.Options{MaxLine: acpLine, MaxUnsent: acpUnsent,
		Cancel: "$/cancel_request", Linger: acpLinger})
	served := make(chan error, 1)
	go func() { served <- e.conn.Serve() }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done(): // a read from a pipe cannot be interrupted; the process ends now
		e.conn.Close()
	}
	cancel()
	e.wg.Wait()
	if errors.Is(err, io.EOF) || errors.Is(err, jsonrpc.ErrClosed) {
		return nil
	}
	return err
}

func (e *editor) Broken(err error) error {
	e.log.Warn("a line of the editor is no message", "problem", err)
	return nil
}

func (e *editor) Notification(method string, params json.RawMessage) {
	if method != "session/cancel" {
		return
	}
	var p struct {
		Session parley.SessionID `json:"sessionId"`
	}
	_ = json.Unmarshal(params, &p) // without an id no session is found
	if s := e.session(p.Session); s != nil {
		e.wg.Go(s.cancel)
	}
}

// Request answers a request of the editor. Each request that needs the server runs
// in its own goroutine.
func (e *editor) Request(method string, params json.RawMessage, answer jsonrpc.Answer) {
	handle := map[string]func(json.RawMessage) (any, *acp.Error){
		"initialize":       e.initialize,
		"authenticate":     func(json.RawMessage) (any, *acp.Error) { return struct{}{}, nil },
		"session/new":      e.newSession,
		"session/load":     func(raw json.RawMessage) (any, *acp.Error) { return e.loadSession(raw, true) },
		"session/resume":   func(raw json.RawMessage) (any, *acp.Error) { return e.loadSession(raw, false) },
		"session/list":     e.listSessions,
		"session/close":    e.closeSession,
		"session/delete":   e.deleteSession,
		"session/set_mode": e.setMode,
	}[method]
	switch {
	case method == "session/prompt":
		e.prompt(params, answer)
		return
	case handle == nil:
		answer(nil, jsonrpc.Errorf(jsonrpc.CodeNoMethod, "There is no method %.80q.", method))
		return
	}
	e.mu.Lock()
	full := e.requests >= acpRequests
	if !full {
		e.requests++
	}
	e.mu.Unlock()
	if full {
		answer(nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%d requests are under way already.", acpRequests))
		return
	}
	e.wg.Go(func() {
		result, err := handle(params)
		e.mu.Lock()
		e.requests--
		e.mu.Unlock()
		answer(result, asRPC(err))
	})
}

// asRPC converts an error to an error of JSON-RPC.
func asRPC(err *acp.Error) *jsonrpc.Error {
	if err == nil {
		return nil
	}
	e := jsonrpc.Errorf(err.Code, "%s", err.Message)
	if err.Data != nil {
		e.Data, _ = json.Marshal(err.Data) // a string cannot fail
	}
	return e
}

// toEditor converts an error of the server, or a failed connection, to an error for
// the editor.
func toEditor(err error) *acp.Error {
	if no, ok := errors.AsType[*client.Error](err); ok {
		code := no.Code
		if code == "" && no.Status == 404 {
			code = parley.CodeNotFound
		}
		return acp.Refused(code, no.Error())
	}
	return acp.Refused(parley.CodeUnavailable, err.Error())
}

func invalid(format string, args ...any) *acp.Error {
	return acp.Refused(parley.CodeInvalid, fmt.Sprintf(format, args...))
}

func (e *editor) initialize(raw json.RawMessage) (any, *acp.Error) {
	type object = map[string]any
	return object{"protocolVersion": acp.Version, "authMethods": []any{},
		"agentInfo": object{"name": "parley", "title": "Parley", "version": version},
		"agentCapabilities": object{"loadSession": true,
			"promptCapabilities": object{"image": false, "audio": false, "embeddedContext": true},
			"mcpCapabilities":    object{"http": false, "sse": false},
			"sessionCapabilities": object{"list": object{}, "resume": object{}, "close": object{},
				"delete": object{}}}}, nil
}

// project returns the project that contains a folder of the editor. An empty result
// means the server's first project.
func (e *editor) project(folder string) (string, error) {
	projects, err := e.server.Projects(e.ctx)
	if err != nil || len(projects) == 0 {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	for _, p := range projects {
		if inside, err := filepath.Rel(p.Root, folder); err == nil && filepath.IsLocal(inside) {
			return p.Root, nil
		}
	}
	e.log.Warn("the folder of the editor is in no project of the server, so its first is used", "folder", folder,
		"project", projects[0].Root)
	return projects[0].Root, nil
}

func (e *editor) newSession(raw json.RawMessage) (any, *acp.Error) {
	var p struct {
		Folder string `json:"cwd"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, invalid("The parameters cannot be read: %v.", err)
	}
	project, err := e.project(p.Folder)
	if err != nil {
		return nil, toEditor(err)
	}
	if e.agent != "" {
		if _, err := e.server.Agent(e.ctx, project, e.agent); err != nil {
			return nil, toEditor(err)
		}
	}
	opened, err := e.server.Open(e.ctx, client.NewSession{Agent: e.agent, Project: project})
	if err != nil {
		return nil, toEditor(err)
	}
	s := e.follow(opened, true)
	select {
	case <-s.caught:
	case <-s.gone:
		return nil, s.failed()
	}
	return map[string]any{"sessionId": opened.ID, "modes": s.modes()}, nil
}

// loadSession opens an existing session. If show is true, the editor also gets the
// earlier messages.
func (e *editor) loadSession(raw json.RawMessage, show bool) (any, *acp.Error) {
	id, bad := sessionIn(raw)
	if bad != nil {
		return nil, bad
	}
	about, err := e.server.Session(e.ctx, id)
	if err != nil {
		return nil, toEditor(err)
	}
	s := e.follow(about, show)
	select {
	case <-s.caught:
	case <-s.gone:
		return nil, s.failed()
	}
	return map[string]any{"modes": s.modes()}, nil
}

// sessionIn returns the session id in the parameters of a request.
func sessionIn(raw json.RawMessage) (parley.SessionID, *acp.Error) {
	var p struct {
		Session parley.SessionID `json:"sessionId"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return "", invalid("The parameters cannot be read: %v.", err)
	}
	if !p.Session.Valid() {
		return "", acp.Refused(parley.CodeNotFound, fmt.Sprintf("There is no session %.80q.", p.Session))
	}
	return p.Session, nil
}

// listSessions lists the most recent sessions: of the project that contains a folder, or of all projects.
func (e *editor) listSessions(raw json.RawMessage) (any, *acp.Error) {
	var p struct {
		Folder string `json:"cwd"`
	}
	if err := json.Unmarshal(raw, &p); err != nil && len(raw) > 0 {
		return nil, invalid("The parameters cannot be read: %v.", err)
	}
	projects, err := e.server.Projects(e.ctx)
	var q client.SessionQuery
	if err == nil && p.Folder != "" {
		q.Project, err = e.project(p.Folder)
	}
	var list []port.Summary
	if err == nil {
		list, err = e.server.Sessions(e.ctx, q)
	}
	if err != nil {
		return nil, toEditor(err)
	}
	type info struct {
		ID      parley.SessionID `json:"sessionId"`
		Folder  string           `json:"cwd"`
		Title   string           `json:"title,omitempty"`
		Updated time.Time        `json:"updatedAt"`
	}
	sessions := []info{}
	for _, s := range list {
		folder := s.Project
		if folder == "" && len(projects) > 0 {
			folder = projects[0].Root
		}
		sessions = append(sessions, info{s.ID, folder, s.Title, s.UpdatedAt})
	}
	return map[string]any{"sessions": sessions}, nil
}

func (e *editor) closeSession(raw json.RawMessage) (any, *acp.Error) {
	id, bad := sessionIn(raw)
	if bad != nil {
		return nil, bad
	}
	if s := e.session(id); s != nil {
		s.cancel()
		s.stop()
		<-s.gone
	}
	return struct{}{}, nil
}

func (e *editor) deleteSession(raw json.RawMessage) (any, *acp.Error) {
	id, bad := sessionIn(raw)
	if bad != nil {
		return nil, bad
	}
	if err := e.server.Delete(e.ctx, id); err != nil {
		return nil, toEditor(err)
	}
	return struct{}{}, nil
}

func (e *editor) session(id parley.SessionID) *acpSession {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[id]
}

func (e *editor) setMode(raw json.RawMessage) (any, *acp.Error) {
	var p struct {
		Session parley.SessionID `json:"sessionId"`
		Mode    string           `json:"modeId"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, invalid("The parameters cannot be read: %v.", err)
	}
	s := e.session(p.Session)
	switch {
	case s == nil:
		return nil, notOpen(p.Session)
	case p.Mode != modeAct && p.Mode != string(parley.ModePlan):
		return nil, invalid("There is no mode %.40q; there are %s and %s.", p.Mode, modeAct, parley.ModePlan)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = p.Mode
	return struct{}{}, nil
}

func notOpen(id parley.SessionID) *acp.Error {
	return acp.Refused(parley.CodeNotFound, fmt.Sprintf("The session %.80q is not open here; load it first.", id))
}

// prompt sends a message. The answer follows when the log contains the end of the
// run.
func (e *editor) prompt(raw json.RawMessage, answer jsonrpc.Answer) {
	var p struct {
		Session parley.SessionID `json:"sessionId"`
		Prompt  []acp.Block      `json:"prompt"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		answer(nil, asRPC(invalid("The parameters cannot be read: %v.", err)))
		return
	}
	text, bad := acp.Prompt(p.Prompt)
	s := e.session(p.Session)
	if s == nil {
		bad = notOpen(p.Session)
	}
	if bad != nil {
		answer(nil, asRPC(bad))
		return
	}
	request := s.own + uuid.NewString()
	if bad := s.expect(request, answer); bad != nil {
		answer(nil, bad)
		return
	}
	s.mu.Lock()
	mode := s.mode
	s.mu.Unlock()
	e.wg.Go(func() {
		ctx, cancel := context.WithTimeout(e.ctx, acpPatience)
		defer cancel()
		in := client.Input{Content: text, Request: request, Key: request}
		if mode == string(parley.ModePlan) {
			in.Mode = parley.ModePlan
		}
		if _, err := e.patient.Submit(ctx, s.id, in); err != nil {
			s.answer(request, nil, toEditor(err))
		}
	})
}
