// Package mcpserver offers the agents of a server as tools of the Model Context Protocol, over Streamable HTTP:
// list_agents, ask_agent and get_session.
package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/strictjson"
)

// Limits for clients. A client is what the protocol also calls a session.
const (
	maxClients = 1000
	maxOwn     = 100       // clients of one principal
	idleClient = time.Hour // maximum time without a request
	maxBody    = 4 << 20
)

// Handler serves /mcp. It owns the long calls until Close, even if the connection of their client is lost.
type Handler struct {
	Door    port.Door
	Agents  port.ProjectAgents
	Guard   dialect.AnswerGuard
	Log     *slog.Logger
	Console string // address of the server as browsers know it; empty: unknown
	Version string

	once sync.Once
	web  *sdk.StreamableHTTPHandler
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex // guards the fields below; leaf
	servers map[string]*sdk.Server
	calls   map[*call]bool
	closed  bool
}

// Routes returns the routes to serve.
func (h *Handler) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"GET /mcp": h.serve, "POST /mcp": h.serve, "DELETE /mcp": h.serve}
}

type serverKey struct{}

func (h *Handler) init() {
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.servers, h.calls = map[string]*sdk.Server{}, map[*call]bool{}
	h.web = sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		s, _ := r.Context().Value(serverKey{}).(*sdk.Server)
		return s
	}, &sdk.StreamableHTTPOptions{
		EventStore:     events{sdk.NewMemoryEventStore(nil)}, // 10 MiB for all clients
		SessionTimeout: idleClient,
		// The entrance checks Host and Origin, and knows the trusted proxies.
		DisableLocalhostProtection: true,
		MaxRequestBodyBytes:        maxBody,
		Logger:                     slog.New(slog.DiscardHandler),
	})
}

// events keeps the messages of streams, so that clients can resume them.
type events struct{ *sdk.MemoryEventStore }

var errNoMessage = errors.New("the stream has had no such message")

// After also fails if the stream has not had the message with this index yet. The SDK would go on with wrong indexes.
func (e events) After(ctx context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		more := false
		for data, err := range e.MemoryEventStore.After(ctx, session, stream, index) {
			more = true
			if !yield(data, err) {
				return
			}
		}
		if more || index < 0 {
			return
		}
		for range e.MemoryEventStore.After(ctx, session, stream, index-1) {
			return // it is the last message
		}
		yield(nil, errNoMessage)
	}
}

const clientHeader = "Mcp-Session-Id"

// serve handles one request. Every request has a credential, which must be of the client's principal.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	h.once.Do(h.init)
	who, stay, err := h.Guard.Begin(r, "")
	if err == nil {
		err = h.Door.May(r.Context(), who, parley.ActRead,
			port.Resource{Kind: port.OwnSessions, Tenant: who.Tenant})
	}
	client := r.Header.Get(clientHeader)
	var server *sdk.Server
	if err == nil {
		server, err = h.server(who, client)
	}
	var visit port.Visit
	if err == nil {
		visit, err = stay()
	}
	if err != nil {
		dialect.LogFailure(h.Log, err)
		dialect.WriteJSON(w, dialect.Status(err, w.Header()), json.RawMessage(refusal(dialect.Words(err))))
		return
	}
	ctx, leave := dialect.Attend(r.Context(), visit)
	defer leave()
	ctx, cancel := context.WithCancel(context.WithValue(ctx, serverKey{}, server))
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	if r.Method == http.MethodDelete {
		h.leave(client)
	}
	out := &patientWriter{ResponseWriter: w}
	if r.Method == http.MethodPost {
		if err := readBody(w, r); err != nil {
			http.Error(out, parley.MessageOf(err), dialect.Status(err, w.Header()))
			return
		}
	}
	h.web.ServeHTTP(out, r.WithContext(ctx))
}

