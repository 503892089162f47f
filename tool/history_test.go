package tool

import (
	"testing"

	"parley"
)

// TestHistoryOfProtectedFolders: policy learns which folders of the workspace
// are protected, and where a command runs.
func TestHistoryOfProtectedFolders(t *testing.T) {
	b := sandboxed(t, "conf/prompts")
	for arguments, want := range map[string]parley.VerdictKind{
		`{"command":["git","blame","HEAD","main.go"]}`:                         parley.VerdictRun,
		`{"command":["git","blame","HEAD","conf/prompts/x.md"]}`:               parley.VerdictAsk,
		`{"command":["git","blame","HEAD","x.md"],"workdir":"skills"}`:         parley.VerdictAsk,
		`{"command":["git","show","HEAD:conf/prompts/x.md"]}`:                  parley.VerdictAsk,
		`{"command":["git","log","--stat","--","conf/prompts"]}`:               parley.VerdictRun,
		`{"command":["bash","-lc","cd conf && cd prompts && git blame x.md"]}`: parley.VerdictAsk,
		`{"command":["bash","-lc","cat .e*"]}`:                                 parley.VerdictAsk,
	} {
		v := b.box.Judge(parley.Agent{Approval: "suggest"}, "shell", arguments)
		if v.Kind != want || v.Class != parley.Pure { // all these commands only read, and run read-only
			t.Errorf("%s: %+v", arguments, v)
		}
	}
}
