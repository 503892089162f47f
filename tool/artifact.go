package tool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/workspace"
)

// Artifacts are the complete outputs of calls whose output was too long for the
// result. They are files in the server's data folder, in one folder per tenant.
// An agent that knows the name of an artifact, which cannot be guessed, may
// read it with read_file.
const (
	artifactScheme = "artifact://"
	maxArtifacts   = 256 // files of a tenant; the oldest are deleted first
)

// artifactName matches names of artifacts. A name begins with the source of the artifact, unless that is the workspace.
// So if any session reads it, the source is still known.
var artifactName = regexp.MustCompile(`^(?:(network|mcp\.[a-z0-9-]+)\.)?[A-Z2-7]{26}\.txt$`)

// artifactSource returns the source of an artifact with a valid name.
func artifactSource(name string) parley.Source {
	if of := artifactName.FindStringSubmatch(name)[1]; of != "" {
		return parley.Source(strings.Replace(of, ".", ":", 1))
	}
	return parley.SourceWorkspace
}

// spool returns the spool for a long output from a source; nil if outputs are not kept.
func (b *Box) spool(source parley.Source) *spool {
	if b.artifacts == "" {
		return nil
	}
	s := &spool{folder: filepath.Join(b.artifacts, string(b.tenant))}
	if source != parley.SourceWorkspace {
		s.prefix = strings.ReplaceAll(string(source), ":", ".") + "."
	}
	return s
}

// lookAtArtifact reads an artifact of the tenant. Artifacts from a time without
// MCP servers are not in a tenant's folder.
func (b *Box) lookAtArtifact(ctx context.Context, a action, out io.Writer) error {
	missing := parley.Errorf(parley.CodeNotFound, "There is no such artifact.")
	if b.artifacts == "" {
		return missing
	}
	var err error = missing
	for _, folder := range []string{filepath.Join(b.artifacts, string(b.tenant)), b.artifacts} {
		files, openErr := workspace.Open(folder, workspace.Rules{})
		if openErr != nil {
			continue
		}
		if err = lookIn(ctx, files, a, out); parley.CodeOf(err) != parley.CodeNotFound || err == nil {
			break
		}
	}
	return err
}

// A spool writes an output to a file once it is too long for a result. If the
// disk fails, the artifact is lost, but not the result.
type spool struct {
	folder string
	prefix string // of the file's name
	early  []byte
	file   *os.File
	failed bool
}

func (s *spool) add(text string) {
	if s == nil || s.failed {
		return
	}
	if s.file == nil && len(s.early)+len(text) <= outputLimit {
		s.early = append(s.early, text...)
		return
	}
	var err error
	if s.file == nil {
		if err = os.MkdirAll(s.folder, 0o700); err == nil {
			name := filepath.Join(s.folder, s.prefix+rand.Text()+".txt")
			s.file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
		text = string(s.early) + text
		s.early = nil
	}
	if err == nil {
		_, err = s.file.WriteString(text)
	}
	s.failed = err != nil
}

// close returns the name of the artifact, if there is one.
func (s *spool) close() string {
	if s == nil || s.file == nil {
		return ""
	}
	name := filepath.Base(s.file.Name())
	if s.file.Close() != nil || s.failed {
		os.Remove(s.file.Name())
		return ""
	}
	makeRoom(s.folder)
	return artifactScheme + name
}

// discard deletes the artifact, if there is one.
func (s *spool) discard() {
	if s == nil || s.file == nil {
		return
	}
	s.file.Close()
	os.Remove(s.file.Name())
}

func makeRoom(folder string) {
	entries, _ := os.ReadDir(folder)
	var kept []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && artifactName.MatchString(e.Name()) {
			kept = append(kept, info)
		}
	}
	if len(kept) <= maxArtifacts {
		return
	}
	slices.SortFunc(kept, func(a, b os.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, info := range kept[:len(kept)-maxArtifacts] {
		os.Remove(filepath.Join(folder, info.Name()))
	}
}

// RemoveArtifacts deletes artifacts of a tenant by their names, and returns how many it deleted.
func RemoveArtifacts(folder string, tenant parley.TenantID, names map[string]bool) (removed int, err error) {
	for name := range names {
		if !artifactName.MatchString(name) {
			continue
		}
		for _, dir := range []string{filepath.Join(folder, string(tenant)), folder} {
			switch gone := os.Remove(filepath.Join(dir, name)); {
			case gone == nil:
				removed++
			case !errors.Is(gone, fs.ErrNotExist):
				err = errors.Join(err, gone)
			}
		}
	}
	return removed, err
}

// RemoveOldArtifacts deletes artifacts of a tenant that were written before a time, except the names in keep. It
// returns how many. If dry is true, it only counts them.
func RemoveOldArtifacts(folder string, tenant parley.TenantID, before time.Time, keep map[string]bool, dry bool) (
	removed int, err error) {
	dir := filepath.Join(folder, string(tenant))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, e := range entries {
		info, gone := e.Info()
		if gone != nil || !artifactName.MatchString(e.Name()) || keep[e.Name()] || !info.ModTime().Before(before) {
			continue
		}
		if !dry {
			gone = os.Remove(filepath.Join(dir, e.Name()))
		}
		switch {
		case gone == nil:
			removed++
		case !errors.Is(gone, fs.ErrNotExist):
			err = errors.Join(err, gone)
		}
	}
	return removed, err
}
