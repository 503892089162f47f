// Package changes finds out, with git, how a run has changed the files of the
// workspace. It writes nothing there. If the workspace has a repository,
// neither its index nor its refs nor its objects are changed.
//
// A note records the files as a git tree, in a scratch repository of this
// package. The scratch repository borrows the objects of the workspace's
// repository and starts with a copy of its index, so that only uncommitted
// files are read. If the workspace has no repository, it starts empty and every
// file is read. Programs that the workspace's configuration names (filters,
// monitors, diff programs, hooks) do not run: the scratch repository takes over
// only settings that run nothing. A run that commits, stages or checks out files
// needs no special treatment.
package changes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/port"
	"parley/workspace"
)

const (
	within     = 10 * time.Second // time limit of Note and of Since
	maxNotes   = 32               // the oldest are deleted first
	maxFile    = 1 << 20          // bytes of a file whose contents are compared
	maxFiles   = 5000             // uncommitted files that are read
	maxTotal   = 32 << 20         // bytes of these files together
	maxListing = 64 << 20         // bytes of git's output
	maxModes   = 5000             // files whose permissions are noted

	// lookAgain is how long a folder without a repository is not tried again
	// after noting its files failed: another attempt may take as long as
	// within.
	lookAgain = 10 * time.Minute
)

// limits apply to the uncommitted files.
type limits struct {
	files int // files whose contents are compared
	bytes int // bytes of these files
	modes int // of all files: files whose permissions are noted
}

// Git implements port.Changes. It is safe for concurrent use.
type Git struct {
	program string
	files   *workspace.Workspace
	folder  string // folder of the notes
	log     *slog.Logger
	most    limits

	mu   sync.Mutex               // guards the following; leaf
	busy map[string]chan struct{} // notes being made, by name; closed when done
	// Why the last attempt to note a folder without a repository failed, and until when it is not repeated.
	refusal string
	until   time.Time
}

var _ port.Changes = (*Git)(nil)

// New returns an error if git is not installed. The first note creates the
// folder of notes. Files that people must not see are not reported.
func New(files *workspace.Workspace, folder string, log *slog.Logger) (*Git, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	folder, err = filepath.Abs(folder)
	return &Git{program: program, files: files, folder: folder, log: log, most: limits{maxFiles, maxTotal, maxModes},
		busy: map[string]chan struct{}{}}, err
}

// A note records the state of the files.
type note struct {
	Repository repository
	Tree       string
	// Large maps the files whose contents were not read to the result of
	// looksOf.
	Large map[string]string
	// Read lists the files whose contents were read. All others were as in git's index.
	Read []string
	// Modes holds the permissions of files known to git whose permissions are neither 0644 nor 0755.
	Modes   map[string]fs.FileMode
	NoModes bool // there were too many files to read permissions
}

const (
	noteFile = "note.json"
	partial  = ".part" // suffix of incomplete notes
)

// Note implements port.Changes. It notes the files only once, even if that
// fails: a later attempt would record changes that the run has already made.
func (g *Git) Note(ctx context.Context, name string) error {
	done, err := g.enter(ctx, name)
	if err != nil {
		return err
	}
	defer done()
	place := filepath.Join(g.folder, name)
	if _, err := os.Lstat(place); err == nil {
		return nil
	}
	g.makeRoom(name)
	part := place + partial // if a crash left one, no call had been made yet
	err = os.RemoveAll(part)
	if err == nil {
		err = os.MkdirAll(part, 0o700)
	}
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = g.note(limited, part)
	if ctx.Err() != nil {
		os.RemoveAll(part) // the call was not made, so there is nothing to compare
		return ctx.Err()
	}
	if err != nil {
		_ = os.Remove(filepath.Join(part, noteFile))
	}
	return errors.Join(err, os.Rename(part, place))
}

