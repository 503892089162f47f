package parley

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// TestDigestsAreStable checks that a new field does not change the digest of
// definitions that released versions have stored, because definitions are found
// by digest.
func TestDigestsAreStable(t *testing.T) {
	old := `{"name":"a","tools":["*"],"approval":"suggest","instructions":"A."}`
	sum := sha256.Sum256([]byte(old))
	agent := Agent{Name: "a", Tools: []string{"*"}, Approval: "suggest", Instructions: "A."}
	if got := agent.Digest(); got != hex.EncodeToString(sum[:16]) {
		t.Errorf("the digest of %s is now %s", old, got)
	}
	narrowed := agent
	narrowed.Allow = &AgentAllow{Roles: []UserRole{"dept_head"}}
	if narrowed.Digest() == agent.Digest() {
		t.Error("who may talk to an agent is not part of its digest")
	}
	old = `{"name":"a","tools":["*"],"approval":"suggest","allow":{"roles":["dept_head"]},"instructions":"A."}`
	sum = sha256.Sum256([]byte(old))
	if got := narrowed.Digest(); got != hex.EncodeToString(sum[:16]) {
		t.Errorf("the digest of %s is now %s", old, got)
	}
}
