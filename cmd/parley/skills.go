package main

import (
	"log/slog"
	"path/filepath"

	"parley"
	"parley/config"
	"parley/sandbox"
	"parley/tool"
)

// newSkills reads skills, and keeps agents from writing any: what they are told
// is not for them to say.
func newSkills(c *config.Settings, tools *tool.Box, commands *sandbox.Sandbox, log *slog.Logger) (*config.Skills, error) {
	dirs := c.SkillFolders()
	for _, dir := range append(dirs, filepath.Join(c.Workspace, ".parley")) {
		if err := tools.Keep(dir); err != nil {
			return nil, err
		}
		if err := commands.Keep(dir); err != nil {
			return nil, err
		}
	}
	skills := config.LoadSkills(c.DefaultTenant, dirs...)
	for _, problem := range skills.Problems(c.DefaultTenant) {
		log.Warn("a skill is left out", "problem", problem)
	}
	tools.UseSkills(func() []parley.Skill { return skills.Skills(c.DefaultTenant) })
	return skills, nil
}
