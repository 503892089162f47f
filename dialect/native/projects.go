package native

import (
	"net/http"

	"parley"
	"parley/dialect"
	"parley/port"
)

// ProjectFiles is what the files of a project define.
type ProjectFiles struct {
	Agents   port.Agents                               // nil: it is not known which agents were made
	Problems func(parley.TenantID) []port.AgentProblem // of files of agents; nil: there are none
	Skills   port.Skills                               // nil: there are none
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

// project is the one that a request names, in its address or its body, by root or
// by id. Without a name it is the tenant's first, and only is zero.
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
