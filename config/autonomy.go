package config

import (
	"errors"
	"fmt"

	"parley"
)

// Autonomy limits the autonomy of all agents. Each agent must enable it in its
// file, too. The variables without a prefix are those of the specification.
type Autonomy struct {
	AutonomyEnabled        bool  `name:"autonomy-enabled" var:"PARLEY_AUTONOMY_ENABLED,AUTONOMY_ENABLED" default:"false" help:"Let agents with autonomy enabled send messages on their own."`
	AutonomyMaxConsecutive int   `name:"autonomy-max-consecutive" var:"PARLEY_AUTONOMY_MAX_CONSECUTIVE,AUTONOMY_MAX_CONSECUTIVE" default:"3" placeholder:"N" help:"Maximum number of autonomous messages in a session between two messages of a person (default: 3)."`
	AutonomyCooldownMS     int64 `name:"autonomy-cooldown-ms" var:"PARLEY_AUTONOMY_COOLDOWN_MS,AUTONOMY_COOLDOWN_MS" default:"15000" placeholder:"MS" help:"Minimum time between two autonomous messages of a session, in milliseconds (default: 15000)."`
}

// Most returns the upper limits for every agent.
func (a Autonomy) Most() parley.Autonomy {
	return parley.Autonomy{Enabled: a.AutonomyEnabled, MaxConsecutive: a.AutonomyMaxConsecutive,
		CooldownMS: a.AutonomyCooldownMS, MaxFollowUps: parley.MaxFollowUps}
}

func (a Autonomy) validateAutonomy() error {
	var errs []error
	if a.AutonomyMaxConsecutive < 1 || a.AutonomyMaxConsecutive > parley.MostConsecutive {
		errs = append(errs, fmt.Errorf("--autonomy-max-consecutive is from 1 to %d, not %d; "+
			"to turn autonomous messages off, leave --autonomy-enabled out",
			parley.MostConsecutive, a.AutonomyMaxConsecutive))
	}
	if a.AutonomyCooldownMS < 0 || a.AutonomyCooldownMS > parley.MostCooldownMS {
		errs = append(errs, fmt.Errorf("--autonomy-cooldown-ms is from 0 to %d, which is a day, not %d",
			parley.MostCooldownMS, a.AutonomyCooldownMS))
	}
	return errors.Join(errs...)
}

// autonomy reads the autonomy of an agent from its file.
func (f *frontMatter) autonomy(doc document) (parley.Autonomy, error) {
	y := f.Autonomy
	a := parley.Autonomy{Enabled: y.Enabled, MaxConsecutive: int(y.MaxConsecutive), CooldownMS: y.CooldownMS,
		MaxFollowUps: int(y.MaxFollowUps), Evaluator: y.Evaluator.Model}
	if key, err := a.Check(); err != nil {
		return parley.Autonomy{}, at(doc.path, doc.line("autonomy."+key), "autonomy.%v", err)
	}
	if !a.Enabled {
		return parley.Autonomy{}, nil
	}
	return a, nil
}
