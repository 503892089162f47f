package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley"
)

// A model may ask for anything. Each of these mistakes is reported to it as the
// result of the call. Nothing outside the project changes, and the run goes on
// to its end. The agent needs no approvals, so no person could intervene.
func TestModelMistakesAreToolResults(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	outside, workspace := filepath.Join(top, "outside"), filepath.Join(top, "project")
	put(t, outside, "secret.txt", "a secret")
	put(t, workspace, "inside.txt", "inside\n")
	agentFile(t, workspace, "a-auto", "approval: full-auto")
	agentFile(t, workspace, "b-reader", "approval: full-auto\ntools: [read_file, list_files]")
	for name, to := range map[string]string{"link": outside, "link.txt": filepath.Join(outside, "secret.txt"),
		"up": "../outside", "dangling": filepath.Join(outside, "new.txt")} {
		if err := os.Symlink(to, filepath.Join(workspace, name)); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(name string) string {
		return "*** Begin Patch\n*** Add File: " + name + "\n+evil\n*** End Patch\n"
	}
	update := func(name string) string {
		return "*** Begin Patch\n*** Update File: " + name + "\n@@\n-a secret\n+evil\n*** End Patch\n"
	}
	cases := []struct {
		name  string
		agent string
		calls []toolCall
		told  string // a text that every result must contain
	}{
		{"no JSON", "", []toolCall{{Name: "read_file", Arguments: `{"path":`},
			{Name: "read_file", Arguments: `path=inside.txt`}}, "not valid JSON"},
		{"no object", "", []toolCall{{Name: "read_file", Arguments: `["inside.txt"]`},
			{Name: "read_file", Arguments: `null`}}, "are not valid"},
		{"two objects", "", []toolCall{{Name: "read_file", Arguments: `{"path":"inside.txt"}{"path":"inside.txt"}`}},
			"not valid JSON"},
		{"a key twice", "",
			[]toolCall{{Name: "write_file", Arguments: `{"path":"inside.txt","path":"other.txt","content":"x"}`}},
			"given twice"},
		{"a key nobody knows", "",
			[]toolCall{{Name: "read_file", Arguments: `{"path":"inside.txt","encoding":"utf8"}`}}, "unknown key"},
		{"nothing at all", "", []toolCall{{Name: "read_file", Arguments: `{}`}}, `"path\" is missing`},
		{"wrong types", "", []toolCall{call("read_file", map[string]any{"path": 7}),
			call("shell", map[string]any{"command": "rm -rf /"}),
			call("shell", map[string]any{"command": []any{"ls", 7}}),
			call("read_file", map[string]any{"path": "inside.txt", "limit": "all"}),
			call("list_files", map[string]any{"depth": 1.5})}, "expected"},
		{"tools there are not", "", []toolCall{call("rm_rf", nil), call("", nil),
			call("multi_tool_use.parallel", map[string]any{"tool_uses": []any{}}), call("shell; rm", nil),
			call(strings.Repeat("n", 300), nil)}, ""},
		{"tools of others", "b-reader",
			[]toolCall{call("write_file", map[string]any{"path": "new.txt", "content": "x"}),
				shellCall("touch", "new.txt"), call("apply_patch", map[string]any{"patch": patch("new.txt")})},
			"there is no tool"},
		{"out by dots", "", []toolCall{call("read_file", map[string]any{"path": "../outside/secret.txt"}),
			call("write_file", map[string]any{"path": "../outside/new.txt", "content": "evil"}),
			call("write_file", map[string]any{"path": "a/../../outside/new.txt", "content": "evil"}),
			call("list_files", map[string]any{"path": ".."}),
			call("apply_patch", map[string]any{"patch": patch("../outside/new.txt")}),
			call("edit_file", map[string]any{"path": "../outside/secret.txt", "old_text": "a", "new_text": "b"}),
			call("shell", map[string]any{"command": []string{"touch", "new.txt"}, "workdir": "../outside"}),
			call("search_files", map[string]any{"pattern": "secret", "path": "../outside"})}, ""},
		{"out by the root", "", []toolCall{call("read_file", map[string]any{"path": outside + "/secret.txt"}),
			call("write_file", map[string]any{"path": outside + "/new.txt", "content": "evil"}),
			call("apply_patch", map[string]any{"patch": patch(outside + "/new.txt")}),
			call("shell", map[string]any{"command": []string{"touch", "new.txt"}, "workdir": outside})}, ""},
		{"out by links", "", []toolCall{call("read_file", map[string]any{"path": "link/secret.txt"}),
			call("read_file", map[string]any{"path": "link.txt"}),
			call("read_file", map[string]any{"path": "up/secret.txt"}),
			call("write_file", map[string]any{"path": "link/new.txt", "content": "evil"}),
			call("write_file", map[string]any{"path": "dangling", "content": "evil"}),
			call("write_file", map[string]any{"path": "link.txt", "content": "evil"}),
			call("apply_patch", map[string]any{"patch": patch("up/new.txt")}),
			call("apply_patch", map[string]any{"patch": update("link.txt")}),
			call("edit_file", map[string]any{"path": "link.txt", "old_text": "a secret", "new_text": "evil"}),
			shellCall("sh", "-c", "echo evil > link/new.txt"), shellCall("sh", "-c", "echo evil > dangling"),
			shellCall("cp", "inside.txt", "link.txt"), shellCall("sh", "-c", "cat link.txt >&2")}, ""},
		{"out by commands", "", []toolCall{shellCall("sh", "-c", "echo evil > ../outside/new.txt"),
			shellCall("sh", "-c", "rm -rf "+outside+"; exit 1"), shellCall("cat", outside+"/secret.txt"),
			shellCall("sh", "-c", "ln -s "+outside+" sub; echo evil > sub/new.txt")}, ""},
		{"a megabyte", "", []toolCall{call("read_file", map[string]any{"path": strings.Repeat("m", 1_000_000)}),
			call("read_file", map[string]any{"path": "inside.txt", "more": strings.Repeat("m", 1_000_000)})}, ""},
		{"more than a megabyte", "",
			[]toolCall{
				call("write_file", map[string]any{"path": "big.txt", "content": strings.Repeat("m", 1_100_000)})},
			"arguments 1048576"},
		{"too many at once", "", many(65), ""},
		{"far too many at once", "", many(300), ""},
	}
	var scripts [][]fixture
	for _, c := range cases {
		scripts = append(scripts, script("try: "+c.name+".", asks("I try.", c.calls...), says("I see.")))
	}
	mock := startModel(t, scripts...)
	s := startServer(t, withModel(mock, options{workspace: workspace}, "PATH="+os.Getenv("PATH")))
	before := tree(t, top)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := s.in(t)
			agent := c.agent
			if agent == "" {
				agent = "a-auto"
			}
			session := s.says(agent, "try: "+c.name+".")
			log := s.ends(session)
			if end := finished(t, log); end.Outcome != parley.Completed || spoken(log) != "I try.I see." {
				t.Fatalf("%+v, and said was %q", end, spoken(log))
			}
			results := map[parley.CallID]string{}
			for _, b := range those[parley.ToolCallBlocked](log) {
				results[b.Call] = b.Reason
			}
			for _, b := range those[parley.ToolCallFinished](log) {
				if b.Outcome == parley.CallSucceeded && len(c.calls) <= parley.MaxCalls {
					t.Errorf("%d succeeded: %.200s", b.Call, b.Result)
				}
				results[b.Call] = b.Result
			}
			// One more than the limit stands for any larger number.
			if blocked := those[parley.ToolCallBlocked](log); len(results) != min(len(c.calls), parley.MaxCalls+1) ||
				len(c.calls) > parley.MaxCalls &&
					(len(blocked) != 1 || !strings.Contains(blocked[0].Reason, "were left out")) {
				t.Errorf("%d calls have %d results, blocked are %+v", len(c.calls), len(results), blocked)
			}
			asked := toldModel(mock, "try: "+c.name+".")
			if len(asked) != 2 {
				t.Fatalf("the model was asked %d times", len(asked))
			}
			for id, result := range results {
				if !strings.Contains(result, strings.ReplaceAll(c.told, `\"`, `"`)) ||
					strings.Contains(result, "a secret") {
					t.Errorf("call %d: %.300q", id, result)
				}
			}
			if n := strings.Count(asked[1], `"role":"tool"`); n != len(results) {
				t.Errorf("of %d results %d were told", len(results), n)
			}
			wantTakenBack(t, asked[1])
		})
	}
	after := tree(t, top)
	for name, content := range after {
		if before[name] != content && name != "project/sub" {
			t.Errorf("%s is %q now", name, content)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			t.Errorf("%s is gone", name)
		}
	}
}

func many(n int) (calls []toolCall) {
	for range n {
		calls = append(calls, call("read_file", map[string]any{"path": "inside.txt"}))
	}
	return calls
}

// tree returns everything in a folder.
func tree(t *testing.T, top string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			all[rel], err = os.Readlink(name)
			return err
		}
		raw, err := os.ReadFile(name)
		all[rel] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantTakenBack acts as a vendor that refuses a conversation in which a call
// has an impossible tool name, or arguments that are not JSON.
func wantTakenBack(t *testing.T, body string) {
	t.Helper()
	var request struct {
		Messages []struct {
			Calls []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	for _, m := range request.Messages {
		for _, c := range m.Calls {
			var arguments map[string]any
			if err := json.Unmarshal([]byte(c.Function.Arguments), &arguments); err != nil ||
				!callName.MatchString(c.Function.Name) {
				t.Errorf("the model is told that it asked for %.100q with %.100s", c.Function.Name,
					c.Function.Arguments)
			}
		}
	}
}

// callName is the pattern that vendors document.
var callName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
