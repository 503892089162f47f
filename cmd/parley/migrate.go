package main

import (
	"errors"
	"fmt"

	"parley"
	"parley/config"
	"parley/store/postgres"
	"parley/store/sqlite"
)

type migrateCommand struct {
	config.Store
	Restored bool `help:"Give a database that was restored from a backup a new epoch, so that clients load their sessions again."`
	Status   bool `help:"Print the version of the database and change nothing. Fails if the database is lost or cannot be read."`

	Grant string `placeholder:"ROLE" help:"Grant this PostgreSQL role the rights that parley serve needs, and no others."`
}

// Help is printed below the usage.
func (*migrateCommand) Help() string {
	return `parley serve does this, too, when it starts.

Example:

  $ parley migrate --status
  $ parley migrate`
}

func (c *migrateCommand) Run(p *program) error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.Status && (c.Restored || c.Grant != "") {
		return errors.New("--status does nothing, so it does not go with --restored and --grant")
	}
	if c.Grant != "" && c.DatabaseURL == "" {
		return errors.New("--grant is about a role of PostgreSQL: name the database with --database-url")
	}
	if c.Restored && c.DatabaseURL == "" {
		if err := sqlite.CheckRestored(c.Data, holder("migrating")); err != nil {
			return err
		}
	}
	has, knows, err := versions(p.ctx, &c.Store)
	if err != nil {
		return err
	}
	if c.Status {
		if err := lost(&c.Store, false, has); err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.stdout, c.status(has, knows))
		return err
	}
	if has == 0 && c.Restored {
		return &parley.Error{Code: parley.CodeInvalid,
			Message: "There is no database in the data folder that could have been restored.",
			Hint:    "put the backup in its place first; see docs/operating.md"}
	}
	from, to, err := c.migrate(p)
	if err != nil {
		return err
	}
	switch {
	case from == to:
		fmt.Fprintf(p.stdout, "The database is up to date, at version %d.\n", to)
	case from == 0:
		fmt.Fprintf(p.stdout, "The database was made, at version %d.\n", to)
	default:
		fmt.Fprintf(p.stdout, "The database was migrated from version %d to %d.\n", from, to)
	}
	if c.Grant != "" {
		if err := postgres.Grant(p.ctx, string(c.DatabaseURL), c.Grant); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "The role %s may serve it.\n", c.Grant)
	}
	if !c.Restored {
		return nil
	}
	epoch, err := c.renew(p)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "It has a new epoch, %s: clients that knew it before start again.\n", epoch)
	return err
}

func (c *migrateCommand) status(has, knows int64) string {
	switch {
	case has == 0:
		return fmt.Sprintf("There is no database yet; this release makes version %d.", knows)
	case has < knows:
		return fmt.Sprintf("The database has version %d; this release migrates it to %d.", has, knows)
	case has > knows:
		return fmt.Sprintf("The database has version %d, of a newer release; this one knows up to %d.", has, knows)
	}
	return fmt.Sprintf("The database is up to date, at version %d.", has)
}

func (c *migrateCommand) migrate(p *program) (from, to int64, err error) {
	if c.DatabaseURL != "" {
		return postgres.Migrate(p.ctx, string(c.DatabaseURL), postgres.WithRelease(version))
	}
	return sqlite.Migrate(p.ctx, c.Data, holder("migrating"), append(existing(&c.Store, false),
		sqlite.Release(version))...)
}

func (c *migrateCommand) renew(p *program) (epoch string, err error) {
	if c.DatabaseURL != "" {
		return postgres.Renew(p.ctx, string(c.DatabaseURL))
	}
	return sqlite.Renew(p.ctx, c.Data, holder("migrating"))
}
