package main

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/dialect"
	"parley/dialect/eventbus"
	"parley/dialect/native"
	"parley/port"
	"parley/sandbox"
	"parley/server"
	"parley/tool"
	"parley/workspace"
)

// Two tenants use one server at the same time. Each plants its own marks of 130
// random bits wherever it can: files, agents, skills, sessions, settings, missions,
// webhooks. Each uses every route, tool and dialect, with its own ids and with the
// other's. A mark of one tenant must not appear in any byte that the other
// receives, in requests to the model on behalf of the other, or in the server's
// log.

const home, rival = parley.TenantID("acme"), parley.TenantID("rival")

func other(tenant parley.TenantID) parley.TenantID {
	if tenant == home {
		return rival
	}
	return home
}

// places each have a mark of their own, so that a leak shows where it comes from.
var places = []string{"title", "input", "description", "instructions", "model", "mission", "prompt", "context",
	"webhook", "answer", "plan"}

// filePlaces are places in the workspace, which belongs to home.
var filePlaces = []string{"file", "file name", "secret", "agent file", "skill", "change"}

type tenancy struct {
	t         *testing.T
	addr      string
	workspace string
	shared    string
	patterns  []string
	marks     map[parley.TenantID]map[string]string
	log       bytes.Buffer

	mu   sync.Mutex // guards the fields below
	seen map[parley.TenantID]*bytes.Buffer
	ids  []string          // session ids of both tenants
	used map[string]int    // counts of routes, tools and dialects, by tenant
	told []string          // requests to the model
	errs map[string]string // leaks, by where they were seen
}

