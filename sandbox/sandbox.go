// Package sandbox runs commands in a sandbox. A command can change nothing but
// the workspace. It has no network, an environment of its own and limits. When
// it ends, every process it started is gone.
//
// There are three ways to build a sandbox, called rungs: bubblewrap, namespaces
// that this program makes itself, and Landlock. The package uses the first that
// works. Each command has a supervisor, a process that waits for every process
// the command leaves behind and kills it. The supervisor, and the steps between
// it and the command, are this same program, started again: see [Main].
//
// Before a command starts, this package walks the workspace to find the places
// the command must not touch. It walks by descriptors and never follows names,
// while every other command that could move a file is paused. So the places
// found by the walk are the places that are protected when the command starts.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options configure what a sandbox protects.
type Options struct {
	Workspace string
	Protected []Protected
	// Hidden lists absolute paths outside the workspace that no command may
	// see, even if they lie in a folder that commands can read. Paths inside
	// the workspace are ignored.
	Hidden []string
	// Secret reports whether files with a base name are hidden, wherever they
	// are in the workspace. If it is nil, no file is.
	Secret func(name string) bool
}

// Protected is a file or folder of the workspace that a command can neither
// change nor create. It need not exist.
type Protected struct {
	Path   string // relative to the workspace, cleaned
	Hidden bool   // commands cannot see it either
}

// A Sandbox runs commands over one workspace. It is safe for concurrent use.
type Sandbox struct {
	workspace string // absolute, without symbolic links
	protected []Protected
	outside   []string // hidden paths outside the workspace
	secret    func(name string) bool
	probed    func() error // finds rung and user once, or returns why there is no sandbox; nil: rung and user are given
	rung      rung
	user      *user  // user that commands run as; nil: the server's own
	memory    uint64 // limit on the data of one process, in bytes; zero: maxMemory
	covers    covers
	running   running
}

// A rung is one way to build a sandbox.
type rung string

const (
	bubblewrap rung = "bubblewrap"
	namespaces rung = "namespaces"
	landlock   rung = "landlock"
	bare       rung = "bare" // no sandbox
)

var rungs = []rung{bubblewrap, namespaces, landlock}

// A user is the user that commands run as if the server runs as root.
type user struct{ UID, GID int }

// The limits of a command. The caller limits its time.
const (
	MaxProcesses = 512     // does not apply to root: the kernel exempts it
	maxMemory    = 4 << 30 // of data of one process, in bytes
	maxFile      = 1 << 30 // of one file, in bytes
	maxFiles     = 4096    // open files of one process
	// MaxOutput is the output, in bytes, after which a command is ended.
	MaxOutput = 16 << 20
)

// New returns the sandbox of a workspace. Its error is about the workspace;
// Missing reports errors about the sandbox. The first use finds out which rung
// works here, by running a command in the sandbox, which takes about 50 ms.
func New(o Options) (*Sandbox, error) {
	folder, err := filepath.Abs(o.Workspace)
	if err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", o.Workspace, err)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, errors.Join(fmt.Errorf("workspace %s is not a folder", o.Workspace), err)
	}
	s := &Sandbox{workspace: folder, protected: o.Protected, secret: o.Secret, rung: bare}
	if s.secret == nil {
		s.secret = func(string) bool { return false }
	}
	for _, path := range o.Hidden {
		if path = leadsTo(path); !inside(folder, path) {
			s.outside = append(s.outside, path)
		}
	}
	s.probed = sync.OnceValue(s.probe)
	return s, nil
}

// Missing returns why there is no sandbox, or nil. The first call tries the
// rungs; concurrent calls wait for it.
func (s *Sandbox) Missing() error {
	if s.probed == nil {
		return nil
	}
	return s.probed()
}

// String describes the sandbox: its rung, and the user that commands run as.
func (s *Sandbox) String() string {
	if missing := s.Missing(); missing != nil {
		return "none: " + missing.Error()
	}
	text := describe(s.rung)
	if s.user != nil {
		text += fmt.Sprintf("; commands run as user %d, the owner of the workspace", s.user.UID)
	}
	return text
}

// AsRoot reports whether commands run as root, though without its capabilities.
func (s *Sandbox) AsRoot() bool {
	_ = s.Missing() // finds the user
	return s.user == nil && os.Getuid() == 0
}

// Shortcomings describes, in sentences for people, what this rung cannot do but
// other rungs can. It is empty if there is nothing to describe.
func (s *Sandbox) Shortcomings() string {
	if s.Missing() != nil || s.rung != landlock {
		return ""
	}
	if len(s.protected) == 0 {
		return ""
	}
	return "A command cannot make, rename or delete anything directly in a folder that holds something protected, " +
		"such as the top of the workspace: this sandbox (Landlock alone) cannot tell the two apart. " +
		"Nor can it keep a command from changing modes and times of your own files elsewhere, though not their contents. " +
		"Installing bubblewrap, or allowing user namespaces, lifts this."
}

// Rules describes what the sandbox forbids. It is shown with a failed command:
// an error such as "permission denied" does not name the rule.
func (s *Sandbox) Rules(readOnly bool) string {
	if s.Missing() != nil {
		return ""
	}
	var hidden, kept []string
	for _, p := range s.protected {
		if p.Hidden {
			hidden = append(hidden, p.Path)
		} else {
			kept = append(kept, p.Path)
		}
	}
	hidden = slices.DeleteFunc(hidden, s.secret)
	rules := "Hidden from commands: " + strings.Join(compacted(append(hidden, ".env files")), ", ") + "."
	if readOnly {
		rules += " The whole workspace is read-only for this command, because it is one that only reads."
	} else if len(kept) > 0 {
		rules += " Read-only: " + strings.Join(compacted(kept), ", ") + "."
	}
	return "Rules of the sandbox: " + rules + " Outside the workspace only $TMPDIR can be written. " +
		"There is no network, and no setuid or setgid bit."
}

