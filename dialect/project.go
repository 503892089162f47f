package dialect

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"

	"parley"
	"parley/port"
)

// InProject returns a door for a client that names a project in its address, as ?project= with a root or an id.
// Sessions that the client opens through it are opened in that project. If the address names none, the project is zero
// and the door is the given one.
func InProject(door port.Door, tenant parley.TenantID, r *http.Request) (port.Door, port.Project, error) {
	return inProject(door, tenant, ProjectName(r))
}

// InProjectOf is InProject for a request whose body may also name the project.
func InProjectOf(door port.Door, tenant parley.TenantID, r *http.Request, body Object) (port.Door, port.Project,
	error) {
	name, err := ProjectIn(r, body)
	if err != nil {
		return door, port.Project{}, err
	}
	return inProject(door, tenant, name)
}

func inProject(door port.Door, tenant parley.TenantID, name string) (port.Door, port.Project, error) {
	if name == "" {
		return door, port.Project{}, nil
	}
	project, err := door.Project(tenant, name)
	if err != nil {
		return door, project, err
	}
	return projectDoor{door, project.Root}, project, nil
}

// ProjectName returns the project that an address names, or "". The parameter project_root is the event bus's name for
// it; other routes accept it, too.
func ProjectName(r *http.Request) string {
	q := r.URL.Query()
	return cleanProject(cmp.Or(q.Get("project"), q.Get("project_root")))
}

// cleanProject returns a name without a slash at its end, which a root may have.
func cleanProject(name string) string {
	if name == "" {
		return ""
	}
	return filepath.Clean(name)
}

// ProjectIn returns the project that an address or a body names.
func ProjectIn(r *http.Request, body Object) (name string, err error) {
	name = ProjectName(r)
	for _, key := range []string{"project", "project_root"} {
		if !body.Has(key) {
			continue
		}
		other, err := body.String(key)
		other = cleanProject(other)
		switch {
		case err != nil:
			return "", Invalid("%s", err)
		case name != "" && other != "" && other != name:
			return "", Invalid("%s: the request names two projects, %q and %q", key, name, other)
		}
		name = cmp.Or(name, other)
	}
	return name, nil
}

// projectDoor opens sessions in one project, and sends inputs to sessions of that project.
type projectDoor struct {
	port.Door
	root string
}

func (d projectDoor) Submit(ctx context.Context, who port.Principal, c parley.Command) (port.Receipt, error) {
	switch do := c.Do.(type) {
	case parley.OpenSession:
		do.Project = d.root
		c.Do = do
	case parley.SubmitInput:
		do.Project = d.root
		c.Do = do
	}
	return d.Door.Submit(ctx, who, c)
}
