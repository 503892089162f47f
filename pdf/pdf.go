// Package pdf extracts the text of PDF documents.
//
// A hostile PDF may keep its reader busy forever, use up the memory, or overflow
// the stack, which no Go program survives. So each document is read by a
// separate process, which gets nothing but the document, and little memory and
// time.
package pdf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"

	"parley"
)

const (
	within   = 10 * time.Second // time limit for reading a document
	memory   = 512 << 20        // bytes of the process
	maxPages = 500              // pages that are read
	mostPage = 10_000           // pages that a document may have
	maxText  = 256 << 10        // bytes of extracted text
)

// helper is the argument that makes this program read a document.
const helper = "parley-read-pdf"

// A Reader reads documents. It is safe for concurrent use.
type Reader struct {
	places *places
	within time.Duration
}

func NewReader() *Reader { return &Reader{newPlaces(), within} }

var hooked bool

// Main must be called first by every program that uses a Reader. If this process was started to read a
// document, Main does that and does not return.
func Main() {
	hooked = true
	if len(os.Args) != 2 || os.Args[1] != helper {
		return
	}
	time.AfterFunc(2*within, func() { os.Exit(1) }) // the server is gone, or it would have ended this process
	limitMemory()
	answer := read(os.Stdin)
	if json.NewEncoder(os.Stdout).Encode(answer) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// An answer is the output of the process.
type answer struct {
	Text    string
	Pages   int
	Problem string // why the document cannot be read
}

// Text extracts the text of a document and counts its pages. The text is empty if the document has none,
// for example because it is scanned. An error describes what is wrong with the document, or has
// CodeLimited if no place for reading became free. who is the sender of the document.
func (r *Reader) Text(ctx context.Context, who string, document []byte) (text string, pages int, err error) {
	if !hooked {
		return "", 0, errors.New("pdf.Main was not called")
	}
	leave, err := r.places.enter(ctx, who)
	if err != nil {
		return "", 0, err
	}
	defer leave()
	limited, cancel := context.WithTimeout(ctx, r.within)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		return "", 0, err
	}
	cmd := exec.CommandContext(limited, program, helper)
	cmd.Env, cmd.Stdin, cmd.WaitDelay = []string{"GOMAXPROCS=1"}, bytes.NewReader(document), time.Second
	out, err := cmd.Output()
	var got answer
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	switch {
	case ctx.Err() != nil:
		return "", 0, ctx.Err()
	case limited.Err() != nil:
		return "", 0, parley.Errorf(parley.CodeInvalid, "it takes longer than %s to read", r.within)
	case err != nil:
		return "", 0, &parley.Error{Code: parley.CodeInvalid, Message: "it is damaged, or too complex to read", Err: err}
	case got.Problem != "":
		return "", 0, parley.Errorf(parley.CodeInvalid, "%s", got.Problem)
	}
	return got.Text, got.Pages, nil
}

// limited collects text up to maxText bytes and drops the rest.
type limited struct {
	strings.Builder
	full bool
}

func (l *limited) add(text string) {
	if room := maxText - l.Len(); len(text) > room {
		text, l.full = text[:room], true
	}
	l.WriteString(text)
}

func read(in *os.File) (got answer) {
	defer func() {
		if p := recover(); p != nil {
			got = answer{Problem: "it is damaged"}
		}
	}()
	var document bytes.Buffer
	if _, err := document.ReadFrom(in); err != nil {
		return answer{Problem: "it cannot be read"}
	}
	r, err := pdf.NewReader(bytes.NewReader(document.Bytes()), int64(document.Len()))
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword):
		return answer{Problem: "it is protected by a password"}
	case err != nil:
		return answer{Problem: "it is damaged"}
	}
	if got.Pages = r.NumPage(); got.Pages < 1 || got.Pages > mostPage {
		return answer{Problem: fmt.Sprintf("it says that it has %d pages, and 1 to %d are read", got.Pages, mostPage)}
	}
	var text limited
	blank := true
	for i := 1; i <= min(got.Pages, maxPages) && !text.full; i++ {
		said, err := r.Page(i).GetPlainText(nil)
		if err != nil {
			said = "(This page cannot be read.)"
		} else {
			blank = blank && parley.IsBlank(said)
		}
		text.add(fmt.Sprintf("[page %d]\n%s\n", i, strings.TrimSpace(said)))
	}
	if blank {
		return got
	}
	got.Text = strings.TrimSpace(strings.ToValidUTF8(parley.CleanText(text.String()), ""))
	if text.full || got.Pages > maxPages {
		got.Text += "\n(The rest of the document was left out.)"
	}
	return got
}
