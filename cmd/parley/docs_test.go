package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// operatorPages are the pages whose commands TestOperatorPages runs.
var operatorPages = []string{"deploy", "keeping", "observe", "secrets", "troubleshooting", "upgrade"}

// notRun are commands that a page may contain but a test cannot run, with the reason. Files of the repository in them
// must exist, and commands of parley in them must parse.
var notRun = []struct {
	form   *regexp.Regexp
	reason string
}{
	{regexp.MustCompile(`^docker compose -f deploy/\S+ (up --detach --build|exec parley parley .+)$`),
		"there is no Docker; make image-check runs the files of the image"},
	{regexp.MustCompile(
		`^helm (install parley deploy/helm/parley --set .+|upgrade parley deploy/helm/parley --reuse-values)$`),
		"there is no Kubernetes; make deploy-check renders the chart"},
	{regexp.MustCompile(
		`^install (-D )?-m \d+ \S+ /(usr|etc)/\S+( && (systemd-sysusers|systemctl enable --now parley))?$`),
		"it would change the machine; go test ./deploy has systemd judge the unit"},
	{regexp.MustCompile(`^(set -a; \. /etc/parley/parley\.env; .+|runuser -u parley -- parley .+)$`),
		"there is no user parley here"},
	{regexp.MustCompile(`^systemctl status parley$`), "the test's server is no service of the machine"},
}

// commandsOf returns the commands of a page: indented lines that begin with a dollar sign, each with its continuation
// lines.
func commandsOf(page string) (list []string) {
	more := false
	for line := range strings.Lines(page) {
		text := strings.TrimSpace(line)
		command, begins := strings.CutPrefix(text, "$ ")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case more:
			list[len(list)-1] += " " + strings.TrimSuffix(text, `\`)
		case begins && indent%2 == 0 && indent >= 4:
			list = append(list, strings.TrimSuffix(command, `\`))
		default:
			continue
		}
		more = strings.HasSuffix(text, `\`)
	}
	for i, c := range list {
		c, _, _ = strings.Cut(c, "     #") // strip the remark
		list[i] = strings.Join(strings.Fields(c), " ")
	}
	return list
}

// An operator is a person who types the commands of a page, on a machine with one server.
type operator struct {
	t                            *testing.T
	page                         string
	work, data, backups, project string
	addr, session                string
	stop                         func()
	done                         map[string]bool // since the server's start; a page repeats some commands
	postgres, role               string          // a database of PostgreSQL, and a role without rights
}

// TestOperatorPages runs every command in the pages for operators, in order, next to a server.
func TestOperatorPages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("other processes do the work")
	}
	for _, page := range operatorPages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join("../../docs", page+".md"))
			if err != nil {
				t.Fatal(err)
			}
			text := string(raw)
			for i, block := range strings.Split(text, "```") {
				if i%2 == 1 && regexp.MustCompile(`(?m)^ *\$ `).MatchString(block) {
					t.Error("commands stand in indented lines; those of a fenced block would not be run")
				}
			}
			commands := commandsOf(text)
			if len(commands) < 3 {
				t.Fatalf("only %d commands were found", len(commands))
			}
			o := newOperator(t, page, strings.Contains(text, "postgres://"))
			defer func() { o.systemctl("stop") }()
			for _, command := range commands {
				o.types(command)
			}
			for _, m := range regexp.MustCompile("`(parley [a-z][^`…]*)`").FindAllStringSubmatch(text, -1) {
				o.parses(m[1])
			}
		})
	}
}

func newOperator(t *testing.T, page string, postgres bool) *operator {
	work := storetest.Dir(t)
	o := &operator{t: t, page: page, work: work, data: filepath.Join(work, "srv"),
		backups: filepath.Join(work, "backups"), project: filepath.Join(work, "project")}
	for _, folder := range []string{o.backups, o.project, filepath.Join(work, ".bin")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(work, "deploy"), os.DirFS("../../deploy")); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(work, ".bin", programName)); err != nil { // see TestMain
		t.Fatal(err)
	}
	if postgres {
		o.postgres = pgtest.Database(t)
		o.role, _ = pgtest.Role(t, o.postgres, "")
		mustRun(t, "", "migrate", "--database-url", o.postgres)
	}
	o.systemctl("start")
	mustRun(t, "", "backup", filepath.Join(o.backups, "parley-1.db"), "--data", o.data)
	return o
}

// systemctl starts and stops the server.
func (o *operator) systemctl(verb string) {
	if verb != "start" && o.stop != nil {
		o.stop()
		o.stop = nil
	}
	if verb != "stop" {
		o.addr, o.stop = serve(o.t, "--listen", "127.0.0.1:0", "--data", o.data, "--workspace", o.project, "--drain",
			"1ms")
		o.done = map[string]bool{}
		c := open(o.t, o.addr) // gives lists and metrics something to show
		c.say("say hello")
		c.until("RunFinished", 1)
		o.session = cmp.Or(o.session, c.session)
	}
}

