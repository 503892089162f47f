// Package sandbox runs commands where they can do little harm: with the
// workspace as the only thing they can change, without a network, with an
// environment of their own and limits, and without a trace of them left when
// they have ended.
//
// Every command has a supervisor, a process that waits for whatever the command
// leaves behind and ends all of it. The supervisor, and what puts the last
// restrictions in place right before a command starts, are this very program,
// started again: see [Main].
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Sandbox is how commands are run over one workspace. It may be used
// concurrently.
type Sandbox struct {
	workspace string   // absolute, without symbolic links
	hidden    []string // likewise, as far as they exist
	kind      kind
	about     string
	kept      []string // likewise
	missing   error
	memory    uint64 // bytes of data of one process; zero: maxMemory
	covers    covers
}

type kind string

const (
	bubblewrap kind = "bubblewrap"
	landlock   kind = "landlock"
	bare       kind = "bare" // no sandbox
)

// The limits of a command, beside its time, which is the caller's to limit.
const (
	MaxProcesses = 512     // does not bind root, whom the kernel exempts
	maxMemory    = 4 << 30 // bytes of data of one process
	maxFile      = 1 << 30 // bytes of one file
	maxFiles     = 4096    // open in one process
	// MaxOutput ends a command that has written more.
	MaxOutput = 16 << 20
)

// New finds out, by running a command in it, which sandbox can be built here:
// bubblewrap, else Landlock, else none. Nothing in the hidden files and folders
// can be read or written from within; those that do not exist cannot be made.
// The error is about the folders; Missing is about the sandbox.
func New(workspace string, hidden ...string) (*Sandbox, error) {
	s := &Sandbox{kind: bare}
	for i, name := range append([]string{workspace}, hidden...) {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		path = leadsTo(path)
		if i == 0 {
			s.workspace = path
		} else {
			s.hidden = append(s.hidden, path)
		}
	}
	if info, err := os.Stat(s.workspace); err != nil {
		return nil, fmt.Errorf("workspace %s: %w", workspace, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("workspace %s is not a folder", workspace)
	}
	s.probe()
	return s, nil
}

// Keep has nothing in a folder be changed from within. It can be read, and while
// it does not exist it can be made.
func (s *Sandbox) Keep(folder string) error {
	path, err := filepath.Abs(folder)
	if err == nil {
		s.kept = append(s.kept, leadsTo(path))
	}
	return err
}

// Missing says why there is no sandbox, or nil.
func (s *Sandbox) Missing() error { return s.missing }

// String says what the sandbox is made of.
func (s *Sandbox) String() string {
	if s.missing != nil {
		return "none: " + s.missing.Error()
	}
	return s.about
}

const probeTime = 10 * time.Second

// probe takes the first kind in which a command runs.
func (s *Sandbox) probe() {
	var reasons []string
	for _, k := range []kind{bubblewrap, landlock} {
		about, err := available(k)
		if err == nil {
			err = s.within(s.workspace, k)
		}
		if err == nil {
			s.kind, s.about = k, about
			return
		}
		reasons = append(reasons, err.Error())
	}
	s.missing = errors.New(strings.Join(reasons, "; "))
}

func (s *Sandbox) within(workspace string, k kind) error {
	if workspace == "/" {
		return errors.New("the workspace is the whole machine")
	}
	for _, h := range s.hidden {
		if h == workspace {
			return fmt.Errorf("the workspace is %s itself, which must be hidden", h)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	var said strings.Builder
	probe := &Sandbox{workspace: s.workspace, hidden: s.hidden, kind: k, memory: s.memory}
	// It only reads, so that looking changes nothing.
	ended, err := probe.Run(ctx, Command{Argv: []string{"true"}, Dir: workspace, ReadOnly: true, Output: &said})
	switch {
	case err != nil:
		return fmt.Errorf("%s does not work here: %w", k, err)
	case ended.Exit != 0:
		return fmt.Errorf("%s does not work here: %s", k, strings.TrimSpace(said.String()))
	}
	return nil
}

// A Command is run once.
type Command struct {
	Argv     []string
	Dir      string // absolute
	ReadOnly bool   // not even the workspace can be changed
	// Output gets what the command writes, to stdout and stderr, in order.
	Output io.Writer

	// Input and Reply make a command one that is talked to: what it reads and
	// what it writes to stdout. Output then gets stderr alone, and there may be
	// any amount of it. Both stay the caller's to close.
	Input, Reply *os.File

	Env         []string // more of it, as NAME=VALUE
	Read, Write []string // more folders that it can read, or change; absolute
	// Network lets it reach everything but these ports of TCP, on any machine.
	Network bool
	Barred  []uint16
	// Bare runs it without a sandbox: with its own environment and limits, and
	// with an end that leaves nothing behind, but with every right of ours.
	Bare bool
}

// Ended says how a command ended.
type Ended struct {
	Exit   int  // 128 and the signal's number if one ended it
	Killed bool // because the context ended or it wrote too much
	Flood  bool // because it wrote too much
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

// inside reports whether a path is a folder or in it.
func inside(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
