//go:build linux && (amd64 || arm64)

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A spec tells the supervisor, and the steps between it and the command, what
// to run. It is encoded as gob, which keeps names that are not UTF-8 as they
// are.
type spec struct {
	Rung      rung
	Argv      []string
	Dir       string
	Env       []string
	Workspace string // path of the folder behind the descriptor rootFD; empty: there is none
	Dev, Ino  uint64 // identity of that folder
	ReadOnly  bool
	Places    []place
	Outside   []string // hidden paths outside the workspace
	Private   string   // a folder for temporary files, removed when the command ends
	Memory    uint64
	User      *user
	Self      user // the user of the server
	Folders   []folder
	Network   bool
	Barred    []uint16
	// For the cleanup of covers by the supervisor if the server is gone.
	Server int
	Made   []made
	Lock   int // descriptor of the covers' lock; zero: there is none
}

// A folder is an additional folder that a command gets.
type folder struct {
	Path  string
	FD    int // its descriptor, in the supervisor and in the processes it starts
	Write bool
}

// given returns the folders of a command, including the workspace. Outer
// folders come first, so that inner ones are mounted on top.
func (told spec) given() []folder {
	list := slices.Clone(told.Folders)
	if told.Workspace != "" {
		list = append(list, folder{told.Workspace, rootFD, !told.ReadOnly})
	}
	slices.SortStableFunc(list, func(a, b folder) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// The descriptors of the supervisor and of the processes it starts.
const (
	controlFD = 3 // for the supervisor: orders; for a step: its spec
	lastFD    = 4 // for the supervisor: its messages; for a step: its report
	rootFD    = 5 // the workspace
	folderFD  = 6 // the first of the additional folders
)

// A message is sent by a supervisor to the server.
type message struct {
	Built  bool // the sandbox is built; the next step is to become the command
	Done   int  // number of the order that was carried out
	Failed int  // number of the order that could not be carried out
	Ended  *outcome
}

// An order is sent to a supervisor after the spec. When the orders end, the
// supervisor ends all processes.
type order struct {
	Do     what
	Number int // set if the order is answered
}

type what string

const (
	goOn   what = "go"     // become the command
	pause  what = "pause"  // stop all processes that the command has started
	check  what = "check"  // check that none of these processes has run since
	resume what = "resume" // let these processes run again
)

// An outcome is the last message of a supervisor.
type outcome struct {
	Ended
	Error string // why the command did not start
}

// Run runs a command. It returns when the command, and every process it
// started, is gone; if ctx ends, that is at once. An error means that the
// command did not start, or that its fate is unknown.
func (s *Sandbox) Run(ctx context.Context, c Command) (Ended, error) {
	_ = s.Missing() // without a sandbox, commands run bare, so callers must check Missing first
	return s.run(ctx, c)
}

func (s *Sandbox) run(ctx context.Context, c Command) (Ended, error) {
	if !hooked {
		return Ended{}, errors.New("this program does not call sandbox.Main")
	}
	told := spec{Server: os.Getpid(), Rung: s.rung, Argv: c.Argv, Dir: c.Dir, Workspace: s.workspace,
		ReadOnly: c.ReadOnly, Outside: s.outside,
		Memory: cmp.Or(s.memory, maxMemory), User: s.user, Self: user{os.Getuid(), os.Getgid()}, Network: c.Network,
		Barred: c.Barred}
	if c.Bare {
		told.Rung, told.User = bare, nil
	}
	open := s.workspace
	if c.NoWorkspace {
		open, told.Workspace, told.Outside = "/", "", append(slices.Clone(s.outside), s.workspace)
	}
	root, err := os.OpenFile(open, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Ended{}, fmt.Errorf("the workspace cannot be opened: %w", err)
	}
	defer root.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &stat); err != nil {
		return Ended{}, err
	}
	told.Dev, told.Ino = stat.Dev, stat.Ino
	folders, err := s.folders(int(root.Fd()), c)
	defer closeAll(folders)
	if err != nil {
		return Ended{}, err
	}
	for i, f := range folders {
		told.Folders = append(told.Folders, folder{f.Name(), folderFD + i, i >= len(c.Read)})
	}
	for attempt := 1; ; attempt++ {
		ended, again, err := s.attempt(ctx, launch{told: told, command: c, root: root, folders: folders}, attempt)
		if !again || attempt == maxAttempts {
			return ended, err
		}
	}
}

// attempt runs a command with a folder for temporary files, and removes that
// folder afterwards.
func (s *Sandbox) attempt(ctx context.Context, l launch, number int) (_ Ended, again bool, err error) {
	told, c := &l.told, l.command // copies for this attempt
	if told.Private, err = privateFolder(told.User); err != nil {
		return Ended{}, false, fmt.Errorf("no folder for temporary files: %w", err)
	}
	defer removeAll(told.Private)
	if told.Dir == "" {
		told.Dir = told.temporary() + "/home"
	}
	told.Env = with(environment(*told, c.ReadOnly), c.Env)
	if told.Rung != bare && !c.NoWorkspace {
		return s.build(ctx, l, number)
	}
	started, err := startSupervisor(l)
	if err != nil {
		return Ended{}, false, err
	}
	started.order(order{Do: goOn})
	ended, err := started.wait(ctx, c)
	return ended, false, err
}

// maxAttempts limits how often a sandbox is built again because another, paused
// command ran in the meantime.
const maxAttempts = 4

var errMoved = errors.New("other commands change the workspace faster than this one can be set up; try again when " +
	"they have ended")

// build starts a command. No other command can change its folders meanwhile.
func (s *Sandbox) build(ctx context.Context, l launch, attempt int) (ended Ended, again bool, err error) {
	told, c, root := &l.told, l.command, int(l.root.Fd())
	others, err := s.running.pause(ctx)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			others.resume()
		}
		return Ended{Killed: true}, false, nil // the command has not started
	case err != nil:
		return Ended{}, false, err
	}
	defer others.resume()
	writes := !c.ReadOnly || len(c.Write) > 0
	if writes {
		l.lock = s.covers.enter(root)
		defer s.covers.leave(root)
		for _, p := range s.protected {
			if err := s.covers.use(root, p.Path, s.secret(filepath.Base(p.Path))); err != nil {
				return Ended{}, false, err
			}
		}
		told.Made = s.covers.list()
	}
	if told.Places, err = s.places(root); err != nil {
		return Ended{}, false, err
	}
	if told.Rung == bubblewrap && len(told.Places) > maxWrapped {
		told.Rung = namespaces // bubblewrap takes a limited number of arguments
	}
	started, err := startSupervisor(l)
	if err != nil {
		return Ended{}, false, err
	}
	if writes {
		s.running.add(started)
		defer s.running.remove(started)
	}
	select {
	case <-started.built:
	case <-started.ended:
	case <-ctx.Done():
	}
	if ran := others.haveRun(ctx); len(ran) > 0 && ctx.Err() == nil {
		started.close()
		_, _ = started.wait(ctx, Command{Output: io.Discard, Stderr: io.Discard})
		if attempt > 1 { // the second time, the other command must be doing it on purpose
			for _, other := range ran {
				other.end()
			}
		}
		return Ended{}, true, errMoved
	}
	started.order(order{Do: goOn})
	others.resume()
	ended, err = started.wait(ctx, c)
	return ended, false, err
}

