// Package workspace is the only way to access the files of a project. The file
// tools, the routes that show files to people, change reports, and the loading
// of skills and agents all use it.
//
// Checking a name says nothing about a later use of that name: in between, a
// folder can be swapped for a symbolic link. So the package first opens a file,
// beneath the root and never outside. Then it judges the open file by its type
// and by the path of its descriptor. [Workspace.refuse] holds all the rules:
//
//	             secrets  hidden  kept  .git
//	AgentReads   no       no      yes   yes
//	AgentWrites  no       no      no    no
//	PersonReads  no       no      yes   no
//	ServerLoads  no       yes     yes   yes
//
// Secrets are the files .env and .env.*, in any folder and any letter case,
// except templates such as .env.example.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley"
)

// A Purpose describes the user of a file and the kind of use.
type Purpose int

const (
	AgentReads  Purpose = iota // a tool reads for an agent
	AgentWrites                // a tool writes for an agent; links are not followed
	PersonReads                // a person is shown files, lists of files or change reports
	ServerLoads                // the server loads skills or agents; links inside the workspace are not followed
)

// A Place is a file or folder with a rule. It need not exist.
type Place struct {
	Path    string // absolute, or relative to the working directory
	Setting string // the flag or folder that operators know, for error messages
}

// Rules lists the restricted places of a workspace. Places outside the
// workspace are ignored.
type Rules struct {
	Hidden []Place // neither agents nor people see them
	Kept   []Place // agents read them and never write them
}

// A Workspace is a project's folder and its rules. It is safe for concurrent
// use.
type Workspace struct {
	root      string // absolute, without symbolic links
	protected []Protected
}

// Protected is a place inside the workspace that agents must not write.
type Protected struct {
	Path   string // relative to the root, with slashes
	Hidden bool   // agents must not read it either
}

// Open opens a folder as a workspace. It refuses a layout that cannot be
// protected; the error tells the operator what to move.
func Open(folder string, rules Rules) (*Workspace, error) {
	root, err := filepath.Abs(folder)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", folder, err)
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, errors.Join(err, fmt.Errorf("workspace %s is not a folder", folder))
	}
	w := &Workspace{root: root}
	for _, p := range rules.Hidden {
		if err := w.protect(p, true); err != nil {
			return nil, err
		}
	}
	for _, p := range rules.Kept {
		if err := w.protect(p, false); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *Workspace) protect(p Place, hidden bool) error {
	name, err := filepath.Abs(p.Path)
	if err != nil {
		return err
	}
	place, link, err := w.resolve(name)
	if err != nil {
		return fmt.Errorf("%s %s: %w", p.Setting, p.Path, err)
	}
	if link != "" {
		return fmt.Errorf("%s %s leads through the symbolic link %s inside the workspace, where agents could "+
			"change it; "+
			"put the real file or folder there, or name a place outside the workspace %s", p.Setting, p.Path, link,
			w.root)
	}
	if relative, ok := inside(place, w.root); ok {
		where := "inside"
		if relative == "." {
			where = "the same folder as"
		}
		return fmt.Errorf("the workspace %s is %s %s %s, which is not for agents; "+
			"move the workspace out of it, or name another folder", w.root, where, p.Setting, p.Path)
	}
	relative, ok := inside(w.root, place)
	if !ok {
		return nil
	}
	if info, err := os.Lstat(place); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%s %s is neither a file nor a folder; remove it, or name another", p.Setting, p.Path)
	}
	w.protected = append(w.protected, Protected{Path: relative, Hidden: hidden})
	return nil
}

// Root returns the folder of the workspace, absolute and without symbolic
// links.
func (w *Workspace) Root() string { return w.root }

// Protected returns the places inside the workspace that commands of agents
// must not write, or not even read. Some may not exist. Secrets are not among
// them: they can be anywhere, see [IsSecret].
func (w *Workspace) Protected() []Protected { return slices.Clone(w.protected) }

