package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/port"
)

type missionsCommand struct {
	List  missionsList  `cmd:"" default:"withargs" help:"List missions, the active ones first (the default)."`
	Clear missionsClear `cmd:"" help:"End the active mission of a project."`
}

type missionsList struct {
	listFlags
	Project string `placeholder:"DIR" help:"Project: its folder on the server, or its id (default: every project, also those that the server does not have any more)."`
}

func (*missionsList) Help() string {
	return `A mission of a project that is gone stays active until it is cleared, but its agents are not prompted.

Example:

  $ parley missions
  $ parley missions clear --project ~/shop`
}

// Run lists missions.
func (c *missionsList) Run(p *program) error {
	return listing[port.MissionInfo]{
		fetch: func(to *connection) ([]port.MissionInfo, error) {
			return to.Missions(p.ctx, cmp.Or(missionProject(c.Project), port.EveryProject))
		},
		title: []string{"STATUS", "SET", "BY", "PROJECT", "MISSION"},
		row: func(m port.MissionInfo) []string {
			status := "active"
			switch {
			case !m.Ended.IsZero():
				status = "ended"
			case m.Gone:
				status = "project gone"
			}
			return []string{status, ago(m.At, time.Now()), string(m.By), m.Project, clip(m.Text, 80)}
		},
		none: "There are no missions.",
	}.show(p, c.listFlags)
}

type missionsClear struct {
	serverFlags
	Project string `placeholder:"DIR" help:"Project: its folder, or its id; the server need not have it any more (default: the project of this folder, or the first)."`
}

// Run clears a mission.
func (c *missionsClear) Run(p *program) error {
	return p.with(c.serverFlags, func(to *connection) error {
		project := missionProject(c.Project)
		if project == "" {
			var err error
			if project, _, err = to.projectHere(p.ctx, ""); err != nil {
				return err
			}
		}
		list, err := to.Missions(p.ctx, project)
		if err != nil {
			return err
		}
		if len(list) == 0 || !list[0].Ended.IsZero() {
			_, err := fmt.Fprintln(p.stdout, "No mission is active there.")
			return err
		}
		if err := to.ClearMission(p.ctx, project); err != nil {
			return err
		}
		gone := ""
		if list[0].Gone {
			gone = ", which the server does not have any more"
		}
		_, err = fmt.Fprintf(p.stdout, "Cleared the mission of %s%s: %s\n", visible(string(list[0].Project)), gone,
			visible(clip(list[0].Text, 80)))
		return err
	})
}

// missionProject returns the root of a project that is given as a folder, or as the path of a deleted folder. Other
// names are ids.
func missionProject(given string) string {
	info, err := os.Stat(given)
	if err == nil && info.IsDir() || strings.ContainsRune(given, filepath.Separator) {
		if root, err := filepath.Abs(given); err == nil {
			return root
		}
	}
	return given
}
