package native

import (
	"net/http"

	"parley"
	"parley/dialect"
	"parley/port"
)

// ProjectFiles are the definitions in the files of a project.
type ProjectFiles struct {
	Agents   port.Agents                               // nil: it is unknown which agents were created by API
	Problems func(parley.TenantID) []port.AgentProblem // problems of agent files; nil: none
	Skills   port.Skills                               // nil: none
}

func (h *Handler) filesOf(r request) ProjectFiles {
	if h.Files == nil {
		return ProjectFiles{}
	}
	return h.Files(r.who.Tenant, r.project.Root)
}

func (h *Handler) listProjects(r request) (int, any, error) {
	list, err := h.Door.Projects(r.Context(), r.who)
	return http.StatusOK, list, err
}

// project returns the project that a request names in its query or its body, by root or by id. Without a name it
// returns the tenant's first, and only is zero.
func (h *Handler) project(r request) (project, only port.Project, err error) {
	name, err := dialect.ProjectIn(r.Request, r.body)
	if err != nil {
		return project, only, err
	}
	if project, err = h.Door.Project(r.who.Tenant, name); err != nil {
		return port.Project{Root: name}, only, err
	}
	if name != "" {
		only = project
	}
	return project, only, nil
}
