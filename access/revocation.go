package access

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/port"
)

// maxRevocations bounds what is kept. An operator who gets there has a key to
// change, not people to take rights from.
const (
	maxRevocations = 100_000
	maxOfTenant    = 10_000 // so that one tenant does not use up what is for all
)

// RevokeUntil is how far ahead a revocation has to reach to cover every token
// that is out now: the clock of who issued one may be ahead by as much.
const RevokeUntil = leeway

type (
	Revocation      = port.Revocation
	RevocationStore = port.RevocationStore
)

// Revocations know which identities are no longer good, and tell those who act
// under one. They may be used concurrently.
type Revocations struct {
	store RevocationStore
	now   func() time.Time

	mu       sync.Mutex
	before   map[revoked]time.Time
	of       map[counting]int // how many of before
	watchers map[subject]map[*watcher]struct{}
}

// revoked is what a revocation is about: all tokens of a principal, or those
// without the role org_admin.
type revoked struct {
	subject
	sparesAdmins bool
}

// counting is what revocations are counted by. Sign-outs are counted apart: however many there are, people can still be
// revoked.
type counting struct {
	tenant   parley.TenantID // empty: all
	signOuts bool
}

func (r revoked) counted() [2]counting {
	signOut := strings.HasPrefix(string(r.id), signOutPrefix)
	return [2]counting{{"", signOut}, {r.tenant, signOut}}
}

// signOutPrefix begins the name under which a revocation of one token is kept: its id follows.
const signOutPrefix = "session:"

// signOutOf is what the revocation of one token is about.
func signOutOf(id Identity) subject {
	return subject{id.Tenant, parley.PrincipalID(signOutPrefix + id.TokenID)}
}

// covers reports whether a revocation of tokens up to a time covers a token.
func (r revoked) covers(id Identity, before time.Time) bool {
	return !id.Issued.After(before) && !(r.sparesAdmins && Administers(id.Principal))
}

type watcher struct {
	id  Identity
	end context.CancelCauseFunc
}

// NewRevocations loads what the store has. Without a store, revocations end with
// the process.
func NewRevocations(ctx context.Context, store RevocationStore, now func() time.Time) (*Revocations, error) {
	r := &Revocations{store: store, now: now, before: map[revoked]time.Time{}, of: map[counting]int{},
		watchers: map[subject]map[*watcher]struct{}{}}
	return r, r.Refresh(ctx)
}

// Revoke ends every connection of the principal whose token was issued at that
// time or before, at once, and has such tokens refused from now on. Tokens tell
// whole seconds: one issued in the same second is refused as well. One that does
// not tell is taken for old. The record goes into the audit in the transaction
// that keeps the revocation. It takes effect afterwards: if that fails, it does
// not hold, and is to be repeated.
func (r *Revocations) Revoke(ctx context.Context, v Revocation, record parley.Audit) error {
	if !v.Tenant.Valid() || !v.Principal.Valid() || v.Before.IsZero() ||
		v.Before.After(r.now().Add(leeway)) {
		return parley.Errorf(parley.CodeInvalid,
			"A revocation needs a tenant, a principal and a time that is not in the future.")
	}
	if err := r.room(v); err != nil {
		return err
	}
	if r.store != nil {
		b := port.Batch{Tenant: v.Tenant, Revocation: &v, Audit: []parley.Audit{record}}
		if _, err := r.store.Append(ctx, b); err != nil {
			return err
		}
	}
	return r.apply(v)
}

// room refuses a revocation for which there is none.
func (r *Revocations) room(v Revocation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.makeRoom(revoked{subject{v.Tenant, v.Principal}, v.SparesAdmins})
}

// makeRoom forgets revocations of tokens that have all expired, if that is needed
// for one more. It needs r.mu.
func (r *Revocations) makeRoom(who revoked) error {
	all, own := who.counted()[0], who.counted()[1]
	full := func() bool { return r.of[all] >= maxRevocations || r.of[own] >= maxOfTenant }
	if _, ok := r.before[who]; ok || !full() {
		return nil
	}
	old := r.now().Add(-MaxTokenLife)
	for other, before := range r.before {
		if !before.After(old) {
			delete(r.before, other)
			for _, c := range other.counted() {
				r.of[c]--
			}
		}
	}
	if full() {
		return &parley.Error{Code: parley.CodeOverloaded, Message: "There are too many revocations.",
			Hint: "change the key that tokens are signed with"}
	}
	return nil
}