// folders opens the additional folders of a command, those to read first. It
// follows no symbolic link in the workspace, where commands can put some, and
// outside it none that appeared after the path was resolved.
func (s *Sandbox) folders(root int, c Command) (list []*os.File, err error) {
	for _, path := range slices.Concat(c.Read, c.Write) {
		from, rel := root, ""
		if c.NoWorkspace && (inside(s.workspace, path) || inside(path, s.workspace)) {
			return list, fmt.Errorf("%s is of the workspace, which this command must not have", path)
		}
		if ok, beneath := within(s.workspace, path); ok {
			rel = beneath
		} else if from, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			rel = strings.TrimPrefix(path, "/")
			defer unix.Close(from)
		}
		if err != nil {
			return list, err
		}
		fd, stat, err := openBeneath(from, cmp.Or(rel, "."))
		if err != nil {
			return list, fmt.Errorf("the folder %s cannot be opened: %w", path, err)
		}
		list = append(list, os.NewFile(uintptr(fd), path))
		if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			return list, fmt.Errorf("%s is not a folder, and no symbolic link to one is followed", path)
		}
		if err := s.allows(path, slices.Contains(c.Write, path)); err != nil {
			return list, err
		}
	}
	return list, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// privateFolder makes the folder for a command's temporary files, owned by the
