package changes

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/workspace"
)

// A repository is the one that contains the workspace. If there is none, Dir
// and Common are empty, and it stands for the workspace alone.
type repository struct {
	Top    string // root of its working tree
	Prefix string // of the workspace in it; empty, or ends with a slash
	Dir    string // folder of its index
	Common string // folder of its objects
	Format string // hash of its object names
}

// find looks for a repository. It only asks git for paths. That runs no
// program, whatever the repository is configured to run.
func (g *Git) find(ctx context.Context) (repository, error) {
	out, err := g.call(ctx, nil, maxPath, g.environment(), "-c", "safe.directory=*", "rev-parse",
		"--path-format=absolute",
		"--show-toplevel", "--git-dir", "--git-common-dir", "--show-object-format", "--show-prefix")
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		return repository{Top: g.files.Root(), Format: "sha1"}, nil
	}
	lines := strings.Split(string(out), "\n")
	if err != nil || len(lines) != 6 || slices.Contains(lines[:4], "") { // refuse names with newlines
		return repository{}, cmp.Or(err, errors.New("git gave no usable path of the repository"))
	}
	return repository{Top: lines[0], Dir: lines[1], Common: lines[2], Format: lines[3], Prefix: lines[4]}, nil
}

const maxPath = 64 << 10

// prepare makes a scratch repository in the folder part. It has everything of r
// except uncommitted files. Of the configuration it has only the manners.
func (r repository) prepare(ctx context.Context, g *Git, part string) error {
	own := filepath.Join(part, "git")
	version := "0\n"
	if r.Format != "sha1" {
		version = "1\n[extensions]\n\tobjectformat = " + r.Format + "\n"
	}
	manners, borrowed := "", ""
	if r.Dir != "" {
		manners, borrowed = r.manners(ctx, g), filepath.Join(r.Common, "objects")+"\n"
	}
	config := "[core]\n" + manners + "\tbare = false\n\trepositoryformatversion = " + version
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config,
		"objects/info/alternates": borrowed, "refs/heads/.keep": "", "info/exclude": ""} {
		path := filepath.Join(own, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if r.Dir == "" {
		return nil
	}
	copies := map[string]string{
		filepath.Join(r.Dir, "index"):              filepath.Join(part, "index"),
		filepath.Join(r.Common, "info", "exclude"): filepath.Join(own, "info", "exclude"),
		// Attributes affect how contents are written. They run nothing, as the configuration names no program.
		filepath.Join(r.Common, "info", "attributes"): filepath.Join(own, "info", "attributes"),
	}
	shared, _ := filepath.Glob(filepath.Join(r.Dir, "sharedindex.*")) // of a split index
	for _, path := range shared {
		copies[path] = filepath.Join(own, filepath.Base(path))
	}
	for from, to := range copies {
		if err := copyFile(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// manners returns the lines of the workspace's configuration that control how
// files become contents. None of them runs a program.
func (r repository) manners(ctx context.Context, g *Git) string {
	out, err := g.call(ctx, nil, maxPath, g.environment(), "config", "--file", filepath.Join(r.Common, "config"),
		"--no-includes",
		"--get-regexp", `^core\.(autocrlf|eol|filemode|ignorecase|precomposeunicode|symlinks)$`)
	if err != nil {
		return ""
	}
	lines := ""
	for _, line := range strings.Split(string(out), "\n") {
		if key, value, ok := strings.Cut(strings.TrimPrefix(line, "core."), " "); ok && word.MatchString(value) {
			lines += fmt.Sprintf("\t%s = %s\n", key, value)
		}
	}
	return lines
}

var word = regexp.MustCompile(`^[a-zA-Z]+$`)

// copyFile keeps the modification time of the file. git uses that of its index
// to tell which files it must not trust to be unchanged.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", from)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// A scratchRepo is a scratch repository and an index to work with.
type scratchRepo struct {
	*Git
	repository
	git   string
	index string
}

// A sight is the current state of the files.
type sight struct {
	tree   string
	large  map[string]string // by path: the result of looksOf
	others map[string]bool   // paths not in the index
	read   []string          // paths whose contents were read
	full   bool              // there were more files, or bytes, than the limits
}

// look updates the index from the files. It does not read large files that
// still look as in known.
func (d scratchRepo) look(ctx context.Context, known map[string]string) (sight, error) {
	s := sight{large: map[string]string{}, others: map[string]bool{}}
	dirty, err := d.list(ctx, "--modified", "--deleted")
	if err != nil {
		return s, err
	}
	others, err := d.list(ctx, "--others", "--exclude-standard")
	if err != nil {
		return s, err
	}
	for _, path := range others {
		s.others[path] = true
	}
	at, err := newCursor(d.files)
	if err != nil {
		return s, err
	}
	defer at.close()
	var gone, here, modules bytes.Buffer
	files, total := 0, 0
	for _, path := range append(dirty, others...) {
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		if strings.HasSuffix(path, "/") || d.files.Check(path, workspace.PersonReads) != nil {
			continue // a nested repository, or hidden from people
		}
		info, err := at.lstat(path)
		switch {
		case err != nil:
			fmt.Fprintf(&gone, "0 %s\t%s%s\x00", strings.Repeat("0", d.hash()().Size()*2), d.Prefix, path)
			continue
		case info.IsDir():
			fmt.Fprintf(&modules, "%s\x00", path)
			continue
		}
		looks := looksOf(info)
		if known[path] == looks || info.Size() > maxFile {
			s.large[path] = looks
			continue
		}
		if files >= d.most.files || total+int(info.Size()) > d.most.bytes {
			s.large[path], s.full = looks, true
			continue
		}
		mode, content, err := at.read(path, info)
		if err != nil {
			s.large[path] = looks
			continue
		}
		files, total = files+1, total+len(content)
		id, err := d.keep(content)
		if err != nil {
			return s, err
		}
		s.read = append(s.read, path)
		fmt.Fprintf(&here, "%s %s\t%s%s\x00", mode, id, d.Prefix, path)
	}
	if gone.Len()+here.Len() > 0 { // removals first: a file may have become a folder
		if _, err := d.run(ctx, io.MultiReader(&gone, &here), "update-index", "-z", "--index-info"); err != nil {
			return s, err
		}
	}
	if modules.Len() > 0 {
		// A nested repository without a commit adds nothing. If one is replaced
		// by a file in the meantime, git must not store the content, which was
		// not judged.
		_, _ = d.run(ctx, &modules, "update-index", "-z", "--info-only", "--stdin")
	}
	out, err := d.run(ctx, nil, "write-tree", "--missing-ok")
	s.tree = strings.TrimSpace(string(out))
	return s, err
}

// looksOf describes a file by its metadata: mode, size and time.
func looksOf(info fs.FileInfo) string {
	return fmt.Sprintf("%s %d %s", info.Mode(), info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
}

// modes returns the permissions of the files in the index that are neither 0644 nor 0755; nil: there are too many
// files.
func (d scratchRepo) modes(ctx context.Context) (map[string]fs.FileMode, error) {
	names, err := d.list(ctx, "--cached")
	if err != nil || len(names) > d.most.modes {
		return nil, err
	}
	at, err := newCursor(d.files)
	if err != nil {
		return nil, err
	}
	defer at.close()
	modes := map[string]fs.FileMode{}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		info, err := at.lstat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if perm := info.Mode().Perm(); perm != 0o644 && perm != 0o755 {
			modes[name] = perm
		}
	}
	return modes, nil
}

// list lists files of the workspace, each once.
func (d scratchRepo) list(ctx context.Context, which ...string) ([]string, error) {
	out, err := d.run(ctx, nil, append([]string{"ls-files", "-z"}, which...)...)
	paths := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	slices.Sort(paths)
	return slices.Compact(paths), err
}

// A cursor reads files of the workspace that people may see, one folder after
// another. It follows no link.
type cursor struct {
	view *workspace.View
	dir  *workspace.Dir // folder of the last path; nil: none
}

func newCursor(files *workspace.Workspace) (*cursor, error) {
	view, err := files.For(workspace.PersonReads)
	return &cursor{view: view}, err
}

func (c *cursor) close() {
	if c.dir != nil {
		c.dir.Close()
	}
	c.view.Close()
}

// in returns the folder of a path. It opens it unless it is that of the last path.
func (c *cursor) in(name string) (*workspace.Dir, error) {
	folder := path.Dir(name)
	if c.dir != nil && c.dir.Name() == folder {
		return c.dir, nil
	}
	dir, err := c.view.RealDir(folder)
	if err != nil {
		return nil, err
	}
	if c.dir != nil {
		c.dir.Close()
	}
	c.dir = dir
	return dir, nil
}

func (c *cursor) lstat(name string) (fs.FileInfo, error) {
	dir, err := c.in(name)
	if err != nil {
		return nil, err
	}
	return dir.Lstat(path.Base(name))
}

// read reads a file described by info. It does not block on other kinds of files.
func (c *cursor) read(name string, info fs.FileInfo) (mode string, content []byte, err error) {
	dir, err := c.in(name)
	if err != nil {
		return "", nil, err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		to, err := dir.Readlink(path.Base(name))
		return "120000", []byte(to), err
	}
	f, now, err := dir.Open(path.Base(name))
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if !os.SameFile(info, now) {
		return "", nil, errors.New("it was replaced")
	}
	content, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = errors.New("it grows")
	}
	mode = "100644"
	if info.Mode()&0o100 != 0 {
		mode = "100755"
	}
	return mode, content, err
}

func (r repository) hash() func() hash.Hash {
	if r.Format == "sha256" {
		return sha256.New
	}
	return sha1.New
}

// keep stores a content as a git object and returns its name. Filters of the
// repository are not applied.
func (d scratchRepo) keep(content []byte) (string, error) {
	h := d.hash()()
	head := fmt.Appendf(nil, "blob %d\x00", len(content))
	h.Write(head)
	h.Write(content)
	id := hex.EncodeToString(h.Sum(nil))
	path := filepath.Join(d.git, "objects", id[:2], id[2:])
	if _, err := os.Lstat(path); err == nil {
		return id, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	var packed bytes.Buffer
	z, _ := zlib.NewWriterLevel(&packed, zlib.BestSpeed) // a valid level gives no error
	z.Write(head)
	z.Write(content)
	z.Close() // writing to memory does not fail
	return id, os.WriteFile(path, packed.Bytes(), 0o600)
}

// run runs git in the scratch repository.
func (d scratchRepo) run(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	return d.output(ctx, in, maxListing, args...)
}

func (d scratchRepo) output(ctx context.Context, in io.Reader, most int, args ...string) ([]byte, error) {
	env := append(d.environment(), "GIT_DIR="+d.git, "GIT_WORK_TREE="+d.Top, "GIT_INDEX_FILE="+d.index)
	return d.call(ctx, in, most, env, args...)
}

// environment returns the environment of git. It contains no variables of the
// server except PATH and HOME. It excludes all configuration except that of the
// repository, and takes paths literally.
func (g *Git) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_LITERAL_PATHSPECS=1"}
}

var errTooMuch = errors.New("git says more than is wanted")

func (g *Git) call(ctx context.Context, in io.Reader, most int, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, g.program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = g.files.Root(), env, in, time.Second
	out, complaint := limited{most: most}, limited{most: 1 << 20}
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.full:
		return out.text, errTooMuch
	case err != nil:
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(complaint.text)))
	}
	return out.text, nil
}

// limited accepts up to most bytes and refuses more.
type limited struct {
	text []byte
	most int
	full bool
}

func (l *limited) Write(p []byte) (int, error) {
	room := l.most - len(l.text)
	if l.full = l.full || len(p) > room; l.full {
		l.text = append(l.text, p[:min(room, len(p))]...)
		return 0, errTooMuch
	}
	l.text = append(l.text, p...)
	return len(p), nil
}
