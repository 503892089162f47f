package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley"
	"parley/config"
	"parley/pacing"
	"parley/store/sqlite"
)

type backupCommand struct {
	config.Store
	File  string        `arg:"" optional:"" type:"path" help:"New file to write; not with --to."`
	To    string        `type:"path" placeholder:"DIR" help:"Write a new file into this folder, named by the time."`
	Every time.Duration `placeholder:"DURATION" help:"With --to: write a backup now and then one after each DURATION, until stopped."`
	Keep  int           `placeholder:"N" help:"With --to: once a new file is verified, delete all but the newest N."`
}

// shortestBackup is the shortest interval between two backups: each backup reads the whole database.
const shortestBackup = time.Minute

func (c *backupCommand) Help() string {
	return `The server may be running. Every copy is read whole and checked before it counts as a backup.

A PostgreSQL database is copied by pg_dump, which must be installed, as a role that row-level security does not
bind.

Example:

  $ parley backup /backups/before-upgrade.db
  $ parley backup --to /backups --every 1h --keep 24`
}

// wrong describes a mistake in the flags. It is empty if there is none.
func (c *backupCommand) wrong() string {
	switch {
	case c.File == "" && c.To == "":
		return "Name a new file, or a folder with --to."
	case c.File != "" && c.To != "":
		return "Name a file or a folder, not both."
	case c.To == "" && (c.Every != 0 || c.Keep != 0):
		return "--every and --keep need --to."
	case c.Every != 0 && c.Every < shortestBackup:
		return fmt.Sprintf("--every is at least %s.", shortestBackup)
	case c.Keep < 0:
		return "--keep is at least 1."
	}
	return ""
}

// Help is printed below the usage.

func (c *backupCommand) Run(p *program) error {
	if err := c.Check(); err != nil {
		return err
	}
	if wrong := c.wrong(); wrong != "" {
		return &parley.Error{Code: parley.CodeInvalid, Message: wrong, Hint: "see parley backup --help"}
	}
	if c.To == "" {
		return c.write(p.ctx, p, c.File)
	}
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	for {
		began := time.Now()
		err := c.writeInto(ctx, p, began)
		if c.Every > 0 && ctx.Err() != nil {
			return nil // the command was stopped
		}
		if err != nil || c.Every == 0 {
			return err
		}
		if !pacing.Sleep(ctx, time.Until(began.Add(c.Every))) {
			return nil
		}
	}
}

// backupName matches the names of complete and unfinished files that this command writes into a folder.
var backupName = regexp.MustCompile(`^parley-\d{8}T\d{6}\.\d{3}Z\.(db|dump)(\.part)?$`)

// writeInto writes one backup into the folder. If it succeeds, old backups are deleted.
func (c *backupCommand) writeInto(ctx context.Context, p *program, at time.Time) error {
	if info, err := os.Stat(c.To); err != nil || !info.IsDir() {
		return &parley.Error{Code: parley.CodeInvalid, Err: err, Message: "--to " + c.To + " is no folder. Nothing was " +
			"backed up.", Hint: "make it, mount its disk, or name another folder"}
	}
	ending := "db"
	if c.DatabaseURL != "" {
		ending = "dump"
	}
	name := fmt.Sprintf("parley-%s.%s", at.UTC().Format("20060102T150405.000Z"), ending)
	err := c.write(ctx, p, filepath.Join(c.To, name))
	if err == nil {
		err = c.prune(name)
	}
	return errors.Join(err, c.report(at, err))
}

// partLife is how long an unfinished file must not have grown before it counts as left by an interrupted backup.
// Another backup may be writing a younger one.
const partLife = time.Hour

