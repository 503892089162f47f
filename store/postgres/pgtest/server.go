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

// A Server is a PostgreSQL server started by this process. It can be reached
// only through a socket in its folder, and dies with this process.
type Server struct {
	dir      string
	programs string
	as       *syscall.Credential // nil: runs as the user of the test
	cmd      *exec.Cmd
}

var errNoPrograms = errors.New("initdb and postgres are not installed")

// programs returns the folder of initdb and postgres, of the newest version
// installed.
func programs() (string, error) {
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
	return "", errNoPrograms
}

// Program returns the path of one of PostgreSQL's programs. If it is missing,
// Program skips the test.
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

// prepare creates the data folder. PostgreSQL does not run as root, so root
// runs it as the user that the packages create for it.
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

// Database is like the function Database, on this server.
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
		select { // poll: a starting server does not signal that it is ready
		case <-ctx.Done():
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%w\n%s", err, said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Crash ends the server at once, as pg_ctl stop -m immediate does: clients get
// no notice, and the next start has to recover.
func (s *Server) Crash() {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	_ = s.cmd.Wait() // a crash returns an error
}

// Shut stops the server in good order, as pg_ctl stop -m fast does.
func (s *Server) Shut() {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	_ = s.cmd.Wait() // the exit status does not matter
}

// Kill ends every process of the server with SIGKILL.
func (s *Server) Kill() error {
	all, err := s.processes()
	if err != nil {
		return err
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
	}
	_ = s.cmd.Wait() // a kill returns an error
	return nil
}

// Launch starts the server again after it has ended.
func (s *Server) Launch() error { return s.launch() }

// Freeze suspends every process of the server: connections stay open, but get
// no answer. thaw resumes them.
func (s *Server) Freeze() (thaw func(), err error) {
	frozen, err := s.processes()
	if err != nil {
		return nil, err
	}
	for _, pid := range frozen {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended already
	}
	return func() {
		for _, pid := range frozen {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}, nil
}

// processes lists the server's processes, the main one first.
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
		s.Crash() // its data is thrown away
	}
	os.RemoveAll(s.dir)
}
