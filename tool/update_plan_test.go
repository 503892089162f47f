package tool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley"
)

func TestPlansAreNotPerformed(t *testing.T) {
	b := newBench(t)
	arguments := `{"summary":"Tidy\u0000","items":[{"title":"Sweep","description":"all of it","status":"done"},{"title":"Dust","status":"pending"}]}`
	v := b.box.Judge(parley.Agent{Approval: "suggest"}, "update_plan", arguments)
	want := parley.PlanUpdate{Summary: "Tidy",
		Items: []parley.PlanItem{{Title: "Sweep", Description: "all of it", Status: parley.ItemDone},
			{Title: "Dust", Status: parley.ItemPending}}}
	if diff := cmp.Diff(want, v.Plan); v.Kind != parley.VerdictPlan || v.Class != parley.Pure || diff != "" {
		t.Errorf("%+v: %s", v, diff)
	}
	if _, err := b.box.Perform(t.Context(), parley.Agent{}, "update_plan", arguments, nil); parley.CodeOf(
		err) != parley.CodeInvalid {
		t.Errorf("performed: %v", err)
	}
	for bad, why := range map[string]string{
		`{"items":[]}`: "at least 1", `{}`: "missing", `{"items":[{"title":" ","status":"done"}]}`: "blank",
		`{"items":[{"title":"a","status":"done"},{"title":"a","status":"pending"}]}`: "twice",
		`{"items":[{"title":"a","status":"finished"}]}`:                              "one of pending, in_progress, done, skipped",
		`{"items":[{"title":"a"}]}`:                                                  `"status" is missing`,
	} {
		if v := b.box.Judge(parley.Agent{}, "update_plan", bad); v.Kind != parley.VerdictBlock ||
			!strings.Contains(v.Reason, why) {
			t.Errorf("%s: %+v", bad, v)
		}
	}
}

// TestReadOnlyTools checks the read-only tools, which are the only ones
// offered to a run that plans.
func TestReadOnlyTools(t *testing.T) {
	var reading []string
	for _, s := range newBench(t).box.Specs(parley.Agent{}) {
		if s.ReadOnly {
			reading = append(reading, s.Name)
		}
	}
	if diff := cmp.Diff([]string{"list_files", "find_files", "search_files", "read_file", "ask_user", "update_plan"},
		reading); diff != "" {
		t.Error(diff)
	}
}
