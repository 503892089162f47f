package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley"
)

func TestMain(m *testing.M) {
	Main()
	if os.Getenv("TEST_PDF_MEMORY") != "" {
		limitMemory()
		all := bytes.Repeat([]byte("x"), 2*memory) // more than the limit
		fmt.Println("it has", len(all))
	}
	os.Exit(m.Run())
}

// document returns a PDF with objects numbered from 1. The first one is the
// catalog.
func document(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	at := []int{}
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return b.Bytes()
}

func stream(dict, content string) string {
	return fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", dict, len(content), content)
}

// pages returns a document with one page per content stream.
func pages(contents ...string) []byte {
	objects := []string{"<</Type /Catalog /Pages 2 0 R>>", "",
		"<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>"}
	kids := ""
	for i, c := range contents {
		kids += fmt.Sprintf("%d 0 R ", 4+2*i)
		objects = append(objects, fmt.Sprintf("<</Type /Page /Parent 2 0 R /Contents %d 0 R "+
			"/Resources <</Font <</F1 3 0 R>>>>>>", 5+2*i), c)
	}
	objects[1] = fmt.Sprintf("<</Type /Pages /Kids [%s] /Count %d>>", kids, len(contents))
	return document(objects...)
}

func says(text string) string { return stream("", "BT /F1 12 Tf 72 720 Td ("+text+") Tj ET") }

func TestText(t *testing.T) {
	text, n, err := NewReader().Text(t.Context(), "ann", pages(says("Hello \\(you\\)"), says("Second")))
	if err != nil || n != 2 || text != "[page 1]\nHello (you)\n[page 2]\nSecond" {
		t.Errorf("%q, %d pages, %v", text, n, err)
	}
}

// TestNoText: a page without text objects, such as a scan, has no text.
func TestNoText(t *testing.T) {
	text, n, err := NewReader().Text(t.Context(), "ann", pages(stream("", "q Q"), stream("", "q Q")))
	if err != nil || n != 2 || text != "" {
		t.Errorf("%q, %d pages, %v", text, n, err)
	}
}

func TestLongText(t *testing.T) {
	text, _, err := NewReader().Text(t.Context(), "ann", pages(says(strings.Repeat("long ", maxText/4))))
	if err != nil || len(text) > maxText+100 || !strings.HasSuffix(text, "(The rest of the document was left out.)") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// deflated returns a stream that becomes much larger when it is read.
func deflated(words string, size int) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	chunk := bytes.Repeat([]byte(words), 1<<16)
	for range size / len(chunk) {
		z.Write(chunk)
	}
	z.Close()
	return stream("/Filter /FlateDecode", b.String())
}

// TestHostile: hostile documents are refused, or their text is cut; the server
// continues.
func TestHostile(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 4<<20)
	for name, raw := range map[string][]byte{
		"nothing":             nil,
		"no PDF":              []byte("%PDF-1.4\nhello"),
		"cut":                 pages(says("x"))[:200],
		"deep arrays":         pages(stream("", deep)),
		"deep dictionaries":   pages(stream("", strings.Repeat("<</a ", 1<<20))),
		"pages of themselves": document("<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [2 0 R] /Count 9>>"),
		"a parent of itself": document("<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [3 0 R] /Count 1>>",
			"<</Type /Page /Parent 3 0 R /Contents 4 0 R>>", says("x")),
		"many pages":  document("<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [] /Count 2000000000>>"),
		"a bomb":      pages(deflated("(x) Tj ", 128<<20)),
		"a deep bomb": pages(deflated("[", 64<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader()
			r.within = time.Second
			begun := time.Now()
			text, n, err := r.Text(t.Context(), "ann", raw)
			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
			if err != nil && parley.CodeOf(err) != parley.CodeInvalid || len(text) > maxText+100 {
				t.Errorf("%d bytes, %d pages, %v", len(text), n, err)
			}
			t.Logf("%.60q, %d pages, %v, %v", text, n, err, time.Since(begun))
		})
	}
}

// TestCancelledContextIsReported: if the caller's context has ended, Text returns its
// error.
func TestCancelledContextIsReported(t *testing.T) {
	r := NewReader()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.Text(ctx, "ann", pages(says("x"))); err != context.Canceled {
		t.Error(err)
	}
}

// TestTheProcessHasLittleMemory: the process has a memory limit, so that a
// document cannot use up the server's memory.
func TestTheProcessHasLittleMemory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no such limit")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "TEST_PDF_MEMORY=1")
	if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "it has") {
		t.Errorf("%v: %s", err, out)
	}
}
