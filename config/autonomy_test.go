package config

import (
	"strings"
	"testing"

	"parley"
)

func TestAutonomyOfAServer(t *testing.T) {
	for _, c := range []struct {
		env   map[string]string
		want  parley.Autonomy
		wrong string
	}{
		{nil, parley.Autonomy{MaxConsecutive: 3, CooldownMS: 15000, MaxFollowUps: 10}, ""},
		{map[string]string{"AUTONOMY_ENABLED": "true", "AUTONOMY_MAX_CONSECUTIVE": "5", "AUTONOMY_COOLDOWN_MS": "1000"},
			parley.Autonomy{Enabled: true, MaxConsecutive: 5, CooldownMS: 1000, MaxFollowUps: 10}, ""},
		{map[string]string{"PARLEY_AUTONOMY_ENABLED": "false", "AUTONOMY_ENABLED": "true"},
			parley.Autonomy{MaxConsecutive: 3, CooldownMS: 15000, MaxFollowUps: 10}, ""},
		{map[string]string{"AUTONOMY_ENABLED": "often"}, parley.Autonomy{}, "bool"},
		{map[string]string{"AUTONOMY_MAX_CONSECUTIVE": "0"}, parley.Autonomy{}, "from 1 to 100"},
		{map[string]string{"AUTONOMY_MAX_CONSECUTIVE": "many"}, parley.Autonomy{}, "many"},
		{map[string]string{"AUTONOMY_COOLDOWN_MS": "-1"}, parley.Autonomy{}, "from 0 to 86400000"},
		{map[string]string{"AUTONOMY_COOLDOWN_MS": "99999999999"}, parley.Autonomy{}, "from 0 to 86400000"},
	} {
		inDir(t, nil)
		got, err := parse([]string{"serve"}, c.env)
		switch {
		case c.wrong == "" && (err != nil || got.Autonomy.Most() != c.want):
			t.Errorf("%v: %+v, %v", c.env, got.Autonomy.Most(), err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%v: %v, want %s", c.env, err, c.wrong)
		}
	}
}

func TestAutonomyOfAnAgent(t *testing.T) {
	for text, want := range map[string]parley.Autonomy{
		"autonomy: {enabled: true}":                      {Enabled: true},
		"autonomy: {enabled: false, max_consecutive: 1}": {},
		"autonomy: {enabled: true, max_consecutive: 1, cooldown_ms: 60000, max_follow_ups: 2, evaluator: {model: small}}": {Enabled: true, MaxConsecutive: 1, CooldownMS: 60000, MaxFollowUps: 2, Evaluator: "small"},
	} {
		def, err := parseAgent("a.md", "---\n"+text+"\n---\nA.")
		if err != nil || def.agent.Autonomy != want {
			t.Errorf("%s: %+v, %v", text, def.agent.Autonomy, err)
		}
	}
	for text, want := range map[string]string{
		"{max_consecutive: 101}": "a.md:2: autonomy.max_consecutive is from 1 to 100, not 101",
		"{cooldown_ms: -1}":      "a.md:2: autonomy.cooldown_ms is from 0 to 86400000, not -1",
		"{max_follow_ups: 11}":   "a.md:2: autonomy.max_follow_ups is from 1 to 10, not 11",
	} {
		if _, err := parseAgent("a.md", "---\nautonomy: "+text+"\n---\nA."); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
