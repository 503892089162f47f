package access

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

type vectors struct {
	TestGroups []struct {
		Comment string
		Private json.RawMessage
		Public  json.RawMessage
		Tests   []struct {
			TcID    int
			Comment string
			JWS     any
			Result  string
		}
	}
}

func readVectors(t *testing.T, name string) (v vectors) {
	t.Helper()
	name = filepath.Join(cmp.Or(os.Getenv("PARLEY_CORPORA"), filepath.Join("..", "..", "shared", "data")), "jwt", name)
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Skip("no vectors here: ", err)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// notHere lists valid signatures that are refused anyway, with the reason.
var notHere = map[int]string{
	346: "the key is for PS256, the token by PS384",
	350: "the key is for PS256, the token by PS384",
	347: "the key is for ES521, which does not exist",
	351: "the key is for ES521, which does not exist",
	372: "a character that is not base64url is in the header",
	373: "a character that is not base64url is in the payload",
}

// TestWycheproofSignatures: every invalid signature is refused, except two that
// are byte for byte the same as a valid one (their padding was lost). As
// tokens, all are refused: their payloads are not claims.
func TestWycheproofSignatures(t *testing.T) {
	var refused, same, accepted, unused int
	for _, g := range readVectors(t, "json_web_signature_test.json").TestGroups {
		set, _, err := parseKeySet([]byte(`{"keys":[` + cmp.Or(string(g.Public), string(g.Private)) + `]}`))
		if err != nil {
			t.Fatalf("%s: %v", g.Comment, err)
		}
		whole := Verifier{issuer: "parley", now: time.Now, keys: set}
		valid := map[string]bool{}
		for _, c := range g.Tests {
			// A JWS in JSON serialization is an object: its JSON text is sent.
			jws, ok := c.JWS.(string)
			if !ok {
				text, err := json.Marshal(c.JWS)
				if err != nil {
					t.Fatal(err)
				}
				jws = string(text)
			}
			if _, err := whole.Verify(t.Context(), jws); err == nil {
				t.Errorf("%d %s %s: accepted as a token", c.TcID, g.Comment, c.Comment)
			}
			_, err := verifySignature(t.Context(), set, jws)
			switch {
			case c.Result == "valid" && err == nil:
				accepted++
				valid[jws] = true
			case c.Result == "valid" && notHere[c.TcID] != "":
				unused++
				t.Logf("valid, and refused: %d %s %s: %s", c.TcID, g.Comment, c.Comment, notHere[c.TcID])
			case c.Result == "valid":
				t.Errorf("%d %s %s: %v", c.TcID, g.Comment, c.Comment, err)
			case err != nil:
				refused++
			case valid[jws]:
				same++
				t.Logf("invalid, and the same as a valid one: %d %s %s", c.TcID, g.Comment, c.Comment)
			default:
				t.Errorf("%d %s %s: accepted", c.TcID, g.Comment, c.Comment)
			}
		}
	}
	t.Logf("invalid: %d refused, %d not invalid; valid: %d accepted, %d refused", refused, same, accepted, unused)
	if refused != 353 || same != 2 || accepted != 40 || unused != 6 {
		t.Error("these are not all")
	}
}

// TestWycheproofKeys: either the key set is refused, or it has no key for the
// token, or the signature does not verify.
func TestWycheproofKeys(t *testing.T) {
	var refused, accepted int
	for _, g := range readVectors(t, "json_web_key_test.json").TestGroups {
		set, leftOut, err := parseKeySet([]byte(cmp.Or(string(g.Public), string(g.Private))))
		for _, c := range g.Tests {
			asKey := err != nil || len(leftOut) > 0
			_, wrong := verifySignature(t.Context(), set, c.JWS.(string))
			switch {
			case c.Result == "valid" && (asKey || wrong != nil):
				t.Errorf("%d %s: %v %v %v", c.TcID, c.Comment, err, leftOut, wrong)
			case c.Result == "valid":
				accepted++
			case wrong == nil:
				t.Errorf("%d %s: accepted", c.TcID, c.Comment)
			default:
				refused++
				if !asKey {
					t.Logf("refused for its signature, the key being good: %d %s", c.TcID, c.Comment)
				}
			}
		}
	}
	t.Logf("%d invalid refused, %d valid accepted", refused, accepted)
	if refused != 21 || accepted != 5 {
		t.Error("these are not all")
	}
}
