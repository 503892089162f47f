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

// A View is the workspace, open for one purpose. It is for one goroutine.
type View struct {
	w       *Workspace
	root    *os.Root
	at      string // where the root is, as the system says it; empty: it does not
	purpose Purpose
	// inner has links followed that stay inside the root, whatever the purpose.
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

// Close ends the view. What was opened through it stays open.
func (v *View) Close() { _ = v.root.Close() } // nothing was written through it

// follows reports whether links that stay inside are followed.
func (v *View) follows() bool {
	return v.inner || v.purpose == AgentReads || v.purpose == PersonReads
}

// Open opens a regular file. Nothing else is waited for, as a named pipe would
// be.
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

// open opens a file or folder beneath a root, which is the view's or that of a
// Dir in it, and judges it. as is the name from the root of the workspace.
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

// judge refuses an open file or folder by where it is.
func (v *View) judge(f *os.File, name string) (place string, info fs.FileInfo, err error) {
	if info, err = f.Stat(); err != nil {
		return "", nil, err
	}
	if place, err = v.place(f, info, name); err != nil {
		return "", nil, err
	}
	if last, gone := strings.CutSuffix(place, deleted); gone { // or really named so: both are judged
		if err := v.w.refuse(name, last, v.purpose); err != nil {
			return "", nil, err
		}
	}
	return place, info, v.w.refuse(name, place, v.purpose)
}

// fault is the error about a name that cannot be opened. Of a name that is not
// for the purpose it tells no more than that.
func (v *View) fault(name string, err error) error {
	if refusal := v.w.Check(name, v.purpose); refusal != nil {
		return refusal
	}
	return Fault(name, err)
}

// A Dir is a folder that is held open: it stays the same folder, whatever comes
// to be found under its name.
type Dir struct {
	v     *View
	root  *os.Root
	name  string // that it was asked for by, from the root of the workspace
	place string // where it was when it was opened
	owns  bool   // the view is closed with it
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

// dir is open for folders. The dot keeps it from waiting for a named pipe.
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

// Name is the name that the folder was asked for by, from the root of the
// workspace.
func (d *Dir) Name() string { return d.name }

// Close releases the folder.
func (d *Dir) Close() {
	_ = d.root.Close() // nothing was written through it
	if d.owns {
		d.v.Close()
	}
}

// Dir opens a folder in the folder. It follows no link: what it opens is the
// very folder found under that name.
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

// Lstat is what is under a name in the folder; a link is not followed.
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

// Readlink is the text of a link in the folder.
func (d *Dir) Readlink(base string) (string, error) { return d.root.Readlink(base) }

// Open opens a regular file in the folder. It follows no link.
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

const maxScanned = 200_000 // entries of one folder that are looked at

// Entries is what is in the folder and may be seen, by name. Beyond most it says
// that there are more. Links are listed as links.
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
		if ended || len(list) > most+1000 { // no more are held than can be listed
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

// unfit is the error about something of another type than is wanted.
func (v *View) unfit(name string, info fs.FileInfo, want fs.FileMode) error {
	if v.purpose == ServerLoads && info.Mode()&fs.ModeSymlink != 0 {
		return linked(name)
	}
	return &parley.Error{Code: parley.CodeInvalid, Err: errUnfit,
		Message: fmt.Sprintf("%q is a %s, not a %s.", name, kind(info.Mode()), kind(want))}
}

func replaced(name string) error {
	return parley.Errorf(parley.CodeConflict, "%q was changed by somebody else meanwhile; look at it again.", name)
}
