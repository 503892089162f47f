package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley"
)

func TestToolServers(t *testing.T) {
	dir := inDir(t, map[string]string{
		"ws/note": "",
		".env":    "FILES_TOKEN=token of files\nMAIL_AUTH=Bearer mail-token\n",
		"p.yaml": `drain: 1s
mcp:
  servers:
    mail: {url: 'https://mail.example/mcp', headers_env: {Authorization: MAIL_AUTH, X-Other: UNSET}, tenants: [acme, '*']}
    files:
      command: [./bin/files, --stdio]
      env: [FILES_TOKEN, PLACE, GONE]
      workspace: write
      read: [.]
      network: true
      sandbox: false
      trust: true
      timeout: 30s
      idle: 2m
`,
	})
	got, err := parse([]string{"serve", "--config", "p.yaml", "--workspace", "ws"},
		map[string]string{"PLACE": "somewhere nice"})
	if err != nil {
		t.Fatal(err)
	}
	want := []ToolServer{
		{Name: "files", Trust: true, Timeout: 30 * time.Second, Idle: 2 * time.Minute,
			Command: []string{filepath.Join(dir, "bin/files"), "--stdio"},
			Env: []Variable{{Name: "FILES_TOKEN", Secret: "token of files"},
				{Name: "PLACE", Plain: "somewhere nice"}}, Missing: []string{"GONE"}, Writes: true, Read: []string{dir},
			Network: true, Bare: true},
		{Name: "mail", URL: "https://mail.example/mcp",
			Headers: map[string]Secret{"Authorization": "Bearer mail-token"}, Missing: []string{"UNSET"},
			Tenants: []parley.TenantID{"acme"}, Everyone: true},
	}
	if diff := cmp.Diff(want, got.ToolServers); diff != "" || got.Drain != time.Second {
		t.Error(diff)
	}
	if shown := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(shown, "token of files") ||
		strings.Contains(shown, "mail-token") || strings.Contains(shown, "somewhere nice") {
		t.Error("settings show what is secret in them")
	}
}
