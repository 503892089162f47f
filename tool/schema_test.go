package tool

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
)

func TestBadArgumentsAreBlockedWithTheirReason(t *testing.T) {
	b := newBench(t)
	var many string
	for i := range maxSections + 1 {
		many += fmt.Sprintf(`\n*** Delete File: %d`, i)
	}
	many = `{"patch":"*** Begin Patch` + many + `"}`
	question := func(inner string) string { return `{"questions":[{` + inner + `}]}` }
	for _, c := range []struct{ name, arguments, want string }{
		{"read_file", `{"path":"a"`, "not valid JSON"},
		{"read_file", `{"path":"a"} {}`, "not valid JSON"},
		{"read_file", `{"path":"a",}`, "not valid JSON"},
		{"read_file", "{\"path\":\"\xff\"}", "not valid UTF-8"},
		{"read_file", `null`, "expected object, got null"},
		{"read_file", `["a"]`, "expected object, got array"},
		{"read_file", ``, `"path" is missing`},
		{"read_file", `{"path":"a","lines":3}`, `unknown key "lines"; known are limit, offset, path`},
		{"read_file", `{"Path":"a"}`, `unknown key "Path"`},
		{"read_file", `{"path":"a","path":"b"}`, `the key "path" is given twice`},
		{"read_file", `{"path":"a","p\u0061th":"b"}`, `the key "path" is given twice`},
		{"read_file", `{"path":7}`, "path: expected string, got number"},
		{"read_file", `{"path":null}`, "path: expected string, got null"},
		{"read_file", `{"path":""}`, "path: expected at least 1 characters"},
		{"read_file", `{"path":"a","offset":"1"}`, "offset: expected integer, got string"},
		{"read_file", `{"path":"a","offset":0}`, "offset: expected at least 1"},
		{"read_file", `{"path":"a","offset":1.5}`, "offset: expected a whole number, got 1.5"},
		{"read_file", `{"path":"a","offset":1e999}`, "offset: expected a whole number"},
		{"read_file", `{"path":"a","limit":-1}`, "limit: expected at least 1"},
		{"read_file", `{"path":"a","limit":99999999999}`, "limit: expected at most"},
		{"list_files", `{"depth":33}`, "depth: expected at most 32"},
		{"list_files", `{"depth":true}`, "depth: expected integer, got boolean"},
		{"write_file", `{"path":"a"}`, `"content" is missing`},
		{"write_file", `{"path":"a","content":"` + strings.Repeat("ä", 1<<19) + `x"}`, "content: expected at most " +
			"1048576 bytes"},
		{"write_file", `{"path":"a","content":"` + strings.Repeat("x", maxArguments) + `"}`,
			"longer than 8388608 bytes"},
		{"ask_user", `{"questions":[]}`, "questions: expected at least 1 entries"},
		{"ask_user", `{"questions":[7]}`, "questions[0]: expected object, got number"},
		{"ask_user", question(`"question":"?","header":"","options":[]`), `questions[0]: "multi_select" is missing`},
		{"ask_user", question(`"question":"?","header":"","options":[{"label":"a","hint":"b"}],"multi_select":false`),
			`questions[0].options[0]: unknown key "hint"`},
		{"ask_user",
			question(`"question":"?","header":"","options":[{"label":"a"},{"label":"a"}],"multi_select":false`),
			`options[1].label: "a" is given twice`},
		{"ask_user", question(`"question":"?","header":"","options":[{"label":" "}],"multi_select":false`),
			"options[0].label: it is blank"},
		{"ask_user", question(`"question":" ","header":"","options":[],"multi_select":false`),
			"questions[0].question: it is blank"},
		{"ask_user", question(`"question":"?","header":"","options":[],"multi_select":"no"`),
			"multi_select: expected boolean, got string"},
		{"shell", `{}`,
			`there is no tool "shell" for this agent; it has: list_files, find_files, search_files, read_file, write_file, edit_file, apply_patch, ask_user, update_plan, delegate, finalize_task`},

		{"write_file", `{"path":"/etc/passwd","content":""}`, "is absolute"},
		{"write_file", `{"path":"a/../b","content":""}`, "has .. in it"},
		{"write_file", `{"path":"..","content":""}`, "has .. in it"},
		{"write_file", `{"path":"a\u0000b","content":""}`, "holds a NUL"},
		{"write_file", `{"path":".","content":""}`, "names a directory"},
		{"write_file", `{"path":"a/","content":""}`, "names a directory"},
		{"write_file", `{"path":".git","content":""}`, "never written"},
		{"write_file", `{"path":"./a/.GIT/config","content":""}`, "never written"},
		{"write_file", `{"path":"` + strings.Repeat("ä", 4096) + `","content":""}`, "longer than 4096 bytes"},
		{"read_file", `{"path":"../a"}`, "has .. in it"},
		{"read_file", `{"path":"/a"}`, "is absolute"},
		{"list_files", `{"path":"a/.."}`, "has .. in it"},
		{"apply_patch", `{}`, `"patch" is missing`},
		{"apply_patch", `{"patch":"x","path":"a"}`, `unknown key "path"; known are patch`},
		{"apply_patch", `{"patch":"x"}`, "Patch must start with *** Begin Patch (line 1 of the patch)"},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Frob File: x\n"}`,
			"Unknown Line: *** Frob File: x (line 2 of the patch)"},
		{"apply_patch", `{"patch":"` + strings.Repeat("ä", 1<<19) + `x"}`, "patch: expected at most 1048576 bytes"},
		{"apply_patch", many, "patch: expected at most 1000 sections"},
		{"edit_file", `{"path":"a","old_text":"","new_text":"x"}`, "old_text: expected at least 1 characters"},
		{"edit_file", `{"path":"a","old_text":"x"}`, `"new_text" is missing`},
		{"edit_file", `{"path":"a","old_text":"x","new_text":"y","replace_all":"yes"}`,
			"replace_all: expected boolean, got string"},
		{"edit_file", `{"path":"a\\b","old_text":"x","new_text":"y"}`, "backslash"},
		{"find_files", `{"pattern":"*","path":"a"}`, `unknown key "path"; known are pattern`},
		{"search_files", `{"pattern":"x","regex":true}`, `unknown key "regex"; known are glob, path, pattern`},
		{"list_files", `{"path":""}`, "path: expected at least 1 characters"},
	} {
		v := b.box.Judge(parley.Agent{Approval: "full-auto"}, c.name, c.arguments)
		if v.Kind != parley.VerdictBlock || !strings.Contains(v.Reason, c.want) || !strings.Contains(v.Reason, c.name) {
			t.Errorf("%s %.100s: %s, %q, want %q", c.name, c.arguments, v.Kind, v.Reason, c.want)
		}
		if _, err := b.box.Perform(t.Context(), parley.Agent{}, c.name, c.arguments, nil); parley.CodeOf(
			err) != parley.CodeInvalid {
			t.Errorf("%s %.100s is blocked and yet performed: %v", c.name, c.arguments, err)
		}
	}
	b.untouched(b.workspace)
}

