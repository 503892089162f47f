package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/port"
)

// shelf shows a file and counts its calls.
type shelf struct {
	port.Files
	shown int
}

func (s *shelf) ShowFile(context.Context, string) (string, error) {
	s.shown++
	return "text", nil
}

func (s *shelf) ShowFolder(context.Context, string) ([]port.FileEntry, error) {
	s.shown++
	return []port.FileEntry{{Name: "x"}}, nil
}

func (s *shelf) ShowTree(context.Context) (port.FileTree, error) {
	s.shown++
	return port.FileTree{Path: "."}, nil
}

// TestFilesBehindTheDoor checks that only permitted principals of a project's
// tenant are shown the project's files.
func TestFilesBehindTheDoor(t *testing.T) {
	files := &shelf{}
	r := newRig(t, func(c *Config) { c.Files, c.Home = files, acme })
	for _, c := range []struct {
		tenant parley.TenantID
		roles  []parley.UserRole
		code   parley.Code
	}{
		{acme, []parley.UserRole{"org_admin"}, ""}, {acme, []parley.UserRole{"read_only"}, ""},
		{acme, nil, parley.CodeForbidden}, {acme, []parley.UserRole{"nonsense"}, parley.CodeForbidden},
		{"rival", []parley.UserRole{"org_admin"}, parley.CodeNotFound},
	} {
		who := port.Principal{ID: "ann", Tenant: c.tenant, Roles: c.roles}
		before := files.shown
		_, file := r.ShowFile(t.Context(), who, "", "x")
		_, folder := r.ShowFolder(t.Context(), who, "", ".")
		_, tree := r.ShowTree(t.Context(), who, "")
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

// TestFilesOnRecord checks that a file is shown only if the read was recorded.
func TestFilesOnRecord(t *testing.T) {
	var record []string
	var broken error
	r := newRig(t, func(c *Config) {
		c.Files, c.Home = &shelf{}, acme
		c.FileRead = func(_ context.Context, who port.Principal, path string, refused bool) error {
			record = append(record, fmt.Sprint(who.ID, " ", path, " ", refused))
			return broken
		}
	})
	ann := port.Principal{ID: "ann", Tenant: acme, Roles: []parley.UserRole{"org_admin"}}
	stranger := port.Principal{ID: "eve", Tenant: "rival", Roles: []parley.UserRole{"org_admin"}}
	if _, err := r.ShowFile(t.Context(), ann, "", "x"); err != nil {
		t.Error(err)
	}
	if _, err := r.ShowFile(t.Context(), stranger, "", "y"); err == nil {
		t.Error("a stranger is shown a file")
	}
	if want := []string{"ann x false", "eve y true"}; !slices.Equal(record, want) {
		t.Errorf("%q, want %q", record, want)
	}
	broken = errors.New("the disk is full")
	if text, err := r.ShowFile(t.Context(), ann, "", "x"); !errors.Is(err, broken) || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}
