package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"parley"
)

// A View is the workspace, open for one purpose. It is for use by one
// goroutine.
type View struct {
	w       *Workspace
	root    *os.Root
	at      string // path of the root, as the system reports it; empty: it reports none
	purpose Purpose
	// inner makes the view follow links that stay inside the root, whatever the
	// purpose.
	inner bool
}

// For opens the workspace for a purpose.
func (w *Workspace) For(purpose Purpose) (*View, error) {
	root, err := os.OpenRoot(w.root)
	if err != nil {
		return nil, &parley.Error{Code: parley.CodeUnavailable, Message: "The workspace cannot be opened.", Err: err}
	}
	v := &View{w: w, root: root, purpose: purpose}
	if f, err := root.Open("."); err == nil {
		v.at, _ = location(f)
		f.Close()
	}
	return v, nil
}

// Close ends the view. Files and folders opened through it stay open.
func (v *View) Close() { _ = v.root.Close() } // nothing was written through it, so no error matters

// follows reports whether the view follows links that stay inside.
func (v *View) follows() bool {
	return v.inner || v.purpose == AgentReads || v.purpose == PersonReads
}

// Open opens a regular file. It never blocks: anything else, such as a named
// pipe, is refused.
func (v *View) Open(name string) (*os.File, fs.FileInfo, error) {
	if !v.follows() {
		dir, err := v.Dir(path.Dir(name))
		if err != nil {
			return nil, nil, err
		}
		defer dir.Close()
		return dir.Open(path.Base(name))
	}
	return v.open(v.root, name, name, 0)
}

// open opens a file or folder beneath a root, and judges it. The root is the
// view's or that of a Dir in it. as is the name relative to the root of the
// workspace.
func (v *View) open(root *os.Root, name, as string, want fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, v.fault(as, err)
	}
	_, info, err := v.judge(f, as)
	if err == nil && info.Mode().Type() != want {
		err = v.unfit(as, info, want)
	}
	if err != nil {
		f.Close()
		return nil, nil, Fault(as, err)
	}
	return f, info, nil
}

// judge refuses an open file or folder according to its actual place.
func (v *View) judge(f *os.File, name string) (place string, info fs.FileInfo, err error) {
	if info, err = f.Stat(); err != nil {
		return "", nil, err
	}
	if place, err = v.place(f, info, name); err != nil {
		return "", nil, err
	}
	if last, gone := strings.CutSuffix(place, deleted); gone { // or it really has this name; both names are judged
		if err := v.w.refuse(name, last, v.purpose); err != nil {
			return "", nil, err
		}
	}
	return place, info, v.w.refuse(name, place, v.purpose)
}

// fault returns the error for a name that cannot be opened. If the purpose does
// not allow the name, the error reveals nothing else.
func (v *View) fault(name string, err error) error {
	if refusal := v.w.Check(name, v.purpose); refusal != nil {
		return refusal
	}
	return Fault(name, err)
}

// A Dir is a folder that is held open. It stays the same folder, even if its
// name later leads to another one.
type Dir struct {
	v     *View
	root  *os.Root
	name  string // requested name, relative to the root of the workspace
	place string // place of the folder when it was opened
	owns  bool   // Close also closes the view
}

// Dir opens a folder.
func (v *View) Dir(name string) (*Dir, error) {
	if v.follows() {
		return v.dir(v.root, name, name)
	}
	return v.RealDir(name)
}

