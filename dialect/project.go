package dialect

import (
	"cmp"
	"context"
	"net/http"

	"parley"
	"parley/port"
)

// InProject is a door for a client that names a project in its address, by
// ?project= with a root or an id: what it opens is opened there. The project is zero
// if it names none, and the door is then the one that was given.
func InProject(door port.Door, tenant parley.TenantID, r *http.Request) (port.Door, port.Project, error) {
	return inProject(door, tenant, ProjectName(r))
}

// InProjectOf is the same for a request with a body, which may name the project, too.
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

// ProjectName is what an address says of a project; empty: nothing. project_root is
// the event bus's name for it, which people use elsewhere, too.
func ProjectName(r *http.Request) string {
	q := r.URL.Query()
	return cmp.Or(q.Get("project"), q.Get("project_root"))
}

// ProjectIn is what an address or a body says of a project.
func ProjectIn(r *http.Request, body Object) (name string, err error) {
	name = ProjectName(r)
	for _, key := range []string{"project", "project_root"} {
		if !body.Has(key) {
			continue
		}
		other, err := body.String(key)
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

// A projectDoor has inputs go to sessions of one project, and opens sessions there.
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
