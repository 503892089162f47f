package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"parley"
	"parley/workspace"
)

//go:embed edit_file.md
var editFileDescription string

//go:embed edit_file.json
var editFileSchema string

type editFileArguments struct {
	Path       string `json:"path"`
	OldText    string `json:"old_text"`
	NewText    string `json:"new_text"`
	ReplaceAll bool   `json:"replace_all"`
}

var editFile = define("edit_file", editFileDescription, editFileSchema, func(args editFileArguments) (action, error) {
	name, err := workspace.CleanFile(args.Path)
	switch {
	case err != nil:
		return action{}, err
	case args.OldText == args.NewText:
		return action{}, errors.New("old_text and new_text are the same")
	case len(args.OldText) > maxWritten || len(args.NewText) > maxWritten:
		return action{}, fmt.Errorf("expected texts of at most %d bytes", maxWritten)
	}
	where := "in the one place where this stands"
	if args.ReplaceAll {
		where = "wherever this stands"
	}
	return action{
		class: parley.Effectful,
		edits: true,
		path:  name,
		show:  fmt.Sprintf("Edit %q, %s:\n\n%s%s", name, where, marked("-", args.OldText), marked("+", args.NewText)),
		perform: func(ctx context.Context, e *workspace.Edit, out io.Writer) error {
			content, was, err := e.Content(name)
			if err != nil {
				return err
			}
			changed, lines, err := edit(content, args)
			if err != nil {
				return parley.Errorf(parley.CodeInvalid, "%s: %s. Nothing was changed.", shown(name), err)
			}
			e.Write(name, changed, was, 0)
			if err := e.Commit(ctx); err != nil {
				return err
			}
			fmt.Fprintf(out, "Replaced %s in %s: %s.", places(len(lines)), shown(name), lineList(lines))
			return nil
		},
	}, nil
})

const maxPlaces = 100 // limit on counted places if there must be only one

// marked returns a text with a mark before each line, so that its end is
// unambiguous. A text that ends with a newline gets an empty last line.
func marked(mark, text string) string {
	return mark + strings.ReplaceAll(text, "\n", "\n"+mark) + "\n"
}

// edit replaces the old text and returns the lines where it was. The text must
// be unique unless all places are replaced. In a file with CRLF line endings, a
// text without them matches those too.
func edit(content string, args editFileArguments) (string, []int, error) {
	from, to := args.OldText, args.NewText
	if !strings.Contains(content, from) && !strings.Contains(from, "\r") && strings.Contains(content, "\r\n") {
		from, to = returns(from), returns(strings.ReplaceAll(to, "\r\n", "\n"))
	}
	var lines []int
	for at, line := 0, 1; args.ReplaceAll || len(lines) <= maxPlaces; {
		i := strings.Index(content[at:], from)
		if i < 0 {
			break
		}
		line += strings.Count(content[at:at+i], "\n")
		lines = append(lines, line)
		step := len(from)
		if !args.ReplaceAll {
			step = 1 // overlapping places count too
		}
		line += strings.Count(content[at+i:at+i+step], "\n")
		at += i + step
	}
	switch count := len(lines); {
	case count == 0:
		return "", nil, errors.New("old_text stands nowhere in it. Read the file and give the text exactly as it is, " +
			"blanks and line ends included")
	case count > maxPlaces && !args.ReplaceAll:
		return "", nil, fmt.Errorf("old_text stands in more than %d places: %s. Give more of the text around the one "+
			"you mean, or set replace_all", maxPlaces, lineList(lines))
	case count > 1 && !args.ReplaceAll:
		return "", nil, fmt.Errorf("old_text stands in %d places: %s. Give more of the text around the one you mean, "+
			"or set replace_all", count, lineList(lines))
	case len(content)+count*(len(to)-len(from)) > workspace.MaxEdited:
		return "", nil, fmt.Errorf("it would be longer than %d bytes", workspace.MaxEdited)
	}
	return strings.ReplaceAll(content, from, to), lines, nil
}

func returns(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}

// lineList lists the first few line numbers.
func lineList(lines []int) string {
	const most = 20
	var b strings.Builder
	b.WriteString("line")
	for i, n := range lines[:min(len(lines), most)] {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d", n)
	}
	if len(lines) > most {
		fmt.Fprintf(&b, " and %d more", len(lines)-most)
	}
	return b.String()
}
