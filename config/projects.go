package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"parley"
)

// A Project is a folder that agents of a tenant work in.
type Project struct {
	Root   string          // absolute
	Name   string          // shown to people
	Tenant parley.TenantID // owner of the project
	Agents string          // folder with one file per agent; it need not exist
	Given  string          // the setting as it was written, for messages
}

// SkillFolders returns the folders with skills of the project. If two skills
// have the same name, the first one counts.
func (p Project) SkillFolders(more string) []string {
	dirs := []string{filepath.Join(p.Root, "skills"), filepath.Join(p.Root, ".parley", "skills")}
	if more != "" {
		dirs = append(dirs, more)
	}
	return dirs
}

// fileProjects are the projects in the file of --config.
type fileProjects []Project

// settleProjects lists the projects: the workspace first, then those of --project
// or, without any, those in the file.
func (s *Settings) settleProjects(file fileProjects) error {
	first := Project{Root: s.Workspace, Given: "--workspace " + s.Workspace}
	if len(s.Project) > 0 {
		file = nil
	}
	for _, root := range s.Project {
		if root != "" { // the variable may contain empty parts
			file = append(file, Project{Root: kong.ExpandPath(root), Given: "--project " + root})
		}
	}
	s.Projects = append([]Project{first}, file...)
	for i := range s.Projects {
		p := &s.Projects[i]
		root, err := filepath.Abs(p.Root)
		if err != nil {
			return err
		}
		p.Root, p.Agents = root, filepath.Join(root, "agents")
		if p.Name == "" {
			p.Name = filepath.Base(root)
		}
		if p.Tenant == "" {
			p.Tenant = s.DefaultTenant
		}
	}
	if s.Agents != "" {
		s.Projects[0].Agents = s.Agents
	}
	return nil
}

// validateProjects rejects folders that cannot be read, and projects that overlap:
// a file must belong to one project only.
func (s *Settings) validateProjects() error {
	var errs []error
	for i, p := range s.Projects {
		if i > 0 {
			entries, err := os.Open(p.Root)
			if err == nil {
				_, err = entries.ReadDir(-1)
				entries.Close()
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s cannot be used: %w; name a folder that can be read", p.Given, err))
				continue
			}
		}
		for _, other := range s.Projects[:i] {
			switch a, b := leadsTo(other.Root), leadsTo(p.Root); {
			case a == b:
				errs = append(errs, fmt.Errorf("%s and %s are the same folder; name it once", other.Given, p.Given))
			case holds(a, b), holds(b, a):
				errs = append(errs, fmt.Errorf("%s and %s overlap; a file may be in one project only, so name folders "+
					"of which neither is in the other", other.Given, p.Given))
			}
		}
		if !p.Tenant.Valid() {
			errs = append(errs, fmt.Errorf("%s: %s is no tenant id; use up to 63 of a-z, 0-9 and -, not beginning "+
				"with -", p.Given, p.Tenant))
		}
	}
	return errors.Join(errs...)
}

// readProjects reads the key projects of a file: a list of folders, or of mappings
// with root, name and tenant.
func readProjects(doc document) (fileProjects, error) {
	mapping, ok := doc.body.(ast.MapNode)
	if !ok {
		return nil, nil
	}
	var list fileProjects
	for it := mapping.MapRange(); it.Next(); {
		if it.Key().GetToken().Value != "projects" {
			continue
		}
		line := it.Key().GetToken().Position.Line
		nodes, ok := it.Value().(*ast.SequenceNode)
		if !ok {
			return nil, at(doc.path, line, "projects is a list of folders, or of root, name and tenant")
		}
		for _, node := range nodes.Values {
			line := node.GetToken().Position.Line
			var p struct {
				Root   string `yaml:"root"`
				Name   string `yaml:"name"`
				Tenant string `yaml:"tenant"`
			}
			var err error
			if node.Type() == ast.StringType {
				err = yaml.NodeToValue(node, &p.Root)
			} else {
				err = yaml.NodeToValue(node, &p, yaml.Strict())
			}
			switch {
			case err != nil:
				return nil, doc.explain(err)
			case strings.TrimSpace(p.Root) == "":
				return nil, at(doc.path, line, "a project needs a root, the path of its folder")
			}
			list = append(list, Project{Root: kong.ExpandPath(p.Root), Name: p.Name, Tenant: parley.TenantID(p.Tenant),
				Given: fmt.Sprintf("the project %s (%s:%d)", p.Root, doc.path, line)})
		}
	}
	return list, nil
}
