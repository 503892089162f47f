package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"parley"
	"parley/tool/patch"
	"parley/workspace"
)

//go:embed apply_patch.md
var applyPatchDescription string

//go:embed apply_patch.json
var applyPatchSchema string

type applyPatchArguments struct {
	Patch string `json:"patch"`
}

const maxSections = 1000 // of a patch

var applyPatch = define("apply_patch", applyPatchDescription, applyPatchSchema,
	func(args applyPatchArguments) (action, error) {
		if len(args.Patch) > maxWritten {
			return action{}, fmt.Errorf("patch: expected at most %d bytes", maxWritten)
		}
		p, err := patch.Parse(args.Patch)
		if err != nil {
			return action{}, err
		}
		if len(p) > maxSections {
			return action{}, fmt.Errorf("patch: expected at most %d sections", maxSections)
		}
		for i := range p {
			for _, name := range []*string{&p[i].Path, &p[i].To} {
				if *name == "" {
					continue
				}
				if *name, err = workspace.CleanFile(*name); err != nil {
					return action{}, fmt.Errorf("%w (line %d of the patch)", err, p[i].Line)
				}
			}
		}
		return action{
			class: parley.Effectful,
			edits: true,
			paths: p.Paths(),
			show:  args.Patch,
			perform: func(ctx context.Context, e *workspace.Edit, out io.Writer) error {
				var done []string
				for _, s := range p {
					if err := ctx.Err(); err != nil {
						return err
					}
					lines, err := section(e, s)
					if err != nil {
						return err
					}
					done = append(done, lines...)
				}
				if err := e.Commit(ctx); err != nil {
					return err
				}
				fmt.Fprintln(out, "Done!")
				for _, line := range done {
					fmt.Fprintln(out, line)
				}
				return nil
			},
		}, nil
	})

// section registers the changes of a section, and returns a result line for
// every file. The paths of the section are clean.
func section(e *workspace.Edit, s patch.Section) (done []string, err error) {
	name, to := s.Path, cmp.Or(s.To, s.Path)
	switch s.Kind {
	case patch.Add:
		was, err := e.Look(name)
		if err != nil {
			return nil, unfit(s, name, err)
		}
		e.Write(name, s.Added, was, 0)
		return []string{letter(was) + " " + shown(name)}, nil
	case patch.Delete:
		was, err := e.Look(name)
		if err == nil && was == nil {
			err = fs.ErrNotExist
		}
		if err != nil {
			return nil, unfit(s, name, err)
		}
		e.Delete(name, was)
		return []string{"D " + shown(name)}, nil
	}
	content, was, err := e.Content(name)
	if err != nil {
		return nil, unfit(s, name, err)
	}
	updated, err := s.Update(content)
	if err != nil {
		return nil, parley.Errorf(parley.CodeInvalid, "%s. Nothing was changed.", err)
	}
	if to == name {
		e.Write(name, updated, was, 0)
		return []string{"M " + shown(name)}, nil
	}
	there, err := e.Look(to)
	if err != nil {
		return nil, unfit(s, to, err)
	}
	e.Write(to, updated, there, was.Mode())
	e.Delete(name, was)
	return []string{"D " + shown(name), letter(there) + " " + shown(to)}, nil
}

func letter(was fs.FileInfo) string {
	if was == nil {
		return "A"
	}
	return "M"
}

// unfit returns the error for a file that a section cannot be applied to.
func unfit(s patch.Section, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &parley.Error{Code: parley.CodeNotFound, Err: err,
			Message: fmt.Sprintf("File not found: %s (line %d of the patch). Nothing was changed.", name, s.Line)}
	}
	return &parley.Error{Code: parley.CodeOf(err), Err: err,
		Message: fmt.Sprintf("%s File Error: %s (line %d of the patch) Nothing was changed.", s.Kind,
			parley.MessageOf(err), s.Line)}
}
