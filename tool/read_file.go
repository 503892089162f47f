package tool

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	"parley"
)

//go:embed read_file.md
var readFileDescription string

//go:embed read_file.json
var readFileSchema string

type readFileArguments struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"` // the first line, from 1
	Limit  int    `json:"limit"`  // lines; zero: all
}

var readFile = define("read_file", readFileDescription, readFileSchema, func(args readFileArguments) (action, error) {
	name, err := local(args.Path)
	if err != nil {
		return action{}, err
	}
	return action{class: parley.Pure, path: name, perform: func(ctx context.Context, root *os.Root, out io.Writer) error {
		f, info, err := open(root, name, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		// What is appended while it is read is left for the next reader, so
		// that reading comes to an end.
		r := bufio.NewReaderSize(io.LimitReader(f, info.Size()), sniffed)
		if start, _ := r.Peek(sniffed); bytes.IndexByte(start, 0) >= 0 {
			fmt.Fprintf(out, "%s is a binary file of %d bytes. It is not shown.", shown(name), info.Size())
			return nil
		}
		if err := copyLines(ctx, out, r, max(args.Offset, 1), args.Limit); err != nil {
			return fault(name, err)
		}
		return nil
	}}, nil
})

const sniffed = 8 << 10 // bytes looked at to tell a binary file

// copyLines copies limit lines from the first on, and says so when there is
// more or nothing. A line may be longer than fits into memory.
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
