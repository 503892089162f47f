//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// available returns why a rung cannot be tried, or nil.
func available(r rung) error {
	switch r {
	case bubblewrap:
		path, err := exec.LookPath("bwrap")
		if err != nil {
			return errors.New("bubblewrap is not installed")
		}
		if !hasBindFD(path) {
			return errors.New("bubblewrap is too old: it has no --bind-fd")
		}
	case landlock:
		switch version := landlockVersion(); {
		case version == 0:
			return errors.New("the kernel has no Landlock")
		case version < landlockNeeded:
			return fmt.Errorf("the kernel's Landlock is version %d, which cannot keep signals in; %d is needed",
				version, landlockNeeded)
		}
	}
	return nil
}

// describe names what a rung is built on.
func describe(r rung) string {
	switch r {
	case bubblewrap:
		path, _ := exec.LookPath("bwrap")
		return "bubblewrap at " + path
	case landlock:
		return fmt.Sprintf("Landlock version %d", landlockVersion())
	}
	return "namespaces of Parley's own"
}

// ownerOf returns the owner of the workspace, as the user that commands run as.
// It returns nil unless the server is root and the owner is another user.
func ownerOf(workspace string) *user {
	var stat unix.Stat_t
	if os.Getuid() != 0 || unix.Stat(workspace, &stat) != nil || stat.Uid == 0 {
		return nil
	}
	return &user{int(stat.Uid), int(stat.Gid)}
}

// confine applies the last restrictions and becomes the command. The
// restrictions apply to one thread; exec leaves no other.
func confine() {
	closeOnExec()
	report := inherited(lastFD)
	fail := func(format string, args ...any) {
		fmt.Fprintf(report, format, args...)
		unix.Exit(125)
	}
	var told spec
	in := gob.NewDecoder(inherited(controlFD))
	if err := in.Decode(&told); err != nil {
		fail("the sandbox was not told what to run: %v", err)
	}
	if told.Workspace != "" && (told.Rung == bubblewrap || told.Rung == namespaces) {
		if err := verify(told); err != nil {
			fail("the sandbox (%s) was not built: %v", told.Rung, err)
		}
	}
	if err := unix.Chdir(told.Dir); err != nil {
		fail("the folder it is to run in cannot be entered: %v", err)
	}
	if err := limit(told.Rung, told.Memory); err != nil {
		fail("its limits cannot be set: %v", err)
	}
	// No program may gain rights by being started, whatever its owner.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fail("new privileges cannot be ruled out: %v", err)
	}
	program, lookErr := exec.LookPath(told.Argv[0])
	if lookErr == nil {
		program, lookErr = filepath.Abs(program)
	}
	if told.Rung == landlock {
		if err := restrict(told); err != nil {
			fail("Landlock: %v", err)
		}
	}
	if told.Rung != bare {
		if err := dropCapabilities(); err != nil {
			fail("capabilities cannot be dropped: %v", err)
		}
	}
	if told.Rung != bare {
		if err := bar(told.Network, told.Barred); err != nil {
			fail("the server's own port cannot be kept from it: %v", err)
		}
		if err := filterCalls(told.Rung, told.Network); err != nil {
			fail("system calls cannot be filtered: %v", err)
		}
	}
	fmt.Fprint(report, builtLine)
	var allowed bool
	if err := in.Decode(&allowed); err != nil || !allowed {
		unix.Exit(125) // the server has cancelled the command
	}
	fmt.Fprint(report, started)
	if lookErr != nil {
		fail("%q cannot be started: there is no such program", told.Argv[0])
	}
	fail("%q cannot be started: %v", told.Argv[0], unix.Exec(program, told.Argv, told.Env))
}

// verify checks from inside the sandbox that every place of the workspace is
// treated as ordered. The workspace must be the folder that was opened.
func verify(told spec) error {
	root, err := unix.Open(told.Workspace, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	var stat unix.Stat_t
	if err := unix.Fstat(root, &stat); err != nil || stat.Dev != told.Dev || stat.Ino != told.Ino {
		return errors.Join(err, errors.New("the workspace was replaced"))
	}
	for _, p := range told.Places {
		if err := p.verify(root); err != nil {
			return fmt.Errorf("%s is not protected: %w", p.Path, err)
		}
	}
	return nil
}

func (p place) verify(root int) error {
	fd, stat, err := openBeneath(root, p.Path)
	if errors.Is(err, unix.EACCES) && p.Do == hide {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	found := stat.Dev == p.Dev && stat.Ino == p.Ino
	var system unix.Statfs_t
	switch {
	case p.Do == hide && found:
		return errors.New("it can be seen")
	case p.Do != hide && !found:
		return errors.New("it was replaced")
	case p.Do == keep:
		if err := unix.Fstatfs(fd, &system); err != nil {
			return err
		}
		if system.Flags&unix.ST_RDONLY == 0 {
			return errors.New("it can be written")
		}
	}
	return nil
}

func limit(r rung, memory uint64) error {
	processes := uint64(MaxProcesses)
	if r != bubblewrap && r != namespaces {
		processes += tasks(os.Getuid()) // without a user namespace, the limit counts these threads too
	}
	for _, l := range []struct {
		what  int
		value uint64
	}{
		{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_DATA, memory}, {unix.RLIMIT_FSIZE, maxFile}, {unix.RLIMIT_NOFILE, maxFiles},
		{unix.RLIMIT_NPROC, processes},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return err
		}
		value := min(l.value, now.Max) // a limit cannot be raised
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return err
		}
	}
	return nil
}

// tasks counts the threads of a user.
func tasks(uid int) (n uint64) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if err != nil {
			continue
		}
		mine, threads := false, 0
		for line := range strings.SplitSeq(string(raw), "\n") {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Uid:" {
				mine = fields[1] == strconv.Itoa(uid)
			} else if len(fields) > 1 && fields[0] == "Threads:" {
				threads, _ = strconv.Atoi(fields[1])
			}
		}
		if mine {
			n += uint64(threads)
		}
	}
	return n
}

// dropCapabilities takes all capabilities from root. Root cannot get any back:
// because of no_new_privs, starting a program adds none.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
