package e2e

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	big "encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/access"
	"parley/port"
)

const secret = "a secret of more than thirty-two bytes"

// jwt returns the settings of a server that accepts tokens, without rate
// limits; further settings follow.
func jwt(env ...string) options {
	return options{
		env: slices.Concat([]string{"PARLEY_AUTH=jwt", "PARLEY_JWT_SECRET=" + secret, "PARLEY_DEFAULT_TENANT=acme",
			"PARLEY_LIMIT_CONNECTIONS=off", "PARLEY_LIMIT_MESSAGES=off", "PARLEY_LIMIT_RECONNECTIONS=off"}, env)}
}

// A visitor is a user with a token of a server.
type visitor struct {
	*server
	name, token string
}

// visitor makes a token: user@tenant with a role and a lifetime.
func (s *server) visitor(name string, life time.Duration, roles ...parley.UserRole) *visitor {
	s.t.Helper()
	user, tenant, _ := strings.Cut(name, "@")
	now := time.Now()
	token, err := access.Mint(secret, access.Claims{Issuer: "parley", Audience: "tests", Issued: now,
		Expires: now.Add(life), ID: rand.Text(),
		Principal: port.Principal{ID: parley.PrincipalID(user), Tenant: parley.TenantID(tenant), Roles: roles}})
	if err != nil {
		s.t.Fatal(err)
	}
	return &visitor{s, name, token}
}

// user is a standard user of acme, or of the tenant after an @.
func (s *server) user(name string) *visitor {
	s.t.Helper()
	if !strings.Contains(name, "@") {
		name += "@acme"
	}
	return s.visitor(name, time.Hour, "standard_user")
}

func (v *visitor) in(t *testing.T) *visitor { return &visitor{v.server.in(t), v.name, v.token} }

func (v *visitor) header() http.Header {
	return http.Header{"Authorization": {"Bearer " + v.token}, "Content-Type": {"application/json"}}
}

// ask sends a request and reads the answer.
func (v *visitor) ask(method, path, body string) (status int, answer string) {
	v.t.Helper()
	response := v.request(within(v.t, patience), method, path, v.header(), body)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response.StatusCode, string(raw)
}

// must is ask for requests with one valid status.
func (v *visitor) must(status int, method, path, body string) string {
	v.t.Helper()
	got, answer := v.ask(method, path, body)
	if got != status {
		v.t.Fatalf("%s: %s %s: %d %s", v.name, method, path, got, answer)
	}
	return answer
}

// open begins a connection to a thread; its outcome is the first event.
func (v *visitor) open(n *node, thread string) *socket {
	v.t.Helper()
	c := n.in(v.t).open("ws://"+v.address+"/api/chat/ws?threadId="+thread+"&cards=1",
		map[string]string{"Authorization": "Bearer " + v.token})
	c.thread = thread
	return c
}

// dial connects to a thread. When it returns, the server has entered the
// thread.
func (v *visitor) dial(n *node, thread string) *socket {
	v.t.Helper()
	c := v.open(n, thread)
	c.opened()
	c.settle()
	return c
}

// events reads a thread's log up to now.
func (v *visitor) events(thread string) (events []event) {
	v.t.Helper()
	for line := range strings.Lines(v.must(http.StatusOK, http.MethodGet, "/api/v1/sessions/"+thread+"/log", "")) {
		events = append(events, parseEvent(v.t, line))
	}
	return events
}

// ticket buys a ticket for pages of an origin; without an origin, for clients
// that are no browsers.
func (v *visitor) ticket(origin string) string {
	v.t.Helper()
	header := v.header()
	if origin != "" {
		header.Set("Origin", origin)
	}
	response := v.request(within(v.t, patience), http.MethodPost, "/api/v1/tickets", header, "{}")
	defer response.Body.Close()
	var bought struct{ Ticket string }
	if err := json.NewDecoder(response.Body).Decode(&bought); err != nil || bought.Ticket == "" {
		v.t.Fatalf("no ticket: %d, %v", response.StatusCode, err)
	}
	return bought.Ticket
}

