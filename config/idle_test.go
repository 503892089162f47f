package config

import (
	"strings"
	"testing"
	"time"

	"parley/port"
)

func TestIdlePromptsOfAServer(t *testing.T) {
	for _, c := range []struct {
		env   map[string]string
		want  port.IdleLimits
		wrong string
	}{
		{nil, port.IdleLimits{Interval: 30 * time.Second, Prompts: 10}, ""},
		{map[string]string{"PARLEY_IDLE_PROMPT_INTERVAL": "1s", "PARLEY_IDLE_PROMPT_MAX": "2"},
			port.IdleLimits{Interval: time.Second, Prompts: 2}, ""},
		{map[string]string{"PARLEY_IDLE_PROMPT_INTERVAL": "1ms"}, port.IdleLimits{}, "from 1s to 24h, not 1ms"},
		{map[string]string{"PARLEY_IDLE_PROMPT_INTERVAL": "48h"}, port.IdleLimits{}, "from 1s to 24h"},
		{map[string]string{"PARLEY_IDLE_PROMPT_MAX": "0"}, port.IdleLimits{}, "leave --autonomy-enabled out"},
		{map[string]string{"PARLEY_IDLE_PROMPT_MAX": "1001"}, port.IdleLimits{}, "from 1 to 1000"},
	} {
		inDir(t, nil)
		got, err := parse([]string{"serve"}, c.env)
		switch {
		case c.wrong == "" && (err != nil || got.IdleLimits() != c.want):
			t.Errorf("%v: %+v, %v", c.env, got.IdleLimits(), err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%v: %v, want %s", c.env, err, c.wrong)
		}
	}
}

func TestIdlePromptsOfAnAgent(t *testing.T) {
	def, err := parseAgent("a.md", "---\nidle_prompt: ' Look for failing tests. '\nidle_interval_secs: 45\n---\nA.")
	if err != nil || def.agent.IdlePrompt != "Look for failing tests." || def.agent.IdleSeconds != 45 ||
		len(def.ignored) != 0 {
		t.Errorf("%+v, %v", def, err)
	}
	for text, want := range map[string]string{
		"idle_interval_secs: 0":                        "a.md:2: idle_interval_secs is from 1 to 2592000, not 0",
		"idle_interval_secs: -5":                       "a.md:2: idle_interval_secs is from 1 to 2592000, not -5",
		"idle_interval_secs: 2592001":                  "a.md:2: idle_interval_secs is from 1 to 2592000, not 2592001",
		"idle_prompt: " + strings.Repeat("x", 4<<10+1): "a.md:2: idle_prompt has at most 4096 bytes, not 4097",
	} {
		if _, err := parseAgent("a.md", "---\n"+text+"\n---\nA."); err == nil || err.Error() != want {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}
