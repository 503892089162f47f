package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Table A: authentication. The ids are those of docs/threats.md.

const app = "https://app.example.com"

// TestHandshakeTokens: all of these tokens are refused.
func TestHandshakeTokens(t *testing.T) {
	t.Parallel()
	s := startServer(t, jwt("PARLEY_JWT_AUDIENCE=tests"))
	var dials atomic.Int32
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { dials.Add(1) }))
	defer evil.Close()

	const hs256 = `{"alg":"HS256","typ":"JWT"}`
	now := time.Now().Unix()
	// claims returns good claims with changes: a value of "" leaves the claim
	// out.
	claims := func(changes ...string) string {
		all := map[string]json.RawMessage{"iss": json.RawMessage(`"parley"`), "aud": json.RawMessage(`"tests"`),
			"sub": json.RawMessage(`"ann"`),
			"tid": json.RawMessage(`"acme"`), "roles": json.RawMessage(`["standard_user"]`),
			"type": json.RawMessage(`"access"`),
			"iat":  fmt.Append(nil, now), "exp": fmt.Append(nil, now+600)}
		for i := 0; i < len(changes); i += 2 {
			if all[changes[i]] = json.RawMessage(changes[i+1]); changes[i+1] == "" {
				delete(all, changes[i])
			}
		}
		var parts []string
		for name, value := range all { // not json.Marshal, which refuses numbers such as 1e400
			parts = append(parts, fmt.Sprintf("%q:%s", name, value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	signed := func(changes ...string) string { return handmade(hs256, claims(changes...), secret) }
	headed := func(header string) string { return handmade(header, claims(), secret) }
	at := func(seconds int64) string { return fmt.Sprint(now + seconds) }
	unsigned := func(header string) string {
		token := headed(header)
		return token[:strings.LastIndexByte(token, '.')+1]
	}
	b64 := base64.RawURLEncoding.EncodeToString
	parts := strings.Split(signed(), ".")

	good := &visitor{s, "ann", signed()} // the base of the cases below
	good.must(http.StatusOK, http.MethodGet, "/api/v1/sessions", "")
	good.rawSocket("")
	for _, c := range []struct {
		id     string
		tokens map[string]string
	}{
		{"A01", map[string]string{"nothing": "", "not a token": "x"}},
		{"A02", map[string]string{"none": unsigned(`{"alg":"none"}`), "None": unsigned(`{"alg":"None"}`),
			"nOnE":         unsigned(`{"alg":"nOnE"}`),
			"none, signed": headed(`{"alg":"none"}`), "HS256, not signed": unsigned(hs256),
			"no alg": headed(`{"typ":"JWT"}`)}},
		{"A03", map[string]string{"RS256": headed(`{"alg":"RS256"}`), "ES256": headed(`{"alg":"ES256"}`),
			"HS512": headed(`{"alg":"HS512"}`), "PS256": headed(`{"alg":"PS256"}`)}},
		{"A04", map[string]string{"an empty file": handmade(`{"alg":"HS256","kid":"../../dev/null"}`, claims(), ""),
			"SQL":       handmade(`{"alg":"HS256","kid":"' OR 1=1--"}`, claims(), ""),
			"a URL":     handmade(`{"alg":"HS256","kid":"`+evil.URL+`"}`, claims(), "x"),
			"129 bytes": headed(`{"alg":"HS256","kid":"` + strings.Repeat("k", 129) + `"}`),
			"9 KB":      headed(`{"alg":"HS256","kid":"` + strings.Repeat("k", 9000) + `"}`),
			"a number":  headed(`{"alg":"HS256","kid":7}`)}},
		{"A05", map[string]string{
			"jwk": handmade(`{"alg":"HS256","jwk":{"kty":"oct","k":"`+b64([]byte(evilKey))+`"}}`, claims(), evilKey),
			"jku": handmade(`{"alg":"HS256","jku":"`+evil.URL+`"}`, claims(), evilKey),
			"x5u": handmade(`{"alg":"HS256","x5u":"`+evil.URL+`"}`, claims(), evilKey),
			"x5c": handmade(`{"alg":"HS256","x5c":["`+b64([]byte(evilKey))+`"]}`, claims(), evilKey)}},
		{"A06", map[string]string{"crit": headed(`{"alg":"HS256","crit":["exp"]}`),
			"crit of nothing": headed(`{"alg":"HS256","crit":[]}`),
			"unknown crit":    headed(`{"alg":"HS256","crit":["x"],"x":1}`)}},
		{"A07", map[string]string{"expired": signed("exp", at(-1)), "missing": signed("exp", ""),
			"a string": signed("exp", `"`+at(600)+`"`),
			"a float":  signed("exp", at(600)+".5"), "1e400": signed("exp", "1e400"), "1e11": signed("exp", "1e11"),
			"negative": signed("exp", "-1"), "null": signed("exp", "null"),
			"two years ahead": signed("exp", at(2*366*86400))}},
		{"A08", map[string]string{"nbf ahead": signed("nbf", at(60)), "iat ahead": signed("iat", at(60)),
			"nbf a string": signed("nbf", `"0"`)}},
		{"A09", map[string]string{"iss": signed("iss", `"evil"`), "no iss": signed("iss", ""),
			"aud": signed("aud", `"others"`), "auds": signed("aud", `["others","more"]`), "no aud": signed("aud", ""),
			"aud an object": signed("aud", `{"tests":1}`)}},
		{"A10", map[string]string{"refresh": signed("type", `"refresh"`), "id": signed("type", `"id"`),
			"no type": signed("type", ""), "typ of a refresh token": headed(`{"alg":"HS256","typ":"rt+jwt"}`),
			"typ of a security event": headed(`{"alg":"HS256","typ":"secevent+jwt"}`)}},
		{"A11", map[string]string{"missing": signed("tid", ""), "empty": signed("tid", `""`),
			"capitals": signed("tid", `"ACME"`), "a list": signed("tid", `["acme"]`), "null": signed("tid", "null"),
			"a path": signed("tid", `"../acme"`), "64 letters": signed("tid", `"`+strings.Repeat("a", 64)+`"`),
			"NUL": signed("tid", `"acme\u0000"`), "subjects": signed("tid", `"acme.>"`), "no sub": signed("sub", ""),
			"no roles": signed("roles", "")}},
		{"A12", map[string]string{"tid twice": handmade(hs256, strings.Replace(claims(), "{", `{"tid":"rival",`, 1),
			secret), "twice by an escape": handmade(hs256, strings.Replace(claims(), "{", `{"\u0074id":"rival",`, 1),
			secret), "alg twice": headed(`{"alg":"none","alg":"HS256"}`)}},
		{"A13", map[string]string{"JSON": fmt.Sprintf(`{"protected":%q,"payload":%q,"signature":%q}`, parts[0],
			parts[1], parts[2]), "detached": parts[0] + ".." + parts[2], "five parts": strings.Join(parts, ".") +
			".x.y",
			"two parts": parts[0] + "." + parts[1], "nested": handmade(`{"alg":"HS256","cty":"JWT"}`, `"`+signed()+`"`,
				secret), "JWE": b64([]byte(`{"alg":"dir","enc":"A256GCM"}`)) + "..x.y.z"}},
		{"A14", map[string]string{"padded": signed() + "=", "one bit": signed()[:len(signed())-2] + "AA",
			"a blank within": parts[0] + " ." + parts[1] + "." + parts[2],
			"other alphabet": strings.ReplaceAll(signed("sub", `"???>>>"`), "_", "/") + "/"}},
	} {
		t.Run(c.id, func(t *testing.T) {
			for name, token := range c.tokens {
				t.Run(name, func(t *testing.T) { s.in(t).tries(token, http.StatusUnauthorized) })
			}
		})
	}
	if n := dials.Load(); n > 0 {
		t.Errorf("A05: the address a token names was called %d times", n)
	}
	// A21: no part of a token is in the log, for any way of refusal.
	s.stop()
	noTokens(t, s)
}

const evilKey = "a key of somebody else, also long enough"

// noTokens looks for tokens, all of which begin alike, in the log of a server.
func noTokens(t *testing.T, s *server) {
	t.Helper()
	for _, line := range s.log.all() {
		for _, part := range []string{"eyJ", secret, "Bearer"} {
			if strings.Contains(line, part) {
				t.Errorf("A21: the log has %q: %s", part, line)
			}
		}
	}
}

// TestHandshakeEnds: a connection ends when its token expires.
func TestHandshakeEnds(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt()), startNode(t)
	t.Run("A15 revoked", func(t *testing.T) {
		t.Parallel()
		s, n := s.in(t), n.in(t)
		ann, bob, admin := s.user("ann"), s.user("bob"), s.visitor("root@acme", time.Hour, "org_admin")
		c, other := ann.dial(n, newThread()), bob.dial(n, newThread())
		_, log := ann.followed(within(t, patience), "/api/v1/sessions/"+c.thread+"/log")
		c.ask("count to 50")
		c.pieces(2)
		start := time.Now()
		admin.must(http.StatusOK, http.MethodPost, "/api/v1/users/ann/revoke", "{}")
		if err := <-log; err != nil {
			t.Errorf("the followed log: %v", err)
		}
		if code := c.gone(); code != 1008 {
			t.Errorf("the socket was closed with %d", code)
		}
		since(t, start, 5*time.Second, "revocation")
		if status, body := ann.ask(http.MethodGet, "/api/v1/sessions", ""); status != http.StatusUnauthorized {
			t.Errorf("who was revoked comes again: %d %s", status, body)
		}
		silent(t, other)
	})
	t.Run("A16 expired", func(t *testing.T) {
		t.Parallel()
		s, n := s.in(t), n.in(t)
		long := s.user("eve")
		start := time.Now()
		first := long.dial(n, newThread())
		silent(t, first)
		first.close()
		busy := 10 * time.Since(start) // ten times as long as a connection and an answer take on this machine now
		expires := time.Now().Add(3*time.Second + busy).Truncate(time.Second)
		brief := s.visitor("eve@acme", time.Until(expires), "standard_user")
		c := brief.dial(n, newThread())
		c.ask("count slowly to 1000")
		c.pieces(2)
		code := c.gone()
		if late := time.Since(expires); code != 1008 || late > time.Second+busy {
			t.Errorf("closed with %d, %v after the token expired", code, late)
		}
		s.tries(brief.token, http.StatusUnauthorized)
		// The run belongs to no socket: it goes on, and a client that returns
		// gets it.
		again := long.dial(n, c.thread)
		frames := again.pieces(len(c.events.all()) + 10)
		again.cancel(frames[0].RequestID)
		if a := again.rest(frames...); a.ending != "cancelled" {
			t.Errorf("the run ended as %s", a.ending)
		}
	})
	t.Run("A17 another token on an open socket", func(t *testing.T) {
		t.Parallel()
		s, n := s.in(t), n.in(t)
		dan := s.user("dan")
		c := dan.dial(n, newThread())
		c.send(map[string]any{"type": "auth.refresh", "token": s.visitor("root@rival", time.Hour, "org_admin").token})
		if f := c.expect("error"); !strings.Contains(f.Error, "auth.refresh") {
			t.Errorf("want that there is no such type, got %s", f.raw)
		}
		c.ask("repeat who am I")
		c.completed()
		for _, e := range dan.events(c.thread) {
			if e.Type == "InputReceived" && e.By != "dan" {
				t.Errorf("the input is %s's", e.By)
			}
		}
	})
	t.Run("A30 who may only read", func(t *testing.T) {
		t.Parallel()
		reader := s.in(t).visitor("rae@acme", time.Hour, "read_only")
		c := reader.open(n, newThread())
		c.opened()
		c.closed(1008)
		reader.must(http.StatusForbidden, http.MethodPost, "/api/v1/sessions", "{}")
	})
}

// TestHandshakeTickets: a ticket is valid once, and only for the origin it was
// bought for.
func TestHandshakeTickets(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt("PARLEY_ALLOWED_ORIGINS="+app+",https://other.example.com")), startNode(t)
	ann := s.user("ann")
	open := func(t *testing.T, ticket, origin string, more ...string) *socket {
		headers := map[string]string{}
		if origin != "" {
			headers["Origin"] = origin
		}
		return n.in(t).open("ws://"+s.address+"/api/chat/ws?threadId="+newThread()+"&ticket="+ticket+strings.Join(more,
			""), headers)
	}
	t.Run("A18 twice", func(t *testing.T) {
		ticket := ann.in(t).ticket("")
		open(t, ticket, "").opened()
		if status, _ := open(t, ticket, "").refused(); status != http.StatusUnauthorized {
			t.Errorf("the second time: %d", status)
		}
	})
	t.Run("A18 at the same time", func(t *testing.T) {
		ann := ann.in(t)
		ticket := ann.ticket("")
		var won, lost atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			w := ann.wire("")
			wg.Go(func() {
				w.send(upgrade(s, "threadId="+newThread()+"&ticket="+ticket, ""))
				switch status, _ := w.status(); status {
				case http.StatusSwitchingProtocols:
					won.Add(1)
				case http.StatusUnauthorized:
					lost.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || lost.Load() != 7 {
			t.Errorf("%d got in, %d did not", won.Load(), lost.Load())
		}
	})
	t.Run("A19 of another origin", func(t *testing.T) {
		for name, c := range map[string]struct{ bought, used string }{
			"another page's": {app, "https://other.example.com"}, "no page's": {app, ""}, "a page's": {"", app},
		} {
			ticket := ann.in(t).ticket(c.bought)
			if status, _ := open(t, ticket, c.used).refused(); status != http.StatusUnauthorized {
				t.Errorf("%s: %d", name, status)
			}
			if status, _ := open(t, ticket, c.bought).refused(); status != http.StatusUnauthorized {
				t.Errorf("%s, then its own: %d: a ticket that was tried is used up", name, status)
			}
		}
		open(t, ann.in(t).ticket(app), app).opened()
	})
	t.Run("A19 that never was", func(t *testing.T) {
		for _, ticket := range []string{"", "x", strings.Repeat("A", 43), strings.Repeat("A", 10_000)} {
			if status, _ := open(t, ticket, "").refused(); status != http.StatusUnauthorized {
				t.Errorf("%.10q: %d", ticket, status)
			}
		}
	})
	t.Run("A20 two credentials", func(t *testing.T) {
		ann := ann.in(t)
		for name, query := range map[string]string{"ticket and token": "&access_token=" + ann.token,
			"ticket twice": "&ticket=x"} {
			if status, _ := open(t, ann.ticket(""), "", query).refused(); status != http.StatusBadRequest {
				t.Errorf("%s: %d", name, status)
			}
		}
		if status, body := ann.ask(http.MethodGet, "/api/v1/sessions?ticket="+ann.ticket(""),
			""); status != http.StatusBadRequest {
			t.Errorf("header and ticket: %d %s", status, body)
		}
		response := s.request(within(t, patience), http.MethodPost, "/api/v1/tickets?ticket="+ann.ticket(""),
			http.Header{"Content-Type": {"application/json"}}, "{}")
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("a ticket for a ticket: %d", response.StatusCode)
		}
	})
	t.Run("A20 in the address", func(t *testing.T) {
		on := n.in(t).open("ws://"+s.address+"/api/chat/ws?threadId="+newThread()+"&access_token="+ann.token, nil)
		on.opened()
		off := startServer(t, jwt("PARLEY_QUERY_TOKEN=off"))
		if status, _ := n.in(t).open("ws://"+off.address+"/api/chat/ws?threadId="+newThread()+"&access_token="+
			ann.token, nil).refused(); status != http.StatusUnauthorized {
			t.Errorf("with PARLEY_QUERY_TOKEN=off: %d", status)
		}
		off.stop()
		noTokens(t, off)
	})
	t.Run("A22 origins", func(t *testing.T) {
		for origin, ok := range map[string]bool{app: true, "": true, "https://evil.example": false, "null": false,
			app + ".evil": false, "http://app.example.com": false,
			app + ":443": false, app + ":8443": false, "https://app.example.com@evil.example": false,
			"https://APP.example.com": false, app + "/": false,
			"https://аpp.example.com": false, "http://" + s.address: false, "https://app.example.comㅤ": false} {
			header, line := ann.header(), ""
			if origin != "" {
				header.Set("Origin", origin)
				line = "Origin: " + origin + "\r\n"
			}
			api, ws := http.StatusOK, http.StatusSwitchingProtocols
			if !ok {
				api, ws = http.StatusForbidden, http.StatusForbidden
			}
			if status, _ := s.in(t).get("/api/v1/sessions", header); status != api {
				t.Errorf("%q: %d", origin, status)
			}
			if status, _ := s.in(t).wire(upgrade(s, "threadId="+newThread(), "Authorization: Bearer "+ann.token+"\r\n"+
				line)).status(); status != ws {
				t.Errorf("%q: the upgrade: %d", origin, status)
			}
		}
		w := ann.in(t).wire(upgrade(s, "threadId="+newThread(), "Authorization: Bearer "+ann.token+"\r\nOrigin: "+app+
			"\r\nOrigin: https://evil.example\r\n"))
		if status, _ := w.status(); status != http.StatusForbidden {
			t.Errorf("two origins: %d", status)
		}
	})
	t.Run("A23 a cookie is no credential", func(t *testing.T) {
		header := http.Header{"Cookie": {"access_token=" + ann.token + "; token=" + ann.token + "; session=" +
			ann.token}}
		if status, _ := s.in(t).get("/api/v1/sessions", header); status != http.StatusUnauthorized {
			t.Errorf("%d", status)
		}
		if status, _ := n.in(t).open("ws://"+s.address+"/api/chat/ws?threadId="+newThread(),
			map[string]string{"Cookie": header.Get("Cookie"),
				"Origin": app}).refused(); status != http.StatusUnauthorized {
			t.Errorf("the upgrade: %d", status)
		}
	})
	t.Run("A26 a protocol is no credential, and not repeated", func(t *testing.T) {
		w := s.in(t).wire(upgrade(s, "threadId="+newThread(), "Sec-WebSocket-Protocol: chat, bearer."+ann.token+"\r\n"))
		if status, _ := w.status(); status != http.StatusUnauthorized {
			t.Errorf("%d", status)
		}
		_, header := ann.in(t).rawSocket("Sec-WebSocket-Protocol: bearer." + ann.token +
			"\r\nSec-WebSocket-Extensions: permessage-deflate\r\n")
		if header.Get("Sec-WebSocket-Protocol") != "" || header.Get("Sec-WebSocket-Extensions") != "" ||
			header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("the answer has %v", header)
		}
	})
	s.stop()
	noTokens(t, s)
}
