package access

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"parley"
)

// keyServer publishes the keys that a test sets, and counts requests.
type keyServer struct {
	*httptest.Server
	answer atomic.Value // http.HandlerFunc
	asked  atomic.Int64
}

func newKeyServer(t *testing.T) *keyServer {
	s := &keyServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		s.answer.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *keyServer) answers(f http.HandlerFunc) { s.answer.Store(f) }

func (s *keyServer) publishes(keys ...string) {
	s.answers(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"keys":[`+strings.Join(keys, ",")+`]}`)
	})
}

func (s *keyServer) fails() {
	s.answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) })
}

type keyPair struct {
	id      string
	private *ecdsa.PrivateKey
	public  string
}

func newPair(t *testing.T, id string) keyPair {
	k := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	return keyPair{id, k, jwk(t, id, "ES256", &k.PublicKey)}
}

func (k keyPair) token(t *testing.T, header string) string {
	return sign(t, jwt.SigningMethodES256, k.private, fmt.Sprintf(`{"alg":"ES256","kid":%q%s}`, k.id, header),
		with("", nil))
}

func TestKeysAreFetchedCachedAndRotated(t *testing.T) {
	s, c := newKeyServer(t), &clock{at: start}
	v := verifier(t, func(tc *TokenConfig) {
		tc.Secret, tc.JWKSURL, tc.Now, tc.Log = "", s.URL, c.now, slog.New(slog.DiscardHandler)
	})
	a, b := newPair(t, "a"), newPair(t, "b")
	stranger := newPair(t, "stranger")
	steps := []struct {
		name  string
		do    func()
		token keyPair
		want  Reason
		asked int64 // total requests so far
	}{
		{"no keys can be had", s.fails, a, "unavailable: Tokens cannot be verified now. (see why the key set cannot " +
			"be fetched)", 1},
		{"nor asked for again at once", func() {}, a, "unavailable: Tokens cannot be verified now. (see why the key " +
			"set cannot be fetched)", 1},
		{"the first fetch", func() { s.publishes(a.public); c.pass(fetchEvery) }, a, "", 2},
		{"cached", func() { s.fails() }, a, "", 2},
		{"an unknown key, a moment later", func() {}, b, TokenInvalid, 2},
		{"an unknown key, and nothing can be had", func() { c.pass(fetchEvery) }, b, TokenInvalid, 3},
		{"old keys stay", func() {}, a, "", 3},
		{"a new key", func() { s.publishes(a.public, b.public); c.pass(fetchEvery) }, b, "", 4},
		{"beside the old one", func() {}, a, "", 4},
		{"a key nobody knows", func() { c.pass(fetchEvery) }, stranger, TokenInvalid, 5},
		{"asked for once", func() {}, stranger, TokenInvalid, 5},
		{"a key is taken back: not known yet", func() { s.publishes(b.public); c.pass(fetchEvery) }, a, "", 5},
		{"known when keys are old", func() { c.pass(keysFor) }, a, TokenInvalid, 6},
		{"the other stays", func() {}, b, "", 6},
		{"old keys, and nothing can be had", func() { s.fails(); c.pass(keysFor) }, b, "", 7},
		{"a set that cannot be read", func() { s.publishes("{}", "{}"); c.pass(fetchEvery) }, b, "", 8},
		{"a set with a secret", func() {
			s.publishes(`{"kty":"oct","alg":"HS256","kid":"b","k":"` + encode(secret) + `"}`)
			c.pass(fetchEvery)
		}, b, "", 9},
		{"a set without end", func() {
			s.answers(func(w http.ResponseWriter, _ *http.Request) {
				for range 1000 {
					if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<10)); err != nil {
						return
					}
				}
			})
			c.pass(fetchEvery)
		}, b, "", 10},
		{"all are taken back", func() { s.publishes(); c.pass(fetchEvery) }, b, TokenInvalid, 11},
	}
	for _, step := range steps {
		step.do()
		_, err := v.Verify(t.Context(), step.token.token(t, ""))
		if got := reasonOf(err); got != step.want || s.asked.Load() != step.asked {
			t.Fatalf("%s: %q after %d fetches, want %q after %d", step.name, got, s.asked.Load(), step.want, step.asked)
		}
		if err != nil && step.want != TokenInvalid && parley.CodeOf(err) != parley.CodeUnavailable {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}

// A05: keys inside a token and addresses that it names are ignored.
func TestTokensCannotNameTheirKeys(t *testing.T) {
	s, evil := newKeyServer(t), newKeyServer(t)
	ours, theirs := newPair(t, "a"), newPair(t, "a")
	s.publishes(ours.public)
	evil.publishes(theirs.public)
	v := verifier(t, func(tc *TokenConfig) { tc.Secret, tc.JWKSURL, tc.Log = "", s.URL, slog.New(slog.DiscardHandler) })
	for _, header := range []string{
		`,"jwk":` + theirs.public, `,"jku":"` + evil.URL + `"`, `,"x5u":"` + evil.URL + `"`, `,"x5c":["AAAA"]`,
	} {
		if _, err := v.Verify(t.Context(), theirs.token(t, header)); reasonOf(err) != TokenInvalid {
			t.Errorf("%s: %v", header, err)
		}
		if _, err := v.Verify(t.Context(), ours.token(t, header)); err != nil {
			t.Errorf("%s, and signed by us: %v", header, err)
		}
	}
	for _, id := range []string{"../../dev/null", "' OR 1=1--", evil.URL, ""} {
		theirs.id = id
		if _, err := v.Verify(t.Context(), theirs.token(t, "")); reasonOf(err) != TokenInvalid {
			t.Errorf("kid %q: %v", id, err)
		}
	}
	if n := evil.asked.Load(); n != 0 {
		t.Errorf("they were called %d times", n)
	}
}

func TestKeysComeFromWhereTheyAreSaidToBe(t *testing.T) {
	s, elsewhere := newKeyServer(t), newKeyServer(t)
	pair := newPair(t, "a")
	elsewhere.publishes(pair.public)
	for to, ok := range map[string]bool{elsewhere.URL: false, "/moved": true} {
		s.answers(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/moved" {
				_, _ = io.WriteString(w, `{"keys":[`+pair.public+`]}`)
				return
			}
			http.Redirect(w, r, to, http.StatusFound)
		})
		v := verifier(t, func(tc *TokenConfig) {
			tc.Secret, tc.JWKSURL, tc.Log = "", s.URL,
				slog.New(slog.DiscardHandler)
		})
		if err := v.Warm(t.Context()); (err == nil) != ok {
			t.Errorf("redirected to %s: %v", to, err)
		}
	}
	if n := elsewhere.asked.Load(); n != 0 {
		t.Errorf("a redirect was followed to another host, %d times", n)
	}
}

// TestOneFetchForAll: concurrent requests with a new key cause one fetch, and
// all succeed. A request that gives up does not cancel the fetch.
func TestOneFetchForAll(t *testing.T) {
	s := newKeyServer(t)
	pair := newPair(t, "a")
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	s.answers(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-release
		_, _ = io.WriteString(w, `{"keys":[`+pair.public+`]}`)
	})
	v := verifier(t, func(tc *TokenConfig) { tc.Secret, tc.JWKSURL, tc.Log = "", s.URL, slog.New(slog.DiscardHandler) })
	token := pair.token(t, "")
	first, cancel := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	crowd.Go(func() {
		if _, err := v.Verify(first, token); err != nil {
			t.Errorf("who fetched: %v", err)
		}
	})
	<-arrived
	for range 20 {
		crowd.Go(func() {
			if _, err := v.Verify(t.Context(), token); err != nil {
				t.Errorf("who waited: %v", err)
			}
		})
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := v.Verify(gone, token); err == nil {
		t.Error("who gave up got in")
	}
	cancel()
	close(release)
	crowd.Wait()
	if n := s.asked.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
}
