package e2e

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Table C: no data of one tenant reaches another. The ids are those of
// docs/threats.md.

// TestForeignObjects: C02, every route that takes an id, called by a user
// without access to the object. The response is identical to the one for an
// object that does not exist.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt()), startNode(t)
	mark := rand.Text()
	owner := s.user("ann")
	c := owner.dial(n, newThread())
	card := asksToWrite(t, c, mark, "note.txt")
	before := len(owner.events(c.thread))

	routes := []struct{ method, path, body string }{
		{"GET", "/api/v1/sessions/{id}", ""},
		{"PATCH", "/api/v1/sessions/{id}", `{"title":"mine"}`},
		{"DELETE", "/api/v1/sessions/{id}", ""},
		{"POST", "/api/v1/sessions/{id}/inputs", `{"content":"hi"}`},
		{"POST", "/api/v1/sessions/{id}/cancel", `{}`},
		{"POST", "/api/v1/sessions/{id}/halt", `{}`},
		{"POST", "/api/v1/sessions/{id}/reopen", `{}`},
		{"GET", "/api/v1/sessions/{id}/log", ""},
		{"GET", "/api/v1/sessions/{id}/log?follow=1", ""},
		{"GET", "/api/v1/sessions/{id}/log?scope=tree", ""},
		{"GET", "/api/v1/sessions/{id}/log?after=3", ""},
		{"GET", "/api/v1/sessions/{id}/log?after=99999", ""},
		{"POST", "/api/v1/approvals/{card}", `{"decision":"allow"}`},
		{"POST", "/api/v1/questions/{card}", `{"answers":[["x"]]}`},
		{"POST", "/api/v1/calls/{card}", `{"resolution":"rerun"}`},
	}
	for who, v := range map[string]*visitor{
		"of another tenant, of the same name": s.visitor("ann@rival", time.Hour, "dept_head"),
		"of another tenant, who may all":      s.visitor("root@rival", time.Hour, "org_admin"),
		"of the same tenant":                  s.visitor("bob@acme", time.Hour, "dept_head"),
	} {
		t.Run("C02 "+who, func(t *testing.T) {
			v := v.in(t)
			for _, r := range routes {
				fill := func(thread string) string {
					return strings.NewReplacer("{id}", thread, "{card}",
						thread+strings.TrimPrefix(card.ID, c.thread)).Replace(r.path)
				}
				absent := newThread()
				wantStatus, want := v.ask(r.method, fill(absent), r.body)
				status, got := v.ask(r.method, fill(c.thread), r.body)
				if status != http.StatusNotFound || wantStatus != status ||
					strings.ReplaceAll(got, c.thread, absent) != want {
					t.Errorf("%s %s: %d %s; of nothing: %d %s", r.method, r.path, status, got, wantStatus, want)
				}
			}
		})
	}
	t.Run("C02 by socket", func(t *testing.T) {
		own := s.in(t).user("ann@rival").dial(n, c.thread) // another tenant's thread of the same name is another thread
		own.send(map[string]any{"type": "approval_response", "id": card.ID, "decision": "allow"})
		own.expect("error")
		own.cancel(card.RequestID)
		own.settle()
		for _, h := range own.events.all() {
			if strings.Contains(h.Data, mark) {
				t.Errorf("it was shown %s", h.Data)
			}
		}
		bob := s.in(t).user("bob").open(n, c.thread)
		bob.opened()
		bob.closed(1008)
	})
	if after := len(owner.events(c.thread)); after != before {
		t.Errorf("%d events were appended by others", after-before)
	}
	decide(c, card, "deny", "")
	finishes(t, c, "approval_closed", card, "deny")
	wantNoFile(t, s, "note.txt")
}

