package tool

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"parley"
)

// TestFilesThatRunElsewhereAsk checks that such files ask, in every mode and
// with every tool that writes. Ordinary project files do not.
func TestFilesThatRunElsewhereAsk(t *testing.T) {
	box := newBox(t, t.TempDir())
	for name, asks := range map[string]bool{
		".claude/settings.json": true, ".claude/hooks/x.sh": true, "sub/.claude/commands/x.md": true, ".mcp.json": true,
		"pkg/.mcp.json":    true,
		".cursor/mcp.json": true, ".cursor/rules/x.mdc": true, ".cursorrules": true, ".zed/tasks.json": true,
		".mise.toml": true, "mise.toml": true,
		".config/mise/config.toml": true, ".npmrc": true, "web/.npmrc": true, ".yarnrc.yml": true,
		".yarn/releases/yarn.cjs": true, ".cargo/config.toml": true,
		".exrc": true, ".nvim.lua": true, ".dir-locals.el": true, ".vscode/tasks.json": true, "x.code-workspace": true,
		".idea/workspace.xml": true,
		".husky/pre-commit":   true, ".githooks/post-checkout": true, ".envrc": true, "sub/.envrc": true,
		".pre-commit-config.yaml": true,
		".github/workflows/x.yml": true, ".GitHub/Workflows/x.yml": true, ".gitlab-ci.yml": true, "Jenkinsfile": true,
		".circleci/config.yml": true,
		".gitmodules":          true, ".devcontainer/devcontainer.json": true, ".devcontainer.json": true,
		".bashrc":              true,
		".ssh/authorized_keys": true,
		".gdbinit":             true, ".Rprofile": true, ".mvn/extensions.xml": true, "./.claude/x": true,
		"a/../.vscode/tasks.json": true,

		"Makefile": false, "package.json": false, "main.go": false, "src/claude/x.md": false, "docs/cursor/x.md": false,
		".github/CODEOWNERS": false,
		".gitignore":         false, ".editorconfig": false, "cargo/x.toml": false, "Cargo.toml": false,
		"CLAUDE.md": false,
		"AGENTS.md": false, "x.npmrc": false,
		"vscode/x": false, ".config/app.json": false, "config/mise.txt": false, "Dockerfile": false,
		".claudette/x": false,
	} {
		quoted := func(text string) string {
			raw, _ := json.Marshal(text)
			return string(raw)
		}
		if filepath.Clean(name) != name {
			if runsElsewhere(name) != asks {
				t.Errorf("%s", name)
			}
			continue
		}
		for _, mode := range []parley.ApprovalMode{"auto-edit", "full-auto"} {
			for _, call := range []struct{ tool, arguments string }{
				{"write_file", `{"path":` + quoted(name) + `,"content":"x"}`},
				{"edit_file", `{"path":` + quoted(name) + `,"old_text":"x","new_text":"y"}`},
				{"apply_patch", `{"patch":` + quoted("*** Begin Patch\n*** Add File: "+name+"\n+x\n*** End Patch") +
					`}`},
				{"apply_patch", `{"patch":` + quoted("*** Begin Patch\n*** Update File: fine\n*** Move to: "+name+
					"\n@@\n-a\n+b\n*** End Patch") + `}`},
			} {
				v := box.Judge(parley.Agent{Approval: mode}, call.tool, call.arguments)
				if v.Kind == parley.VerdictBlock || (v.Kind == parley.VerdictAsk) != asks {
					t.Errorf("%s of %s under %s: %+v", call.tool, name, mode, v)
				}
			}
		}
	}
}
