package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/port"
)

// instructions returns the instructions of the model's last call.
func (r *rig) instructions() func() string {
	var mu sync.Mutex
	var last string
	r.puppet.seen = func(q port.ModelRequest) {
		mu.Lock()
		defer mu.Unlock()
		last = q.Instructions
	}
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}

// TestModelGetsTheUsersContext checks that a user's context is in the agent's instructions
// in all sessions of that user and in no others, also after a restart.
func TestModelGetsTheUsersContext(t *testing.T) {
	onEveryStore(t, func(t *testing.T, reopen func() port.Store) {
		r := newRig(t)
		r.stop(true)
		r.reopen = reopen
		r.start()
		ctx := context.Background()
		bob, eve := member("bob", parley.RoleStandardUser), member("eve", parley.RoleStandardUser)
		set := func(who port.Principal, agent, text string) {
			t.Helper()
			if err := r.SetContext(ctx, who, "", agent, text, parley.ViaHTTP); err != nil {
				t.Fatal(err)
			}
		}
		set(bob, "puppet", "Bob plays the flute.")
		set(bob, "puppet", "Bob plays \x01the oboe.\n")
		set(bob, "hasty", "Bob is in a hurry.")
		set(eve, "puppet", "Eve plays drums.")
		runs := 0
		told := func(who port.Principal, id parley.SessionID, agent string) string {
			t.Helper()
			last := r.instructions()
			if code := r.as(who, id, parley.SubmitInput{Content: "say hello", Open: true,
				Agent: parley.AgentRef{Name: agent}}); code != "" {
				t.Fatal(code)
			}
			r.finished(id, runs+1)
			return last()
		}
		first, second := parley.SessionID("22222222-2222-4222-8222-00000000001a"),
			parley.SessionID("22222222-2222-4222-8222-00000000001b")
		const want = "obey\n\nPersisted user context:\nBob plays the oboe.\n"
		if got := told(bob, first, "puppet"); got != want {
			t.Errorf("told was %q", got)
		}
		if got := told(member("carl", parley.RoleStandardUser), second, "puppet"); got != "obey" {
			t.Errorf("somebody without one: %q", got)
		}
		runs = 1
		if got := told(ann, first, "puppet"); got != want { // an administrator in bob's session
			t.Errorf("in bob's session: %q", got)
		}
		r.restart(false)
		runs = 2
		if got := told(bob, first, "puppet"); got != want {
			t.Errorf("after a restart: %q", got)
		}
		if rows := r.audited(port.AuditContext); len(rows) != 4 || rows[0].By != "eve" || rows[0].ID != "puppet" ||
			strings.Contains(string(rows[0].Metadata), "drums") {
			t.Errorf("on record is %+v", rows)
		}
	})
}

func TestContextsThatAreRefused(t *testing.T) {
	r := newRig(t, screened)
	ctx := context.Background()
	bob := member("bob", parley.RoleStandardUser)
	for _, c := range []struct {
		who         port.Principal
		agent, text string
		want        parley.Code
		says        string
	}{
		{bob, "puppet", " \n\x00", parley.CodeEmpty, "context is required"},
		{bob, "puppet", strings.Repeat("x", parley.MaxContext+1), parley.CodeTooLarge, "65536"},
		{bob, "puppet", wicked, parley.CodeBlocked, "message blocked: "},
		{bob, "nobody", "x", parley.CodeNotFound, ""},
		{member("rita", parley.RoleReadOnly), "puppet", "x", parley.CodeForbidden, "agents:message"},
		{bob, "puppet", strings.Repeat("x", parley.MaxContext), "", ""},
	} {
		err := r.SetContext(ctx, c.who, "", c.agent, c.text, parley.ViaHTTP)
		if codeOf(err) != c.want || err != nil && !strings.Contains(parley.MessageOf(err), c.says) {
			t.Errorf("%.20q of %s: %v, want %s", c.text, c.who.ID, err, c.want)
		}
	}
	if rows := r.audited(parley.AuditMessageBlocked); len(rows) != 1 || rows[0].ID != "puppet" {
		t.Errorf("on record is %+v", rows)
	}
	if known, ok, err := r.Store.Tenant(acme).Context(ctx, "puppet", "bob"); err != nil || !ok ||
		len(known.Text) != parley.MaxContext {
		t.Errorf("%v, %v", ok, err)
	}
}

// TestAContextThatCannotBeReadIsMissing checks that a message is answered
// without a context that cannot be read.
func TestAContextThatCannotBeReadIsMissing(t *testing.T) {
	var log bytes.Buffer
	store := &rough{context: func() error { return errors.New("the table is on fire") }}
	r := newRig(t, func(c *Config) { c.Store, c.Log = store, slog.New(slog.NewTextHandler(&log, nil)) })
	id, last := r.open(), r.instructions()
	r.say(id, "say hello")
	r.finished(id, 1)
	if got := last(); got != "obey" {
		t.Errorf("told was %q", got)
	}
	r.stop(true) // every goroutine that writes to the log has ended
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "on fire") {
		t.Errorf("the log is\n%s", log.String())
	}
	r.start()
}