func TestContentOfExactlyTheLimitIsTaken(t *testing.T) {
	b := newBench(t)
	content := strings.Repeat("\x01", maxWritten) // six bytes each in JSON
	b.result("write_file", args{"path": "a", "content": content})
	if b.content("a") != content {
		t.Error("another content was written")
	}
}

// TestSchemasAreClosed: every rule that a model is told must be enforced.
func TestSchemasAreClosed(t *testing.T) {
	var closed func(at string, s *schema)
	closed = func(at string, s *schema) {
		if s.AdditionalProperties {
			t.Errorf("%s takes any key", at)
		}
		for _, key := range s.Required {
			if s.Properties[key] == nil {
				t.Errorf("%s requires %s, which it does not know", at, key)
			}
		}
		if (s.Type == "array") != (s.Items != nil) {
			t.Errorf("%s: an array has items, nothing else does", at)
		}
		for key, p := range s.Properties {
			closed(at+"."+key, p)
		}
		if s.Items != nil {
			closed(at+"[]", s.Items)
		}
	}
	for _, tool := range tools {
		closed(tool.Name, mustSchema(tool.Parameters))
		if n := strings.Count(tool.Parameters, `"additionalProperties": false`); n != strings.Count(tool.Parameters,
			`"type": "object"`) {
			t.Errorf("%s: %d objects are closed", tool.Name, n)
		}
	}
}

func TestASchemaWithAnUnknownRuleIsRefused(t *testing.T) {
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "pattern") {
			t.Errorf("it said %s", said)
		}
	}()
	mustSchema(`{"type":"string","pattern":"a"}`)
}

func TestAnyBytesAreJudged(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"list_files", "read_file", "write_file", "ask_user", "x"}).Draw(t, "name")
		arguments := rapid.StringMatching(
			`(\{("path":"?[a./]{0,6}"?,?|"content":"",?|"questions":\[[{}]*\],?|"depth":[0-9.e-]{1,4},?){0,3}\}?)|.{0,20}`).Draw(t, "arguments")
		v := b.box.Judge(parley.Agent{}, name, arguments)
		if (v.Kind == parley.VerdictBlock) != (v.Reason != "") {
			t.Fatalf("%+v", v)
		}
	})
	b.untouched(b.workspace)
}
