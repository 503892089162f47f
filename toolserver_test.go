package parley_test

import (
	"reflect"
	"strings"
	"testing"

	"parley"
	"parley/checker"
)

var one, two = strings.Repeat("1", 64), strings.Repeat("2", 64)

// TestToolsAreAccepted checks that the tools of the first use of a server are
// accepted automatically. Later tools need an explicit command, and only
// changes are recorded.
func TestToolsAreAccepted(t *testing.T) {
	a := newTenantTale(t)
	a.do(parley.AcceptTools{Server: "files", Tools: map[string]string{"read": one}, First: true})
	a.expect("SessionOpened ToolsAccepted")
	a.do(parley.AcceptTools{Server: "files", Tools: map[string]string{"read": two}, First: true})
	a.do(parley.AcceptTools{Server: "files", Tools: map[string]string{"read": one}})
	if len(a.log) != 2 {
		t.Fatalf("what was known already left %s", a.types(9))
	}
	before := a.state
	a.do(parley.AcceptTools{Server: "files", Tools: map[string]string{"read": two, "write": one}})
	a.do(parley.AcceptTools{Server: "mail", Tools: map[string]string{"send": one}, First: true})
	if want := map[string]map[string]string{"files": {"read": two, "write": one},
		"mail": {"send": one}}; !reflect.DeepEqual(a.state.Facts.Accepted, want) {
		t.Errorf("accepted are %v, want %v", a.state.Facts.Accepted, want)
	}
	if !reflect.DeepEqual(before.Facts.Accepted, map[string]map[string]string{"files": {"read": one}}) {
		t.Errorf("folding changed an earlier state: %v", before.Facts.Accepted)
	}
	if wrong := checker.Check(a.log); len(wrong) > 0 {
		t.Error(wrong)
	}
	s, ok := a.state.Snapshot()
	if back, good := s.State(); !ok || !good || !reflect.DeepEqual(back, a.state) {
		t.Errorf("%+v was read back as %+v", a.state, back)
	}
	records := parley.AuditOf(parley.Command{Via: parley.ViaHTTP}, a.log)
	if len(records) != 3 || records[1].Action != "tools.accepted" || records[1].ID != "files" ||
		!strings.Contains(string(records[1].Metadata), two) {
		t.Errorf("on record are %+v", records)
	}
}

func TestToolsThatCannotBeAccepted(t *testing.T) {
	long := map[string]string{strings.Repeat("x", 60): one}
	many := map[string]string{}
	for i := range parley.MaxServerTools + 1 {
		many["tool"+strings.Repeat("i", i%40)+string(rune('a'+i/40))] = one
	}
	for _, do := range []parley.AcceptTools{
		{Server: "", Tools: map[string]string{"read": one}},
		{Server: "my_files", Tools: map[string]string{"read": one}},
		{Server: "files"},
		{Server: "files", Tools: map[string]string{"read": "1"}},
		{Server: "files", Tools: map[string]string{"a.b": one}},
		{Server: "files", Tools: long},
		{Server: "files", Tools: many},
	} {
		a := newTenantTale(t)
		if err := a.try(do); parley.CodeOf(err) != parley.CodeInvalid {
			t.Errorf("%+v: %v", do, err)
		}
	}
}
