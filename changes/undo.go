package changes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/workspace"
)

const (
	undoFolder = "undo"    // subfolder of the notes: one file per run that changed files
	maxUndos   = 64        // number of such files; the oldest are deleted first
	maxSaved   = 128 << 20 // bytes of these files together

	unknownMode fs.FileMode = 0o600 // for a file whose permissions are not known
)

// A saved report holds the data needed to undo the changes of a run.
type saved struct {
	Why   string // why they cannot be undone, as a sentence; empty: they can
	Files []savedFile
}

type savedFile struct {
	Path   string
	Before state
	After  state // without Content
}

// A state is the state of a regular file. The zero state means that there is no file.
type state struct {
	Mode    string      // as in git: 100644 or 100755
	Perm    fs.FileMode // permissions; zero: not known
	ID      string      // git's name of the content
	Content []byte
}

const notKept = "The content of %q before the run was not kept, because it, or all uncommitted files together, were " +
	"too large."

// save writes the data needed to restore the files of a note. It fails only if the data cannot be written.
func (d scratchRepo) save(ctx context.Context, name string, was note, now sight, found map[string]change) error {
	record := saved{}
	for path, c := range found {
		if c.large {
			record.Why = fmt.Sprintf(notKept, path)
		}
	}
	if len(found) > parley.MaxFilesChanged {
		record.Why = fmt.Sprintf("The run changed %d files. Changes of more than %d files cannot be undone.",
			len(found), parley.MaxFilesChanged)
	}
	if record.Why == "" {
		var err error
		if record.Files, record.Why, err = d.before(ctx, filepath.Join(d.folder, name, "index"), was, now); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(record)
	if err != nil {
		return err
	}
	folder := filepath.Join(d.folder, undoFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	d.forget(folder, len(raw))
	part := filepath.Join(folder, name+partial)
	if err := os.WriteFile(part, raw, 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(folder, name))
}

// forget deletes the oldest files, to make room for a file of this size.
func (g *Git) forget(folder string, size int) {
	entries, _ := os.ReadDir(folder)
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			files = append(files, info)
			size += int(info.Size())
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for len(files) >= maxUndos || size > maxSaved && len(files) > 0 {
		os.Remove(filepath.Join(folder, files[0].Name()))
		size -= int(files[0].Size())
		files = files[1:]
	}
}

// before reads the contents that the changed files had in the note, or returns why they cannot be restored. index is
// the index of the note.
func (d scratchRepo) before(ctx context.Context, index string, was note, now sight) (files []savedFile, why string,
	err error) {
	out, err := d.run(ctx, nil, "diff-tree", "-r", "-z", "--no-renames", "--relative", was.Tree, now.tree)
	if err != nil {
		return nil, "", err
	}
	total := 0
	words := strings.Split(string(out), "\x00")
	var attributes []string // .gitattributes files that the run changed
	for i := 1; i < len(words); i += 2 {
		if strings.EqualFold(path.Base(words[i]), ".gitattributes") {
			attributes = append(attributes, words[i])
		}
	}
	for i := 0; i+1 < len(words); i += 2 {
		fields, name := strings.Fields(strings.TrimPrefix(words[i], ":")), words[i+1]
		if len(fields) != 5 {
			return nil, "", fmt.Errorf("git describes a change as %q", words[i])
		}
		f := savedFile{Path: name, Before: state{Mode: fields[0], ID: fields[2]},
			After: state{Mode: fields[1], ID: fields[3]}}
		for _, s := range []*state{&f.Before, &f.After} {
			switch s.Mode {
			case "000000":
				*s = state{}
			case "100644", "100755":
			default:
				return nil, fmt.Sprintf("%q is a symbolic link or a repository, and only files can be restored.",
					name), nil
			}
		}
		if was.Large[name] != "" {
			return nil, fmt.Sprintf(notKept, name), nil
		}
		if !utf8.ValidString(name) {
			return nil, fmt.Sprintf("The name of the file %q is not UTF-8.", name), nil
		}
		if f.Before.Mode != "" {
			f.Before.Perm = was.perm(name, f.Before.Mode)
			if f.Before.Content, why, err = d.content(ctx, index, was, name, f.Before.ID, attributes); err != nil || why != "" {
				return nil, why, err
			}
		}
		if total += len(f.Before.Content); total > d.most.bytes {
			return nil, fmt.Sprintf("The changed files had more than %d bytes together before the run.",
				d.most.bytes), nil
		}
		files = append(files, f)
	}
	why, err = d.after(files)
	return files, why, err
}

// perm returns the permissions that a file had in the note, given its git mode. Zero means that they are not known.
func (n note) perm(name, mode string) fs.FileMode {
	perm, other := n.Modes[name]
	switch {
	case other:
		return perm
	case n.NoModes || n.Modes == nil: // nil: a note of an earlier version
		return 0
	case mode == "100755":
		return 0o755
	}
	return 0o644
}

// after adds the permissions that the run left. If the run replaced a file by a folder, or a folder by a file, it
// returns why the run cannot be undone: one Edit cannot swap files and folders.
func (d scratchRepo) after(files []savedFile) (why string, err error) {
	at, err := newCursor(d.files)
	if err != nil {
		return "", err
	}
	defer at.close()
	for i, f := range files {
		if f.After.Mode != "" {
			if info, err := at.lstat(f.Path); err == nil {
				files[i].After.Perm = info.Mode().Perm()
			}
			continue
		}
		for name := f.Path; name != "."; name = path.Dir(name) {
			info, err := at.lstat(name)
			switch {
			case err != nil: // nothing is there, or a file is in place of its folder
			case name == f.Path && info.IsDir():
				return fmt.Sprintf("The run replaced the file %q by a folder.", name), nil
			case name != f.Path && !info.IsDir():
				return fmt.Sprintf("The run replaced the folder %q by a file.", name), nil
			}
		}
	}
	return "", nil
}

// content returns what a file contained on the disk when it was noted. If the
// file was not read then, because git had the same version, content is what git
// writes when it checks the file out. It never runs programs to get it. git
// uses the attributes that the workspace has now. If these may have been
// different when the file was noted, content returns why the file cannot be
// restored.
func (d scratchRepo) content(ctx context.Context, index string, was note, name, id string, attributes []string) (
	content []byte, why string, err error) {
	if d.Dir == "" || slices.Contains(was.Read, name) {
		content, err = d.output(ctx, nil, maxFile+1, "cat-file", "blob", id)
	} else {
		for _, changed := range attributes {
			if folder := path.Dir(changed); changed != name && (folder == "." || strings.HasPrefix(name, folder+"/")) {
				return nil, fmt.Sprintf("The run changed %q, which says in which form git writes %q. So it is not "+
					"known what %q held.", changed, name, name), nil
			}
		}
		var filter []byte
		if filter, err = d.run(ctx, nil, "check-attr", "-z", "filter", "--", name); err != nil {
			return nil, "", err
		}
		if words := strings.Split(string(filter), "\x00"); len(words) < 3 || words[2] != "unspecified" &&
			words[2] != "unset" {
			return nil, fmt.Sprintf("git keeps %q in another form than on the disk (its attribute filter is set).",
				name), nil
		}
		content, err = d.output(ctx, nil, maxFile+1, "cat-file", "--filters", "--path="+d.Prefix+name, id)
		if err == nil && len(content) <= maxFile {
			size, err := d.noted(ctx, index, name)
			if err != nil {
				return nil, "", err
			}
			if size != 0 && size != len(content) {
				return nil, fmt.Sprintf("%q had %d bytes before the run, and git would write %d: its attributes were "+
					"others.", name, size, len(content)), nil
			}
		}
	}
	if errors.Is(err, errTooMuch) || len(content) > maxFile {
		return nil, fmt.Sprintf("%q was larger than %d bytes before the run.", name, maxFile), nil
	}
	return content, "", err
}

var debugSize = regexp.MustCompile(`\n  size: ([0-9]+)\tflags: `)

// noted returns the size that a file had on the disk, from an index. Zero means that the file is not in the index.
func (d scratchRepo) noted(ctx context.Context, index, name string) (int, error) {
	d.index = index
	out, err := d.run(ctx, nil, "ls-files", "--debug", "--", name)
	if err != nil {
		return 0, err
	}
	found := debugSize.FindSubmatch(out)
	if found == nil {
		return 0, nil
	}
	return strconv.Atoi(string(found[1]))
}

// MayUndo implements port.Changes.
func (g *Git) MayUndo(_ context.Context, name string) error {
	return g.restoring(name, false, func(*workspace.Edit, []parley.UndoneFile) error { return nil })
}

// Undo implements port.Changes.
func (g *Git) Undo(ctx context.Context, name string) (done []parley.UndoneFile, err error) {
	err = g.restoring(name, true, func(edit *workspace.Edit, files []parley.UndoneFile) error {
		done = files
		return edit.Commit(ctx)
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// restoring calls do with an edit that would restore the files of a saved
// report. If again is true, an attempt may have been killed before: files that
// already have their earlier state are accepted, and temporary files of that
// attempt are removed.
func (g *Git) restoring(name string, again bool, do func(*workspace.Edit, []parley.UndoneFile) error) error {
	record, err := g.recall(name)
	if err != nil {
		return err
	}
	edit, err := g.files.Edit()
	if err != nil {
		return err
	}
	defer edit.Close()
	edit.Label(name)
	var files []parley.UndoneFile
	var changed []string
	for _, f := range record.Files {
		if again {
			if err := edit.Recover(f.Path, f.Before.Mode == ""); err != nil {
				return err
			}
		}
		now, info, err := look(edit, f)
		if err != nil {
			return err
		}
		switch {
		case now.is(f.After):
			f.restore(edit, info)
		case !again || !now.is(f.Before):
			changed = append(changed, fmt.Sprintf("%q", f.Path))
		}
		files = append(files, parley.UndoneFile{Path: f.Path, Did: f.did()})
	}
	if len(changed) > 0 {
		return parley.Errorf(parley.CodeConflict, "Nothing was undone, because these files have changed since the "+
			"run: %s.", strings.Join(changed, ", "))
	}
	return do(edit, files)
}

var errForgotten = parley.Errorf(parley.CodeClosed, "The changes of this run cannot be undone: it changed no files, "+
	"or this server no longer keeps what they were before.")

// recall reads a saved report. It returns an error if the report cannot be undone.
func (g *Git) recall(name string) (record saved, err error) {
	raw, err := os.ReadFile(filepath.Join(g.folder, undoFolder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return record, errForgotten
	}
	if err == nil {
		err = json.Unmarshal(raw, &record)
	}
	if err == nil && record.Why != "" {
		err = parley.Errorf(parley.CodeClosed, "The changes of this run cannot be undone. %s", record.Why)
	}
	return record, err
}

// look returns the current state of a file.
func look(edit *workspace.Edit, f savedFile) (state, fs.FileInfo, error) {
	info, err := edit.Look(f.Path)
	if err == nil && info == nil {
		return state{}, nil, nil
	}
	var content string
	if err == nil {
		content, info, err = edit.Content(f.Path)
	}
	switch parley.CodeOf(err) {
	case parley.CodeInvalid, parley.CodeTooLarge:
		return state{Mode: "another"}, nil, nil // it is not a file any more, or it is too large
	}
	now := state{Mode: "100644", Content: []byte(content)}
	if err == nil && info.Mode()&0o100 != 0 {
		now.Mode = "100755"
	}
	return now, info, err
}

// is reports whether a file on the disk has a saved state.
func (s state) is(saved state) bool {
	switch {
	case s.Mode != saved.Mode:
		return false
	case saved.Mode == "" || saved.Content != nil:
		return bytes.Equal(s.Content, saved.Content)
	}
	r := repository{}
	if len(saved.ID) > 40 {
		r.Format = "sha256"
	}
	h := r.hash()()
	fmt.Fprintf(h, "blob %d\x00", len(s.Content))
	h.Write(s.Content)
	return hex.EncodeToString(h.Sum(nil)) == saved.ID
}

// restore adds the changes to an edit that give a file its earlier state. Permissions that were changed after the run
// stay, except the execute bits. Setuid and setgid bits are not restored.
func (f savedFile) restore(edit *workspace.Edit, info fs.FileInfo) {
	if f.Before.Mode == "" {
		edit.Delete(f.Path, info)
		return
	}
	program := f.Before.Mode == "100755"
	mode := f.Before.Perm
	switch {
	case info != nil && (mode == 0 || info.Mode().Perm() != f.After.Perm): // not known, or changed since the run
		mode = info.Mode().Perm()
	case mode == 0:
		mode = unknownMode
	}
	switch {
	case !program:
		mode &^= 0o111
	case mode&0o100 == 0:
		mode |= mode & 0o444 >> 2 // users that may read it may run it
	}
	if mode == 0 { // an Edit takes zero as the mode of the existing file
		mode = unknownMode
	}
	edit.Write(f.Path, string(f.Before.Content), info, mode)
}

// did returns what restoring the file does.
func (f savedFile) did() (did parley.UndoneFileKind) {
	switch {
	case f.Before.Mode == "":
		return parley.FileRemoved
	case f.After.Mode == "":
		return parley.FileBroughtBack
	}
	return parley.FileRestored
}
