package pgtest

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
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/store/storetest"
)

// A Server is a process of this one's own. It can be reached only through a
// socket in its folder, and dies with the process that started it.
type Server struct {
	dir      string
	programs string
	as       *syscall.Credential // nil: as whoever runs the test
	cmd      *exec.Cmd
}

var errNoPrograms = errors.New("initdb and postgres are not installed")

// programs is the folder that has initdb and postgres, of the newest version.
func programs() (string, error) {
	places, err := filepath.Glob("/usr/lib/postgresql/[1-9][0-9]/bin") // Debian's
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
	return "", errNoPrograms
}

// Program is the path of one of PostgreSQL's programs. A test that needs one is
// skipped where there is none.
func Program(t testing.TB, name string) string {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Skip("no PostgreSQL:", err)
	}
	return filepath.Join(bin, name)
}

func start() (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	s := &Server{programs: bin}
	if s.dir, err = os.MkdirTemp(storetest.Memory(), "parley-postgres-"); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		os.RemoveAll(s.dir)
		return nil, err
	}
	if err := s.launch(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// prepare makes the data folder. PostgreSQL does not run as root, so root runs
// it as the user that the packages make for it.
func (s *Server) prepare() error {
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return err
		}
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(s.dir, int(uid), int(gid)); err != nil {
			return err
		}
	}
	initdb := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
		"--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) url() string { return "postgres://postgres@/postgres?host=" + s.dir }

// Database is like the function of that name, on this server.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return database(t, s.url(), "template0")
}

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.programs, program), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

// launch starts the server and waits until it answers.
func (s *Server) launch() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = s.command("postgres", "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=on")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.url())
		if err == nil {
			return conn.Close(ctx)
		}
		select { // a server on its way up has no other way to say so
		case <-ctx.Done():
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%w\n%s", err, said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Crash ends the server at once, as pg_ctl stop -m immediate does: nobody is
// told, and the next start has to recover.
func (s *Server) Crash() {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	_ = s.cmd.Wait() // it does not end well
}

// Shut ends the server in good order, as pg_ctl stop -m fast does.
func (s *Server) Shut() {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	_ = s.cmd.Wait() // how it ends is of no interest
}

// Kill ends every process of the server with SIGKILL.
func (s *Server) Kill() error {
	all, err := s.processes()
	if err != nil {
		return err
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended is as dead
	}
	_ = s.cmd.Wait() // it does not end well
	return nil
}

// Launch starts the server again after it was ended.
func (s *Server) Launch() error { return s.launch() }

// Freeze stops every process of the server where it is: connections stay, and
// nothing answers. thaw lets them go on.
func (s *Server) Freeze() (thaw func(), err error) {
	frozen, err := s.processes()
	if err != nil {
		return nil, err
	}
	for _, pid := range frozen {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // one that has ended is as silent
	}
	return func() {
		for _, pid := range frozen {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}, nil
}

// processes lists the server's, first the one that starts the others.
func (s *Server) processes() ([]int, error) {
	main := strconv.Itoa(s.cmd.Process.Pid)
	children, err := os.ReadFile("/proc/" + main + "/task/" + main + "/children")
	if err != nil {
		return nil, err
	}
	all := []int{s.cmd.Process.Pid}
	for _, field := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		all = append(all, pid)
	}
	return all, nil
}

func (s *Server) stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		s.Crash() // what it holds is thrown away
	}
	os.RemoveAll(s.dir)
}