// enter waits until no other goroutine is making the same note.
func (g *Git) enter(ctx context.Context, name string) (done func(), err error) {
	mine := make(chan struct{})
	for {
		g.mu.Lock()
		other := g.busy[name]
		if other == nil {
			g.busy[name] = mine
		}
		g.mu.Unlock()
		if other == nil {
			return func() {
				g.mu.Lock()
				delete(g.busy, name)
				g.mu.Unlock()
				close(mine)
			}, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// makeRoom removes the notes of earlier runs of the same session, because a
// session has one run at a time. It also removes the oldest notes beyond the
// limit.
func (g *Git) makeRoom(name string) {
	entries, _ := os.ReadDir(g.folder)
	session := name[:strings.LastIndex(name, ".")+1]
	var kept []fs.FileInfo
	for _, e := range entries {
		switch info, err := e.Info(); {
		case err != nil || e.Name() == undoFolder:
		case session != "" && strings.HasPrefix(e.Name(), session):
			os.RemoveAll(filepath.Join(g.folder, e.Name()))
		default:
			kept = append(kept, info)
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for len(kept) >= maxNotes {
		os.RemoveAll(filepath.Join(g.folder, kept[0].Name()))
		kept = kept[1:]
	}
}

// note writes a note into a folder.
func (g *Git) note(ctx context.Context, part string) error {
	r, err := g.find(ctx)
	if err != nil {
		return err
	}
	if r.Dir != "" {
		return g.noteIn(ctx, r, part)
	}
	g.mu.Lock()
	refused := time.Now().Before(g.until)
	g.mu.Unlock()
	if refused {
		return nil
	}
	if err = g.noteIn(ctx, r, part); err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the folder has no git repository, and noting its files takes longer than %s", within)
	}
	os.RemoveAll(filepath.Join(part, "git")) // it may be large, and is of no use now
	g.mu.Lock()
	defer g.mu.Unlock()
	said := g.refusal == err.Error()
	g.refusal, g.until = err.Error(), time.Now().Add(lookAgain)
	if said {
		return nil
	}
	return err
}

const tooLargeFolder = "the folder has no git repository, and more than %d files or %d bytes; " +
	"a repository, or a .gitignore that lists large folders, makes it small enough"

// noteIn writes a note of the files of r.
func (g *Git) noteIn(ctx context.Context, r repository, part string) error {
	if err := r.prepare(ctx, g, part); err != nil {
		return err
	}
	at := scratchRepo{Git: g, repository: r, git: filepath.Join(part, "git"), index: filepath.Join(part, "index")}
	seen, err := at.look(ctx, nil)
	if err == nil && seen.full && r.Dir == "" {
		err = fmt.Errorf(tooLargeFolder, g.most.files, g.most.bytes)
	}
	if err != nil {
		return err
	}
	modes, err := at.modes(ctx)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(note{r, seen.tree, seen.large, seen.read, modes, modes == nil})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(part, noteFile), raw, 0o600)
}

// Since implements port.Changes.
func (g *Git) Since(ctx context.Context, name string) (parley.FilesChanged, error) {
	var none parley.FilesChanged
	place := filepath.Join(g.folder, name)
	raw, err := os.ReadFile(filepath.Join(place, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	var was note
	if err == nil {
		err = json.Unmarshal(raw, &was)
	}
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	scratch, err := os.MkdirTemp(place, "now")
	if err != nil {
		return none, err
	}
	defer os.RemoveAll(scratch)
	at := scratchRepo{Git: g, repository: was.Repository, git: filepath.Join(place, "git"),
		index: filepath.Join(scratch, "index")}
	if err := copyFile(filepath.Join(place, "index"), at.index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, err
	}
	now, err := at.look(ctx, was.Large)
	if err != nil {
		return none, err
	}
	found, err := at.compare(ctx, was, now)
	if err != nil {
		return none, err
	}
	if len(found) > 0 {
		// If this fails, an undo is refused, but the report is still made.
		if err := at.save(ctx, name, was, now, found); err != nil && !errors.Is(err, context.Canceled) {
			g.log.Warn("the changes of a run will not be undone: what its files held before could not be kept", "note", name,
				"error", err)
		}
	}
	return at.report(ctx, was.Tree, now.tree, found)
}

// A change is what happened to a path.
type change struct {
	summary string
	from    string // previous path of a renamed file
	large   bool   // there is no diff
}

const (
	added     = "Added"
	untracked = "Added (untracked)"
	modified  = "Modified"
	deleted   = "Deleted"
	renamed   = "Renamed"
)

// compare returns the differences, by path.
func (d scratchRepo) compare(ctx context.Context, was note, now sight) (map[string]change, error) {
	list := []string{"diff-tree", "-r", "-z", "--name-status", "--relative"}
	out, err := d.run(ctx, nil, append(list, "-M", was.Tree, now.tree)...)
	if err != nil { // renames are found by contents, and some contents are missing
		out, err = d.run(ctx, nil, append(list, "--no-renames", was.Tree, now.tree)...)
	}
	if err != nil {
		return nil, err
	}
	found := map[string]change{}
	words := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(words); i += 2 {
		status, path := words[i], words[i+1]
		large := was.Large[path] != "" // the old tree has another version of the file, or none
		switch status[:1] {
		case "A":
			found[path] = change{summary: added}
			if large {
				found[path] = change{summary: modified, large: true}
			}
		case "D":
			found[path] = change{summary: deleted, large: large}
		case "R":
			i++
			if i+1 >= len(words) {
				return nil, fmt.Errorf("git ended in the middle of a rename")
			}
			to := words[i+1]
			found[to] = change{summary: renamed, from: path, large: large || was.Large[to] != ""}
		default:
			found[path] = change{summary: modified, large: large}
		}
	}
	for path, looks := range now.large {
		switch before, there := was.Large[path]; {
		case there && before == looks || found[path] != change{}:
		case there || !now.others[path]:
			found[path] = change{summary: modified, large: true}
		default:
			found[path] = change{summary: added, large: true}
		}
	}
	at, err := newCursor(d.files)
	if err != nil {
		return nil, err
	}
	defer at.close()
	for _, path := range slices.Sorted(maps.Keys(was.Large)) {
		info, err := at.lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found[path] = change{summary: deleted, large: true}
		case err == nil && found[path] == change{} && looksOf(info) != was.Large[path]:
			// Its content now equals that in the tree, so git sees no change.
			found[path] = change{summary: modified, large: true}
		}
	}
	return found, nil
}

const (
	tooLarge = "(too large to show)"
	cut      = "\n... (truncated)"
)

// report turns changes into the report for people.
func (d scratchRepo) report(ctx context.Context, before, after string, found map[string]change) (parley.FilesChanged,
	error) {
	var all parley.FilesChanged
	paths := slices.Sorted(maps.Keys(found))
	if len(paths) > parley.MaxFilesChanged {
		all.Truncated = len(paths) - parley.MaxFilesChanged
		paths = paths[:parley.MaxFilesChanged]
	}
	staged := d.staged(ctx, paths)
	for _, path := range paths {
		c := found[path]
		if c.summary == added && d.Dir != "" && !staged[path] {
			c.summary = untracked
		}
		diff := tooLarge
		if !c.large {
			var err error
			if diff, err = d.diff(ctx, before, after, path, c.from); err != nil {
				return all, err
			}
		}
		all.Files = append(all.Files, parley.FileChange{Path: clean(path), Summary: c.summary, Diff: diff})
	}
	return all, nil
}

// staged returns which of the paths are in the workspace's own index.
func (d scratchRepo) staged(ctx context.Context, paths []string) map[string]bool {
	has := map[string]bool{}
	if d.Dir == "" {
		return has
	}
	own := d
	own.index = filepath.Join(d.Dir, "index")
	out, _ := own.run(ctx, nil, append([]string{"ls-files", "-z", "--"}, paths...)...) // on error: none
	for _, path := range strings.Split(string(out), "\x00") {
		has[path] = true
	}
	return has
}

func (d scratchRepo) diff(ctx context.Context, before, after, path, from string) (string, error) {
	args := []string{"diff-tree", "-r", "-p", "-M", "--relative", "--no-ext-diff", "--no-textconv", "--no-color",
		"--ignore-cr-at-eol",
		"--src-prefix=a/", "--dst-prefix=b/", before, after, "--", path}
	if from != "" {
		args = append(args, from)
	}
	out, err := d.output(ctx, nil, 4*parley.MaxDiff+1, args...)
	if err != nil && !errors.Is(err, errTooMuch) {
		return "", err
	}
	text := []rune(clean(string(out)))
	if len(text) <= parley.MaxDiff && err == nil {
		return string(text), nil
	}
	return string(text[:min(len(text), parley.MaxDiff-len(cut))]) + cut, nil
}

func clean(text string) string { return parley.CleanText(strings.ToValidUTF8(text, "\uFFFD")) }
