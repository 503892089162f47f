package rules

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
)

// A Migration is one change of the tables of a database, as the first lines of its file describe it:
//
//	-- about: Adds lists of runs, and fills them from the logs.
//	-- rows: some events
//
// The second line says how many rows the migration writes (none, some or all), and which tables it reads for that.
type Migration struct {
	Version int64    `json:"version"`
	About   string   `json:"about"`
	Rows    string   `json:"rows"`
	Tables  []string `json:"tables,omitempty"`
}

// Migrations returns the migrations in a folder, in the order in which they are applied.
func Migrations(files fs.FS, folder string) (list []Migration, err error) {
	names, err := fs.Glob(files, folder+"/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(path.Base(name), "_")
		m := Migration{}
		if m.Version, err = strconv.ParseInt(number, 10, 64); err != nil {
			return nil, fmt.Errorf("the migration %s has no number: %w", name, err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if about, ok := strings.CutPrefix(line, "-- about: "); ok {
				m.About = about
			} else if rows, ok := strings.CutPrefix(line, "-- rows: "); ok {
				words := strings.Fields(rows)
				m.Rows, m.Tables = words[0], words[1:]
			} else {
				break
			}
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	return list, nil
}

// Latest returns the version to which a release migrates.
func Latest(files fs.FS, folder string) (int64, error) {
	list, err := Migrations(files, folder)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[len(list)-1].Version, nil
}

// Check rejects a description from which an operator could not tell what the migration does.
func (m Migration) Check() error {
	switch {
	case m.About == "" || !strings.HasSuffix(m.About, "."):
		return fmt.Errorf("migration %d does not begin with -- about: and a sentence", m.Version)
	case !slices.Contains([]string{"none", "some", "all"}, m.Rows):
		return fmt.Errorf("migration %d has no line -- rows: none, some or all, before its statements", m.Version)
	case (m.Rows == "none") != (len(m.Tables) == 0):
		return fmt.Errorf("migration %d: after some or all, -- rows: names the tables that are read; after none, none",
			m.Version)
	}
	return nil
}

// An UpgradePlan is what a release would change in a database.
type UpgradePlan struct {
	Has       int64            `json:"version"` // of the database; 0: there is none yet
	Knows     int64            `json:"to"`      // the version that this release migrates it to
	Release   string           `json:"release,omitempty"`
	Bytes     int64            `json:"bytes"`
	Waiting   []Migration      `json:"migrations"`
	Tables    map[string]Table `json:"tables,omitempty"` // that migrations read
	Snapshots int64            `json:"snapshots"`        // of sessions
	Stale     int64            `json:"stale_snapshots"`  // of another fold version: they are made again
}

// A Table is the size of a table.
type Table struct {
	Rows  int64 `json:"rows"`            // estimated
	Bytes int64 `json:"bytes,omitempty"` // 0: not known
}

// NewUpgradePlan returns the plan for a database that has a version, without facts that need a look at its tables.
func NewUpgradePlan(has int64, files fs.FS, folder string) (p UpgradePlan, err error) {
	list, err := Migrations(files, folder)
	if err != nil {
		return p, err
	}
	p = UpgradePlan{Has: has, Waiting: []Migration{}, Tables: map[string]Table{}}
	for _, m := range list {
		if p.Knows = m.Version; m.Version > has {
			p.Waiting = append(p.Waiting, m)
			for _, table := range m.Tables {
				p.Tables[table] = Table{}
			}
		}
	}
	return p, nil
}

// rowsPerSecond is how many rows a small machine migrates in a second: see Takes.
const rowsPerSecond = 50_000

// Takes estimates how long a migration takes on a small machine.
func (p UpgradePlan) Takes(m Migration) time.Duration {
	var rows int64
	for _, table := range m.Tables {
		rows += p.Tables[table].Rows
	}
	return time.Duration(rows) * time.Second / rowsPerSecond
}

// TooNew is the error for a database that a newer release has migrated: this one does not know what its tables mean.
// release applied the newest migration; empty: the database does not say.
func TooNew(has, knows int64, release string) error {
	e := &parley.Error{Code: parley.CodeUnavailable, Hint: "use the release that migrated it, or a later one",
		Message: fmt.Sprintf("The database is of a newer release: it has version %d, and this release knows up to %d.",
			has, knows)}
	if release != "" {
		e.Message += fmt.Sprintf(" It was migrated by parley %s.", release)
		e.Hint = fmt.Sprintf("use parley %s or a later release", release)
	}
	return e
}
