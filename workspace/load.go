package workspace

import (
	"errors"
	"fmt"
	"path/filepath"

	"parley"
)

// ErrLink is in the chain of errors about links that are not followed.
var ErrLink = errors.New("links are not followed")

// Load opens a folder with skills or agents, inside the workspace or outside.
// The path to it may lead through links outside the workspace. Inside, no link
// is followed: an agent could have made it. In a folder outside, links that stay
// in that folder are followed, because some systems deliver files in this way.
func (w *Workspace) Load(folder string) (*Dir, error) {
	name, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	place, link, err := w.resolve(name)
	if err != nil {
		return nil, err
	}
	if link != "" {
		relative, _ := inside(w.root, link)
		return nil, linked(relative)
	}
	relative, ok := inside(w.root, place)
	if !ok {
		w, relative = &Workspace{root: place}, "."
	}
	v, err := w.For(ServerLoads)
	if err != nil {
		return nil, err
	}
	v.inner = !ok
	dir, err := v.Dir(relative)
	if err != nil {
		v.Close()
		return nil, err
	}
	dir.owns = true
	return dir, nil
}

// linked returns the error for a link where links are not followed.
func linked(name string) error {
	return &parley.Error{Code: parley.CodeInvalid, Err: ErrLink, Message: fmt.Sprintf("%q is a symbolic link, "+
		"and links in the workspace are not followed here; put the file or folder itself there.", name)}
}