// apply is idempotent: a revocation may be heard of from many sides.
func (r *Revocations) apply(v Revocation) error {
	who := revoked{subject{v.Tenant, v.Principal}, v.SparesAdmins}
	if !v.Before.After(r.now().Add(-MaxTokenLife)) {
		return nil // no token issued before this is good any more
	}
	r.mu.Lock()
	if err := r.makeRoom(who); err != nil {
		r.mu.Unlock()
		return err
	}
	if was, ok := r.before[who]; !ok || v.Before.After(was) {
		if !ok {
			for _, c := range who.counted() {
				r.of[c]++
			}
		}
		r.before[who] = v.Before
	}
	var ended []*watcher
	for w := range r.watchers[who.subject] {
		if who.subject == signOutOf(w.id) || who.covers(w.id, v.Before) {
			ended = append(ended, w)
		}
	}
	r.mu.Unlock()
	for _, w := range ended {
		w.end(deny(TokenRevoked, ""))
	}
	return nil
}

// SignOut ends one token, and the connections that were made with it. The revocation is kept until the token would have
// expired: Before is chosen so that it is forgotten then.
func (r *Revocations) SignOut(ctx context.Context, id Identity, record parley.Audit) error {
	if id.TokenID == "" || id.Expires.IsZero() {
		return parley.Errorf(parley.CodeInvalid, "This token has no id or no end, so it cannot be revoked by itself.")
	}
	about := signOutOf(id)
	return r.Revoke(ctx, Revocation{Tenant: about.tenant, Principal: about.id,
		Before: id.Expires.Add(-MaxTokenLife)}, record)
}

// Check refuses an identity that was revoked.
func (r *Revocations) Check(id Identity) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.check(id)
}

func (r *Revocations) check(id Identity) error {
	if _, ok := r.before[revoked{subject: signOutOf(id)}]; ok && id.TokenID != "" {
		return deny(TokenRevoked, "its session was signed out")
	}
	for _, spares := range []bool{false, true} {
		who := revoked{subjectOf(id.Principal), spares}
		if before, ok := r.before[who]; ok && who.covers(id, before) {
			return deny(TokenRevoked, "")
		}
	}
	return nil
}

// Watch returns a context that ends when the identity does, with a *Denied as its
// cause: when it expires, to the moment, or when it is revoked. Whoever acts for
// somebody longer than a request lasts acts under it. The function must be
// called when that is over.
func (r *Revocations) Watch(ctx context.Context, id Identity) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	w := &watcher{id, end}
	subjects := []subject{subjectOf(id.Principal)}
	if id.TokenID != "" {
		subjects = append(subjects, signOutOf(id))
	}

	r.mu.Lock()
	for _, who := range subjects {
		if r.watchers[who] == nil {
			r.watchers[who] = map[*watcher]struct{}{}
		}
		r.watchers[who][w] = struct{}{}
	}
	err := r.check(id)
	r.mu.Unlock()

	stop := func() bool { return true }
	switch left := id.Expires.Sub(r.now()); {
	case err != nil:
		end(err)
	case id.Expires.IsZero():
	case left <= 0:
		end(deny(TokenExpired, ""))
	default:
		stop = time.AfterFunc(left, func() { end(deny(TokenExpired, "")) }).Stop
	}
	return ctx, func() {
		stop()
		r.mu.Lock()
		for _, who := range subjects {
			delete(r.watchers[who], w)
			if len(r.watchers[who]) == 0 {
				delete(r.watchers, who)
			}
		}
		r.mu.Unlock()
		end(context.Canceled)
	}
}

// Refresh takes over what other servers have revoked.
func (r *Revocations) Refresh(ctx context.Context) error {
	if r.store == nil {
		return nil
	}
	list, err := r.store.Revocations(ctx, r.now().Add(-MaxTokenLife))
	if err != nil {
		return err
	}
	for _, v := range list {
		if err := r.apply(v); err != nil {
			return err
		}
	}
	return nil
}

// Keep refreshes until ctx ends. While it fails, what is known holds.
func (r *Revocations) Keep(ctx context.Context, every time.Duration, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := r.Refresh(ctx); err != nil && ctx.Err() == nil {
				log.Warn("the revocations of other servers could not be read", "error", err)
			}
		}
	}
}