// types carries out a command of a page.
func (o *operator) types(command string) {
	o.t.Helper()
	if verb, ok := strings.CutPrefix(command, "systemctl "); ok {
		if verb, ok = strings.CutSuffix(verb, " parley"); ok && slices.Contains([]string{"start", "stop", "restart"},
			verb) {
			o.systemctl(verb)
			return
		}
	}
	for _, n := range notRun {
		if n.form.MatchString(command) {
			for _, name := range regexp.MustCompile(`\bdeploy/[\w./-]+`).FindAllString(command, -1) {
				if _, err := os.Stat(filepath.Join(o.work, name)); err != nil {
					o.t.Errorf("%s: %s: %v", o.page, command, err)
				}
			}
			if i := strings.LastIndex(command, " parley "); i >= 0 && strings.HasPrefix(command, "docker") {
				o.parses(command[i+1:])
			}
			return
		}
	}
	if o.done[command] {
		return
	}
	o.done[command] = true
	if out, err := o.sh(command); err != nil {
		o.t.Errorf("%s: %s\n%v\n%s", o.page, command, err, out)
	}
}

// parses checks a command of parley without running it. Readers are to replace values in capitals.
func (o *operator) parses(command string) {
	o.t.Helper()
	p := &program{ctx: o.t.Context(), env: noEnv, stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	var cli commands
	k, err := p.parser(&cli)
	if err != nil {
		o.t.Fatal(err)
	}
	_, err = k.Parse(strings.Fields(command)[1:])
	if err != nil && !strings.HasPrefix(err.Error(), "expected ") && !strings.Contains(err.Error(), "missing") {
		o.t.Errorf("%s: %s: %v", o.page, command, err)
	}
}

// addresses matches the address of a PostgreSQL database in a page.
var addresses = regexp.MustCompile(`postgres://\w+@db/parley`)

// sh runs a command in a shell. A command that does not end by itself is stopped once it has printed that it works.
func (o *operator) sh(command string) (out string, err error) {
	o.t.Helper()
	host := strings.TrimPrefix(o.addr, "http://")
	command = strings.NewReplacer("127.0.0.1:8080", host, "0.0.0.0:8080", "127.0.0.1:0", "/srv/parley", o.data,
		"/backups", o.backups, "3f0c8a52-6d1e-4b7a-9c40-2f5e8d7b1a63", o.session).Replace(command)
	command = addresses.ReplaceAllLiteralString(command, "'"+o.postgres+"'")
	command = strings.ReplaceAll(command, "--grant parley_server", "--grant "+o.role)
	ends := "" // text that a command prints that does not end by itself
	data, listen := o.data, host
	switch {
	case strings.Contains(command, "parley serve"):
		ends, data, listen = "parley is ready", filepath.Join(o.work, "other"), "127.0.0.1:0"
		command = "exec env " + command
	case strings.Contains(command, " --every "):
		ends, command = "verified", "exec "+command
	}
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = o.work
	cmd.Env = []string{"PATH=" + filepath.Join(o.work, ".bin") + ":" + os.Getenv("PATH"), "HOME=" + o.work,
		"PARLEY_DATA=" + data, "PARLEY_LISTEN=" + listen, "PARLEY_SERVER=" + o.addr, "PARLEY_WORKSPACE=" + o.project,
		"PARLEY_DRAIN=1ms"}
	if strings.HasPrefix(command, "parley token") && o.page != "troubleshooting" { // that page sets it in .env
		cmd.Env = append(cmd.Env, "PARLEY_JWT_SECRET=0123456789abcdef0123456789abcdef")
	}
	said := &untilSaid{until: ends, stop: func() { _ = cmd.Process.Signal(syscall.SIGTERM) }}
	cmd.Stdout, cmd.Stderr = said, said
	err = cmd.Run()
	if err == nil && ends != "" && !said.heard {
		err = fmt.Errorf("it ended without saying %q", ends)
	}
	return said.String(), err
}

// An untilSaid keeps the output of a command, and stops the command when the output contains a text.
type untilSaid struct {
	mu    sync.Mutex
	all   bytes.Buffer
	until string
	heard bool
	stop  func()
}

func (l *untilSaid) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.all.Write(p)
	if !l.heard && l.until != "" && strings.Contains(l.all.String(), l.until) {
		l.heard = true
		l.stop()
	}
	return n, err
}

func (l *untilSaid) String() string { return l.all.String() }

// TestTroubleshootingMessagesExist checks that the program contains each message that a heading of the troubleshooting
// page quotes.
func TestTroubleshootingMessagesExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := literals(t, "../..")
	headings := regexp.MustCompile(`(?m)^### "(.+)"$`).FindAllStringSubmatch(string(page), -1)
	if len(headings) < 15 {
		t.Fatalf("only %d messages were found", len(headings))
	}
	for _, m := range headings {
		fragments := strings.FieldsFunc(m[1], func(r rune) bool { return r == '…' })
		if !slices.ContainsFunc(texts, func(text string) bool {
			return !slices.ContainsFunc(fragments, func(f string) bool {
				return !strings.Contains(text, strings.TrimSpace(f))
			})
		}) {
			t.Errorf("the program does not say %q", m[1])
		}
	}
}

// literals returns the string literals in the source of the program. Concatenated literals are one text.
func literals(t *testing.T, root string) (list []string) {
	t.Helper()
	var textOf func(e ast.Expr) string
	textOf = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == gotoken.STRING {
				return text
			}
		case *ast.BinaryExpr:
			if e.Op == gotoken.ADD {
				return textOf(e.X) + textOf(e.Y)
			}
		}
		return "…"
	}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"node_modules", ".git", "testdata", "web"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text := textOf(e)
			if text != "…" {
				list = append(list, text)
			}
			return text == "…"
		})
		return nil
	})
	if err != nil || len(list) == 0 {
		t.Fatal(errors.Join(err, fmt.Errorf("%d texts were found", len(list))))
	}
	return list
}
