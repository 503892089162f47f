package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/client"
)

// A screenUser is a person at a terminal of tmux in which the program runs.
type screenUser struct {
	t      *testing.T
	socket string // of a tmux server for this terminal alone
	bin    string // path of the program
}

// newScreen starts the chat in a terminal. Each variable has the form NAME=value.
func newScreen(t *testing.T, width, height int, variables []string, args ...string) *screenUser {
	t.Helper()
	return newScreenOn(t, "default", width, height, variables, args...)
}

// newScreenOn is newScreen for a terminal with a background colour, which the terminal reports to programs.
func newScreenOn(t *testing.T, background string, width, height int, variables []string, args ...string) *screenUser {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip(err)
	}
	folder, err := os.MkdirTemp("", "screen") // socket names must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	u := &screenUser{t: t, socket: filepath.Join(folder, "tmux"), bin: programLink(t)}
	settings := filepath.Join(folder, "settings")
	put(t, settings, "set -g window-style bg="+background+"\n")
	command := []string{"-f", settings, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height)}
	for _, v := range append([]string{"LC_ALL=C.UTF-8", "HOME=" + folder, "NO_COLOR=", "COLORTERM=",
		"PARLEY_SERVER="}, variables...) {
		command = append(command, "-e", v)
	}
	// The shell stays, so that the test can read the screen after the program has ended.
	command = append(command, "sh", "-c", `"$0" chat "$@"; echo "ended with $?"; exec cat`, u.bin)
	u.tmux(append(command, args...)...)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", u.socket, "kill-server").Run() })
	return u
}

// programLink returns a path under which the test binary runs as the program.
func programLink(t *testing.T) string {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), programName)
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func (u *screenUser) tmux(args ...string) string {
	u.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", u.socket, "-u"}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// screen returns the contents of the terminal.
func (u *screenUser) screen(flags ...string) string {
	u.t.Helper()
	return u.tmux(append([]string{"capture-pane", "-p"}, flags...)...)
}

// see waits until the terminal shows all texts at the same time. Line ends and rows of spaces count as one space.
func (u *screenUser) see(texts ...string) string {
	u.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		screen := u.screen()
		missing := ""
		joined := strings.Join(strings.Fields(screen), " ")
		for _, text := range texts {
			if !strings.Contains(joined, text) {
				missing = text
			}
		}
		if missing == "" {
			return screen
		}
		if time.Now().After(deadline) {
			u.t.Fatalf("the terminal does not show %q:\n%s", missing, screen)
		}
	}
}

// keys presses keys by their names in tmux.
func (u *screenUser) keys(names ...string) {
	u.t.Helper()
	u.tmux(append([]string{"send-keys"}, names...)...)
}

// enter types a line.
func (u *screenUser) enter(line string) {
	u.t.Helper()
	u.tmux("send-keys", "-l", line)
	u.see("› " + line)
	u.keys("Enter")
}

