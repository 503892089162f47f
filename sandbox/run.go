//go:build linux && (amd64 || arm64)

package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// available says what a kind is made of, or what is missing to try it.
func available(k kind) (string, error) {
	if k == bubblewrap {
		path, err := exec.LookPath("bwrap")
		if err != nil {
			return "", errors.New("bubblewrap is not installed")
		}
		return "bubblewrap at " + path, nil
	}
	switch version := landlockVersion(); {
	case version == 0:
		return "", errors.New("the kernel has no Landlock")
	case version < landlockNeeded:
		return "", fmt.Errorf("the kernel's Landlock is version %d, which cannot keep signals in; %d is needed", version, landlockNeeded)
	default:
		return fmt.Sprintf("Landlock version %d", version), nil
	}
}

// A spec is what the supervisor, and then the last step, are told.
type spec struct {
	Kind      kind
	Argv      []string
	Dir       string
	Env       []string
	Workspace string
	ReadOnly  bool
	Masked    []string // exist, and are not to be seen
	Kept      []string // exist, and are not to be changed
	Private   string   // a folder for temporary files, which goes with the command
	Memory    uint64
	// What goes with the command if the server, who would see to it, is gone.
	Server int
	Made   []string

	Read, Write []string
	Network     bool
	Barred      []uint16
}

// An outcome is the supervisor's last word.
type outcome struct {
	Ended
	Error string // why the command did not start
}

// Run runs a command. It returns when the command, and everything it started,
// is gone, which is at once if ctx ends. An error means that it did not start,
// or that its fate is not known.
func (s *Sandbox) Run(ctx context.Context, c Command) (Ended, error) {
	if !hooked {
		return Ended{}, errors.New("this program does not call sandbox.Main")
	}
	private, err := os.MkdirTemp("", "parley-")
	if err != nil {
		return Ended{}, fmt.Errorf("no folder for temporary files: %w", err)
	}
	defer removeAll(private)
	if err := os.Mkdir(filepath.Join(private, "home"), 0o700); err != nil {
		return Ended{}, err
	}
	masked, err := s.masked(c.ReadOnly)
	defer s.covers.leave(masked)
	if err != nil {
		return Ended{}, err
	}
	told := spec{Server: os.Getpid(), Made: s.covers.made(masked), Kind: s.kind, Argv: c.Argv, Dir: c.Dir, Workspace: s.workspace, ReadOnly: c.ReadOnly, Masked: masked, Kept: s.keeps(), Private: private, Memory: cmp.Or(s.memory, maxMemory),
		Network: c.Network, Barred: c.Barred}
	if c.Bare {
		told.Kind = bare
	}
	for _, folder := range c.Read {
		told.Read = append(told.Read, leadsTo(folder))
	}
	for _, folder := range c.Write {
		told.Write = append(told.Write, leadsTo(folder))
	}
	told.Env = with(environment(told.Kind, private, c.ReadOnly, s.workspace), c.Env)
	return supervised(ctx, told, c)
}

// supervised runs a supervisor. All that is started holds the writing end of
// the output, so its end is everybody's.
func supervised(ctx context.Context, told spec, c Command) (Ended, error) {
	var opened []*os.File
	defer func() {
		for _, f := range opened {
			f.Close()
		}
	}()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err == nil {
			opened = append(opened, r, w)
		}
		return r, w
	}
	output, outputW := pipe()
	control, controlW := pipe()
	last, lastW := pipe()
	if len(opened) < 6 {
		return Ended{}, errors.New("no pipe: too many open files")
	}
	cmd := exec.Command("/proc/self/exe", helperName, "supervise")
	cmd.Env = told.Env
	cmd.Stdout, cmd.Stderr = outputW, outputW
	if c.Input != nil {
		cmd.Stdin, cmd.Stdout = c.Input, c.Reply
	}
	cmd.ExtraFiles = []*os.File{control, lastW}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal, and no signals of ours
	if err := cmd.Start(); err != nil {
		return Ended{}, fmt.Errorf("the supervisor did not start: %w", err)
	}
	outputW.Close()
	control.Close()
	lastW.Close()

	// Closing the control is how the supervisor is told to end everything: it
	// happens as well when this process dies.
	flood := make(chan struct{})
	over := make(chan struct{})
	controlled := make(chan error, 1)
	go func() {
		err := json.NewEncoder(controlW).Encode(told)
		select {
		case <-ctx.Done():
		case <-flood:
		case <-over:
		}
		controlW.Close()
		controlled <- err
	}()
	flooded := false
	if c.Input != nil {
		io.Copy(c.Output, output)
	} else if n, _ := io.CopyN(c.Output, output, MaxOutput); n == MaxOutput {
		flooded = true
		close(flood)
	}
	io.Copy(io.Discard, output) // whoever does not want it: nobody is to wait for that
	var ending outcome
	said := json.NewDecoder(last).Decode(&ending)
	close(over)
	sent := <-controlled
	err := cmd.Wait()
	switch {
	case said != nil && ctx.Err() != nil:
		return Ended{Killed: true}, nil // before it could start
	case said != nil:
		return Ended{}, fmt.Errorf("its supervisor died, and what became of it is not known: %w", errors.Join(err, sent))
	case ending.Error != "" && !ending.Killed:
		return Ended{}, errors.New(ending.Error)
	}
	ending.Flood = flooded
	return ending.Ended, nil
}

