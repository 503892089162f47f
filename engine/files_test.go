package engine

import (
	"context"
	"testing"

	"parley"
)

// shelf shows a file and says so.
type shelf struct {
	parley.Files
	shown int
}

func (s *shelf) ShowFile(context.Context, string) (string, error) {
	s.shown++
	return "text", nil
}

func (s *shelf) ShowFolder(context.Context, string) ([]parley.FileEntry, error) {
	s.shown++
	return []parley.FileEntry{{Name: "x"}}, nil
}

func (s *shelf) ShowTree(context.Context) (parley.FileTree, error) {
	s.shown++
	return parley.FileTree{Path: "."}, nil
}

// TestFilesBehindTheDoor: only permitted principals of the tenant that has the
// project are shown files of it.
func TestFilesBehindTheDoor(t *testing.T) {
	files := &shelf{}
	r := newRig(t, func(c *Config) { c.Files, c.Home = files, acme })
	for _, c := range []struct {
		tenant parley.TenantID
		roles  []string
		code   parley.Code
	}{
		{acme, []string{"org_admin"}, ""}, {acme, []string{"read_only"}, ""},
		{acme, nil, parley.CodeForbidden}, {acme, []string{"nonsense"}, parley.CodeForbidden},
		{"rival", []string{"org_admin"}, parley.CodeNotFound},
	} {
		who := parley.Principal{ID: "ann", Tenant: c.tenant, Roles: c.roles}
		before := files.shown
		_, file := r.ShowFile(t.Context(), who, "x")
		_, folder := r.ShowFolder(t.Context(), who, ".")
		_, tree := r.ShowTree(t.Context(), who)
		for _, err := range []error{file, folder, tree} {
			if (err == nil) != (c.code == "") || err != nil && parley.CodeOf(err) != c.code {
				t.Errorf("%s %v: %v", c.tenant, c.roles, err)
			}
		}
		if want := map[bool]int{true: 3}[c.code == ""]; files.shown-before != want {
			t.Errorf("%s %v: %d were shown", c.tenant, c.roles, files.shown-before)
		}
	}
}
