package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
)

// TestProgramsReadExactly: a program gets the exact bytes of a file, or an error;
// never anything in between.
func TestProgramsReadExactly(t *testing.T) {
	root := t.TempDir()
	b := newBox(t, root)
	program := parley.Agent{Command: []string{"prog"}}
	long := strings.Repeat("line\n", maxExact/5)
	for name, text := range map[string]string{"empty": "", "text": "one\r\ntwo\nüber", "long": long,
		"longer": long + "more\n", "binary": "a\x00b", "latin": "\xfcber"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for arguments, want := range map[string]string{
		`{"path":"empty"}`: "", `{"path":"text"}`: "one\r\ntwo\nüber", `{"path":"text","offset":2}`: "two\nüber",
		`{"path":"text","offset":1,"limit":1}`: "one\r\n", `{"path":"text","offset":9}`: "", `{"path":"long"}`: long,
		`{"path":"longer","offset":2}`: long[5:] + "more\n",
	} {
		got, err := b.Perform(t.Context(), program, "read_file", arguments, nil)
		if err != nil || got.Text != want || !got.Exact {
			t.Errorf("%s: %.40q, %v", arguments, got.Text, err)
		}
	}
	for _, name := range []string{"longer", "binary", "latin", "absent"} {
		if got, err := b.Perform(t.Context(), program, "read_file", `{"path":"`+name+`"}`, nil); err == nil {
			t.Errorf("%s: %.40q", name, got.Text)
		}
	}
	if v := b.Judge(program, "read_file", `{"path":"../x"}`); v.Kind != parley.VerdictBlock {
		t.Errorf("%+v", v)
	}
}