func (u *screenUser) resize(width, height int) {
	u.t.Helper()
	u.tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// screenProject makes a folder with two agents.
func screenProject(t *testing.T) string {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"agents/coder.md":    "---\nname: coder\ndescription: writes code\ndelegates: [explorer]\n---\nWrite code.\n",
		"agents/explorer.md": "---\nname: explorer\ndescription: looks\n---\nLook.\n",
		"notes.txt":          "a note\n",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestScreen drives the full screen in a real terminal: messages, steering, cancelling, cards, sub-agents, lists and
// sizes.
func TestScreen(t *testing.T) {
	t.Parallel()
	project := screenProject(t)
	if _, err := exec.LookPath("git"); err != nil { // git finds the changed files
		t.Skip(err)
	}
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", project)
	defer stop()
	u := newScreen(t, 90, 30, nil, "--server", addr)
	u.see("Write a message", "✓ ready", "demo")
	u.enter("hello")
	u.see("Hello! I am Parley's demo model", "✓ ready", "coder · demo")
	if !coloured.MatchString(u.screen("-e")) {
		t.Error("the screen has no colours")
	}

	u.enter("count slowly to 500") // the answer is streamed, so it can be steered and stopped
	u.see("1 2 3", "● writing")
	u.enter("say steered")
	u.see("⏳ say steered")
	u.keys("C-c")
	u.see("Stopped.", "› say steered steered", "✓ ready")

	u.enter("write hi to new.txt")
	u.see("write_file wants your approval", "Write 2 bytes", "? waits for you", "[y]es")
	u.keys("y")
	u.see("✓ write_file new.txt", "It is written.", "Changed 1 file", "new.txt", "+hi", "✓ ready")
	if text, err := os.ReadFile(filepath.Join(project, "new.txt")); string(text) != "hi" {
		t.Errorf("the file has %q (%v)", text, err)
	}
	u.enter("write no to no.txt")
	u.see("[r]eason")
	u.keys("r")
	u.see("Write why not.")
	u.enter("not now")
	u.see("⊘ write_file no.txt", "That came to nothing", "not now", "✓ ready")

	u.enter("ask me")
	u.see("Tea or coffee?", "A number or Enter answers")
	u.keys("Down", "Enter")
	u.see("Your answer: Coffee.", "✓ ready")

	u.enter("/plan build a house")
	u.see("The plan waits for your approval", "[a]pprove")
	u.keys("a")
	u.see("Plan (completed)", "✓ ready")

	u.enter("delegate say found it to explorer")
	u.see("✓ explorer: say found it", "explorer says: found it", "✓ ready")
	u.keys("-l", "look at @no")
	u.keys("Tab")
	u.see("› look at @notes.txt")
	u.keys("C-u")
	u.keys("-l", "@exp")
	u.keys("Tab")
	u.see("› @explorer")
	u.keys("-l", "say by another")
	u.keys("Enter")
	u.see("› say by another by another", "✓ ready", "explorer · demo")
}

// TestScreenSizes checks that the screen follows the size of its terminal and works in 40 columns.
func TestScreenSizes(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", screenProject(t))
	defer stop()
	u := newScreen(t, 40, 16, []string{"NO_COLOR=1"}, "--server", addr)
	u.see("✓ ready")
	u.enter("hello")
	u.see("I am Parley's demo model: scripted", "✓ ready coder · demo")
	for _, line := range strings.Split(u.screen(), "\n") {
		if n := utf8.RuneCountInString(line); n > 40 {
			t.Errorf("a line is %d wide: %q", n, line)
		}
	}
	if coloured := coloured.FindString(u.screen("-e")); coloured != "" {
		t.Errorf("NO_COLOR is set, and the screen has the sequence %q", coloured)
	}
	carryOn(t, addr, u)
	u.resize(20, 6)
	u.see("The terminal is too small")
	u.resize(100, 30)
	u.see("› say by parley run by parley run", "context")
	u.keys("-l", "/sess")
	u.keys("Tab", "Enter")
	u.see("Sessions", "▸ hello")
	u.keys("Escape")
	u.see("by parley run")
	u.keys("C-d")
	u.see("Go on with: parley chat --thread", "ended with 0")
}

// TestScreenBackground checks that the greys match the background colour that the terminal reports.
func TestScreenBackground(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("another process does the work")
	}
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", screenProject(t))
	defer stop()
	for background, grey := range map[string]string{"#fdf6e3": "38;5;242m", "#002b36": "38;5;245m"} {
		u := newScreenOn(t, background, 60, 16, nil, "--server", addr)
		u.see("✓ ready")
		for deadline := time.Now().Add(time.Minute); !strings.Contains(u.screen("-e"), grey); {
			if time.Now().After(deadline) {
				t.Fatalf("on %s the grey %s is not used: %q", background, grey, u.screen("-e"))
			}
			time.Sleep(20 * time.Millisecond)
		}
		u.enter("/theme " + map[string]string{"38;5;242m": "dark", "38;5;245m": "light"}[grey])
		for deadline := time.Now().Add(time.Minute); strings.Contains(u.screen("-e"), grey); {
			if time.Now().After(deadline) {
				t.Fatalf("/theme does not override the background %s: %q", background, u.screen("-e"))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// carryOn continues the conversation on the screen with a request like the console's and with parley run. The screen
// shows both.
func carryOn(t *testing.T, addr string, u *screenUser) {
	c, err := client.New(addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, err := c.Sessions(t.Context(), client.SessionQuery{})
	if err != nil || len(list) != 1 {
		t.Fatalf("sessions: %v, %v", list, err)
	}
	res, err := plainHTTP.Post(addr+"/api/chat", "application/json", strings.NewReader(
		`{"session_id":"`+string(list[0].ID)+`","message":"say by the console"}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	u.see("› say by the console by the console", "✓ ready")
	var answer bytes.Buffer
	p := &program{ctx: t.Context(), stdin: strings.NewReader(""), stdout: &answer, stderr: io.Discard}
	if err := p.run([]string{"run", "--server", addr, "--session", string(list[0].ID), "say by parley run"},
		noEnv); err != nil || answer.String() != "by parley run\n" {
		t.Errorf("parley run printed %q: %v", &answer, err)
	}
	u.see("› say by parley run by parley run", "✓ ready")
}

// coloured matches a control sequence that sets a colour.
var coloured = regexp.MustCompile("\x1b\\[(?:[0-9]+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")

// TestScreenSurvivesServerRestart: the server is killed in the middle of an answer and started again. The same screen
// continues, and no line is lost or duplicated.
func TestScreenSurvivesServerRestart(t *testing.T) {
	t.Parallel()
	project, data := screenProject(t), t.TempDir()
	bin := programLink(t)
	addr, kill := serverProcess(t, bin, "127.0.0.1:0", data, project)
	u := newScreen(t, 90, 30, nil, "--server", addr)
	u.see("✓ ready")
	u.enter("say before")
	u.see("› say before before", "✓ ready")
	u.enter("count slowly to 25")
	u.see("1 2 3")
	kill()
	u.see("✗ no connection")
	_, kill = serverProcess(t, bin, strings.TrimPrefix(addr, "http://"), data, project)
	u.see("23 24 25", "✓ ready")
	kill()
	u.see("✗ no connection")
	u.enter("say after") // sent when the server is back
	u.see("… say after")
	serverProcess(t, bin, strings.TrimPrefix(addr, "http://"), data, project)
	screen := u.see("› say after after", "✓ ready")
	for _, text := range []string{"› say before\n", "› count slowly to 25\n", "› say after\n",
		"(the answer breaks off here)"} {
		if n := strings.Count(screen, text); n != 1 {
			t.Errorf("%q is shown %d times:\n%s", text, n, screen)
		}
	}
}

// TestScreensOfOneFolder: a chat without a server starts one, and a second chat in the folder uses it. When the first
// chat leaves, the second one starts a server itself.
func TestScreensOfOneFolder(t *testing.T) {
	t.Parallel()
	variables := []string{"PARLEY_DATA=" + t.TempDir(), "PARLEY_WORKSPACE=" + screenProject(t)}
	first := newScreen(t, 80, 20, variables)
	first.see("✓ ready")
	first.enter("say one")
	first.see("› say one one", "✓ ready")
	second := newScreen(t, 80, 20, variables)
	second.see("✓ ready")
	second.enter("/sessions")
	second.see("▸ say one")
	second.keys("Enter")
	second.see("› say one one", "✓ ready")
	first.keys("C-d")
	first.see("ended with 0")
	second.enter("say two")
	second.see("› say two two", "✓ ready")
	if screen := second.screen(); strings.Count(screen, "› say one\n") != 1 ||
		strings.Count(screen, "› say two\n") != 1 {
		t.Errorf("a line is lost or doubled:\n%s", screen)
	}
}

// serverProcess starts a server in its own process. kill kills it with SIGKILL and waits until it is gone.
func serverProcess(t *testing.T, bin, listen, data, project string) (addr string, kill func()) {
	t.Helper()
	cmd := exec.Command(bin, "serve", "--listen", listen, "--data", data, "--workspace", project)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	kill = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, at := serverOn(data); at != "" {
			if res, err := plainHTTP.Get("http://" + at + "/healthz"); err == nil {
				res.Body.Close()
				if res.StatusCode == http.StatusOK {
					return "http://" + at, kill
				}
			}
		}
	}
	t.Fatal("the server does not start")
	return "", nil
}