// user that the command runs as.
func privateFolder(u *user) (string, error) {
	dir, err := os.MkdirTemp("", "parley-")
	if err != nil {
		return "", err
	}
	home := filepath.Join(dir, "home")
	err = os.Mkdir(home, 0o700)
	if err == nil && u != nil {
		err = errors.Join(os.Chown(dir, u.UID, u.GID), os.Chown(home, u.UID, u.GID))
	}
	if err != nil {
		removeAll(dir)
	}
	return dir, err
}

// removeAll removes a folder of a command, including entries whose permissions
// the command took away. It first moves nested folders to the top, so that
// their depth costs neither time nor descriptors.
func removeAll(dir string) {
	if dir == "" {
		return
	}
	_ = os.Chmod(dir, 0o700)
	top, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(top)
	moved := 0
	for before := -1; before != moved; {
		before = moved
		names, _ := namesIn(top)
		for _, name := range names {
			if unix.Unlinkat(top, name, 0) == nil {
				continue
			}
			_ = unix.Fchmodat(top, name, 0o700, 0)
			folder, err := unix.Openat(top, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				continue
			}
			inner, _ := namesIn(folder)
			for _, one := range inner {
				if unix.Unlinkat(folder, one, 0) == nil {
					continue
				}
				_ = unix.Fchmodat(folder, one, 0o700, 0)
				moved++
				_ = unix.Renameat2(folder, one, top, fmt.Sprintf(".removed-%d", moved), unix.RENAME_NOREPLACE)
			}
			unix.Close(folder)
			_ = unix.Unlinkat(top, name, unix.AT_REMOVEDIR)
		}
	}
	_ = os.Remove(dir)
}

// temporary is the path of the private folder, as the command sees it.
func (told spec) temporary() string {
	if told.Rung == bubblewrap || told.Rung == namespaces {
		return "/tmp"
	}
	return told.Private
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment returns all environment variables of a command. From the server's
// environment it takes only the language and some folders of PATH, placed
// behind the system's own: those that commands cannot write.
func environment(told spec, readOnly bool) []string {
	temporary := told.temporary()
	path := systemPath
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		system := slices.ContainsFunc(programs, func(folder string) bool { return inside(folder, dir) })
		if system && (told.Workspace == "" || !inside(told.Workspace, dir)) &&
			!slices.Contains(strings.Split(path, ":"), dir) {
			path += ":" + dir
		}
	}
	env := []string{
		"PATH=" + path, "HOME=" + temporary + "/home", "TMPDIR=" + temporary,
		"LANG=" + cmp.Or(os.Getenv("LANG"), "C.UTF-8"), "TERM=dumb",
		"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_NOSYSTEM=1", // git fails if it cannot read the system configuration
	}
	if readOnly {
		// Settings of a repository could have git run programs. These override
		// them.
		settings := []string{"core.fsmonitor", "false", "core.hooksPath", "/dev/null", "log.showSignature", "false",
			"safe.bareRepository", "explicit"}
		env = append(env, "GIT_OPTIONAL_LOCKS=0", fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings)/2))
		for i := 0; i < len(settings); i += 2 {
			env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i/2, settings[i]),
				fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i/2, settings[i+1]))
		}
	}
	return env
}

// with adds variables to an environment. They replace variables of the same
// name.
func with(env, more []string) []string {
	for _, one := range more {
		name, _, _ := strings.Cut(one, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, one)
	}
	return env
}
