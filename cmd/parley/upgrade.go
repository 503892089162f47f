package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"parley/config"
	"parley/store/postgres"
	"parley/store/rules"
	"parley/store/sqlite"
)

type upgradeCheckCommand struct {
	config.Store
	JSON bool `name:"json" help:"Print JSON."`
}

// Help is printed below the usage.
func (*upgradeCheckCommand) Help() string {
	return `Run it with the binary of the new version. The exit code is 0 if the database needs no migration, 4 if
migrations wait, and 1 if the database is of a newer version or cannot be read.

Example:

  $ parley upgrade-check --data /srv/parley`
}

func (c *upgradeCheckCommand) Run(p *program) error {
	if err := c.Check(); err != nil {
		return err
	}
	plan, err := c.plan(p)
	if err == nil {
		err = lost(&c.Store, false, plan.Has)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		out := json.NewEncoder(p.stdout)
		out.SetIndent("", "  ")
		err = out.Encode(plan)
	} else {
		_, err = io.WriteString(p.stdout, visible(c.describe(plan))) // it has names from the database
	}
	if err == nil && plan.Has > 0 && len(plan.Waiting) > 0 {
		err = &exitError{exitWaiting, nil} // the plan is already printed
	}
	return err
}

func (c *upgradeCheckCommand) plan(p *program) (rules.UpgradePlan, error) {
	if c.DatabaseURL != "" {
		return postgres.PlanUpgrade(p.ctx, string(c.DatabaseURL))
	}
	return sqlite.PlanUpgrade(p.ctx, c.Data)
}

// describe formats the plan for people.
func (c *upgradeCheckCommand) describe(plan rules.UpgradePlan) string {
	var b strings.Builder
	if plan.Has == 0 {
		return fmt.Sprintf("There is no database yet; parley %s creates it, at version %d.\n", version, plan.Knows)
	}
	by := ""
	if plan.Release != "" {
		by = ", migrated by parley " + plan.Release
	}
	fmt.Fprintf(&b, "The database has version %d (%s%s).\n", plan.Has, size(uint64(plan.Bytes)), by)
	if len(plan.Waiting) == 0 {
		fmt.Fprintf(&b, "Parley %s changes nothing in it.\n", version)
	} else {
		fmt.Fprintf(&b, "Parley %s migrates it to version %d:\n\n", version, plan.Knows)
		var all time.Duration
		for _, m := range plan.Waiting {
			takes := plan.Takes(m)
			all += takes
			fmt.Fprintf(&b, "  %3d  %s\n       %s\n", m.Version, m.About, rowsIn(plan, m, takes))
		}
		fmt.Fprintf(&b, "\nAll of it takes %s. The server answers no client meanwhile.\n", roughly(all))
	}
	switch {
	case plan.Stale > 0:
		fmt.Fprintf(&b, "Snapshots: %d of %d are of another fold version. Each is made again when its session is "+
			"opened.\n", plan.Stale, plan.Snapshots)
	default:
		fmt.Fprintf(&b, "Snapshots: all %d can be used.\n", plan.Snapshots)
	}
	if len(plan.Waiting) > 0 {
		fmt.Fprintf(&b, "\nThere is no way back but a backup. Make one before you start parley %s:\n\n  $ %s\n",
			version,
			c.backup())
	}
	return b.String()
}

// backup returns the command that makes a backup of this database. The address
// of a PostgreSQL database is left out, because it may hold a password.
func (c *upgradeCheckCommand) backup() string {
	if c.DatabaseURL != "" {
		return "parley backup before-upgrade.dump     # with PARLEY_DATABASE_URL or --database-url as here"
	}
	return "parley backup before-upgrade.db --data " + quoteWord(c.Data)
}

// quoteWord quotes a word for a shell, if necessary.
func quoteWord(word string) string {
	if strings.ContainsAny(word, " \t\n'\"\\$`&|;<>()*?[]#~!{}") || word == "" {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// rowsIn describes which rows a migration changes, and how long that takes.
func rowsIn(plan rules.UpgradePlan, m rules.Migration, takes time.Duration) string {
	if len(m.Tables) == 0 {
		return "Changes no rows."
	}
	var tables []string
	for _, name := range m.Tables {
		t := plan.Tables[name]
		text := fmt.Sprintf("%s (%s", name, numberOf(t.Rows, "row"))
		if t.Bytes > 0 {
			text += ", " + size(uint64(t.Bytes))
		}
		tables = append(tables, text+")")
	}
	verb := "Changes every row of "
	if m.Rows == "some" {
		verb = "Changes some rows and reads "
	}
	return verb + strings.Join(tables, " and ") + ": " + roughly(takes) + "."
}

// roughly formats a duration that is only an estimate.
func roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return "under a second"
	case d < 2*time.Minute:
		return fmt.Sprintf("about %d s", int(d.Seconds()+1))
	}
	return fmt.Sprintf("about %d minutes", int(d.Minutes()+1))
}

func numberOf(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