// readBody reads the body of a request for the SDK. It refuses a message with a repeated key: the SDK would take the
// last value. The arguments of tools are decoded elsewhere.
func readBody(w http.ResponseWriter, r *http.Request) error {
	data, err := dialect.ReadAll(w, r, maxBody)
	if err != nil {
		return err
	}
	if !utf8.Valid(data) {
		return dialect.ErrNotUTF8
	}
	const levels = 2 // the message and its parameters
	if json.Valid(data) {
		if key, repeated := strictjson.RepeatedKey(data, levels); repeated {
			return dialect.Invalid("The key %q is there twice", key)
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	return nil
}

// server returns the server of a principal, with tools that act for it. The id of a client begins with the key of its
// principal and roles. So no other principal can use it, nor the same one with other roles.
func (h *Handler) server(who port.Principal, client string) (*sdk.Server, error) {
	key := keyOf(who)
	if client != "" && !strings.HasPrefix(client, key+".") {
		return nil, parley.Errorf(parley.CodeNotFound, "There is no such MCP session. Initialize a new one.")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, parley.Errorf(parley.CodeUnavailable, "The server is stopping; come back in a moment.")
	}
	if client == "" {
		clients := 0
		for k, s := range h.servers {
			n := count(s)
			if clients += n; n == 0 && k != key {
				delete(h.servers, k)
			}
			if k == key && n >= maxOwn {
				return nil, parley.Errorf(parley.CodeLimited, "You have %d MCP clients connected already; end one of "+
					"them first (DELETE with its Mcp-Session-Id).", maxOwn)
			}
		}
		if clients >= maxClients {
			return nil, parley.Errorf(parley.CodeOverloaded, "%d MCP clients are connected already; come back later.",
				maxClients)
		}
	}
	if h.servers[key] == nil {
		h.servers[key] = h.newServer(who, key)
	}
	return h.servers[key], nil
}

func count(s *sdk.Server) (n int) {
	for range s.Sessions() {
		n++
	}
	return n
}

// keyOf returns a key for a principal with its roles.
func keyOf(who port.Principal) string {
	var roles []string
	for _, r := range who.Roles {
		roles = append(roles, string(r))
	}
	return string(dialect.SessionFor(who, "mcp client", strings.Join(roles, " ")))
}

func (h *Handler) newServer(who port.Principal, key string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "parley", Title: "Parley", Version: h.Version}, &sdk.ServerOptions{
		Instructions: "Ask the agents of this server. list_agents names them; ask_agent returns the answer and the " +
			"session, which a later call can go on with.",
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		GetSessionID: func() string { return key + "." + rand.Text() },
	})
	h.addTools(s, who)
	return s
}

// call is a long tool call.
type call struct {
	client string
	leave  context.CancelCauseFunc
}

var errLeft = parley.Errorf(parley.CodeUnavailable, "The client has left, or the server is stopping. The run goes on.")

// begin returns the context of a long call. It ends when the client leaves or the server stops, which does not stop the
// run, and when the client cancels the call.
func (h *Handler) begin(ctx context.Context, client string) (_ context.Context, done func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, errLeft
	}
	ctx, leave := context.WithCancelCause(ctx)
	c := &call{client, leave}
	h.calls[c] = true
	h.wg.Add(1)
	return ctx, func() {
		leave(nil)
		h.mu.Lock()
		delete(h.calls, c)
		h.mu.Unlock()
		h.wg.Done()
	}, nil
}

// leave ends the calls of a client, or all calls if client is empty.
func (h *Handler) leave(client string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.calls {
		if client == "" || c.client == client {
			c.leave(errLeft)
		}
	}
}

// Close ends all calls and connections. Runs continue.
func (h *Handler) Close(context.Context) error {
	h.once.Do(h.init)
	h.mu.Lock()
	h.closed = true
	servers := h.servers
	h.servers = nil
	h.mu.Unlock()
	h.leave("")
	h.wg.Wait()
	for _, s := range servers {
		for client := range s.Sessions() {
			_ = client.Close() // its calls have ended
		}
	}
	h.stop()
	return nil
}

// patientWriter gives each write of a stream its own deadline, as transport.Stream does. It converts the SDK's
// plain-text refusals to JSON-RPC errors.
type patientWriter struct {
	http.ResponseWriter
	plain bool // a plain-text refusal is being written
}

const writeWithin = 10 * time.Second

func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patientWriter) WriteHeader(status int) {
	h := w.Header()
	if w.plain = status >= 400 && strings.HasPrefix(h.Get("Content-Type"), "text/plain"); w.plain {
		h.Set("Content-Type", "application/json")
		h.Del("Content-Length")
	}
	w.ResponseWriter.WriteHeader(status)
}

// refusal converts a text, which may be of the SDK, to a JSON-RPC error. The id of the request is unknown.
func refusal(text string) []byte {
	text = strings.TrimSpace(text)
	code := -32600
	if strings.HasPrefix(text, "malformed payload") {
		code = -32700
	}
	return dialect.Encode(map[string]any{"jsonrpc": "2.0", "id": nil,
		"error": map[string]any{"code": code, "message": text}})
}

func (w *patientWriter) Write(b []byte) (int, error) {
	if w.plain {
		_, err := w.ResponseWriter.Write(refusal(string(b)))
		return len(b), err
	}
	rc := http.NewResponseController(w.ResponseWriter)
	_ = rc.SetWriteDeadline(time.Now().Add(writeWithin)) // not all connections have one
	return w.ResponseWriter.Write(b)
}

func (w *patientWriter) FlushError() error {
	rc := http.NewResponseController(w.ResponseWriter)
	err := rc.Flush()
	_ = rc.SetWriteDeadline(time.Time{})
	return err
}
