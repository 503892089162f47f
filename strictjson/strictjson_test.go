package strictjson

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
)

func TestRepeatedKey(t *testing.T) {
	for _, c := range []struct {
		raw    string
		levels int
		key    string
		found  bool
	}{
		{`{}`, AllLevels, "", false},
		{`{"a":1,"A":2,"b":{"a":3}}`, AllLevels, "", false},
		{`{"a":1,"b":[],"a":2}`, AllLevels, "a", true},
		{`{"a":1,"b":[],"a":2}`, 1, "a", true},
		{`{"a":1,"b":[],"a":2}`, 0, "", false},
		{`{"":1,"":2}`, 1, "", true},
		{`{"type":1,"t\u0079pe":2}`, 1, "type", true},
		{`{"a":"b","b":"a"}`, AllLevels, "", false},
		{`["a","a",{"b":"c","c":"b"},"b","b"]`, AllLevels, "", false},
		{`[{"a":1},{"a":2}]`, AllLevels, "", false},
		{`{"x":[[{"a":1,"a":2}]]}`, 1, "", false},
		{`{"x":[[{"a":1,"a":2}]]}`, 3, "", false},
		{`{"x":[[{"a":1,"a":2}]]}`, 4, "a", true},
		{`{"x":[[{"a":1,"a":2}]]}`, AllLevels, "a", true},
		{`{"a":{"b":1},"c":1e999,"a":2}`, AllLevels, "a", true},
		{`"a"`, AllLevels, "", false},
		{`null`, AllLevels, "", false},
		{strings.Repeat("[", 5000) + `{"a":1,"a":2}` + strings.Repeat("]", 5000), AllLevels, "a", true},
	} {
		if key, found := RepeatedKey([]byte(c.raw), c.levels); key != c.key || found != c.found {
			t.Errorf("%.60s at %d levels: %q, %v", c.raw, c.levels, key, found)
		}
	}
}

// TestJSONChecksAlwaysReturn checks that the checks return for any input.
func TestJSONChecksAlwaysReturn(t *testing.T) {
	pieces := []string{"{", "}", "[", "]", `"a"`, `"b"`, ":", ",", "1", "null", " ", `"\`, "\xff"}
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "raw"), ""))
		levels := rapid.IntRange(AllLevels, 3).Draw(t, "levels")
		if key, found := RepeatedKey(raw, levels); found && !strings.Contains(string(raw), key) {
			t.Fatalf("%q has %q twice", raw, key)
		}
		Deeper(raw, 3)
		var v any
		if (DecodeKnown(raw, &v) == nil) != json.Valid(raw) {
			t.Fatalf("%q is valid: %v", raw, json.Valid(raw))
		}
	})
}

func TestDecodeKnown(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":1}`:         "",
		" {\"a\":1}\n":    "",
		`{"b":1}`:         `unknown field "b"`,
		`{"in":{"c":1}}`:  `unknown field "c"`,
		`{"a":1}{"a":2}`:  "something follows",
		`{"a":1} }`:       "something follows",
		`{"a":"text"}`:    "A cannot be of type string",
		`{"a":1`:          "unexpected EOF",
		`{"in":{"d":{}}}`: "",
	} {
		var v struct {
			A  int
			In struct{ D map[string]int }
		}
		err := DecodeKnown([]byte(raw), &v)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestTypeErrorsNameNoGoTypes checks that errors about types contain no Go types, which the sender does not
// know.
func TestTypeErrorsNameNoGoTypes(t *testing.T) {
	var a parley.Agent
	for raw, want := range map[string]string{`{"approval":5}`: "approval cannot be of type number",
		`{"allow":{"roles":"x"}}`: "allow.roles cannot be of type string", `[]`: "the value cannot be of type array"} {
		if err := DecodeKnown([]byte(raw), &a); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
}