// TestTwoTenantsAtOnce runs both tenants and looks for leaks. PARLEY_TENANT_STEPS
// is the number of random steps of each tenant after it has used everything once.
// PARLEY_TENANT_SEED selects the steps.
func TestTwoTenantsAtOnce(t *testing.T) {
	t.Parallel()
	w := newTenancy(t)
	steps, seed := 60, rand.Uint64()
	if n, err := strconv.Atoi(os.Getenv("PARLEY_TENANT_STEPS")); err == nil {
		steps = n
	}
	if n, err := strconv.ParseUint(os.Getenv("PARLEY_TENANT_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("PARLEY_TENANT_SEED=%d, %d steps", seed, steps)
	stop := w.start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var followers, users sync.WaitGroup
	for i, tenant := range []parley.TenantID{home, rival} {
		u := &tenantUser{tenancy: w, tenant: tenant, dice: rand.New(rand.NewPCG(seed, uint64(i)))}
		u.settle()
		for _, path := range []string{"/api/v1/log?after=0", "/api/events"} {
			followers.Go(func() { u.follow(ctx, path) })
		}
		followers.Go(func() { u.listen(ctx) })
		users.Go(func() { u.live(steps) })
	}
	users.Wait()
	w.changeWhileHeld()
	for _, tenant := range []parley.TenantID{home, rival} {
		(&tenantUser{tenancy: w, tenant: tenant, dice: rand.New(rand.NewPCG(seed, 9))}).lookBack()
	}
	cancel()
	followers.Wait()
	stop()
	w.judge()
}

func newTenancy(t *testing.T) *tenancy {
	w := &tenancy{t: t, workspace: t.TempDir(), shared: t.TempDir(), marks: map[parley.TenantID]map[string]string{},
		seen: map[parley.TenantID]*bytes.Buffer{},
		used: map[string]int{}, errs: map[string]string{}}
	for _, tenant := range []parley.TenantID{home, rival} {
		w.marks[tenant], w.seen[tenant] = map[string]string{}, &bytes.Buffer{}
		for _, place := range places {
			w.marks[tenant][place] = cryptorand.Text()
		}
	}
	for _, place := range filePlaces {
		w.marks[home][place] = cryptorand.Text()
	}
	mark := w.marks[home]
	for name, text := range map[string]string{
		"note.txt": "the file: " + mark["file"] + "\n", "name-" + mark["file name"] + ".txt": "x\n",
		".env": "KEY=" + mark["secret"] + "\n",
		"skills/trick/SKILL.md": "---\nname: trick\ndescription: " + mark["skill"] + "\n---\nDo " + mark["skill"] +
			".\n",
		"agents/worker.md": "---\nname: worker\ndescription: " + mark["agent file"] +
			"\napproval: full-auto\nautonomy: {enabled: true}\ndelegates: [worker]\n---\n" +
			"Work. " + mark["agent file"] + "\n",
		"agents/spare.md": "---\nname: spare\n---\nHelp.\n",
	} {
		path := filepath.Join(w.workspace, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("git"); err == nil { // changes are reported only in a git repository
		for _, args := range [][]string{{"init", "-q"}, {"add", "note.txt"},
			{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"}} {
			cmd := exec.Command("git", args...)
			cmd.Dir = w.workspace
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v, %s", args, err, out)
			}
		}
	}
	r := newRoutes(handlerDeps{conns: dialect.NewConns()}, &eventbus.Handler{}, &native.Handler{})
	web := server.New(nil, slog.New(slog.DiscardHandler), server.Options{Routes: r.handlers})
	w.patterns = web.Patterns()
	return w
}

// start starts the server for both tenants. One of its MCP servers is for every
// tenant, and one names no tenants.
func (w *tenancy) start() (stop func()) {
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(w.t.TempDir(), "parley.yaml")
	server := fmt.Sprintf("{command: [%s, tenant-tools, %s], read: [%s, %s], workspace: write", self, w.shared,
		filepath.Dir(self), w.shared)
	if err := os.WriteFile(file,
		[]byte("mcp:\n  servers:\n    look: "+server+", tenants: ['*']}\n    house: "+server+"}\n"),
		0o600); err != nil {
		w.t.Fatal(err)
	}
	env := map[string]string{"PARLEY_JWT_SECRET": testSecret, "PROVIDER": "openai", "MODEL": "obedient",
		"AUTONOMY_ENABLED": "true",
		"OPENAI_BASE_URL": newObedientModel(w.t, func(body string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, body)
		})}
	w.addr, stop = serveLogged(w.t, func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		&w.log,
		"--listen", "127.0.0.1:0", "--data", w.t.TempDir(), "--workspace", w.workspace, "--drain", "1s", "--config",
		file,
		"--auth", "jwt", "--default-tenant", string(home),
		"--limit-connections", "off", "--limit-messages", "off", "--limit-reconnections", "off", "--log-level", "debug",
		"--sentinel", "off")
	return stop
}

// use counts an action of a tenant.
func (w *tenancy) use(tenant parley.TenantID, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used[string(tenant)+" "+what]++
}

// receive searches bytes that a tenant received for marks of the other tenant.
func (w *tenancy) receive(tenant parley.TenantID, from string, got []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[tenant].Write(got)
	w.seen[tenant].WriteByte('\n')
	for place, mark := range w.marks[other(tenant)] {
		if found := findMark(got, mark); found != "" {
			w.errs[fmt.Sprintf("%s's %s is in what %s was sent by %s", other(tenant), place, tenant, from)] = found
		}
	}
}

// findMark searches for a mark, also in the encodings that a server might use.
func findMark(text []byte, mark string) string {
	needles := []string{mark, strings.ToLower(mark), hex.EncodeToString([]byte(mark))}
	for skip := range 3 { // base64 depends on the offset of the mark
		encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, skip), mark...))
		needles = append(needles, encoded[4:len(encoded)-3])
	}
	for _, needle := range needles {
		if i := bytes.Index(text, []byte(needle)); i >= 0 {
			return fmt.Sprintf("…%s…", text[max(0, i-150):min(len(text), i+len(needle)+50)])
		}
	}
	return ""
}

