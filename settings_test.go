package parley_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley"
)

func change(t testing.TB, text string) parley.ChangeSettings {
	t.Helper()
	var do parley.ChangeSettings
	if err := json.Unmarshal([]byte(text), &do.Values); err != nil {
		t.Fatal(err)
	}
	return do
}

// TestSettings checks the bounds of each setting, and that the error names the
// setting.
func TestSettings(t *testing.T) {
	a := &tale{t: t, now: start, state: parley.NewState("acme", parley.TenantSession)}
	for _, c := range []struct{ change, wrong string }{
		{`{"turns":0}`, "turns must be a whole number from 1 to 1000."},
		{`{"turns":1001}`, "turns"}, {`{"turns":1.5}`, "turns"}, {`{"turns":"7"}`, "turns"},
		{`{"compact_at":0.09}`, "compact_at must be a number from 0.1 to 0.95."}, {`{"compact_at":0.96}`, "compact_at"},
		{`{"compact_at":true}`, "compact_at"},
		{`{"max_delegation_depth":-1}`, "max_delegation_depth must be a whole number from 0 to 5."},
		{`{"max_delegation_depth":6}`, "max_delegation_depth"},
		{`{"approval":"yolo"}`, "approval must be suggest, auto-edit or full-auto."}, {`{"approval":""}`, "approval"},
		{`{"model":""}`, "model must be the name of a model."}, {`{"model":"a b"}`, "model"},
		{`{"model":["x"]}`, "model"},
		{`{"turns":7,"Turns":8}`,
			`There is no setting "Turns"; there are approval, compact_at, max_delegation_depth, model, turns.`},
		{`{"turns":7,"zeal":null}`, `There is no setting "zeal"`},
	} {
		if err := a.try(change(t, c.change)); parley.CodeOf(err) != parley.CodeInvalid ||
			!strings.HasPrefix(parley.MessageOf(err), c.wrong) {
			t.Errorf("%s: %v, want %s", c.change, err, c.wrong)
		}
	}
	if len(a.log) > 0 {
		t.Fatalf("refusals left %+v", a.log)
	}
	effective := func(want parley.Settings) {
		t.Helper()
		if got := a.state.Facts.Effective(); got != want {
			t.Errorf("in effect are %+v, want %+v", got, want)
		}
		snapshot, _ := a.state.Snapshot()
		if back, ok := snapshot.State(); !ok || fmt.Sprint(back) != fmt.Sprint(a.state) {
			t.Errorf("%+v was read back as %+v", a.state, back)
		}
	}
	want := parley.Settings{Approval: "suggest", Turns: 50, CompactAt: 0.8, MaxDelegationDepth: 2}
	effective(want)
	a.do(change(t, `{"turns":null}`)) // no change
	if len(a.log) > 0 {
		t.Errorf("%+v", a.log)
	}
	a.do(change(t, `{"turns": 1000, "model":"claude-sonnet-4-5", "compact_at":0.10, "max_delegation_depth":0}`))
	a.expect("SessionOpened SettingsChanged")
	want.Turns, want.Model, want.CompactAt, want.MaxDelegationDepth = 1000, "claude-sonnet-4-5", 0.1, 0
	effective(want)
	a.do(change(t, `{"turns":1000, "approval":"full-auto", "model": null }`))
	if b := last[parley.SettingsChanged](a); fmt.Sprintf("%s", b.Values) != `map[approval:"full-auto" model:null]` {
		t.Errorf("%s", b.Values)
	}
	want.Approval, want.Model = "full-auto", ""
	effective(want)
	a.do(change(t, `{"approval":null,"turns":null,"compact_at":null,"max_delegation_depth":null}`))
	effective(parley.State{}.Facts.Effective())

	for _, do := range []parley.CommandBody{parley.OpenSession{}, parley.SubmitInput{Content: "hi", Open: true,
		Agent: helper}, parley.DeleteSession{}} {
		a.refused(do, parley.CodeNotFound)
	}
	newTale(t).refused(change(t, `{"turns":7}`), parley.CodeNotFound)
	var tenant parley.State
	tenant.Facts.Settings = map[string]json.RawMessage{"turns": json.RawMessage(`-1`), "later": json.RawMessage(`1`),
		"approval": json.RawMessage(`"auto-edit"`)}
	odd := tenant.Facts.Effective()
	if odd.Turns != 50 || odd.Approval != "auto-edit" {
		t.Errorf("%+v", odd)
	}
}

func TestSettingsCompleteAgents(t *testing.T) {
	s := parley.Settings{Model: "m", Approval: "auto-edit", Turns: 9}
	if got := s.Complete(parley.Agent{Name: "a"}); got.Model != "m" || got.Approval != "auto-edit" ||
		got.Limits.Turns != 9 {
		t.Errorf("%+v", got)
	}
	own := parley.Agent{Name: "a", Model: "x", Approval: "suggest", Limits: parley.AgentLimits{Turns: 3}}
	if got := s.Complete(own); got.Model != own.Model || got.Approval != own.Approval ||
		got.Limits.Turns != own.Limits.Turns {
		t.Errorf("%+v", got)
	}
}
