// Package sandbox runs commands where they can do little harm: the workspace is
// the only thing they can change, they have no network, an environment of their
// own and limits, and nothing of them is left when they have ended.
//
// There are three ways to build a sandbox, called rungs, and the first that
// works is used: bubblewrap; namespaces that this program makes itself; Landlock.
// Each command has a supervisor, a process that waits for everything the command
// leaves behind and ends it. The supervisor, and the steps between it and the
// command, are this very program, started again: see [Main].
//
// What a command must not touch inside the workspace is found by walking it by
// descriptors, never by following names, while all other commands that could
// move something are paused. So the places that were found are the places that
// are protected when the command starts.
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

// Options say what a sandbox protects.
type Options struct {
	Workspace string
	Protected []Protected
	// Hidden are absolute paths outside the workspace that no command may see,
	// also if they lie in a folder that commands can read. Those inside are
	// ignored.
	Hidden []string
	// Secret reports whether a file of that base name is hidden wherever it is
	// in the workspace; nil: none is.
	Secret func(name string) bool
}

// Protected is a file or folder of the workspace that a command can neither
// change nor make. It need not exist.
type Protected struct {
	Path   string // relative to the workspace, cleaned
	Hidden bool   // it cannot be seen either
}

// A Sandbox is how commands are run over one workspace. It may be used
// concurrently.
type Sandbox struct {
	workspace string // absolute, without symbolic links
	protected []Protected
	outside   []string // hidden paths that are not in the workspace
	secret    func(name string) bool
	probed    func() error // finds rung and user once, or says why there is no sandbox; nil: rung and user are given
	rung      rung
	user      *user  // that commands run as; nil: the server's own
	memory    uint64 // bytes of data of one process; zero: maxMemory
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

// A user is the one that commands run as, if the server runs as root.
type user struct{ UID, GID int }

// The limits of a command, beside its time, which is the caller's to limit.
const (
	MaxProcesses = 512     // does not bind root, whom the kernel exempts
	maxMemory    = 4 << 30 // bytes of data of one process
	maxFile      = 1 << 30 // bytes of one file
	maxFiles     = 4096    // open in one process
	// MaxOutput ends a command that has written more.
	MaxOutput = 16 << 20
)

// New describes the sandbox of a workspace. Its error is about the workspace;
// Missing is about the sandbox. Which sandbox can be built here is found out when
// it is first asked for, by running a command in it, which takes some 50 ms.
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

// Missing says why there is no sandbox, or nil. The first call tries sandboxes
// out; others wait for it.
func (s *Sandbox) Missing() error {
	if s.probed == nil {
		return nil
	}
	return s.probed()
}

// String says what the sandbox is made of.
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

// AsRoot reports whether commands run as root, if without its capabilities.
func (s *Sandbox) AsRoot() bool {
	_ = s.Missing() // the user is known from then on
	return s.user == nil && os.Getuid() == 0
}

// Shortcomings says what this sandbox cannot do that others can, in sentences
// for people; empty: nothing.
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

// Rules says what the sandbox forbids, in one sentence, for a command that
// failed: an error such as "permission denied" does not name the rule.
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

// probe takes the first rung on which a command runs, or says why there is none.
// A server that is root first tries to run commands as the workspace's owner.
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

// try takes a rung if a command runs on it as that user.
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

// runs runs a command that only reads, so that trying changes nothing.
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

// A Command is run once.
type Command struct {
	Argv     []string
	Dir      string // absolute; empty: a folder of the command's own, which goes with it
	ReadOnly bool   // not even the workspace can be changed
	// Output gets what the command writes, to stdout and stderr, in order. With
	// Stderr it gets stdout alone.
	Output io.Writer
	// Stderr gets what the command writes to stderr. Each stream comes in order.
	// Of the two, the one that is read first comes first: what was written to both
	// in quick succession may be exchanged. They are not written to at once.
	Stderr io.Writer

	// Input and Reply make a command one that is talked to: what it reads and
	// what it writes to stdout. Output then gets stderr alone, and there may be
	// any amount of it. Both stay the caller's to close.
	Input, Reply *os.File

	Env []string // more of it, as NAME=VALUE
	// Read and Write are more folders that it can read, or change: absolute, and
	// without symbolic links, now and when it starts.
	Read, Write []string
	// Network lets it reach everything but these ports of TCP, on any machine.
	Network bool
	Barred  []uint16
	// NoWorkspace keeps the workspace from it: it can neither read nor write there.
	NoWorkspace bool
	// Bare runs it without a sandbox: with its own environment and limits, and
	// with an end that leaves nothing behind, but with every right of ours.
	Bare bool
}

// Ended says how a command ended.
type Ended struct {
	Exit   int  // 128 and the signal's number if one ended it
	Killed bool // because the context ended or it wrote too much
	Flood  bool // because it wrote too much
	// Unpausable: it could not be paused while another command was set up, which
	// an ordinary command can, and was ended.
	Unpausable bool
}

// leadsTo is where an absolute path leads, as far as it exists.
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

// Resolve is where the path of a folder leads, for Command.Read and Write. It is
// called once, when the server starts: symbolic links that an operator has put on
// the way are followed, but none in the workspace, where commands can put some.
// A folder that must not be given to a command is an error.
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

// allows says whether a folder may be given to a command beside the workspace.
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

// within reports whether a path is in a folder and not that folder itself, and
// the path from there.
func within(folder, path string) (bool, string) {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != "." && filepath.IsLocal(rel), rel
}

// inside reports whether a path is a folder or in it.
func inside(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
