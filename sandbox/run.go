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

// A spec is what the supervisor, and the steps between it and the command, are
// told. It travels as gob, which keeps names that are not UTF-8 as they are.
type spec struct {
	Rung      rung
	Argv      []string
	Dir       string
	Env       []string
	Workspace string // the descriptor rootFD is of this folder; empty: there is none
	Dev, Ino  uint64 // of the same
	ReadOnly  bool
	Places    []place
	Outside   []string // hidden paths that are not in the workspace
	Private   string   // a folder for temporary files, which goes with the command
	Memory    uint64
	User      *user
	Self      user // the server's own
	Folders   []folder
	Network   bool
	Barred    []uint16
	// What is removed with the command if the server, which would do that, is gone.
	Server int
	Made   []made
	Lock   int // the descriptor of the covers' lock; zero: there is none
}

// A folder is one that a command has beside the workspace.
type folder struct {
	Path  string
	FD    int // of the same, in the supervisor and in what it starts
	Write bool
}

// given are the folders that a command has, the workspace among them, outer ones
// first: an inner one is mounted on top.
func (told spec) given() []folder {
	list := slices.Clone(told.Folders)
	if told.Workspace != "" {
		list = append(list, folder{told.Workspace, rootFD, !told.ReadOnly})
	}
	slices.SortStableFunc(list, func(a, b folder) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// The descriptors of the supervisor, and of what it starts.
const (
	controlFD = 3 // the supervisor's orders; a step's spec
	lastFD    = 4 // the supervisor's messages; a step's report
	rootFD    = 5 // the workspace
	folderFD  = 6 // the first of the folders
)

// A message is what a supervisor says.
type message struct {
	Built  bool // nothing is left to be done but to become the command
	Done   int  // the order of this number was followed
	Failed int  // the order of this number could not be followed
	Ended  *outcome
}

// An order is what a supervisor is told after the spec. The end of orders is
// the order to end everything.
type order struct {
	Do     what
	Number int // of an order that is answered
}

type what string

const (
	goOn   what = "go"     // become the command
	pause  what = "pause"  // stop everything that the command has started
	check  what = "check"  // that nothing of it has run since
	resume what = "resume" // let it run
)

// An outcome is a supervisor's last word.
type outcome struct {
	Ended
	Error string // why the command did not start
}

// Run runs a command. It returns when the command, and everything it started,
// is gone, which is at once if ctx ends. An error means that it did not start,
// or that its fate is not known.
func (s *Sandbox) Run(ctx context.Context, c Command) (Ended, error) {
	_ = s.Missing() // without a sandbox, commands run bare: callers ask before
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

// attempt runs a command with a folder for temporary files, which goes with it.
func (s *Sandbox) attempt(ctx context.Context, l launch, number int) (_ Ended, again bool, err error) {
	told, c := &l.told, l.command // of this attempt alone
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

// maxAttempts is how often a sandbox is built anew, if another command has run in
// between although it was paused.
const maxAttempts = 4

var errMoved = errors.New("other commands change the workspace faster than this one can be set up; try again when " +
	"they have ended")

// build starts a command while no other can change what it is given.
func (s *Sandbox) build(ctx context.Context, l launch, attempt int) (ended Ended, again bool, err error) {
	told, c, root := &l.told, l.command, int(l.root.Fd())
	others, err := s.running.pause(ctx)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			others.resume()
		}
		return Ended{Killed: true}, false, nil // before it could start
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
		if attempt > 1 { // it does so on purpose
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

// folders opens the further folders of a command, those to read first. In the
// workspace, where commands can put links, none is followed on the way; outside
// it, none that was not there when the path was resolved.
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

// privateFolder makes the folder of a command's temporary files, for the user it
// runs as.
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

// removeAll removes a folder of a command, also what the command left without the
// right to. Folders in folders are first moved to the top, so that their depth
// costs neither time nor descriptors.
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

// temporary is what a command calls its private folder.
func (told spec) temporary() string {
	if told.Rung == bubblewrap || told.Rung == namespaces {
		return "/tmp"
	}
	return told.Private
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is all that a command is told. Nothing of the server's is passed
// on but the language and those folders of PATH that cannot be written from
// within, behind the system's own.
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
		"GIT_CONFIG_NOSYSTEM=1", // where it cannot be read, it is the end of git
	}
	if readOnly {
		// What a repository's own settings would have git run.
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

// with is an environment with more in it, which replaces what has the same name.
func with(env, more []string) []string {
	for _, one := range more {
		name, _, _ := strings.Cut(one, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, one)
	}
	return env
}