// prune deletes all but the newest backups of the same kind, and unfinished files of interrupted backups. It never
// deletes the backup that was just written, even if the clock was set back since the others.
func (c *backupCommand) prune(written string) error {
	entries, err := os.ReadDir(c.To) // sorted by name, which is by time
	if err != nil {
		return err
	}
	var others, gone []string
	for _, e := range entries {
		switch name := e.Name(); {
		case !backupName.MatchString(name) || !e.Type().IsRegular() || name == written:
		case strings.HasSuffix(name, ".part"):
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > partLife {
				gone = append(gone, name)
			}
		case filepath.Ext(name) == filepath.Ext(written):
			others = append(others, name)
		}
	}
	if c.Keep > 0 && len(others) >= c.Keep {
		gone = append(gone, others[:len(others)-c.Keep+1]...)
	}
	for _, name := range gone {
		if err := os.Remove(filepath.Join(c.To, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// report writes the result of the last backup to a file for the textfile collector of Prometheus' node exporter.
func (c *backupCommand) report(at time.Time, failed error) error {
	file := filepath.Join(c.To, "parley-backup.prom")
	const success = "parley_backup_last_success_timestamp_seconds "
	last, good := "", 1
	if failed == nil {
		last = fmt.Sprintf("%s%d\n", success, at.Unix())
	} else if before, err := os.ReadFile(file); err == nil { // keep the time of the last good backup
		good = 0
		lines := strings.SplitAfter(string(before), "\n")
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, success) }); i >= 0 {
			last = lines[i]
		}
	} else {
		good = 0
	}
	text := fmt.Sprintf("# TYPE parley_backup_last_success_timestamp_seconds gauge\n%s"+
		"# TYPE parley_backup_succeeded gauge\nparley_backup_succeeded %d\n", last, good)
	part := file + ".part"
	err := os.WriteFile(part, []byte(text), 0o644)
	if err == nil {
		err = os.Rename(part, file)
	}
	if err != nil {
		_ = os.Remove(part) // only the first error is reported
	}
	return err
}

// write writes one backup and verifies it. A file gets its final name only after it was verified.
func (c *backupCommand) write(ctx context.Context, p *program, file string) error {
	copied, verified := c.sqlite, sqlite.VerifyBackup
	if c.DatabaseURL != "" {
		copied, verified = c.postgres, readDump
	}
	err := writeWhole(file, func(part string) error {
		if err := copied(ctx, part); err != nil {
			return err
		}
		if err := verified(ctx, part); err != nil {
			return &parley.Error{Code: parley.CodeCorrupt, Err: err,
				Message: "The copy is not good, and was deleted: " +
					parley.MessageOf(err), Hint: "run parley doctor, and check the disk of " + filepath.Dir(file)}
		}
		return nil
	})
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %s, verified. To restore it, see docs/operating.md.\n", file,
		size(uint64(info.Size())))
	return err
}

func (c *backupCommand) sqlite(ctx context.Context, part string) error {
	return sqlite.Backup(ctx, c.Data, part)
}

// postgres has pg_dump copy the database. The password is not on its command line, where other users of the machine
// could read it.
func (c *backupCommand) postgres(ctx context.Context, part string) error {
	address, err := url.Parse(string(c.DatabaseURL))
	if err != nil {
		return err // Check has already found the address valid
	}
	password, _ := address.User.Password()
	query := address.Query()
	password = cmp.Or(password, query.Get("password"))
	query.Del("password")
	address.RawQuery = query.Encode()
	if address.User != nil {
		address.User = url.User(address.User.Username())
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "pg_dump", "--format=custom", "--no-password", "--file", part, "--dbname",
		address.String())
	if cmd.Env = os.Environ(); password != "" {
		cmd.Env = append(cmd.Env, "PGPASSWORD="+password)
	}
	return failedProgram(cmd, "use a role that row-level security does not bind; see docs/operating.md")
}

// readDump has pg_restore read a whole dump.
func readDump(ctx context.Context, part string) error {
	return failedProgram(exec.CommandContext(ctx, "pg_restore", "--file="+os.DevNull, part), "")
}

// failedProgram runs a program of PostgreSQL and describes how it failed.
func failedProgram(cmd *exec.Cmd, hint string) error {
	out, err := cmd.CombinedOutput()
	name := filepath.Base(cmd.Args[0])
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return &parley.Error{Code: parley.CodeUnavailable, Message: name + " is not installed.", Err: err,
			Hint: "install the client programs of PostgreSQL, of the version of the server or a newer one"}
	case err != nil:
		said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return &parley.Error{Code: parley.CodeUnavailable, Message: fmt.Sprintf("%s failed: %s", name, said), Err: err,
			Hint: hint}
	}
	return nil
}

// size formats a number of bytes.
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