// RealDir opens a folder and follows no link on the way.
func (v *View) RealDir(name string) (*Dir, error) {
	dir, err := v.dir(v.root, ".", ".")
	if err != nil || name == "." {
		return dir, err
	}
	for _, base := range strings.Split(name, "/") {
		next, err := dir.Dir(base)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// dir opens a folder. The dot after the name keeps it from blocking on a named
// pipe.
func (v *View) dir(root *os.Root, name, as string) (*Dir, error) {
	inner, err := root.OpenRoot(name + "/.")
	if err != nil {
		if info, statErr := root.Stat(name); statErr == nil && !info.IsDir() {
			err = v.unfit(as, info, fs.ModeDir)
		}
		return nil, v.fault(as, err)
	}
	d := &Dir{v: v, root: inner, name: as}
	f, err := inner.Open(".")
	if err == nil {
		d.place, _, err = v.judge(f, as)
		f.Close()
	}
	if err != nil {
		inner.Close()
		return nil, Fault(as, err)
	}
	return d, nil
}

// Name returns the requested name of the folder, relative to the root of the
// workspace.
func (d *Dir) Name() string { return d.name }

// Close releases the folder.
func (d *Dir) Close() {
	_ = d.root.Close() // nothing was written through it, so no error matters
	if d.owns {
		d.v.Close()
	}
}

// Dir opens a subfolder. It follows no link, unless the view follows inner
// links: it opens the very folder found under that name.
func (d *Dir) Dir(base string) (*Dir, error) {
	name := path.Join(d.name, base)
	if d.v.inner {
		return d.v.Dir(name)
	}
	seen, err := d.Lstat(base)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, d.v.unfit(name, seen, fs.ModeDir)
	}
	inner, err := d.v.dir(d.root, base, name)
	if err != nil {
		return nil, err
	}
	entered, err := inner.root.Stat(".")
	if err == nil && !os.SameFile(seen, entered) {
		err = replaced(name)
	}
	if err != nil {
		inner.Close()
		return nil, Fault(name, err)
	}
	return inner, nil
}

// Lstat describes an entry of the folder. It does not follow links.
func (d *Dir) Lstat(base string) (fs.FileInfo, error) {
	name := path.Join(d.name, base)
	if err := d.v.w.refuse(name, path.Join(d.place, base), d.v.purpose); err != nil {
		return nil, err
	}
	info, err := d.root.Lstat(base)
	if err != nil {
		return nil, Fault(name, err)
	}
	return info, nil
}

// Readlink returns the target of a link in the folder.
func (d *Dir) Readlink(base string) (string, error) { return d.root.Readlink(base) }

// Open opens a regular file in the folder. It follows no link, unless the view
// follows inner links.
func (d *Dir) Open(base string) (*os.File, fs.FileInfo, error) {
	name := path.Join(d.name, base)
	if d.v.inner {
		return d.v.Open(name)
	}
	seen, err := d.Lstat(base)
	if err != nil {
		return nil, nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, nil, d.v.unfit(name, seen, 0)
	}
	f, info, err := d.v.open(d.root, base, name, 0)
	if err == nil && !os.SameFile(seen, info) {
		f.Close()
		f, info, err = nil, nil, replaced(name)
	}
	return f, info, err
}

const maxScanned = 200_000 // entries of one folder that Entries reads

// Entries returns the entries of the folder that the purpose allows, sorted by
// name. It returns at most most entries, and reports whether there are more.
// Links are listed as links.
func (d *Dir) Entries(ctx context.Context, most int) (list []fs.DirEntry, more bool, err error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, false, Fault(d.name, err)
	}
	defer f.Close()
	byName := func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }
	for scanned := 0; scanned < maxScanned; {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		some, err := f.ReadDir(1000)
		scanned += len(some)
		for _, e := range some {
			if d.v.w.refuse(e.Name(), path.Join(d.place, e.Name()), d.v.purpose) == nil {
				list = append(list, e)
			}
		}
		ended := err == io.EOF
		if err != nil && !ended {
			return nil, false, Fault(d.name, err)
		}
		if ended || len(list) > most+1000 { // keep no more than can be listed
			slices.SortFunc(list, byName)
			if len(list) > most {
				list, more = list[:most], true
			}
		}
		if ended {
			return list, more, nil
		}
	}
	slices.SortFunc(list, byName)
	return list[:min(len(list), most)], true, nil
}

var errUnfit = errors.New("it is of another type")

// unfit returns the error for an entry of the wrong type.
func (v *View) unfit(name string, info fs.FileInfo, want fs.FileMode) error {
	if v.purpose == ServerLoads && info.Mode()&fs.ModeSymlink != 0 {
		return linked(name)
	}
	return &parley.Error{Code: parley.CodeInvalid, Err: errUnfit,
		Message: fmt.Sprintf("%q is a %s, not a %s.", name, kind(info.Mode()), kind(want))}
}

func replaced(name string) error {
	return parley.Errorf(parley.CodeConflict, "%q was changed in the meantime; read it again.", name)
}
