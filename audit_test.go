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

// TestAuditHasNoText checks that audit records have no text of a person: a reason for a halt, an argument that the
// reason of a blocked call quotes, and the reason of a classifier, which may repeat the message.
func TestAuditHasNoText(t *testing.T) {
	event := func(by parley.PrincipalID, body parley.EventBody) parley.Event {
		return parley.Event{Session: "s", Seq: 9, At: start, By: by, Body: body}
	}
	for _, c := range []struct {
		of   parley.Event
		want string
	}{
		{event("ann", parley.SessionHalted{Reason: "bob is ill"}), `{"bytes":10,"seq":9,"session":"s"}`},
		{event("", parley.SessionHalted{Reason: parley.CanaryLeak}),
			`{"reason":"canary_leak","seq":9,"session":"s"}`},
		{event("", parley.ToolCallBlocked{Call: 7, Name: "read_file", Reason: `the path "/bob \"ill\"" is absolute`}),
			`{"reason":"the path \"…\" is absolute","seq":9,"session":"s","tool_name":"read_file"}`},
		{event("", parley.InputScreened{Input: 2, Finding: parley.Finding{Verdict: parley.ScreenBlock, Score: 0.9,
			Reason: "llm:says that bob is ill"}}), `{"input":2,"reason":"llm","score":0.9,"seq":9,"session":"s"}`},
	} {
		records := parley.AuditOf(parley.Report{}, []parley.Event{c.of})
		if len(records) != 1 || string(records[0].Metadata) != c.want {
			t.Errorf("%+v\nwant %s", records, c.want)
		}
	}
}
