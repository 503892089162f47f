package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/access"
	"parley/checker"
	"parley/port"
)

// faulty is a store whose appends fail while broken is set. If lie is set too,
// they fail after they were committed.
type faulty struct {
	port.Store
	mu     sync.Mutex
	broken bool
	lie    bool
}

func (f *faulty) set(broken, lie bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken, f.lie = broken, lie
}

func (f *faulty) Append(ctx context.Context, b port.Batch) (port.Appended, error) {
	f.mu.Lock()
	broken, lie := f.broken, f.lie
	f.mu.Unlock()
	if broken && lie {
		if _, err := f.Store.Append(ctx, b); err != nil {
			return port.Appended{}, err
		}
	}
	if broken {
		return port.Appended{}, parley.Errorf(parley.CodeUnavailable, "The disk is full.")
	}
	return f.Store.Append(ctx, b)
}

// TestAStoreThatFails checks that a session goes on from its log once the store
// works again, whether failed appends are in the log or not.
func TestAStoreThatFails(t *testing.T) {
	for _, lie := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := &faulty{}
			r := newRig(t, func(c *Config) { c.Store = store })
			id, other := r.open(), r.open()
			r.say(id, "say one; hang")
			r.until(id, "it hangs", seen[parley.OutputAppended](1))
			store.set(true, lie)
			if _, err := r.try(id, input("say two", parley.Queue)); parley.CodeOf(err) != parley.CodeUnavailable {
				t.Errorf("an append failed and Submit said %v", err)
			}
			if _, err := r.try(other, input("say no", parley.Queue)); parley.CodeOf(err) != parley.CodeUnavailable {
				t.Errorf("an append failed and Submit said %v", err)
			}
			time.Sleep(time.Minute) // it fails again and again
			synctest.Wait()
			r.puppet.mu.Lock()
			r.puppet.noHang = true
			r.puppet.mu.Unlock()
			store.set(false, false)
			log := r.finished(id, 1)
			if lie {
				log = r.finished(id, 2) // it was accepted after all
			}
			for _, err := range checker.Check(log) {
				t.Error(err)
			}
			synctest.Wait()
			for _, err := range checker.Settled(r.log(id)) {
				t.Error(err)
			}
		})
	}
}

// TestACorruptLog checks that a session with a corrupt log reports that, and
// that other sessions are not affected.
func TestACorruptLog(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Access = access.Rules{} })
	bad, good := r.open(), r.open()
	store := &unreadable{Store: r.Store, id: bad}
	r.stop(true)
	r.config.Store = store
	r.start()
	for range 3 {
		if _, err := r.try(bad, input("say x", parley.Queue)); parley.CodeOf(err) != parley.CodeCorrupt {
			t.Errorf("%v", err)
		}
	}
	r.say(good, "say fine")
	r.finished(good, 1)
}

type unreadable struct {
	port.Store
	id parley.SessionID
}

func (u *unreadable) Tenant(t parley.TenantID) port.TenantStore {
	return unreadableTenant{u.Store.Tenant(t), u.id}
}

type unreadableTenant struct {
	port.TenantStore
	id parley.SessionID
}

func (u unreadableTenant) Events(ctx context.Context, id parley.SessionID, after parley.Seq, limit int) ([]parley.Event,
	error) {
	if id == u.id {
		return nil, &parley.Error{Code: parley.CodeCorrupt, Message: "A part of this session's log cannot be read.",
			Err: errors.New("seq 1")}
	}
	return u.TenantStore.Events(ctx, id, after, limit)
}
