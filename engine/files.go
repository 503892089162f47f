package engine

import (
	"context"

	"parley"
	"parley/port"
)

// ShowFile implements port.Door.
func (e *Engine) ShowFile(ctx context.Context, who port.Principal, project, path string) (string, error) {
	text, err := show(ctx, e, who, project, func(f port.Files) (string, error) { return f.ShowFile(ctx, path) })
	if e.FileRead != nil {
		if recordErr := e.FileRead(ctx, who, path, err != nil); recordErr != nil {
			return "", recordErr // a file is not shown unless that is recorded
		}
	}
	return text, err
}

// ShowFolder implements port.Door.
func (e *Engine) ShowFolder(ctx context.Context, who port.Principal, project, path string) ([]port.FileEntry,
	error) {
	return show(ctx, e, who, project,
		func(f port.Files) ([]port.FileEntry, error) { return f.ShowFolder(ctx, path) })
}

// ShowTree implements port.Door.
func (e *Engine) ShowTree(ctx context.Context, who port.Principal, project string) (port.FileTree, error) {
	return show(ctx, e, who, project, func(f port.Files) (port.FileTree, error) { return f.ShowTree(ctx) })
}

// show serves every request of a person for files of a project. Permission and
// tenant are checked here.
func show[T any](ctx context.Context, e *Engine, who port.Principal, project string,
	look func(port.Files) (T, error)) (shown T, err error) {
	whole := port.Resource{Kind: port.WholeTenant, Tenant: who.Tenant}
	if err = e.permit(ctx, who, "", parley.ActRead, whole); err != nil {
		return shown, err
	}
	p, ok := e.projects.find(who.Tenant, project)
	switch {
	case !ok:
		return shown, e.projects.unknown(who.Tenant, project)
	case p.Files == nil:
		return shown, parley.Errorf(parley.CodeNotFound, "There is no project.")
	}
	return look(p.Files)
}
