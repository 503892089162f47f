package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// placed creates a folder that contains a workspace, programs outside the
// workspace, and links in both directions.
func placed(t *testing.T) string {
	dir := inDir(t, map[string]string{
		"ws/server.js": "", "ws/x.py": "", "ws/tool": "#!/bin/sh\n", "ws/bin/node": "", "ws/lib/a.rb": "",
		"ws/data.json":  "{}",
		"opt/server.js": "", "opt/tool": "#!/bin/sh\n", "opt/bin/node": "", "opt/bin/python3.12": "", "opt/bin/odd": "",
		"shared/cache/plugin.js": "",
	})
	if err := os.WriteFile(filepath.Join(dir, "opt/hidden"), []byte("#!"+dir+"/ws/tool\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ws/tool", "ws/bin/node", "opt/tool", "opt/bin/node", "opt/bin/python3.12",
		"opt/bin/odd"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"opt/into": dir + "/ws/tool", "opt/folder": dir + "/ws", "ws/out": dir + "/opt/tool",
		"opt/around": dir + "/ws/out",
		"opt/js":     dir + "/opt/bin/node", "wslink": dir + "/ws", "ws/outside": dir + "/opt",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// starts parses a configuration with one server.
func starts(t *testing.T, dir, server string, more ...string) error {
	t.Helper()
	server = strings.NewReplacer("WS", dir+"/ws", "OPT", dir+"/opt", "DIR", dir).Replace(server)
	write(t, filepath.Join(dir, "p.yaml"), "mcp:\n  servers:\n    x: {"+server+"}\n"+strings.Join(more, ""))
	_, err := parse([]string{"serve", "--config", "p.yaml", "--workspace", filepath.Join(dir, "ws"), "--data",
		filepath.Join(dir, "data")},
		map[string]string{"TOKEN": "secret value", "PATH": dir + "/ws/bin:" + os.Getenv("PATH"), "PLACE": "x"})
	return err
}

// TestProgramsThatAgentsCouldReplace checks that these programs are rejected if
// they have more rights than an agent: no sandbox, secrets, or another tenant.
func TestProgramsThatAgentsCouldReplace(t *testing.T) {
	dir := placed(t)
	refused := []string{
		"WS/tool", "ws/tool", "./ws/../ws/tool", "WS/not-there-yet", "WS/out", "OPT/into", "OPT/folder/tool",
		"OPT/around",
		"DIR/wslink/tool", "OPT/hidden",
		"WS/outside/tool",
		"node, WS/server.js", "node, server.js", "node, WS/not-yet.js", "node, WS", "node, OPT/folder/server.js",
		"OPT/bin/node, WS/server.js", "OPT/js, WS/server.js",
		"node, --enable-source-maps, WS/server.js", "node, --require, WS/server.js, OPT/server.js",
		"node, --require=WS/server.js, OPT/server.js",
		"node, -r, OPT/server.js, WS/server.js", "node, --env-file, OPT/server.js, WS/server.js",
		"node, -e, 'require(\"WS/server.js\")'",
		"python3, WS/x.py", "python3, -X, dev, WS/x.py", "python3, -u, x.py",
		"python3, -c, 'exec(open(\"WS/x.py\").read())'", "OPT/bin/python3.12, WS/x.py",
		"ruby, -IWS/lib, OPT/server.js", "ruby, -I, WS/lib, OPT/server.js", "java, -cp, WS/lib, Main",
		"java, -jar, WS/x.jar", "java, '-cp', 'OPT:WS/lib', Main",
		"bash, WS/tool", "bash, -lc, 'exec WS/tool --stdio'", "sh, -c, WS/tool", "env, node, WS/server.js",
		"env, WS/tool",
		"env, X=1, OPT/bin/node, WS/server.js",
		"env, NODE_OPTIONS=--require=WS/x.js, node, OPT/server.js", "timeout, -k, '5', '60', python3, WS/x.py",
		"nice, -n, '5', WS/tool",
		"npx, WS/lib", "npx, -y, WS/lib", "npx, --package, WS/lib, tool", "uvx, --from, WS/lib, tool",
		"uv, run, --directory, WS, tool", "uvx, --python, '3.12', --from, WS, tool",
		"deno, run, --allow-read=WS, WS/server.js", "bun, run, WS/server.js", "OPT/bin/odd, WS/tool",
		"OPT/bin/odd, --stdio, WS/server.js",
	}
	runs := []string{
		"OPT/tool", "OPT/tool, WS", "OPT/tool, --root, WS, WS/data.json", "node, OPT/server.js",
		"node, OPT/server.js, WS",
		"node, OPT/server.js, --config, WS/data.json",
		"node, --enable-source-maps, OPT/server.js, WS/server.js", "node, --require, OPT/server.js, OPT/server.js, WS",
		"python3, -m, mcp_server, --root, WS", "OPT/js, OPT/server.js, WS",
		"npx, -y, '@modelcontextprotocol/server-filesystem', WS", "uvx, mcp-server-git, --repository, WS",
		"uvx, --from, mcp, tool, --root, WS",
		"deno, run, --allow-read=WS, OPT/server.js", "java, -cp, OPT, Main, WS/data.json",
		"env, X=1, node, OPT/server.js, WS", "OPT/bin/odd, WS", "OPT/bin/odd, --db, WS/data.json",
		"docker, run, -i, --rm, -v, 'WS:/data', image", "sh, -c, 'exec OPT/tool'", "OPT/bin/odd, --root=WS",
		"no-such-program",
	}
	for _, kind := range []string{"sandbox: false", "env: [TOKEN]", "env: [NOT_SET]", "tenants: [default, rival]",
		"tenants: ['*']"} {
		for _, command := range refused {
			err := starts(t, dir, "command: ["+command+"], "+kind)
			if err == nil || !strings.Contains(err.Error(), "mcp.servers.x.command") ||
				!strings.Contains(err.Error(), "move it out") {
				t.Errorf("%s with %s: %v", command, kind, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret value") {
				t.Errorf("%s: the error has the secret: %v", command, err)
			}
		}
		for _, command := range runs {
			if err := starts(t, dir, "command: ["+command+"], "+kind); err != nil {
				t.Errorf("%s with %s is refused: %v", command, kind, err)
			}
		}
	}
	for _, command := range append(refused, runs...) { // replacing it would gain an agent nothing
		if err := starts(t, dir, "command: ["+command+"]"); err != nil {
			t.Errorf("%s with nothing is refused: %v", command, err)
		}
	}
}

// TestWritableFoldersAreNoPlaceForPrograms checks that folders that MCP servers can
// write to count like the workspace, because agents can write files there by the
// servers' tools.
func TestWritableFoldersAreNoPlaceForPrograms(t *testing.T) {
	dir := placed(t)
	other := fmt.Sprintf("    y: {command: [%s/opt/tool], write: [%s/shared]}\n", dir, dir)
	for server, refused := range map[string]bool{
		"command: [node, DIR/shared/cache/plugin.js], env: [TOKEN]":   true,
		"command: [node, DIR/shared/cache/plugin.js], sandbox: false": true,
		"command: [node, DIR/shared/cache/plugin.js]":                 false,
		"command: [node, OPT/server.js], env: [TOKEN]":                false,
		"command: [node, OPT/server.js], env: [TOKEN], write: [OPT]":  true,
		// PATH begins with a folder in the workspace
		"command: [node, OPT/server.js], env: [TOKEN, PATH]":            true,
		"command: [DIR/opt/bin/node, OPT/server.js], env: [PATH]":       false,
		"command: [OPT/tool], tenants: ['*'], sandbox: false":           true,
		"command: [OPT/tool], tenants: [rival], read: [WS/lib]":         true,
		"command: [OPT/tool], tenants: [rival], read: [DIR]":            true,
		"command: [OPT/tool], tenants: [rival], write: [DIR/wslink]":    true,
		"command: [OPT/tool], tenants: [rival], read: [OPT]":            false,
		"command: [OPT/tool], tenants: [default], read: [WS/lib]":       false,
		"command: [OPT/tool], tenants: [default], sandbox: false":       false,
		"url: 'https://tools.example/mcp', tenants: ['*']":              false,
		"command: [node, OPT/server.js], env: [TOKEN], workspace: read": false,
	} {
		if err := starts(t, dir, server, other); (err != nil) != refused {
			t.Errorf("%s: %v", server, err)
		}
	}
}