// TestTenantsOnOneServer: C10 and similar cases. Two tenants did the same
// things under the same names. Agents belong to one tenant at a time, so one of
// the tenants did it before a restart.
func TestTenantsOnOneServer(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	thread, marks := newThread(), map[string]string{"acme": rand.Text(), "rival": rand.Text()}
	seen, sockets := map[string]*strings.Builder{}, map[string]*socket{}
	o := jwt()
	o.data = t.TempDir()
	var s *server
	for _, tenant := range []string{"rival", "acme"} {
		if s != nil {
			s.stop()
		}
		o.env = append(o.env, "PARLEY_DEFAULT_TENANT="+tenant)
		s = startServer(t, o)
		for tenant := range marks {
			sockets[tenant] = s.user("ann@"+tenant).dial(n, thread)
		}
		c := sockets[tenant]
		c.askAs("the-same-name", "repeat "+marks[tenant])
		if a := c.completed(); a.text != marks[tenant] { // with a receipt of the other tenant there would be no answer
			t.Errorf("%s: %q", tenant, a.text)
		}
	}
	for tenant, c := range sockets {
		seen[tenant] = &strings.Builder{}
		for _, h := range c.events.all() {
			seen[tenant].WriteString(h.Data)
		}
		s.user("ann@"+tenant).must(http.StatusOK, http.MethodPatch, "/api/v1/sessions/"+thread,
			`{"title":"`+marks[tenant]+`"}`)
		admin := s.visitor("root@"+tenant, time.Hour, "org_admin")
		for _, path := range []string{"/api/v1/sessions", "/api/v1/sessions/" + thread,
			"/api/v1/sessions/" + thread + "/log", "/api/v1/agents", "/api/v1/audit/events",
			"/api/v1/sessions?search=" + marks["acme"], "/api/v1/sessions?search=" + marks["rival"]} {
			_, body := admin.ask(http.MethodGet, path, "")
			seen[tenant].WriteString(body)
		}
		response := admin.request(within(t, patience), http.MethodGet, "/api/v1/log?after=0", admin.header(), "")
		head := make([]byte, 32<<10)
		k, _ := io.ReadAtLeast(response.Body, head, 2000)
		response.Body.Close()
		seen[tenant].Write(head[:k])
	}
	t.Run("C10 marks", func(t *testing.T) {
		for tenant, all := range seen {
			for of, mark := range marks {
				if has := strings.Contains(all.String(), mark); has != (of == tenant) {
					t.Errorf("in what %s was sent, %s's mark is there: %v", tenant, of, has)
				}
			}
		}
		for _, line := range s.log.all() {
			if strings.Contains(line, marks["acme"]) || strings.Contains(line, marks["rival"]) {
				t.Errorf("the log has what was said: %s", line)
			}
		}
	})
	t.Run("C13 a session's frames are its own", func(t *testing.T) {
		ann := s.in(t).user("ann")
		one, two := ann.dial(n, newThread()), ann.dial(n, newThread())
		one.ask("repeat here")
		one.completed()
		silent(t, two)
	})
	t.Run("C14 everything, within the tenant", func(t *testing.T) {
		admin, rival := s.in(t).visitor("root@acme", time.Hour, "org_admin"), s.in(t).user("ann@rival")
		admin.must(http.StatusOK, http.MethodPost, "/api/v1/users/ann/revoke", "{}")
		rival.must(http.StatusOK, http.MethodGet, "/api/v1/sessions", "")
		sockets["rival"].settle()
		if code := sockets["acme"].gone(); code != 1008 {
			t.Errorf("whom it is about was closed with %d", code)
		}
	})
}

// TestARoleIsTakenAwayWhileACardWaits: C15, permission is checked at the time of the decision.
func TestARoleIsTakenAwayWhileACardWaits(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt()), startNode(t)
	admin := s.visitor("root@acme", time.Hour, "org_admin")
	c := s.user("ann").dial(n, newThread())
	card := asksToWrite(t, c, "text", "note.txt")
	admin.must(http.StatusOK, http.MethodPost, "/api/v1/users/ann/revoke", "{}")
	if code := c.gone(); code != 1008 {
		t.Errorf("closed with %d", code)
	}
	// A token that was issued in the second of the revocation counts as an old one.
	var less *visitor
	for deadline := time.Now().Add(patience); ; {
		less = s.visitor("ann@acme", time.Hour, "read_only")
		if status, _ := less.ask(http.MethodGet, "/api/v1/sessions", ""); status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a new token is not taken")
		}
	}
	less.must(http.StatusForbidden, http.MethodPost, "/api/v1/approvals/"+card.ID, `{"decision":"allow"}`)
	again := less.open(n, c.thread)
	again.opened()
	again.closed(1008)
	wantNoFile(t, s, "note.txt")
	admin.must(http.StatusAccepted, http.MethodPost, "/api/v1/approvals/"+card.ID, `{"decision":"allow"}`)
	admin.dial(n, c.thread).completedWithCard(card)
	wantFile(t, s, "note.txt", "text")
}

