package tool

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/workspace"
)

//go:embed read_file.md
var readFileDescription string

//go:embed read_file.json
var readFileSchema string

type readFileArguments struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"` // the first line to read, from 1
	Limit  int    `json:"limit"`  // number of lines; zero: all
}

var readFile = define("read_file", readFileDescription, readFileSchema, func(args readFileArguments) (action, error) {
	name, artifact := strings.CutPrefix(args.Path, artifactScheme)
	about := action{class: parley.Pure, artifact: artifact}
	if !artifact {
		var err error
		if name, err = workspace.Clean(args.Path); err != nil {
			return action{}, err
		}
		about.path = name
	} else if !artifactName.MatchString(name) {
		return action{}, fmt.Errorf("there is no artifact %.80q", name)
	} else {
		about.source = artifactSource(name)
	}
	first := max(args.Offset, 1)
	rest := func(from, to int) string {
		if from == to {
			return "they are of one line, which is not shown in parts"
		}
		return fmt.Sprintf("read_file with offset %d and limit %d has them, in parts", first+from-1, to-from+1)
	}
	about.rest, about.look = rest, func(ctx context.Context, v *workspace.View, out io.Writer) error {
		f, info, err := v.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		// Text that is appended meanwhile is left for the next call, so that
		// reading comes to an end.
		r := bufio.NewReaderSize(io.LimitReader(f, info.Size()), sniffed)
		start, _ := r.Peek(sniffed)
		if what := notText(start); what != "" {
			fmt.Fprintf(out, "%s is %s of %d bytes. It is not shown.", shown(name), what, info.Size())
			return nil
		}
		if err := copyLines(ctx, out, r, first, args.Limit); err != nil {
			return workspace.Fault(name, err)
		}
		return nil
	}
	if !artifact {
		about.exact = func(_ context.Context, v *workspace.View, out io.Writer) error {
			return copyExactly(v, name, first, args.Limit, out)
		}
	}
	return about, nil
})

// maxExact limits how much of a file is read exactly, in bytes.
const maxExact = 512 << 10

// copyExactly copies limit lines of a file, starting at line first, without any
// notes.
func copyExactly(v *workspace.View, name string, first, limit int, out io.Writer) error {
	f, info, err := v.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(io.LimitReader(f, info.Size()))
	var text []byte
	for line, ended := 1, false; !ended && (limit <= 0 || line-first < limit); {
		part, err := r.ReadSlice('\n')
		if ended = errors.Is(err, io.EOF); err != nil && !ended && !errors.Is(err, bufio.ErrBufferFull) {
			return workspace.Fault(name, err)
		}
		if line >= first {
			text = append(text, part...)
		}
		if len(text) > maxExact {
			return parley.Errorf(parley.CodeTooLarge, "%q is longer than %d bytes, the most that is read at once. "+
				"Read it in parts, by line and limit.", name, maxExact)
		}
		if err == nil {
			line++
		}
	}
	if what := notText(text[:min(len(text), sniffed)]); what != "" || !utf8.Valid(text) {
		return parley.Errorf(parley.CodeInvalid, "%q is %s, not a text in UTF-8.", name, cmp.Or(what, "something else"))
	}
	_, err = out.Write(text)
	return err
}

const sniffed = 8 << 10 // bytes examined to recognize a binary file

// notText describes a file that is not text, judged by its beginning. It
// returns "" for text.
func notText(start []byte) string {
	if what, ok := strings.CutPrefix(http.DetectContentType(start), "image/"); ok {
		return "an image (" + what + ")"
	}
	if bytes.IndexByte(start, 0) >= 0 {
		return "a binary file"
	}
	return ""
}

// copyLines copies limit lines, starting at line first. It adds a note if there
// are more lines, or none. A line may be too long for memory.
func copyLines(ctx context.Context, out io.Writer, r *bufio.Reader, first, limit int) error {
	line, copied := 1, false
	for ended := false; !ended; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if limit > 0 && line-first >= limit {
			if _, err := r.Peek(1); err == nil {
				fmt.Fprintf(out, "[the file goes on after line %d]", line-1)
			}
			return nil
		}
		part, err := r.ReadSlice('\n')
		if ended = err == io.EOF; err != nil && !ended && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if line >= first && len(part) > 0 {
			out.Write(part)
			copied = true
		}
		if err == nil || ended && len(part) > 0 {
			line++
		}
	}
	switch {
	case line == 1:
		fmt.Fprint(out, "[the file is empty]")
	case !copied:
		fmt.Fprintf(out, "[the file has %d lines]", line-1)
	}
	return nil
}
