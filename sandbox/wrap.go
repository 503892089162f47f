//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"slices"
	"strconv"
)

// insideName is what this program is called inside bubblewrap.
const insideName = "/run/parley"

const (
	sharedMemory = 64 << 20 // bytes
	resolver     = "/etc/resolv.conf"
)

// wrapping is how bubblewrap is called: in namespaces of its own (so without
// any network but its own loopback, unless it is to have one), with no
// capability, over a file system that is empty but for what is listed here.
func wrapping(told spec, self string) []string {
	args := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox",
	}
	shared := slices.Concat(programs, settings)
	if told.Network {
		shared = append(shared, resolver)
	} else {
		args = append(args, "--unshare-net")
	}
	var shown []string
	for _, path := range shared {
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
	// of the kernel, for one. bubblewrap leaves that to whoever calls it.
	args = append(args, "--proc", "/proc", "--remount-ro", "/proc",
		"--dev", "/dev", "--size", strconv.Itoa(sharedMemory), "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
		"--bind", told.Private, "/tmp", "--ro-bind", self, insideName)
	bind := "--bind"
	if told.ReadOnly {
		bind = "--ro-bind"
	}
	args = append(args, bind, told.Workspace, told.Workspace)
	shown = append(shown, told.Workspace)
	for _, path := range told.Kept {
		args = append(args, "--ro-bind", path, path)
	}
	for _, folder := range told.Read {
		args, shown = append(args, "--ro-bind", folder, folder), append(shown, folder)
	}
	for _, folder := range told.Write {
		args, shown = append(args, "--bind", folder, folder), append(shown, folder)
	}
	for _, path := range told.Masked {
		if !slices.ContainsFunc(shown, func(folder string) bool { return inside(folder, path) }) {
			continue // it is not there to begin with
		}
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			args = append(args, "--perms", "0000", "--tmpfs", path, "--remount-ro", path)
		} else {
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	// The root itself and the folders on the way are of no use but to be passed.
	return append(args, "--remount-ro", "/", "--chdir", "/")
}
