package main

import (
	"log/slog"

	"parley/config"
	"parley/workspace"
)

// newSkills reads skills, and logs which are left out.
func newSkills(c *config.Settings, files *workspace.Workspace, log *slog.Logger) *config.Skills {
	skills := config.LoadSkills(files, c.DefaultTenant, c.SkillFolders()...)
	for _, problem := range skills.Problems(c.DefaultTenant) {
		log.Warn("a skill is left out", "problem", problem)
	}
	return skills
}