func compacted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

const probeTime = 10 * time.Second

// probe chooses the first rung on which a command runs, or returns why there is
// none. If the server is root, it first tries to run commands as the
// workspace's owner.
func (s *Sandbox) probe() error {
	if s.workspace == "/" {
		return errors.New("the workspace is the whole machine")
	}
	var reasons []string
	for _, u := range []*user{ownerOf(s.workspace), nil} {
		reasons = nil
		for _, r := range rungs {
			err := s.try(r, u)
			if err == nil {
				return nil
			}
			reasons = append(reasons, err.Error())
		}
	}
	return errors.New(strings.Join(reasons, "; "))
}

// try chooses a rung if a command runs on it as that user.
func (s *Sandbox) try(r rung, u *user) error {
	if err := available(r); err != nil {
		return err
	}
	s.rung, s.user = r, u
	if err := s.runs(); err != nil {
		s.rung, s.user = bare, nil
		return fmt.Errorf("%s does not work here: %w", r, err)
	}
	return nil
}

// runs checks the rung with a command that only reads, so that trying it
// changes nothing.
func (s *Sandbox) runs() error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	var said strings.Builder
	ended, err := s.run(ctx, Command{Argv: []string{"true"}, Dir: s.workspace, ReadOnly: true, Output: &said})
	if err == nil && ended.Exit != 0 {
		err = errors.New(strings.TrimSpace(said.String()))
	}
	return err
}

// A Command describes one command to run.
type Command struct {
	Argv     []string
	Dir      string // absolute; empty: a private folder, removed when the command ends
	ReadOnly bool   // the command cannot change even the workspace
	// Output gets the command's stdout and stderr, in order. If Stderr is set,
	// Output gets stdout alone.
	Output io.Writer
	// Stderr gets the command's stderr. Each stream is in order, but output
	// written to both streams in quick succession may be exchanged. The two
	// writers are never called concurrently.
	Stderr io.Writer

	// Input and Reply are the command's stdin and stdout, for a command that
	// holds a conversation with the caller. Output then gets stderr alone,
	// without MaxOutput. The caller closes both files.
	Input, Reply *os.File

	Env []string // additional variables, as NAME=VALUE
	// Read and Write are additional folders that the command can read, or
	// change. They must be absolute and without symbolic links, both now and
	// when the command starts.
	Read, Write []string
	// Network lets the command reach everything except the TCP ports in Barred,
	// on any machine.
	Network bool
	Barred  []uint16
	// NoWorkspace denies the command the workspace: it can neither read nor
	// write there.
	NoWorkspace bool
	// Bare runs the command without a sandbox. It still gets its own
	// environment and limits, and leaves no process behind, but it has every
	// right of the server.
	Bare bool
}

// Ended describes how a command ended.
type Ended struct {
	Exit   int  // 128 plus the signal's number, if a signal ended the command
	Killed bool // the context ended or the command wrote too much
	Flood  bool // the command wrote too much
	// Unpausable: the command could not be paused while another command was set
	// up, and was ended. An ordinary command can be paused.
	Unpausable bool
}

// leadsTo resolves the symbolic links of an absolute path, as far as the path
// exists.
func leadsTo(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(leadsTo(dir), filepath.Base(path))
}

// Resolve returns where the path of a folder leads, for Command.Read and Write.
// It is called once, when the server starts. It follows symbolic links that an
// operator has put on the way, but none in the workspace, where commands can
// put some. If a command must not get the folder, Resolve returns an error.
func (s *Sandbox) Resolve(path string, write bool) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	at, rest := "/", names(path)
	for links := 0; len(rest) > 0 && !inside(s.workspace, at); {
		if rest[0] == ".." {
			at, rest = filepath.Dir(at), rest[1:]
			continue
		}
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s leads through more than %d symbolic links", path, maxLinks)
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(names(to), rest...)
	}
	if slices.Contains(rest, "..") {
		return "", fmt.Errorf("%s leads out of the workspace again", path)
	}
	found := filepath.Join(append([]string{at}, rest...)...)
	return found, s.allows(found, write)
}

// allows returns an error if a command must not get the folder in addition to
// the workspace.
func (s *Sandbox) allows(path string, write bool) error {
	for _, p := range s.protected {
		if place := filepath.Join(s.workspace, p.Path); write && (inside(path, place) || inside(place, path)) {
			return fmt.Errorf("%s must not be writable: %s is protected. Name a folder beside it, or move it out of "+
				"the workspace", path, p.Path)
		}
	}
	for _, hidden := range s.outside {
		if inside(path, hidden) || inside(hidden, path) {
			return fmt.Errorf("%s must not be given to a command: no command may see %s. Name another folder, or move "+
				"one of the two", path, hidden)
		}
	}
	return nil
}

const maxLinks = 40

func names(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}

// within reports whether a path is strictly inside a folder, and returns the
// relative path.
func within(folder, path string) (bool, string) {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != "." && filepath.IsLocal(rel), rel
}

// inside reports whether a path is the folder or inside it.
func inside(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
