package engine

import (
	"context"

	"parley"
)

// ShowFile is behind every dialect. See parley.Door.
func (e *Engine) ShowFile(ctx context.Context, who parley.Principal, path string) (string, error) {
	text, err := show(ctx, e, who, func(f parley.Files) (string, error) { return f.ShowFile(ctx, path) })
	if e.FileRead != nil {
		if recordErr := e.FileRead(ctx, who, path, err != nil); recordErr != nil {
			return "", recordErr // what is not on record is not shown
		}
	}
	return text, err
}

// ShowFolder is behind every dialect. See parley.Door.
func (e *Engine) ShowFolder(ctx context.Context, who parley.Principal, path string) ([]parley.FileEntry, error) {
	return show(ctx, e, who, func(f parley.Files) ([]parley.FileEntry, error) { return f.ShowFolder(ctx, path) })
}

// ShowTree is behind every dialect. See parley.Door.
func (e *Engine) ShowTree(ctx context.Context, who parley.Principal) (parley.FileTree, error) {
	return show(ctx, e, who, func(f parley.Files) (parley.FileTree, error) { return f.ShowTree(ctx) })
}

// show serves every request of a person for files of the project. Permission and
// tenant are checked here.
func show[T any](ctx context.Context, e *Engine, who parley.Principal, look func(parley.Files) (T, error)) (shown T,
	err error) {
	whole := parley.Resource{Kind: parley.WholeTenant, Tenant: who.Tenant}
	if err = e.permit(ctx, who, "", parley.ActRead, whole); err != nil {
		return shown, err
	}
	if e.Files == nil || !e.isHome(who.Tenant) {
		return shown, parley.Errorf(parley.CodeNotFound, "There is no project.")
	}
	return look(e.Files)
}
