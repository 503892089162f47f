package engine

import (
	"context"

	"parley"
)

// ShowFile is behind every dialect. See parley.Door.
func (e *Engine) ShowFile(ctx context.Context, who parley.Principal, path string) (string, error) {
	return show(ctx, e, who, path, func(f parley.Files) (string, error) { return f.ShowFile(ctx, path) })
}

// ShowFolder is behind every dialect. See parley.Door.
func (e *Engine) ShowFolder(ctx context.Context, who parley.Principal, path string) ([]parley.FileEntry, error) {
	return show(ctx, e, who, path, func(f parley.Files) ([]parley.FileEntry, error) { return f.ShowFolder(ctx, path) })
}

// ShowTree is behind every dialect. See parley.Door.
func (e *Engine) ShowTree(ctx context.Context, who parley.Principal) (parley.FileTree, error) {
	return show(ctx, e, who, ".", func(f parley.Files) (parley.FileTree, error) { return f.ShowTree(ctx) })
}

// show serves every request of a person for files of the project. Permission and
// tenant are checked here, and here a record of the request belongs: who, which
// path, and whether err refused it.
func show[T any](ctx context.Context, e *Engine, who parley.Principal, path string,
	look func(parley.Files) (T, error)) (shown T, err error) {
	whole := parley.Resource{Kind: parley.WholeTenant, Tenant: who.Tenant}
	if err = e.permit(ctx, who, "", parley.ActRead, whole); err != nil {
		return shown, err
	}
	if e.Files == nil || e.Home != "" && e.Home != who.Tenant {
		return shown, parley.Errorf(parley.CodeNotFound, "There is no project.")
	}
	return look(e.Files)
}