// Check judges a clean relative name by where it leads now, as far as it
// exists. Callers use it to refuse early; opening the file judges again, by the
// opened file.
func (w *Workspace) Check(name string, purpose Purpose) error {
	if err := w.refuse(name, name, purpose); err != nil {
		return err
	}
	place, _, err := w.resolve(filepath.Join(w.root, filepath.FromSlash(name)))
	relative, ok := inside(w.root, place)
	if err != nil || !ok {
		return nil // opening fails
	}
	return w.refuse(name, relative, purpose)
}

// refuse returns an error if a purpose does not allow the file or folder at a
// place. The place is relative to the root and contains no link. The name is
// for the message.
func (w *Workspace) refuse(name, place string, purpose Purpose) error {
	agent := purpose == AgentReads || purpose == AgentWrites
	hidden := slices.ContainsFunc(w.protected, func(p Protected) bool { return p.Hidden && covers(p.Path, place) })
	switch {
	case IsSecret(place) && !agent, hidden && purpose == PersonReads, inGit(place) && purpose == PersonReads:
		return Fault(name, fs.ErrNotExist)
	case IsSecret(place), hidden && agent:
		return parley.Errorf(parley.CodeForbidden,
			"%q is not for tools: it holds secrets, the definitions of agents, or the server's own data.", name)
	case purpose != AgentWrites:
		return nil
	case inGit(place):
		return parley.Errorf(parley.CodeForbidden, "%q is inside .git, which is never written.", name)
	case slices.ContainsFunc(w.protected, func(p Protected) bool { return covers(p.Path, place) }):
		return parley.Errorf(parley.CodeForbidden,
			"%q is read-only for tools: it holds skills or settings of the project.", name)
	}
	return nil
}

// covers reports whether a place is the folder or inside it. It ignores letter
// case, as some file systems do.
func covers(folder, place string) bool {
	folder, place = strings.ToLower(folder), strings.ToLower(place)
	return place == folder || strings.HasPrefix(place, folder+"/")
}

// inside reports whether a place is the folder or inside it, and returns the
// relative path, with slashes. Both arguments are absolute and contain no
// links.
func inside(folder, place string) (string, bool) {
	relative, err := filepath.Rel(folder, place)
	return filepath.ToSlash(relative), err == nil && filepath.IsLocal(relative)
}

const maxLinks = 255 // on the way to one file

// resolve returns where an absolute path leads, as far as it exists, and the
// first link inside the workspace on the way there.
func (w *Workspace) resolve(name string) (place, link string, err error) {
	volume := filepath.VolumeName(name)
	top := volume + string(filepath.Separator)
	at, rest := top, parts(name[len(volume):])
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return filepath.Join(append([]string{next}, rest...)...), link, nil
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		if _, ok := inside(w.root, next); ok && link == "" {
			link = next
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", link, errors.Join(err, fmt.Errorf("too many symbolic links at %s", next))
		}
		if filepath.IsAbs(to) {
			at, to = top, to[len(filepath.VolumeName(to)):]
		}
		rest = append(parts(to), rest...)
	}
	return at, link, nil
}

func parts(name string) []string {
	return strings.FieldsFunc(filepath.ToSlash(name), func(r rune) bool { return r == '/' })
}

// IsSecret reports whether a path names a file that holds keys, or an entry of
// a folder with such a name. Templates without keys, which projects publish, do
// not count.
func IsSecret(name string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(name), "/"), func(part string) bool {
		part = strings.ToLower(part)
		return part == ".env" || strings.HasPrefix(part, ".env.") && !slices.Contains(templates, part)
	})
}

var templates = []string{".env.example", ".env.sample", ".env.template", ".env.dist"}

// IsGit reports whether a file name is .git, in any letter case, as some file
// systems ignore case.
func IsGit(base string) bool { return strings.EqualFold(base, ".git") }

func inGit(name string) bool { return slices.ContainsFunc(strings.Split(name, "/"), IsGit) }
