package access

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/pacing"
	"parley/port"
)

// maxRevocations is the maximum number of revocations that are kept. An
// operator who reaches it should change the signing key instead of revoking
// users.
const (
	maxRevocations = 100_000
	maxOfTenant    = 10_000 // so that one tenant cannot use up the room of all
)

// RevokeUntil is how far into the future a revocation must reach to cover every
// token issued so far: the issuer's clock may be ahead by as much.
const RevokeUntil = leeway

type (
	Revocation      = port.Revocation
	RevocationStore = port.RevocationStore
)

// Revocations knows which identities were revoked, and ends the contexts of
// callers that act under them. It is safe for concurrent use.
type Revocations struct {
	store RevocationStore
	now   func() time.Time

	mu       sync.Mutex
	before   map[revoked]time.Time
	of       map[counting]int // number of entries of before
	watchers map[subject]map[*watcher]struct{}
}

// revoked is the subject of a revocation: all tokens of a principal, or only
// those without the role org_admin.
type revoked struct {
	subject
	sparesAdmins bool
}

// counting is a key for counting revocations. Sign-outs are counted separately, so that any number of them leaves room
// for revocations of users.
type counting struct {
	tenant   parley.TenantID // empty: all tenants
	signOuts bool
}

func (r revoked) counted() [2]counting {
	signOut := strings.HasPrefix(string(r.id), signOutPrefix)
	return [2]counting{{"", signOut}, {r.tenant, signOut}}
}

// signOutPrefix begins the principal id of a revocation of one token; the id of the token follows.
const signOutPrefix = "session:"

// signOutOf returns the subject of the revocation of one token.
func signOutOf(id Identity) subject {
	return subject{id.Tenant, parley.PrincipalID(signOutPrefix + id.TokenID)}
}

// covers reports whether a revocation of tokens issued up to before covers a token.
func (r revoked) covers(id Identity, before time.Time) bool {
	return !id.Issued.After(before) && !(r.sparesAdmins && Administers(id.Principal))
}

type watcher struct {
	id  Identity
	end context.CancelCauseFunc
}

// NewRevocations loads the revocations of the store. Without a store, revocations end with the process.
func NewRevocations(ctx context.Context, store RevocationStore, now func() time.Time) (*Revocations, error) {
	r := &Revocations{store: store, now: now, before: map[revoked]time.Time{}, of: map[counting]int{},
		watchers: map[subject]map[*watcher]struct{}{}}
	return r, r.Refresh(ctx)
}

// Revoke immediately ends every connection of the principal whose token was issued at v.Before or earlier, and refuses
// these tokens from now on. Tokens count whole seconds, so a token issued in the same second is refused as well. A
// token without iat counts as old. The revocation and its audit record are written in one transaction. The revocation
// takes effect after that: if the transaction fails, the revocation has no effect and the caller must repeat it.
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

// room fails if there is no room for one more revocation.
func (r *Revocations) room(v Revocation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.makeRoom(revoked{subject{v.Tenant, v.Principal}, v.SparesAdmins})
}

// makeRoom forgets revocations of tokens that have all expired, if one more revocation needs the room. The caller must
// hold r.mu.
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

// apply puts a revocation into effect. It is idempotent: the same revocation may arrive several times.
func (r *Revocations) apply(v Revocation) error {
	who := revoked{subject{v.Tenant, v.Principal}, v.SparesAdmins}
	if !v.Before.After(r.now().Add(-MaxTokenLife)) {
		return nil // all tokens issued before this have expired
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

// SignOut revokes one token and ends the connections that were made with it. The revocation is kept until the token
// would have expired: SignOut chooses Before so that it is forgotten then.
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

// Watch returns a context that ends when the identity expires or is revoked, with a *Denied as its cause. Callers that
// act for a principal longer than one request must use this context. The caller must call the returned function when it
// is done.
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

// Refresh loads the revocations of other servers.
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

// Keep refreshes until ctx ends. While a refresh fails, the known revocations stay in effect.
func (r *Revocations) Keep(ctx context.Context, every time.Duration, log *slog.Logger) {
	pacing.Every(ctx, every, func() {
		if err := r.Refresh(ctx); err != nil && ctx.Err() == nil {
			log.Warn("the revocations of other servers could not be read", "error", err)
		}
	})
}
