package dialect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseObject(t *testing.T) {
	for _, test := range []struct{ name, data, refusal string }{
		{"empty object", `{}`, ""},
		{"space around", " \t\r\n{ \"a\" : 1 } \n", ""},
		{"unknown keys", `{"whatever":[{"a":1,"a":2}]}`, ""},
		{"differs in case", `{"a":1,"A":2}`, ""},
		{"no bytes", ``, "not valid JSON"},
		{"only space", `  `, "not valid JSON"},
		{"byte order mark", "\ufeff{}", "not valid JSON"},
		{"cut off", `{"a":1`, "not valid JSON"},
		{"trailing comma", `{"a":1,}`, "not valid JSON"},
		{"comment", `{"a":1} // one`, "not valid JSON"},
		{"two objects", `{}{}`, "not valid JSON"},
		{"garbage behind", `{}x`, "not valid JSON"},
		{"bare word", `hello`, "not valid JSON"},
		{"array", `[{}]`, "not a JSON object"},
		{"string", `"{}"`, "not a JSON object"},
		{"number", `1`, "not a JSON object"},
		{"null", `null`, "not a JSON object"},
		{"key twice", `{"a":1,"b":2,"a":1}`, `the key "a" is there twice`},
		{"key twice, once escaped", `{"type":1,"t\u0079pe":2}`, `the key "type" is there twice`},
		{"64 levels", nested(64), ""},
		{"65 levels", nested(65), "deeper than 64 levels"},
		{"a million levels", `{"a":` + strings.Repeat("[", 1<<20), "not valid JSON"},
		{"brackets in strings", `{"a":"` + strings.Repeat(`[{\"\\`, 100) + `"}`, ""},
		{"levels side by side", `{"a":[` + strings.Repeat("[],", 100) + `[]]}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, err := ParseObject([]byte(test.data))
			switch {
			case test.refusal == "" && (err != nil || o == nil):
				t.Errorf("refused: %v", err)
			case test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)):
				t.Errorf("parsed as %v, %v; want %q", o, err, test.refusal)
			}
		})
	}
}

// nested returns an object with this many levels, including itself.
func nested(levels int) string {
	return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
}

func TestObjectValues(t *testing.T) {
	o, err := ParseObject([]byte(`{"s":"text","empty":"","null":null,"n":7,"list":[["a"],[]],"lone":"\ud800"}`))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"s": true, "empty": true, "n": true, "list": true, "null": false, "S": false,
		"gone": false} {
		if o.Has(key) != want {
			t.Errorf("Has(%q) is %v", key, !want)
		}
	}
	for _, test := range []struct{ key, want, refusal string }{
		{"s", "text", ""}, {"empty", "", ""}, {"null", "", ""}, {"gone", "", ""}, {"lone", "\ufffd", ""},
		{"n", "", "n must be a string"}, {"list", "", "list must be a string"},
	} {
		got, err := o.String(test.key)
		if got != test.want || (err == nil) != (test.refusal == "") || err != nil && err.Error() != test.refusal {
			t.Errorf("String(%q) is %q, %v", test.key, got, err)
		}
	}
	var list [][]string
	if err := o.Into("list", &list, "lists"); err != nil || len(list) != 2 {
		t.Errorf("Into(list): %v, %v", list, err)
	}
	kept := 5
	if err := o.Into("gone", &kept, "a number"); err != nil || kept != 5 {
		t.Errorf("Into(gone) changed what was there to %d, %v", kept, err)
	}
	if err := o.Into("s", &kept, "a number"); err == nil || err.Error() != "s must be a number" {
		t.Errorf("Into(s): %v", err)
	}
}

// TestParseObjectIsJSON: ParseObject gives the same keys and values as encoding/json.
func TestParseObjectIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.OneOf(
			rapid.SliceOf(rapid.Byte()),
			rapid.Map(
				rapid.SliceOf(rapid.SampledFrom([]string{"{", "}", "[", "]", `"a"`, `"b"`, ":", ",", "1", "null", " ",
					`"\u0061"`})),
				func(list []string) []byte { return []byte("{" + strings.Join(list, "") + "}") }),
			rapid.Map(rapid.MapOf(rapid.String(), rapid.String()),
				func(m map[string]string) []byte { return Encode(m) }),
		).Draw(t, "data")
		o, err := ParseObject(data)
		var m map[string]json.RawMessage
		isObject := json.Unmarshal(data, &m) == nil && m != nil
		if err == nil && !isObject {
			t.Fatalf("%q is no object and was parsed as %v", data, o)
		}
		if err != nil {
			return
		}
		if len(o) != len(m) {
			t.Fatalf("%q has the keys of %v, not of %v", data, m, o)
		}
		for key := range m {
			if !bytes.Equal(m[key], o[key]) {
				t.Fatalf("%q has %s under %q, not %s", data, m[key], key, o[key])
			}
		}
	})
}

// TestJSONTestSuite: invalid JSON is refused. Valid JSON is accepted, unless it is not an object or has a repeated key.
func TestJSONTestSuite(t *testing.T) {
	dir := filepath.Join(cmp.Or(os.Getenv("PARLEY_CORPORA"), filepath.Join("..", "..", "shared", "data")), "json",
		"test_parsing")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Skip("no JSONTestSuite here: ", err)
	}
	count := map[byte]int{}
	for _, entry := range entries {
		name := entry.Name()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		count[name[0]]++
		o, err := ParseObject(data)
		switch {
		case name[0] == 'n' && err == nil:
			t.Errorf("%s was parsed as %v", name, o)
		case name[0] == 'y' && err != nil && strings.Contains(err.Error(), "valid JSON"):
			t.Errorf("%s: %v", name, err)
		case name[0] == 'y' && err != nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) &&
			!strings.Contains(err.Error(), "twice"):
			t.Errorf("%s is an object: %v", name, err)
		case name[0] == 'y' && err == nil && strings.Contains(name, "duplicated_key"):
			t.Errorf("%s was parsed as %v", name, o)
		}
	}
	if count['y'] < 90 || count['n'] < 180 {
		t.Errorf("there are %d to accept and %d to refuse", count['y'], count['n'])
	}
}
