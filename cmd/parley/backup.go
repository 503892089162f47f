package main

import (
	"fmt"
	"os"

	"parley"
	"parley/config"
	"parley/store/sqlite"
)

type backupCommand struct {
	config.Store
	File string `arg:"" type:"path" help:"New file to write."`
}

func (c *backupCommand) Run(p *program) error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.DatabaseURL != "" {
		return &parley.Error{Code: parley.CodeInvalid, Message: "This copies SQLite databases only.",
			Hint: "back a PostgreSQL database up with pg_dump --format=custom"}
	}
	err := writeWhole(c.File, func(part string) error { return sqlite.Backup(p.ctx, c.Data, part) })
	if err != nil {
		return err
	}
	info, err := os.Stat(c.File)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %s, as of this moment. To restore it, see docs/operating.md.\n", c.File,
		size(uint64(info.Size())))
	return err
}

// size is a number of bytes for people.
func size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, unit := float64(n), 0
	for f >= 1024 && unit < len(units)-1 {
		f, unit = f/1024, unit+1
	}
	if unit == 0 || f >= 100 {
		return fmt.Sprintf("%.0f %s", f, units[unit])
	}
	return fmt.Sprintf("%.1f %s", f, units[unit])
}
