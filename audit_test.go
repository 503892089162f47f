package parley_test

import (
	"strings"
	"testing"

	"parley"
)

// TestRenamesAreOnRecord checks that the audit records a rename without the
// title.
func TestRenamesAreOnRecord(t *testing.T) {
	records := parley.AuditOf(parley.Command{Via: parley.ViaHTTP},
		[]parley.Event{{Session: "s", Seq: 3, At: start, By: "ann", Body: parley.SessionRenamed{Title: "a secret"}}})
	if len(records) != 1 || records[0].Action != "session.renamed" || records[0].By != "ann" ||
		strings.Contains(string(records[0].Metadata), "secret") {
		t.Errorf("%+v", records)
	}
}

// TestGrantsAreOnRecord checks the audit records of an allowed rule and of a
// revoked grant.
func TestGrantsAreOnRecord(t *testing.T) {
	records := parley.AuditOf(parley.Command{Via: parley.ViaHTTP}, []parley.Event{
		{Session: "s", Seq: 9, At: start, By: "ann", Body: parley.ApprovalDecided{Card: 7, Call: 6,
			Decision: parley.AllowAlways, Scope: parley.ScopeSimilar}},
		{Session: "s", Seq: 11, At: start, By: "bob", Body: parley.GrantRevoked{Grant: 9}}})
	if len(records) != 2 || !strings.Contains(string(records[0].Metadata), `"scope":"similar"`) ||
		records[1].Action != "grant.revoked" || records[1].ID != "s.9" || records[1].By != "bob" {
		t.Errorf("%+v", records)
	}
}
