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
	maxWrapped   = 1000     // places; five arguments each at most, and it takes 9,000 in all
	sharedMemory = 64 << 20 // bytes
	resolver     = "/etc/resolv.conf"
)

// What of the machine can be read from within. The rest, home folders and the
// secrets of /etc above all, is not there.
var (
	programs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"}
	settings = strings.Fields("/etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /etc/ld.so.preload " +
		"/etc/alternatives /etc/passwd /etc/group " +
		"/etc/nsswitch.conf /etc/hosts /etc/localtime /etc/timezone /etc/ssl/certs /etc/ssl/openssl.cnf /etc/ca-certificates " +
		"/etc/pki/tls/certs /etc/pki/ca-trust /etc/mime.types /etc/protocols /etc/services /etc/os-release /etc/debian_version " +
		"/etc/profile /etc/bash.bashrc /etc/inputrc /etc/terminfo /etc/magic /etc/magic.mime /etc/locale.alias /etc/locale.conf " +
		"/etc/java-17-openjdk /etc/java-21-openjdk /etc/python3 /etc/perl /etc/fonts")
)

// shared lists what of the machine a command is given to read.
func (told spec) shared() []string {
	all := slices.Concat(programs, settings)
	if told.Network {
		all = append(all, resolver)
	}
	return all
}

// wrapping is how bubblewrap is called: in namespaces of its own (so without
// any network but its own loopback, unless it is to have one), with no
// capability, over a file system that is empty but for what is listed here.
// Paths in the workspace are names here; confine checks what became of them.
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
			if to, err := os.Readlink(path); err == nil { // as /bin to usr/bin
				args = append(args, "--symlink", to, path)
			}
		default:
			args = append(args, "--ro-bind-try", path, path)
			shown = append(shown, path)
		}
	}
	// To root much of /proc is writable even without a capability: the settings
	// of the kernel, for one. bubblewrap leaves that to its caller.
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
			continue // it is not there to begin with
		}
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			args = append(args, "--perms", "0000", "--tmpfs", path, "--remount-ro", path)
		} else if err == nil {
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	// The root itself and the folders on the way are of no use but to be passed.
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

// argumentFile is where bubblewrap reads its arguments from, which may be more
// than a command line holds. It passes on to the next process.
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

// hasBindFD reports whether a bubblewrap can be given descriptors.
func hasBindFD(program string) bool {
	out, _ := exec.Command(program, "--help").CombinedOutput()
	return strings.Contains(string(out), "--bind-fd")
}
