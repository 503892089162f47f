package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"parley"
)

const (
	// keysFor is how long keys are used before they are fetched again. A key
	// that the issuer has removed stays valid for as long.
	keysFor = 10 * time.Minute
	// fetchEvery is the shortest time between fetches: tokens with made-up key
	// ids must not cause a fetch each.
	fetchEvery   = 10 * time.Second
	fetchTimeout = 5 * time.Second
	maxKeySet    = 256 << 10
)

// jwks holds the keys published at a URL. The first request that needs them fetches them in its own goroutine, and
// later requests wait for it. If a fetch fails, the last keys stay in use.
//
// go-oidc has a RemoteKeySet for this. It fetches for each unknown key id, reads an answer of any size, never forgets a
// removed key before the next unknown id, and leaves a goroutine without an owner. See docs/adr/0047.
type jwks struct {
	url    string
	client *http.Client
	log    *slog.Logger
	now    func() time.Time

	current atomic.Pointer[fetched] // nil: never fetched

	mu        sync.Mutex
	attempted time.Time
	flight    chan struct{} // closed at the end of the fetch under way; nil: none
}

type fetched struct {
	keySet
	at time.Time
}

func newJWKS(c TokenConfig) (*jwks, error) {
	u, err := url.Parse(c.JWKSURL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" &&
		(u.Scheme != "http" || !loopbackHost(u.Host)) {
		return nil, errors.New("the JWKS URL must be https without a password, or http on this machine")
	}
	// Keys are fetched too seldom to keep a connection open.
	client := &http.Client{
		Timeout: fetchTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
			MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || r.URL.Scheme != u.Scheme || r.URL.Host != u.Host {
				return errors.New("the key server redirects to another host")
			}
			return nil
		},
	}
	return &jwks{url: c.JWKSURL, client: client, log: c.Log, now: c.Now}, nil
}

func (j *jwks) key(ctx context.Context, id string) (key, error) {
	c, known := j.current.Load(), false
	if c != nil {
		k, ok := c.keySet[id]
		if ok && j.now().Sub(c.at) < keysFor {
			return k, nil
		}
		known = ok
	}
	if err := j.refresh(ctx, !known); err != nil {
		j.log.Warn("the key set could not be fetched; the keys in use stay", "error", err)
	}
	if c = j.current.Load(); c == nil {
		return key{}, &parley.Error{Code: parley.CodeUnavailable, Message: "Tokens cannot be verified now.",
			Hint: "see why the key set cannot be fetched"}
	}
	return c.keySet.key(ctx, id)
}

// refresh fetches the keys, unless the last attempt was less than fetchEvery ago. If a fetch is under way and wait is
// true, it waits for that fetch.
func (j *jwks) refresh(ctx context.Context, wait bool) error {
	j.mu.Lock()
	f, first := j.flight, false
	if f == nil {
		if now := j.now(); j.attempted.IsZero() || now.Sub(j.attempted) >= fetchEvery {
			j.attempted = now
			f, first = make(chan struct{}), true
			j.flight = f
		}
	}
	j.mu.Unlock()
	switch {
	case f == nil, !first && !wait:
		return nil
	case first:
		defer func() {
			j.mu.Lock()
			j.flight = nil
			j.mu.Unlock()
			close(f)
		}()
		// Other requests wait for this fetch, so it continues after ctx ends.
		return j.fetch(context.WithoutCancel(ctx))
	}
	select {
	case <-f:
		return nil // the request that fetched logs the error
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *jwks) fetch(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, j.url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	res, err := j.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxKeySet+1))
	switch {
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("the key server answered %s", res.Status)
	case len(raw) > maxKeySet:
		return errors.New("the key set is larger than 256 KiB")
	}
	set, leftOut, err := parseKeySet(raw)
	if err != nil {
		return err
	}
	for _, k := range set {
		if k.secret {
			return errors.New("the key set publishes a secret, so anyone who reads it can sign tokens")
		}
	}
	for _, why := range leftOut {
		j.log.Info("a key of the set is not used", "why", why)
	}
	j.log.Info("the key set was fetched", "keys", len(set))
	j.current.Store(&fetched{set, j.now()})
	return nil
}