// completedWithCard waits until a run that had a card has ended.
func (c *socket) completedWithCard(card frame) {
	c.t.Helper()
	for {
		if f := c.frame(); f.Type == "chat.completed" && f.RequestID == card.RequestID {
			return
		}
	}
}

// TestRefusalsTellNothing: C11, and the invalid cursors and names of B24 and B25.
func TestRefusalsTellNothing(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt()), startNode(t)
	ann := s.user("ann")
	c := ann.dial(n, newThread())
	c.ask("repeat x")
	c.completed()
	inside := regexp.MustCompile(
		`(?i)sql|select |goroutine|panic|\.go:|/tmp/|/home/|parley\.db|no such table|constraint|eyJ|0x[0-9a-f]{6}`)
	log := "/api/v1/sessions/" + c.thread + "/log"
	for _, path := range []string{"/api/v1/sessions?limit=x", "/api/v1/sessions?limit=-1",
		"/api/v1/sessions?limit=99999999999999999999", "/api/v1/sessions?search=%25'%22--%00",
		"/api/v1/sessions/x", "/api/v1/sessions/'%20OR%201=1--", "/api/v1/sessions/" + strings.Repeat("a", 5000),
		"/api/v1/sessions/%00", "/api/v1/agents/%27", "/api/v1/audit/events?action=%27",
		"/api/v1/nowhere", log + "?after=x", log + "?after=-1", log + "?after=" + url.QueryEscape("' OR 1=1"),
		log + "?after=99999999999999999999", log + "?after=otherepoch-1", log + "?scope=nothing"} {
		if status, body := ann.ask(http.MethodGet, path, ""); status >= 500 || inside.MatchString(body) &&
			!strings.Contains(path, "OR") {
			t.Errorf("C11: %s: %d %s", path, status, body)
		}
	}
	for _, body := range []string{"", "x", "[]", `{"id":"x"}`, `{"id":7}`, `{"id":"` + c.thread + `\u0000"}`,
		`{"agent":"nobody"}`, `{"title":"` + strings.Repeat("x", 100_000) + `"}`, strings.Repeat("[", 100_000)} {
		if status, answer := ann.ask(http.MethodPost, "/api/v1/sessions", body); status >= 500 ||
			inside.MatchString(answer) {
			t.Errorf("C11: %.30q: %d %s", body, status, answer)
		}
	}
	for _, after := range []string{"-1", "x", "99999999999999999999", "100000", "otherepoch-1", "1-1-1"} {
		if status, body := ann.ask(http.MethodGet, log+"?after="+after, ""); status != http.StatusGone ||
			errorCode(t, body) != "resync" {
			t.Errorf("B24: after=%s: %d %s", after, status, body)
		}
	}
	for _, id := range []string{"garbage", strings.Repeat("9", 10_000), "-5", "x\tid: 7", "\xff\xfe",
		newThread() + "-1", `{"a":1}`} {
		w := ann.wire("GET " + log + " HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nLast-Event-ID: " + id +
			"\r\nAuthorization: Bearer " + ann.token + "\r\n\r\n")
		status, header := w.status()
		for range 10 { // the lines of one event: a chunk size, the event and its end
			line, err := w.r.ReadString('\n')
			if err != nil {
				t.Fatalf("B25: %.20q: %v", id, err)
			}
			if strings.HasPrefix(line, "event: ") {
				if line != "event: resync\n" {
					t.Errorf("B25: %.20q: %s", id, line)
				}
				break
			}
		}
		if status != http.StatusOK || strings.Contains(fmt.Sprint(header), id) {
			t.Errorf("B25: %.20q: %d %v", id, status, header)
		}
	}
	if status, _ := ann.wire("GET " + log + " HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 1\r\n X: folded\nY: " +
		"1\r\nAuthorization: Bearer " + ann.token + "\r\n\r\n").status(); status != http.StatusOK &&
		status != http.StatusBadRequest {
		t.Errorf("B25: a line break: %d", status)
	}
}
