package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/provider/providertest"
)

// TestTheFirstAgent follows docs/first-agent.md to the letter: it runs the
// commands and the chat, and compares the output with the page.
func TestTheFirstAgent(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/first-agent.md")
	if err != nil {
		t.Fatal(err)
	}
	page, rest, found := strings.Cut(string(raw), "    $ bin/parley chat\n")
	if !found {
		t.Fatal("there is no chat")
	}
	var commands []string
	for _, m := range regexp.MustCompile(`(?m)^    \$ (.*)$`).FindAllStringSubmatch(page, -1) {
		commands = append(commands, m[1])
	}
	chat := ""
	for line := range strings.Lines(rest) {
		block, indented := strings.CutPrefix(line, "    ")
		if !indented && line != "\n" {
			break
		}
		chat += block
	}
	home := t.TempDir()
	clone := filepath.Join(home, "parley")
	if err := os.MkdirAll(filepath.Join(clone, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary(t), filepath.Join(clone, "bin/parley")); err != nil {
		t.Fatal(err)
	}

	// A shell runs everything before the start of the server.
	i := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "bin/parley serve") })
	if want := []string{"make build", "bin/parley doctor --workspace ~/greeting", "bin/parley serve --workspace " +
		"~/greeting"}; !slices.Equal(commands[i-2:], want) {
		t.Fatalf("the commands are %q", commands)
	}
	mock := startModel(t, firstScript())
	model := []string{"ANTHROPIC_BASE_URL=" + mock.URL, "ANTHROPIC_API_KEY=" + providertest.Key}
	before := strings.NewReplacer("make build", "cd "+clone, "=…", "="+providertest.Key).Replace(
		strings.Join(commands[:i], "\n"))
	sh := exec.CommandContext(within(t, patience), "sh", "-e", "-c", before)
	sh.Dir, sh.Env = home, append(model, "HOME="+home, "PATH="+os.Getenv("PATH"), "PARLEY_LISTEN=127.0.0.1:1")
	out, err := sh.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "models: anthropic answers, and has ") {
		t.Fatalf("%v\n%s\n%s", err, before, out)
	}
	s := startServer(t, options{workspace: filepath.Join(home, "greeting"),
		env: append(model, "PATH="+os.Getenv("PATH"))})

	// The chat runs with the real binary. Its output contains neither the typed
	// text nor the Enter after it.
	chat = strings.ReplaceAll(chat, "> ^D\n", "> \n")
	typed := regexp.MustCompile(`(?m)^(> |.*\[s\]top: )(.+)$\n`)
	var lines []string
	for _, m := range typed.FindAllStringSubmatch(chat, -1) {
		lines = append(lines, m[2])
	}
	cmd := exec.CommandContext(within(t, patience), binary(t), "chat", "--server", s.address)
	cmd.Dir = s.o.workspace
	cmd.Env, cmd.Stdin = []string{}, strings.NewReader(strings.Join(lines, "\n")+"\n")
	var printed strings.Builder
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	id := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	want, got := strings.TrimSpace(typed.ReplaceAllString(chat, "$1")),
		strings.TrimSpace(id.ReplaceAllString(printed.String(), "3f0c…"))
	got = regexp.MustCompile(` --server \S+$`).ReplaceAllString(got, "") // the page uses the default server
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is printed is not what the page shows (-page +printed):\n%s", diff)
	}
	wantFile(t, s, "greet.sh", "echo \"Hello, $1!\"\n")
	s.settled(id.FindString(printed.String()))
}

func firstScript() []fixture {
	turns := []response{
		asks("I run the test first.", shellCall("sh", "test.sh")),
		asks("", call("read_file", map[string]any{"path": "greet.sh"})),
		asks("A letter is missing.",
			call("apply_patch", map[string]any{"patch": "*** Begin Patch\n*** Update File: greet.sh\n@@\n-echo " +
				"\"Helo, $1!\"\n+echo \"Hello, $1!\"\n*** End Patch\n"})),
		asks("", shellCall("sh", "test.sh")),
		says("The greeting says Hello now, and the test passes."),
	}
	for i := range turns {
		turns[i].Usage = map[string]int{"input_tokens": 1200 + 150*i, "output_tokens": 60}
	}
	return script("The test fails", turns...)
}
