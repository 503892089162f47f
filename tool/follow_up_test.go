package tool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley"
)

func TestFollowUpsAreNotPerformed(t *testing.T) {
	b := newBench(t)
	free := parley.Agent{Autonomy: parley.Autonomy{Enabled: true}}
	v := b.box.Judge(free, "schedule_follow_up",
		`{"delay_seconds":90,"reason":"a\u0000 reminder","message":"call mum"}`)
	if want := (parley.FollowUp{Delay: 90 * time.Second, Reason: "a reminder",
		Message: "call mum"}); v.Kind != parley.VerdictFollowUp || v.Class != parley.Idempotent || v.FollowUp != want {
		t.Errorf("%+v", v)
	}
	if v := b.box.Judge(free, "cancel_follow_ups", `{}`); v.Kind != parley.VerdictNoFollowUps {
		t.Errorf("%+v", v)
	}
	for _, name := range []string{"schedule_follow_up", "cancel_follow_ups"} {
		if _, err := b.box.Perform(t.Context(), free, name, `{"delay_seconds":1,"reason":"r"}`, nil); parley.CodeOf(
			err) != parley.CodeInvalid {
			t.Errorf("%s was performed: %v", name, err)
		}
	}
	long, megabyte := strings.Repeat("x", 4097), strings.Repeat("x", 1<<20)
	for bad, why := range map[string]string{
		`{"delay_seconds":0,"reason":"r"}`:                               "at least 1",
		`{"delay_seconds":-5,"reason":"r"}`:                              "at least 1",
		`{"delay_seconds":2592001,"reason":"r"}`:                         "at most 2592000",
		`{"delay_seconds":1e99,"reason":"r"}`:                            "whole number",
		`{"delay_seconds":99999999999999999999999,"reason":"r"}`:         "whole number",
		`{"delay_seconds":1.5,"reason":"r"}`:                             "whole number",
		`{"delay_seconds":"60","reason":"r"}`:                            "expected integer, got string",
		`{"delay_seconds":null,"reason":"r"}`:                            "expected integer, got null",
		`{"delay_seconds":NaN,"reason":"r"}`:                             "not valid JSON",
		`{"delay_seconds":60,"reason":"r","message":"` + megabyte + `"}`: "at most 4096",
		`{"delay_seconds":60,"reason":"` + megabyte + `"}`:               "at most 1000",
		`{"reason":"r"}`:                    `"delay_seconds" is missing`,
		`{"delay_seconds":60}`:              `"reason" is missing`,
		`{"delay_seconds":60,"reason":" "}`: "not blank",
		`{"delay_seconds":60,"reason":"r","message":"` + long + `"}`: "at most 4096",
		fmt.Sprintf(`{"delay_seconds":60,"reason":"r","message":"%s"}`,
			strings.Repeat("€", 2000)): "at most 4096 bytes",
		`{"delay_seconds":60,"reason":"r","every":60}`: `unknown key "every"`,
	} {
		if v := b.box.Judge(free, "schedule_follow_up", bad); v.Kind != parley.VerdictBlock ||
			!strings.Contains(v.Reason, why) || v.FollowUp != (parley.FollowUp{}) {
			t.Errorf("%.80s: %+v, want %s", bad, v, why)
		}
	}
}

// TestFollowUpToolsNeedAutonomy: the tools are offered only to agents with autonomy
// enabled, whatever tools an agent lists.
func TestFollowUpToolsNeedAutonomy(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		agent parley.Agent
		want  bool
	}{
		{parley.Agent{}, false},
		{parley.Agent{Tools: []string{"schedule_follow_up", "cancel_follow_ups"}}, false},
		{parley.Agent{Autonomy: parley.Autonomy{Enabled: true}}, true},
		{parley.Agent{Tools: []string{"read_file"}, Autonomy: parley.Autonomy{Enabled: true}}, false},
	} {
		offered := 0
		for _, s := range b.box.Specs(c.agent) {
			if unasked(s.Name) {
				offered++
			}
		}
		v := b.box.Judge(c.agent, "schedule_follow_up", `{"delay_seconds":60,"reason":"r"}`)
		if (offered == 2) != c.want || (v.Kind == parley.VerdictFollowUp) != c.want || !c.want && offered != 0 {
			t.Errorf("%+v: offered %d, judged %+v", c.agent, offered, v)
		}
	}
}
