package eval

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder makes a folder with an eval file, a prompt, and two recorded sessions.
func folder(t *testing.T, text string) string {
	dir := t.TempDir()
	for name, content := range map[string]string{"eval.yaml": text, "prompt.md": "Be brief.",
		"sessions/a.jsonl": "{}", "sessions/b.jsonl": "{}", "sessions/notes.txt": ""} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "eval.yaml")
}

func TestLoad(t *testing.T) {
	f, err := Load(folder(t, `sessions: sessions
model: small
prompt: prompt.md
tools: live
checks:
  - cost: 0.05
cases:
  - session: b.jsonl
    name: second
    model: large
    checks:
      - contains: |
          two
          lines
      - tool_called: {name: read, arguments: {n: 1}}
        input: 2
      - judge: It is polite.
  - inputs: [one, 2]
    checks: [{matches: ^x}, {time: 5s}]
judge: strict
`))
	if err != nil {
		t.Fatal(err)
	}
	if f.Judge != "strict" || !f.Live || len(f.Cases) != 3 {
		t.Fatalf("%+v", f)
	}
	b, inputs, a := f.Cases[0], f.Cases[1], f.Cases[2]
	if b.Name != "second" || b.Line != 8 || b.Run.Model != "large" || b.Run.Prompt != "Be brief." ||
		len(b.Checks) != 4 ||
		b.Checks[0].micros != 50000 || b.Checks[1].Text != "two\nlines\n" || b.Checks[1].Line != 12 ||
		b.Checks[2].Text != "read" || b.Checks[2].Input != 2 || b.Checks[2].arguments["n"] == nil {
		t.Errorf("%+v", b)
	}
	if inputs.Name != "line 18" || strings.Join(inputs.Inputs, ",") != "one,2" || len(inputs.Checks) != 3 {
		t.Errorf("%+v", inputs)
	}
	if a.Name != "a" || !strings.HasSuffix(a.Session, "a.jsonl") || len(a.Checks) != 1 || a.Run.Model != "small" {
		t.Errorf("%+v", a)
	}
}

// TestBadFiles checks that every mistake is reported with the file and the line.
func TestBadFiles(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string // without the name of the file
	}{
		{"", []string{": one YAML document is wanted"}},
		{"cases: [", []string{":1: "}},
		{"cases:\n\t- x", []string{":2: "}},
		{"case: []", []string{`:1: there is no key "case" here; the keys are sessions, `}},
		{"- a", []string{":1: lines of the form KEY: VALUE"}},
		{"sessions: nowhere", []string{":1: ", "nowhere is not a folder"}},
		{"tools: some\nprompt: gone.md", []string{":1: tools must be recorded or live",
			":2: the prompt cannot be read"}},
		{"model: {a: 1}\nagent:", []string{":1: model must be a text", ":2: agent has no value"}},
		{"cases: []", []string{":1: there are no cases"}},
		{"cases:\n- name: x\n  checks: [{contains: a}]", []string{":2: a case has a session, or an input"}},
		{"cases:\n- input: x\n  session: a.jsonl", []string{":3: the recorded session cannot be read"}},
		{"cases:\n- input: x", []string{`:2: the case "line 2" has no checks`}},
		{"cases:\n- input: x\n  checks:\n  - contain: a\n- inputs: x",
			[]string{`:4: there is no key "contain" here; the keys are contains, `, ":5: inputs must be a list"}},
		{"cases:\n- input: x\n  checks:\n  - input: 1\n", []string{":4: a check has one of contains, "}},
		{"cases:\n- input: x\n  checks:\n  - contains: a\n    matches: b\n", []string{":5: a check has one kind"}},
		{"cases:\n- input: x\n  checks:\n  - matches: '('\n  - cost: cheap\n  - time: soon\n  - time: 0s\n    input: 0",
			[]string{":4: matches is not right", ":5: cost is not right", ":6: time is not right",
				":7: time is not right",
				":8: input must be the number"}},
		{"cases:\n- input: x\n  checks: [{judge: good}]", []string{":3: judge needs a model"}},
		{"cases:\n- input: x\n  checks: [{tool_called: {arguments: {a: 1}}}]",
			[]string{":3: tool_called needs the name"}},
		{"checks: [{contains: a}]\ncases:\n- {input: x, name: n}\n- {input: y, name: n}",
			[]string{`:4: two cases are called "n"`}},
	} {
		file := folder(t, c.text)
		_, err := Load(file)
		if err == nil {
			t.Errorf("%q is taken", c.text)
			continue
		}
		for _, want := range c.want {
			if strings.HasPrefix(want, ":") {
				want = file + want
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", c.text, err, want)
			}
		}
	}
}
