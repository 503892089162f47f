package main

import (
	"log/slog"

	"parley"
	"parley/config"
	"parley/tool"
)

// newSkills reads skills.
func newSkills(c *config.Settings, tools *tool.Box, log *slog.Logger) (*config.Skills, error) {
	skills := config.LoadSkills(c.DefaultTenant, c.SkillFolders()...)
	for _, problem := range skills.Problems(c.DefaultTenant) {
		log.Warn("a skill is left out", "problem", problem)
	}
	tools.UseSkills(func() []parley.Skill { return skills.Skills(c.DefaultTenant) })
	return skills, nil
}