// handmade signs any header and claims, given as JSON.
func handmade(header, claims, key string) string {
	signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(
		[]byte(claims))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// upgrade returns the bytes of an upgrade request for thread chat, which a case
// may change.
func upgrade(s *server, query, more string) string {
	return "GET /api/chat/ws?" + query + " HTTP/1.1\r\nHost: " + s.address +
		"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" + more + "\r\n"
}

// A wire is a connection without a client library, for any bytes that a test
// sends.
type wire struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

// wire connects and sends bytes.
func (s *server) wire(bytes string) *wire {
	s.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(within(s.t, patience), "tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	w := &wire{s.t, conn, bufio.NewReader(conn)}
	w.send(bytes)
	return w
}

func (w *wire) send(bytes string) {
	w.t.Helper()
	if _, err := io.WriteString(w, bytes); err != nil {
		w.t.Logf("sending: %v", err) // the server may have hung up; its response is checked
	}
}

// status reads the next response and returns its status and headers. The
// Connection header shows whether the connection stays open.
func (w *wire) status() (int, http.Header) {
	w.t.Helper()
	response, err := http.ReadResponse(w.r, nil)
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	if response.Close {
		response.Header.Set("Connection", "close")
	}
	return response.StatusCode, response.Header
}

// A rawSocket is a wire after the upgrade.
func (v *visitor) rawSocket(more string) (*wire, http.Header) {
	v.t.Helper()
	w := v.wire(upgrade(v.server, "threadId="+newThread(), "Authorization: Bearer "+v.token+"\r\n"+more))
	status, header := w.status()
	if status != http.StatusSwitchingProtocols {
		v.t.Fatalf("the upgrade: %d", status)
	}
	return w, header
}

// masked returns a frame as clients send it, from the first byte and a payload.
func masked(first byte, payload string) string {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = big.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = big.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return string(append(b, 0, 0, 0, 0)) + payload // a mask of zeros changes nothing
}

// goodbye reads frames up to the close and returns its code.
func (w *wire) goodbye() int {
	w.t.Helper()
	for {
		var head [2]byte
		if _, err := io.ReadFull(w.r, head[:]); err != nil {
			w.t.Fatalf("no goodbye: %v", err)
		}
		n := uint64(head[1])
		switch n {
		case 126:
			var b [2]byte
			_, _ = io.ReadFull(w.r, b[:]) // on an error, the next read fails too
			n = uint64(big.BigEndian.Uint16(b[:]))
		case 127:
			var b [8]byte
			_, _ = io.ReadFull(w.r, b[:])
			n = big.BigEndian.Uint64(b[:])
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(w.r, payload); err != nil {
			w.t.Fatalf("half a frame: %v", err)
		}
		if head[0] == 0x88 && n >= 2 {
			return int(big.BigEndian.Uint16(payload))
		}
	}
}

// tries asks for a session list and a socket with a token, or without one if it
// is empty. Both must be refused alike.
func (s *server) tries(token string, want int) {
	s.t.Helper()
	for _, path := range []string{"/api/v1/sessions", "/api/chat/ws?threadId=" + newThread()} {
		header := http.Header{}
		if token != "" {
			header.Set("Authorization", "Bearer "+token)
		}
		if strings.Contains(path, "/ws") {
			for name, value := range map[string]string{"Upgrade": "websocket", "Connection": "Upgrade",
				"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
				header.Set(name, value)
			}
		}
		response := s.request(within(s.t, patience), http.MethodGet, path, header, "")
		body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		response.Body.Close()
		if response.StatusCode != want {
			s.t.Errorf("%s: %d %s, want %d", path, response.StatusCode, body, want)
		}
		for part := range strings.SplitSeq(token, ".") {
			if len(part) > 16 && strings.Contains(string(body), part) {
				s.t.Errorf("%s: the answer repeats the token", path)
			}
		}
	}
}

// followed reads a log that is followed until it ends, or ctx does.
func (v *visitor) followed(ctx context.Context, path string) (*http.Response, <-chan error) {
	v.t.Helper()
	header := v.header()
	header.Set("Accept", "text/event-stream")
	response := v.request(ctx, http.MethodGet, path, header, "")
	if response.StatusCode != http.StatusOK {
		v.t.Fatalf("%s: %d", path, response.StatusCode)
	}
	ended := make(chan error, 1)
	go func() {
		defer response.Body.Close()
		_, err := io.Copy(io.Discard, response.Body)
		ended <- err
	}()
	return response, ended
}

// since fails if something took longer than allowed.
func since(t *testing.T, start time.Time, most time.Duration, what string) {
	t.Helper()
	if took := time.Since(start); took > 4*most { // a busy machine is not the server's fault
		t.Errorf("%s took %v, more than four times %v", what, took, most)
	}
}

// errorCode is the code of a refusal of /api/v1.
func errorCode(t *testing.T, body string) string {
	t.Helper()
	var refusal struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(body), &refusal); err != nil || refusal.Error.Message == "" {
		t.Fatalf("%v in the refusal %s", err, body)
	}
	return fmt.Sprint(refusal.Error.Code)
}
