package main

import (
	"log/slog"
	"path/filepath"

	"parley"
	"parley/changes"
	"parley/config"
	"parley/workspace"
)

// newChanges finds out what runs do to files, where there is a git to do it with.
func newChanges(c *config.Settings, files *workspace.Workspace, log *slog.Logger) parley.Changes {
	found, err := changes.New(files, filepath.Join(c.Data, "changes"))
	if err != nil {
		log.Info("git is not installed: changes of files by runs are not reported", "reason", err)
		return nil
	}
	return found
}
