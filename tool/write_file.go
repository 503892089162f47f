package tool

import (
	"context"
	_ "embed"
	"fmt"
	"io"

	"parley"
	"parley/workspace"
)

//go:embed write_file.md
var writeFileDescription string

//go:embed write_file.json
var writeFileSchema string

type writeFileArguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

const maxWritten = 1 << 20 // in bytes

var writeFile = define("write_file", writeFileDescription, writeFileSchema,
	func(args writeFileArguments) (action, error) {
		name, err := workspace.CleanFile(args.Path)
		switch {
		case err != nil:
			return action{}, err
		case len(args.Content) > maxWritten:
			return action{}, fmt.Errorf("content: expected at most %d bytes", maxWritten)
		}
		return action{
			class: parley.Effectful,
			edits: true,
			path:  name,
			show: fmt.Sprintf("Write %d bytes to %q, replacing it if it exists:\n\n%s", len(args.Content), name,
				args.Content),
			perform: func(ctx context.Context, e *workspace.Edit, out io.Writer) error {
				if err := write(ctx, e, name, args.Content); err != nil {
					return err
				}
				fmt.Fprintf(out, "Wrote %d bytes to %s.", len(args.Content), shown(name))
				return nil
			},
		}, nil
	})

// write sets the content of a file. A reader sees either the old content or all
// of the new one, even after a crash.
func write(ctx context.Context, e *workspace.Edit, name, content string) error {
	was, err := e.Look(name)
	if err != nil {
		return err
	}
	e.Write(name, content, was, 0)
	return e.Commit(ctx)
}
