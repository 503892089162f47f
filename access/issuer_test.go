package access

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// issuer is an OpenID provider that signs every user in as ann. It accepts a
// code once, with the verifier and the client secret that belong to it.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu     sync.Mutex
	claims map[string]any                     // the claims about ann
	change func(claims map[string]any)        // breaks the claims; may be nil
	sign   func(claims map[string]any) string // signs the claims; nil: correctly
	codes  map[string]url.Values              // parameters of the authorization requests, by code
	deny   string                             // error that it redirects back with
	down   bool
}

const clientID, clientSecret = "parley-console", "a secret between the two"

var issuerKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })

func newIssuer(t *testing.T) *issuer {
	i := &issuer{key: issuerKey(), claims: map[string]any{"sub": "ann", "roles": []string{"standard_user"}},
		codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		if i.down {
			http.Error(w, "not today", http.StatusServiceUnavailable)
			return
		}
		reply(w, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize",
			"token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
			"token_endpoint_auth_methods_supported": []string{"client_secret_post"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		e := big.NewInt(int64(i.key.E)).Bytes()
		reply(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
			"n": base64.RawURLEncoding.EncodeToString(i.key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(e)}}})
	})
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the test will notice
}

func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back := url.Values{"state": {q.Get("state")}}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.deny != "" {
		back.Set("error", i.deny)
	} else {
		code := rand.Text()
		i.codes[code] = q
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked, ok := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code"))
	verifier := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	user, password, basic := r.BasicAuth()
	if !basic {
		user, password = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	} else {
		password, _ = url.QueryUnescape(password)
	}
	if !ok || asked.Get("code_challenge_method") != "S256" ||
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(verifier[:]) ||
		asked.Get("redirect_uri") != r.PostFormValue("redirect_uri") || user != clientID || password != clientSecret ||
		asked.Get("response_type") != "code" {
		w.WriteHeader(http.StatusBadRequest)
		reply(w, map[string]any{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": i.URL, "aud": clientID, "iat": start.Unix(),
		"exp": start.Add(5 * time.Minute).Unix(), "nonce": asked.Get("nonce")}
	maps.Copy(claims, i.claims)
	if i.change != nil {
		i.change(claims)
	}
	sign := i.sign
	if sign == nil {
		sign = i.signed
	}
	reply(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": sign(claims)})
}

func (i *issuer) signed(claims map[string]any) string { return signedBy(i.key, claims) }

func signedBy(key *rsa.PrivateKey, claims map[string]any) string {
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims(claims))
	token.Header["kid"] = "1"
	return must(token.SignedString(key))
}