// judge reports leaks. It also reports actions that were not used and places that
// were never seen, because the test would then prove nothing.
func (w *tenancy) judge() {
	w.t.Helper()
	for where, what := range w.errs {
		w.t.Errorf("%s: %s", where, what)
	}
	for tenant, marks := range w.marks {
		for place, mark := range marks {
			if found := findMark(w.log.Bytes(), mark); found != "" {
				w.t.Errorf("the log has %s's %s: %s", tenant, place, found)
			}
		}
	}
	for _, body := range w.told {
		for place, mark := range w.marks[home] {
			if !strings.Contains(body, mark) {
				continue
			}
			for _, foreign := range w.marks[rival] {
				if strings.Contains(body, foreign) {
					w.t.Errorf("a model was told something of both tenants, among it %s's %s:\n%.2000s", home, place,
						body)
				}
			}
		}
	}
	for _, pattern := range w.patterns {
		for _, tenant := range []parley.TenantID{home, rival} {
			if w.used[string(tenant)+" "+pattern] == 0 {
				w.t.Errorf("%s has not used %s", tenant, pattern)
			}
		}
	}
	visible := map[parley.TenantID][]string{
		home: {"title", "input", "description", "mission", "prompt", "file", "file name", "skill", "agent file",
			"change"},
		rival: {"title", "input", "description", "mission", "prompt"}}
	if _, err := exec.LookPath("git"); err != nil {
		visible[home] = slices.DeleteFunc(visible[home], func(place string) bool { return place == "change" })
	}
	for tenant, list := range visible {
		for _, place := range list {
			if !bytes.Contains(w.seen[tenant].Bytes(), []byte(w.marks[tenant][place])) {
				w.t.Errorf("%s never saw its own %s: the test looks in the wrong place", tenant, place)
			}
		}
	}
	if bytes.Contains(w.seen[home].Bytes(), []byte(w.marks[home]["secret"])) {
		w.t.Error("the contents of .env were shown")
	}
}

// changeWhileHeld changes the workspace during a run of the other tenant. That
// run contains a call of a class that may change files, so the change could be
// attributed to it.
func (w *tenancy) changeWhileHeld() {
	if box, err := sandbox.New(sandbox.Options{Workspace: w.workspace}); err != nil || box.Missing() != nil {
		w.t.Log("there is no sandbox here for MCP servers")
		w.marks[home]["change"] = w.marks[home]["file"]
		return
	}
	u := &tenantUser{tenancy: w, tenant: rival, dice: rand.New(rand.NewPCG(1, 1))}
	started := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { u.say("look__hold", `{"text":"go"}`, func() { close(started) }) })
	select {
	case <-started:
	case <-time.After(time.Minute):
		w.t.Fatal("the call did not begin")
	}
	if err := os.WriteFile(filepath.Join(w.workspace, "note.txt"), []byte("changed: "+w.marks[home]["change"]+"\n"),
		0o644); err != nil {
		w.t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(w.shared, "go"), nil, 0o644); err != nil {
		w.t.Error(err)
	}
	wg.Wait()
}

// TestEveryToolIsCalledByTenants fails if the tenants of TestTwoTenantsAtOnce do not call
// a new tool.
func TestEveryToolIsCalledByTenants(t *testing.T) {
	t.Parallel()
	files, err := workspace.Open(t.TempDir(), workspace.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	commands, err := sandbox.New(sandbox.Options{Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	box := tool.New(tool.Options{Files: files, Sandbox: commands,
		Skills: func() []port.Skill { return []port.Skill{{Name: "trick", Models: true}} }})
	u := &tenantUser{tenancy: &tenancy{t: t, marks: map[parley.TenantID]map[string]string{}}, tenant: home}
	for _, spec := range box.Specs(parley.Agent{Autonomy: parley.Autonomy{Enabled: true}}) {
		if u.calls()[spec.Name] == nil {
			t.Errorf("%s is called by no tenant in TestTwoTenantsAtOnce", spec.Name)
		}
	}
}
