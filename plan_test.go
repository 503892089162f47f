package parley

import (
	"fmt"
	"strings"
	"testing"
)

// items parses "sweep:done dust" as items; a word without a colon has no
// status.
func items(words string) (list []PlanItem) {
	for _, word := range strings.Fields(words) {
		title, status, _ := strings.Cut(word, ":")
		list = append(list, PlanItem{Title: title, Status: ItemStatus(status)})
	}
	return list
}

func told(list []PlanItem) string {
	var words []string
	for _, item := range list {
		words = append(words, fmt.Sprintf("%s:%s", item.Title, item.Status))
	}
	return strings.Join(words, " ")
}

// TestPlanUpdates checks that an update merges statuses if it contains only
// known titles. Any other update replaces the items and keeps the statuses of
// items that stay.
func TestPlanUpdates(t *testing.T) {
	for _, c := range []struct{ was, status, given, want string }{
		{"", "", "a b:done", "a:pending b:done"},
		{"a:pending b:pending c:pending", "executing", "b:done", "a:pending b:done c:pending"},
		{"a:done b:pending", "executing", "b:in_progress a:pending", "a:done b:in_progress"},
		{"a:done b:in_progress", "executing", "a b", "a:done b:in_progress"},
		{"a:done b:pending", "executing", "c a:pending", "c:pending a:done"},
		{"a:done b:pending", "executing", "c:done a:in_progress", "c:done a:in_progress"},
		{"a:done b:pending", "planned", "b:done", "a:done b:done"},
		{"a:done b:skipped", "completed", "a b", "a:pending b:pending"},
		{"a:done b:pending", "rejected", "b:pending", "b:pending"},
	} {
		var was *Plan
		if c.was != "" {
			was = &Plan{Summary: "s", Items: items(c.was), Status: PlanStatus(c.status), Text: "edited"}
		}
		got := was.updated(PlanUpdate{Items: items(c.given)}, PlanExecuting)
		if told(got.Items) != c.want || got.Status != PlanExecuting {
			t.Errorf("%s (%s), told %s: %s (%s), want %s", c.was, c.status, c.given, told(got.Items), got.Status,
				c.want)
		}
		if over := c.status == "" || c.status == "completed" || c.status == "rejected"; (got.Text == "") != over ||
			(got.Summary == "") != over {
			t.Errorf("%s (%s): %+v", c.was, c.status, got)
		}
		if anew := was.updated(PlanUpdate{Items: items(c.given)}, PlanProposed); anew.Text != "" {
			t.Errorf("a new proposal is what a person edited: %+v", anew)
		}
		if c.was != "" && told(was.Items) != c.was {
			t.Errorf("%s was changed to %s", c.was, told(was.Items))
		}
	}
	described := (&Plan{Items: []PlanItem{{Title: "a", Description: "how", Status: ItemPending}},
		Status: PlanExecuting}).updated(PlanUpdate{Summary: "why", Items: items("a:done")}, PlanExecuting)
	if described.Items[0].Description != "how" || described.Summary != "why" {
		t.Errorf("%+v", described)
	}
}

func TestPlanInstructions(t *testing.T) {
	p := &Plan{Summary: "A tidy place", Items: []PlanItem{{"Sweep", "the floor\nall of it", ItemDone},
		{"Dust", "", ItemPending}}, Status: PlanExecuting, Text: "Sweep only."}
	const plan = "A tidy place\n1. [done] Sweep\n   the floor\n   all of it\n2. [pending] Dust\nA person has put it this way, and that counts:\nSweep only.\n"
	if got := p.String(); got != plan {
		t.Errorf("%q", got)
	}
	for status, want := range map[PlanStatus]string{PlanProposed: "waits", PlanApproved: "approved",
		PlanExecuting: "update_plan", PlanRejected: "rejected", PlanCompleted: ""} {
		p.Status = status
		got := p.Instructions("")
		if want == "" && got != "" || want != "" && (!strings.Contains(got, want) || !strings.HasSuffix(got, plan)) {
			t.Errorf("%s: %q", status, got)
		}
		if got := p.Instructions(ModePlan); !strings.HasPrefix(got, "You are planning.") {
			t.Errorf("%s: %q", status, got)
		}
	}
	if got := (*Plan)(nil).Instructions(""); got != "" {
		t.Errorf("%q", got)
	}
}
