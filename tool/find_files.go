package tool

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"

	"parley"
	"parley/workspace"
)

//go:embed find_files.md
var findFilesDescription string

//go:embed find_files.json
var findFilesSchema string

type findFilesArguments struct {
	Pattern string `json:"pattern"`
}

var findFiles = define("find_files", findFilesDescription, findFilesSchema,
	func(args findFilesArguments) (action, error) {
		pattern, err := newGlob(args.Pattern)
		if err != nil {
			return action{}, err
		}
		return action{class: parley.Pure, look: func(ctx context.Context, v *workspace.View, out io.Writer) error {
			found := 0
			w := walk{view: v, visit: func(_ *workspace.Dir, name string, e fs.DirEntry) error {
				if !pattern.match(name) {
					return nil
				}
				if found == maxEntries {
					fmt.Fprintf(out, "[only the first %d; narrow the pattern to see others]\n", maxEntries)
					return errEnough
				}
				found++
				fmt.Fprintln(out, shown(name)+mark(e))
				return nil
			}}
			if err := w.from(ctx, "."); err != nil {
				return err
			}
			if found == 0 {
				fmt.Fprintln(out, "No file matches.")
			}
			w.note(out)
			return nil
		}}, nil
	})
