package access

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

// record is a store of audit records that can be made to fail.
type record struct {
	port.Store
	mu   sync.Mutex
	rows []parley.Audit
	fail bool
}

func (r *record) Append(_ context.Context, b port.Batch) (port.Appended, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail {
		return port.Appended{}, errors.New("the disk is full")
	}
	r.rows = append(r.rows, b.Audit...)
	return port.Appended{}, nil
}

func (r *record) failing(fail bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = fail
}

// told returns the sum of the counts in all rows.
func (r *record) told(t *testing.T) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range r.rows {
		values := struct{ Count int }{1}
		if err := json.Unmarshal(row.Metadata, &values); err != nil {
			t.Fatal(err)
		}
		n += values.Count
	}
	return n
}

// TestRefusalsAreCounted: every refusal that was answered is in the audit log in the end, in few rows, also when writes
// fail at the turn of a minute.
func TestRefusalsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &record{}
		r := NewRecorder(store, time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(context.Background())
		var keeper sync.WaitGroup
		keeper.Go(func() { r.Keep(ctx) })
		from := netip.MustParseAddr("192.0.2.1")
		told := 0
		deny := func(n int) {
			for range n {
				if r.Denied(context.Background(), TokenInvalid, from) == nil {
					told++
				}
			}
		}
		deny(500)
		if store.told(t) != 1 {
			t.Errorf("%d are on record at once", store.told(t))
		}
		store.failing(true)
		time.Sleep(61 * time.Second) // the count cannot be written
		deny(3)                      // the first one fails too, so it is not answered
		store.failing(false)
		deny(100)
		time.Sleep(2 * time.Minute)
		deny(7)
		cancel()
		keeper.Wait()
		if got := store.told(t); got != told || told != 607 {
			t.Errorf("%d were told, %d are on record", told, got)
		}
		if len(store.rows) > 8 {
			t.Errorf("%d rows", len(store.rows))
		}
	})
}

func TestLocalIsNoRoleOfTokens(t *testing.T) {
	now := time.Now()
	secret := "a secret of more than thirty-two bytes"
	token, err := Mint(secret,
		Claims{Issuer: "parley", Principal: port.Principal{ID: "eve", Tenant: "acme",
			Roles: []parley.UserRole{parley.RoleLocal, parley.RoleReadOnly}}, Issued: now, Expires: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(TokenConfig{Secret: secret, Issuer: "parley", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	id, err := v.Verify(context.Background(), token)
	if err != nil || len(id.Roles) != 1 || id.Roles[0] != parley.RoleReadOnly {
		t.Errorf("%+v, %v", id, err)
	}
}

// TestARevocationReachesClocksThatAreAhead: a token from an issuer whose clock
// is ahead can be revoked like any other.
func TestARevocationReachesClocksThatAreAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := revocations(t, nil)
		id := Identity{Principal: port.Principal{ID: "ann", Tenant: "acme"}, Issued: time.Now().Add(leeway),
			Expires: time.Now().Add(time.Hour)}
		if err := r.Revoke(t.Context(), Revocation{Tenant: "acme", Principal: "ann",
			Before: time.Now().Add(RevokeUntil)}, parley.Audit{}); err != nil {
			t.Fatal(err)
		}
		if r.Check(id) == nil {
			t.Error("it is still good")
		}
	})
}

// TestFilesThatPeopleReadAreOnRecord: each user and file has one record at once
// and one count per minute, and every read is counted.
func TestFilesThatPeopleReadAreOnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &record{}
		r := NewRecorder(store, time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(context.Background())
		var keeper sync.WaitGroup
		keeper.Go(func() { r.Keep(ctx) })
		ann, bob := port.Principal{ID: "ann", Tenant: "acme"}, port.Principal{ID: "bob", Tenant: "acme"}
		for range 100 {
			for _, who := range []port.Principal{ann, bob} {
				for path, refused := range map[string]bool{"main.go": false, ".env": true} {
					if err := r.ReadFile(ctx, who, path, refused); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if len(store.rows) != 4 {
			t.Errorf("%d rows at once", len(store.rows))
		}
		cancel()
		keeper.Wait()
		if n := store.told(t); n != 400 || len(store.rows) != 8 {
			t.Errorf("%d reads in %d rows", n, len(store.rows))
		}
		for _, row := range store.rows {
			if row.Action != port.AuditFileRead || row.Resource != "file" || row.By == "" ||
				(row.ID == ".env") != (string(row.Metadata[len(row.Metadata)-5:]) == "true}") {
				t.Errorf("%+v %s", row, row.Metadata)
			}
		}
		store.failing(true)
		if r.ReadFile(context.Background(), ann, "other.go", false) == nil {
			t.Error("a read that cannot be put on record is let through")
		}
	})
}