// removeAll also removes what a command left without the right to.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(name, 0o700)
		}
		return nil
	})
	os.RemoveAll(dir)
}

// masked lists what exists in the workspace and must not be seen. What must not
// be made either is made here, empty, so that there is something to cover; the
// caller leaves it, also after an error.
func (s *Sandbox) masked(readOnly bool) (all []string, err error) {
	for _, h := range s.hidden {
		if inside(s.workspace, h) && !readOnly && s.kind != bare {
			err = s.covers.use(h)
		} else if _, err = os.Lstat(h); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return all, fmt.Errorf("what is to be hidden cannot be: %w", err)
		}
		all = append(all, h)
	}
	for _, name := range envFiles(s.workspace) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all, nil
}

// keeps lists what exists in the workspace and must not be changed.
func (s *Sandbox) keeps() (all []string) {
	for _, path := range s.kept {
		if _, err := os.Lstat(path); err == nil && inside(s.workspace, path) {
			all = append(all, path)
		}
	}
	return all
}

func isEnvFile(name string) bool {
	base := strings.ToLower(filepath.Base(name))
	return base == ".env" || strings.HasPrefix(base, ".env.")
}

const maxLooked = 20000 // entries of the workspace

// envFiles finds the files that hold keys by convention, where the other tools
// do not read them either. In a large workspace it does not look everywhere.
func envFiles(workspace string) (found []string) {
	looked := 0
	filepath.WalkDir(workspace, func(name string, d fs.DirEntry, err error) error {
		if looked++; looked > maxLooked {
			return fs.SkipAll
		}
		switch {
		case err != nil:
			return nil
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Type().IsRegular() && isEnvFile(name):
			found = append(found, name)
		}
		return nil
	})
	return found
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is all that a command is told. Nothing of the server's is passed
// on but the language and those folders of PATH that cannot be written from
// within, behind the system's own.
func environment(k kind, private string, readOnly bool, workspace string) []string {
	temporary := private
	if k == bubblewrap {
		temporary = "/tmp"
	}
	path := systemPath
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		system := slices.ContainsFunc(programs, func(folder string) bool { return inside(folder, dir) })
		if system && !inside(workspace, dir) && !slices.Contains(strings.Split(path, ":"), dir) {
			path += ":" + dir
		}
	}
	language := os.Getenv("LANG")
	if language == "" {
		language = "C.UTF-8"
	}
	env := []string{
		"PATH=" + path, "HOME=" + temporary + "/home", "TMPDIR=" + temporary, "LANG=" + language, "TERM=dumb",
		"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_NOSYSTEM=1", // what cannot be read is not there for bubblewrap, but the end of git for Landlock
	}
	if readOnly {
		// What a repository's own settings would have git run.
		settings := []string{"core.fsmonitor", "false", "core.hooksPath", "/dev/null", "log.showSignature", "false", "safe.bareRepository", "explicit"}
		env = append(env, "GIT_OPTIONAL_LOCKS=0", fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings)/2))
		for i := 0; i < len(settings); i += 2 {
			env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i/2, settings[i]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i/2, settings[i+1]))
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

// What of the machine can be read from within. The rest, home folders and the
// secrets of /etc above all, is not there.
var (
	programs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"}
	settings = strings.Fields("/etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /etc/ld.so.preload /etc/alternatives /etc/passwd /etc/group /etc/nsswitch.conf " +
		"/etc/hosts /etc/localtime /etc/timezone /etc/ssl/certs /etc/ssl/openssl.cnf /etc/ca-certificates /etc/pki/tls/certs /etc/pki/ca-trust /etc/mime.types /etc/protocols " +
		"/etc/services /etc/os-release /etc/debian_version /etc/profile /etc/bash.bashrc /etc/inputrc /etc/terminfo /etc/magic /etc/magic.mime " +
		"/etc/locale.alias /etc/locale.conf /etc/java-17-openjdk /etc/java-21-openjdk /etc/python3 /etc/perl /etc/fonts")
)

func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}
