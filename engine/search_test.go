package engine

import (
	"context"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// TestSearchFindsReadableSessions checks that a search follows the same permissions as lists. Passages of other users'
// sessions are recorded in the audit.
func TestSearchFindsReadableSessions(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	bob, eve := member("bob", parley.RoleStandardUser), member("eve", parley.RoleStandardUser)
	stranger := port.Principal{ID: "ann", Tenant: "rival", Roles: ann.Roles}
	theirs := parley.SessionID("22222222-2222-4222-8222-00000000000a")
	if code := r.as(bob, theirs, parley.SubmitInput{Open: true, Content: "say marzipan"}); code != "" {
		t.Fatal(code)
	}
	r.finished(theirs, 1)
	mine := r.open()
	r.say(mine, "say hello")
	r.finished(mine, 1)
	before := len(r.audited(port.AuditSessionRead)) // records made by the test itself
	for _, c := range []struct {
		who    port.Principal
		query  string
		found  int
		onFile int // audit records in the end
		code   parley.Code
	}{
		{bob, "marzipan", 2, 0, ""}, // the question and the answer
		{bob, "hello", 0, 0, ""},
		{eve, "marzipan", 0, 0, ""},
		{ann, "hello", 2, 0, ""},
		{ann, "marzipan", 2, 1, ""}, // an administrator may see all
		{member("mia", "king"), "marzipan", 0, 1, parley.CodeForbidden},
		{stranger, "marzipan", 0, 1, ""},
		{bob, " \t", 0, 1, parley.CodeEmpty},
		{bob, strings.Repeat("x", parley.MaxSearch+1), 0, 1, parley.CodeTooLarge},
		{bob, "\xff", 0, 1, parley.CodeInvalid},
		{bob, `"???`, 0, 1, ""},
	} {
		found, err := r.Search(ctx, c.who, port.SearchQuery{Text: c.query})
		if codeOf(err) != c.code || len(found.Passages) != c.found {
			t.Errorf("%s finds %+v by %q, %v", c.who.ID, found, c.query, err)
		}
		if rows := r.audited(port.AuditSessionRead); len(rows) != before+c.onFile {
			t.Errorf("%s, %q: %d are on record", c.who.ID, c.query, len(rows)-before)
		}
	}
	if code := r.as(bob, theirs, parley.DeleteSession{}); code != "" {
		t.Fatal(code)
	}
	if found, err := r.Search(ctx, bob, port.SearchQuery{Text: "marzipan"}); err != nil || len(found.Passages) > 0 {
		t.Errorf("after the deletion: %+v, %v", found, err)
	}
}
