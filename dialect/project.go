package dialect

import (
	"context"
	"net/http"

	"parley"
)

// InProject is a door for a client that names a project in its address, by
// ?project= with a root or an id: what it opens is opened there. The project is zero
// if it names none, and the door is then the one that was given.
func InProject(door parley.Door, tenant parley.TenantID, r *http.Request) (parley.Door, parley.Project, error) {
	name := r.URL.Query().Get("project")
	if name == "" {
		return door, parley.Project{}, nil
	}
	project, err := door.Project(tenant, name)
	if err != nil {
		return door, project, err
	}
	return projectDoor{door, project.Root}, project, nil
}

// A projectDoor has inputs go to sessions of one project, and opens sessions there.
type projectDoor struct {
	parley.Door
	root string
}

func (d projectDoor) Submit(ctx context.Context, who parley.Principal, c parley.Command) (parley.Receipt, error) {
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
