//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// insideName is what this program is called inside bubblewrap.
const insideName = "/run/parley"

const (
	maxWrapped   = 1000     // bubblewrap takes 9,000 arguments, and each place needs up to five
	sharedMemory = 64 << 20 // bytes
	resolver     = "/etc/resolv.conf"
)

// The parts of the machine that commands can read. Nothing else exists in the
// sandbox, above all no home folders and no secrets of /etc.
var (
	programs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"}
	settings = strings.Fields("/etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /etc/ld.so.preload " +
		"/etc/alternatives /etc/passwd /etc/group " +
		"/etc/nsswitch.conf /etc/hosts /etc/localtime /etc/timezone /etc/ssl/certs /etc/ssl/openssl.cnf /etc/ca-certificates " +
		"/etc/pki/tls/certs /etc/pki/ca-trust /etc/mime.types /etc/protocols /etc/services /etc/os-release /etc/debian_version " +
		"/etc/profile /etc/bash.bashrc /etc/inputrc /etc/terminfo /etc/magic /etc/magic.mime /etc/locale.alias /etc/locale.conf " +
		"/etc/java-17-openjdk /etc/java-21-openjdk /etc/python3 /etc/perl /etc/fonts")
)

// shared lists the files and folders of the machine that a command can read.
func (told spec) shared() []string {
	all := slices.Concat(programs, settings)
	if told.Network {
		all = append(all, resolver)
	}
	return all
}

// wrapping returns the bubblewrap command line. The command gets namespaces of
// its own, so its only network is its own loopback unless Network is set. It
// gets no capability, and a file system that is empty except for the entries
// listed here. Paths in the workspace are passed by name; confine verifies what
// they led to.
func wrapping(told spec, self string) ([]string, error) {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, err
	}
	args := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox",
	}
	if !told.Network {
		args = append(args, "--unshare-net")
	}
	var shown []string
	for _, path := range told.shared() {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0 && slices.Contains(programs, path):
			if to, err := os.Readlink(path); err == nil { // for example /bin to usr/bin
				args = append(args, "--symlink", to, path)
			}
		default:
			args = append(args, "--ro-bind-try", path, path)
			shown = append(shown, path)
		}
	}
	// Root can write much of /proc even without a capability, for example
	// kernel settings. bubblewrap does not prevent this.
	args = append(args, "--proc", "/proc", "--remount-ro", "/proc",
		"--dev", "/dev", "--size", strconv.Itoa(sharedMemory), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
		"--bind", told.Private, "/tmp", "--ro-bind", self, insideName)
	for _, f := range told.given() {
		args, shown = append(args, bindFD(f.Write, f.FD, f.Path)...), append(shown, f.Path)
	}
	for _, p := range told.Places {
		path := filepath.Join(told.Workspace, p.Path)
		switch {
		case p.Do == pin && told.ReadOnly:
		case p.Do == pin:
			args = append(args, "--bind", path, path)
		case p.Do == keep:
			args = append(args, "--ro-bind", path, path)
		case p.Dir:
			args = append(args, "--perms", "0000", "--tmpfs", path, "--remount-ro", path)
		default:
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	for _, path := range told.Outside {
		if !slices.ContainsFunc(shown, func(folder string) bool { return inside(folder, path) }) {
			continue // the sandbox does not contain it anyway
		}
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			args = append(args, "--perms", "0000", "--tmpfs", path, "--remount-ro", path)
		} else if err == nil {
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	// Commands only pass through the root and the folders on the way, so these
	// are read-only.
	args = append(args, "--remount-ro", "/", "--chdir", "/")
	listed, err := argumentFile(args)
	if err != nil {
		return nil, err
	}
	return []string{program, "--args", strconv.Itoa(listed), "--", insideName, helperName, "confine"}, nil
}

func bindFD(write bool, fd int, path string) []string {
	if write {
		return []string{"--bind-fd", strconv.Itoa(fd), path}
	}
	return []string{"--ro-bind-fd", strconv.Itoa(fd), path}
}

// argumentFile returns the descriptor of a file from which bubblewrap reads its
// arguments, as there may be more than a command line can hold. The next
// process inherits it.
func argumentFile(args []string) (int, error) {
	fd, err := unix.MemfdCreate("arguments", 0)
	if err != nil {
		return 0, err
	}
	file := inherited(fd)
	if _, err := file.WriteString(strings.Join(args, "\x00") + "\x00"); err != nil {
		return 0, err
	}
	_, err = file.Seek(0, 0)
	return fd, err
}

// hasBindFD reports whether this bubblewrap accepts descriptors.
func hasBindFD(program string) bool {
	out, _ := exec.Command(program, "--help").CombinedOutput()
	return strings.Contains(string(out), "--bind-fd")
}
