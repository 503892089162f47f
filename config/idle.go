package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/port"
)

// IdlePrompts limits how often agents are prompted while they are idle during a
// mission. It needs AUTONOMY_ENABLED.
type IdlePrompts struct {
	IdlePromptInterval time.Duration `name:"idle-prompt-interval" var:"PARLEY_IDLE_PROMPT_INTERVAL" default:"30s" help:"Minimum time that an agent is idle during a mission before it is prompted. It overrides shorter intervals of agents."`
	IdlePromptMax      int           `name:"idle-prompt-max" var:"PARLEY_IDLE_PROMPT_MAX" default:"10" placeholder:"N" help:"Maximum number of idle prompts of an agent in a mission between two messages of a person (default: 10)."`
}

func (i IdlePrompts) IdleLimits() port.IdleLimits {
	return port.IdleLimits{Interval: i.IdlePromptInterval, Prompts: i.IdlePromptMax}
}

func (i IdlePrompts) validateIdle() error {
	var errs []error
	if i.IdlePromptInterval < time.Second || i.IdlePromptInterval > 24*time.Hour {
		errs = append(errs, fmt.Errorf("--idle-prompt-interval is from 1s to 24h, not %s", i.IdlePromptInterval))
	}
	if i.IdlePromptMax < 1 || i.IdlePromptMax > 1000 {
		errs = append(errs, fmt.Errorf("--idle-prompt-max is from 1 to 1000, not %d; to have no idle prompts leave "+
			"--autonomy-enabled out", i.IdlePromptMax))
	}
	return errors.Join(errs...)
}

// idle reads the idle prompt and its interval from an agent's file.
func (f *frontMatter) idle(doc document) (prompt string, seconds int64, err error) {
	prompt = strings.TrimSpace(f.IdlePrompt)
	if len(prompt) > parley.MaxIdlePrompt {
		return "", 0, at(doc.path, doc.line("idle_prompt"), "idle_prompt has at most %d bytes, not %d",
			parley.MaxIdlePrompt, len(prompt))
	}
	if f.IdleIntervalSecs != nil {
		seconds = *f.IdleIntervalSecs
		if most := int64(parley.MaxIdleInterval / time.Second); seconds < 1 || seconds > most {
			return "", 0, at(doc.path, doc.line("idle_interval_secs"), "idle_interval_secs is from 1 to %d, not %d",
				most, seconds)
		}
	}
	return prompt, seconds, nil
}
