package main

import (
	"log/slog"

	"parley"
	"parley/config"
	"parley/tool"
	"parley/workspace"
)

// newSkills reads skills.
func newSkills(c *config.Settings, files *workspace.Workspace, tools *tool.Box, log *slog.Logger) *config.Skills {
	skills := config.LoadSkills(files, c.DefaultTenant, c.SkillFolders()...)
	for _, problem := range skills.Problems(c.DefaultTenant) {
		log.Warn("a skill is left out", "problem", problem)
	}
	tools.UseSkills(func() []parley.Skill { return skills.Skills(c.DefaultTenant) })
	return skills
}
