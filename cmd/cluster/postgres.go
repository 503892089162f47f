package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

type database struct {
	*process
	url, socket string
	name        string           // of its log file
	command     func() *exec.Cmd // starts the server
}

// startPostgres creates and starts a PostgreSQL server that can be reached only
// through a socket in its folder. PostgreSQL refuses to run as root, so root runs
// it as the user postgres.
func startPostgres(ctx context.Context, folder, logs string) (*database, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	var as *syscall.Credential
	if os.Geteuid() == 0 {
		if as, err = userPostgres(); err != nil {
			return nil, err
		}
		if err := os.Chown(folder, int(as.Uid), int(as.Gid)); err != nil {
			return nil, err
		}
	}
	command := func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(programs, program), args...)
		cmd.Dir = folder
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
		return cmd
	}
	data := filepath.Join(folder, "data")
	if out, err := command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C").
		CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	db := &database{url: "postgres://postgres@/postgres?host=" + folder, socket: filepath.Join(folder, ".s.PGSQL.5432"),
		name: filepath.Join(logs, "postgres"), command: func() *exec.Cmd {
			return command("postgres", "-D", data, "-k", folder, "-c", "listen_addresses=")
		}}
	return db, db.start(ctx)
}

// start starts or restarts the server, and waits until it accepts connections.
func (db *database) start(ctx context.Context) error {
	p, err := launch(db.command(), db.name)
	if err != nil {
		return err
	}
	db.process = p
	for ctx.Err() == nil {
		if conn, err := pgx.Connect(ctx, db.url); err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.exited:
			return fmt.Errorf("PostgreSQL ended: %w\n%s", p.err, lastLines(db.name+".log"))
		case <-time.After(50 * time.Millisecond):
		}
	}
	p.stop(syscall.SIGINT)
	return ctx.Err()
}

// postgresPrograms returns the folder with initdb and postgres, of the newest
// version.
func postgresPrograms() (string, error) {
	places, err := filepath.Glob("/usr/lib/postgresql/[1-9][0-9]/bin") // on Debian
	if err != nil {
		return "", err
	}
	slices.Reverse(places)
	for _, dir := range append(places, filepath.SplitList(os.Getenv("PATH"))...) {
		_, initdb := exec.LookPath(filepath.Join(dir, "initdb"))
		_, postgres := exec.LookPath(filepath.Join(dir, "postgres"))
		if initdb == nil && postgres == nil {
			return dir, nil
		}
	}
	return "", errors.New("initdb and postgres are not installed (Debian: apt install postgresql)")
}

func userPostgres() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}
