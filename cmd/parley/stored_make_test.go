package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"parley"
	"parley/store/postgres/pgtest"
)

// storedVariable names the folder below testdata/stored that TestMakeStoredData writes.
const storedVariable = "PARLEY_MAKE_STORED"

// TestMakeStoredData makes the data that TestStoredData opens: it produces as many kinds of events as it can on a
// server, and kills the server. It runs only if PARLEY_MAKE_STORED names a folder that does not exist yet.
func TestMakeStoredData(t *testing.T) {
	name := os.Getenv(storedVariable)
	if name == "" {
		t.Skipf("%s does not name a folder", storedVariable)
	}
	folder := filepath.Join("testdata", "stored", name)
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	binary := buildForStoring(t)
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			m := &maker{t: t, binary: binary, store: empty(t), workspace: t.TempDir(), sessions: map[string]string{}}
			m.make()
			m.pack(filepath.Join(folder, kind+".tgz"))
		})
	}
}

// buildForStoring builds this tree with one change: cards expire only after a hundred years. Otherwise every card would
// have expired when a later release opens the data.
func buildForStoring(t *testing.T) (binary string) {
	t.Helper()
	const file, life = "../../engine/engine.go", "c.CardLife = 24 * time.Hour"
	source, err := os.ReadFile(file)
	if err != nil || strings.Count(string(source), life) != 1 {
		t.Fatalf("%s does not set %q exactly once (%v)", file, life, err)
	}
	dir := t.TempDir()
	changed := strings.Replace(string(source), life, "c.CardLife = 100 * 365 * 24 * time.Hour", 1)
	put(t, filepath.Join(dir, "engine.go"), changed)
	original, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "overlay.json"), fmt.Sprintf(`{"Replace":{%q:%q}}`, original,
		filepath.Join(dir, "engine.go")))
	binary = filepath.Join(dir, "parley")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// A maker drives server processes on one store.
type maker struct {
	t         *testing.T
	binary    string
	store     []string // flags that name the store
	workspace string
	cmd       *exec.Cmd
	addr      string
	sessions  map[string]string // the id of each session, by its key in the test
}

// start starts a server.
func (m *maker) start(store []string, args ...string) {
	m.t.Helper()
	m.cmd = exec.Command(m.binary,
		slices.Concat([]string{"serve", "--listen", "127.0.0.1:0", "--workspace", m.workspace}, store, args)...)
	m.cmd.Dir = m.workspace
	m.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "AUTONOMY_ENABLED=true", "AUTONOMY_COOLDOWN_MS=3000",
		"MODEL=demo", "OPENAI_API_KEY=none", "OPENAI_BASE_URL=http://127.0.0.1:1", "PARLEY_WEBHOOK_ALLOW=127.0.0.0/8",
		"PARLEY_IDLE_PROMPT_INTERVAL=1s",
	}
	stderr, err := m.cmd.StderrPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() { // reads the log until the process ends
		defer close(ready)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if found := address.FindStringSubmatch(lines.Text()); found != nil && m.addr == "" {
				ready <- found[1]
				continue
			}
			m.t.Log(lines.Text())
		}
	}()
	m.addr = ""
	addr, ok := <-ready
	if !ok {
		m.t.Fatal("the server did not start")
	}
	m.addr = addr
}

// kill kills the server, like a crash.
func (m *maker) kill() {
	m.t.Helper()
	if err := m.cmd.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
	_ = m.cmd.Wait() // the error only says that it was killed
}

// stop stops the server gracefully.
func (m *maker) stop() {
	m.t.Helper()
	if err := m.cmd.Process.Signal(os.Interrupt); err != nil {
		m.t.Fatal(err)
	}
	if err := m.cmd.Wait(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *maker) ask(method, path, body string) string {
	m.t.Helper()
	status, answer := ask(m.t, method, m.addr+path, body)
	if status >= 300 {
		m.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

// session opens a session under the key shows, sends content to the agent, and waits until the log contains an event of
// the type until.
func (m *maker) session(shows, agent, content, until string) *conversation {
	m.t.Helper()
	c := open(m.t, m.addr)
	m.sessions[shows] = c.session
	c.post("/api/v1/sessions/"+c.session+"/inputs", fmt.Sprintf(`{"content":%q,"agent":%q}`, content, agent))
	c.until(until, 1)
	return c
}

// make creates as many kinds of events as it can. Work that is open when it returns is cut by kill -9.
func (m *maker) make() {
	for name, settings := range map[string]string{
		"a-helper": "autonomy: {enabled: true}",
		"b-scout":  "description: looks around",
		"c-falls":  "model: gpt-4o\nfallback_models: [demo]",
		"d-judged": "autonomy: {enabled: true, evaluator: {model: demo}}",
		"e-idle":   "idle_prompt: say I looked around.\nidle_interval_secs: 1",
	} {
		put(m.t, filepath.Join(m.workspace, "agents", name+".md"), "---\nname: "+name[2:]+"\n"+settings+
			"\n---\nHelp.\n")
	}
	if out, err := exec.Command("git", "init", "--quiet", "--template=", m.workspace).CombinedOutput(); err != nil {
		m.t.Fatalf("%v\n%s", err, out)
	}
	m.otherTenant()
	m.start(m.store, "--classifier", "demo")
	m.session("screened", "helper", "say hello", "RunFinished")
	m.kill()
	m.start(m.store)
	resolved := m.session("resolved", "helper", "run sleep 60", "ApprovalRequested")
	resolved.approve(1)
	resolved.until("ToolCallStarted", 1)
	m.kill()
	m.start(m.store)
	resolved.addr = m.addr
	call := resolved.until("ToolCallRequested", 1)
	resolved.until("ToolCallFinished", 1)
	m.ask("POST", "/api/v1/calls/"+parley.Ref(call.Session, call.Seq), `{"resolution":"mark_done","note":"it slept"}`)
	resolved.until("RunFinished", 1)
	m.tenantFacts()
	m.ended()
	m.timers()
	m.stop()
	m.start(m.store)
	m.open()
	m.kill()
}

// otherTenant creates a session of a second tenant, a revoked user and audited refusals.
func (m *maker) otherTenant() {
	store := slices.Clone(m.store)
	if len(store) == 4 {
		store[3] = bound(m.t, store[3])
	}
	m.start(store, "--auth", "jwt", "--jwt-secret", testSecret)
	as := func(who, method, path, body string) int {
		m.t.Helper()
		r, err := http.NewRequest(method, m.addr+path, strings.NewReader(body))
		if err != nil {
			m.t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + who}}
		res, err := plainHTTP.Do(r)
		if err != nil {
			m.t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	const id = "00000000-0000-4000-8000-00000000abcd"
	admin := token(m.t, "rival", "root", 2*time.Hour, "org_admin")
	for _, step := range []struct {
		who, method, path, body string
		want                    int
	}{
		{admin, "POST", "/api/v1/agents", `{"name":"rival-agent","instructions":"Help."}`, 201},
		{admin, "POST", "/api/v1/agents/rival-agent/context", `{"context":"I am the rival."}`, 200},
		{admin, "POST", "/api/v1/sessions", `{"id":"` + id + `","agent":"rival-agent","title":"of the rival"}`, 201},
		{admin, "POST", "/api/v1/sessions/" + id + "/inputs", `{"content":"say hello"}`, 202},
		{token(m.t, "default", "ann", 2*time.Hour, "standard_user"), "GET", "/api/v1/sessions/" + id, "", 404},
		{"forged", "GET", "/api/v1/sessions", "", 401},
		{admin, "POST", "/api/v1/users/bob/revoke", `{}`, 200},
	} {
		if got := as(step.who, step.method, step.path, step.body); got != step.want {
			m.t.Errorf("%s %s: %d, want %d", step.method, step.path, got, step.want)
		}
	}
	m.kill()
}

// tenantFacts creates events in the tenant's own log.
func (m *maker) tenantFacts() {
	m.ask("POST", "/api/v1/agents", `{"name":"made","instructions":"You were made.","tools":["read_file"]}`)
	m.ask("POST", "/api/v1/agents", `{"name":"unmade","instructions":"You were made."}`)
	m.ask("DELETE", "/api/v1/agents/unmade", "")
	m.ask("POST", "/api/v1/agents/scout/stop", "")
	m.ask("POST", "/api/v1/agents/scout/start", "")
	m.ask("POST", "/api/v1/agents/falls/stop", "")
	m.ask("POST", "/api/v1/agents/falls/start", "")
	m.ask("POST", "/api/v1/agents/judged/context", `{"context":"I like short answers."}`)
	m.ask("PATCH", "/api/v1/settings", `{"approval":"suggest"}`)
	tenant := &conversation{m.t, m.addr, string(parley.TenantSession)}
	m.ask("POST", "/api/v1/missions", `{"text":"Look around.","agents":[{"agent":"idle"}]}`)
	tenant.until("AgentPrompted", 1)
	m.ask("DELETE", "/api/v1/missions", "")
	m.ask("POST", "/api/v1/agents/idle/override", `{"idle_prompt":"say I rest.","idle_interval_secs":86400}`)
	m.ask("POST", "/api/v1/missions",
		`{"text":"Keep the house.","agents":[{"agent":"scout","idle_prompt":"say All is well.","idle_interval_secs":86400}]}`)
}

// ended creates sessions without open work.
func (m *maker) ended() {
	m.session("finished", "helper", "think about logs", "RunFinished").say("say <a> & b")
	m.session("fell back", "falls", "say hello", "RunFinished")
	m.session("failed", "helper", "fail midway", "RunFinished")
	m.session("blocked", "helper", "remind me in 400 days to rest", "RunFinished")
	m.session("planned", "helper", "plan a party", "RunFinished")
	m.session("judged", "judged", "say hello", "FollowUpEvaluated")
	m.session("delegated", "helper", "delegate say hello to scout", "RunFinished")
	m.session("leaked", "helper", "leak", "SessionHalted")

	tool := m.session("tool", "helper", "run yes output | head -20000", "ApprovalRequested")
	card := tool.until("ApprovalRequested", 1)
	m.ask("POST", "/api/v1/approvals/"+parley.Ref(card.Session, card.Seq), `{"decision":"explain"}`)
	tool.until("ApprovalExplained", 1)
	tool.approve(1)
	tool.until("RunFinished", 1)
	tool.say("write more text to tool.txt")
	card = tool.until("ApprovalRequested", 2)
	m.ask("POST", "/api/v1/approvals/"+parley.Ref(card.Session, card.Seq), `{"decision":"always"}`)
	tool.until("RunFinished", 2)

	denied := m.session("denied", "helper", "run touch x", "ApprovalRequested")
	card = denied.until("ApprovalRequested", 1)
	m.ask("POST", "/api/v1/approvals/"+parley.Ref(card.Session, card.Seq), `{"decision":"deny","note":"not today"}`)
	denied.until("RunFinished", 1)

	answered := m.session("answered", "helper", "ask me", "QuestionAsked")
	card = answered.until("QuestionAsked", 1)
	m.ask("POST", "/api/v1/questions/"+parley.Ref(card.Session, card.Seq), `{"answers":[["Tea"]]}`)
	answered.until("RunFinished", 1)

	late := m.session("cancelled", "helper", "run sleep 60", "ApprovalRequested")
	late.approve(1)
	late.until("ToolCallStarted", 1)
	late.say("say this is withdrawn")
	input := late.until("InputReceived", 2)
	m.ask("DELETE", "/api/v1/inputs/"+parley.Ref(input.Session, input.Seq), "")
	m.ask("POST", "/api/v1/sessions/"+late.session+"/cancel", "")
	late.until("RunFinished", 1)

	much := strings.Repeat("much is said here ", 1000)
	long := m.session("compacted", "helper", much, "RunFinished")
	long.say(much)
	long.until("RunFinished", 2)
	m.ask("POST", "/api/v1/sessions/"+long.session+"/compact", "")
	long.until("ContextCompacted", 1)
	short := m.session("not compacted", "helper", "say hello", "RunFinished")
	m.ask("POST", "/api/v1/sessions/"+short.session+"/compact", "")
	short.until("CompactionFailed", 1)

	renamed := m.session("renamed", "helper", "count slowly to 10", "OutputAppended")
	m.ask("PATCH", "/api/v1/sessions/"+renamed.session, `{"title":"a better name"}`)
	renamed.post("/api/v1/sessions/"+renamed.session+"/inputs", `{"content":"say steered","busy":"steer"}`)
	renamed.until("InputAdopted", 2)
	halted := m.session("halted", "made", "say hello", "RunFinished")
	m.ask("POST", "/api/v1/sessions/"+halted.session+"/halt", `{"reason":"a test"}`)
	reopened := m.session("reopened", "helper", "say hello", "RunFinished")
	m.ask("POST", "/api/v1/sessions/"+reopened.session+"/halt", "")
	m.ask("POST", "/api/v1/sessions/"+reopened.session+"/reopen", "")
	deleted := m.session("deleted", "helper", "say hello", "RunFinished")
	m.ask("DELETE", "/api/v1/sessions/"+deleted.session, "")
	m.receipt()
}

// receipt creates a command with an idempotency key, and sessions with and without a webhook.
func (m *maker) receipt() {
	c := m.session("receipt", "helper", "say hello", "RunFinished")
	if status := repeat(m.t, m.addr, c.session); status != http.StatusAccepted {
		m.t.Fatal(status)
	}
	c.until("RunFinished", 2)
	hooked := m.session("webhook", "helper", "say hello", "RunFinished")
	m.ask("PUT", "/api/v1/sessions/"+hooked.session+"/webhook", `{"url":"http://127.0.0.1:1/hook"}`)
	hooked.say("say more")
	hooked.until("RunFinished", 2)
	unhooked := m.session("no webhook", "helper", "say hello", "RunFinished")
	m.ask("PUT", "/api/v1/sessions/"+unhooked.session+"/webhook", `{"url":"http://127.0.0.1:1/hook"}`)
	m.ask("DELETE", "/api/v1/sessions/"+unhooked.session+"/webhook", "")
}

// timers creates timers that fired, were postponed and were cancelled.
func (m *maker) timers() {
	fired := m.session("fired", "helper", "remind me in 1 seconds to stretch", "TimerFired")
	fired.until("RunFinished", 2)
	fired.say("say I saw that") // cancels the autonomous message, which no client was shown
	fired.until("EffectCancelled", 1)
	for _, delay := range []string{"2", "3"} {
		fired.say("remind me in " + delay + " seconds to stretch")
	}
	forgets := m.session("cancelled timer", "helper", "remind me in 2 days to stretch", "TimerSet")
	forgets.until("RunFinished", 1)
	forgets.say("forget your follow-ups")
	forgets.until("TimerCancelled", 1)
	forgets.until("RunFinished", 2)
}

// open creates sessions with open or due work.
func (m *maker) open() {
	m.session("question", "helper", "ask me", "QuestionAsked")
	queue := m.session("approval", "helper", "write some text to note.txt", "ApprovalRequested")
	queue.say("say this waited")
	queue.until("InputReceived", 2)
	plan := open(m.t, m.addr)
	m.sessions["plan"] = plan.session
	plan.post("/api/v1/sessions/"+plan.session+"/inputs", `{"content":"plan a garden","mode":"plan","agent":"helper"}`)
	plan.until("RunFinished", 1)
	child := m.session("sub-agent", "helper", "delegate ask me to scout", "ChildSpawned")
	spawned := child.until("ChildSpawned", 1).Body.(parley.ChildSpawned)
	m.sessions["child"] = string(spawned.Child)
	for status := 0; status != http.StatusOK; { // the session of the sub-agent opens later
		status, _ = ask(m.t, "GET", m.addr+"/api/v1/sessions/"+m.sessions["child"], "")
	}
	(&conversation{m.t, m.addr, m.sessions["child"]}).until("QuestionAsked", 1)
	thread := uuid.NewString()
	m.sessions["owed"] = thread
	l := dial(m.t, m.addr, thread)
	l.send(`{"type":"chat.request","threadId":%q,"requestId":"owed","content":"count slowly to 12"}`, thread)
	l.next() // the answer has begun, and its end is owed to the thread
	_ = l.conn.CloseNow()
	m.session("timer", "helper", "remind me in 10 seconds to stretch", "TimerSet").until("RunFinished", 1)
	unknown := m.session("unknown", "helper", "run sleep 60", "ApprovalRequested")
	unknown.approve(1)
	unknown.until("ToolCallStarted", 1)
	if len(m.store) == 2 { // leave few commits in the log, which compresses badly
		execute(m.t, m.store, `PRAGMA wal_checkpoint(TRUNCATE)`)
	}
	m.session("interrupted", "helper", "count slowly to 12", "OutputAppended").until("OutputAppended", 3)
}

// pack writes everything that a later release needs to continue, and what it must find.
func (m *maker) pack(file string) {
	m.t.Helper()
	var archive bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&archive, gzip.BestCompression)
	if err != nil {
		m.t.Fatal(err)
	}
	w := tar.NewWriter(zipped)
	add := func(name string, text []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			m.t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			m.t.Fatal(err)
		}
	}
	for name, dir := range map[string]string{"data": m.store[1], "workspace": m.workspace} {
		root := os.DirFS(dir)
		err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := fs.ReadFile(root, path)
			add(name+"/"+path, text)
			return err
		})
		if err != nil {
			m.t.Fatal(err)
		}
	}
	if len(m.store) == 4 {
		add("dump.sql", dump(m.t, m.store[3]))
	}
	want, err := json.Marshal(storedData{Sessions: m.sessions, Kept: keptIn(m.t, m.store)})
	if err != nil {
		m.t.Fatal(err)
	}
	add("expected.json", want)
	if err := w.Close(); err != nil {
		m.t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, archive.Bytes(), 0o644); err != nil {
		m.t.Fatal(err)
	}
	m.t.Logf("%s: %d bytes", file, archive.Len())
}

// dump returns a database as SQL statements that any role can run in an empty database.
func dump(t *testing.T, url string) []byte {
	t.Helper()
	pgDump := exec.Command(pgtest.Program(t, "pg_dump"), "--no-owner", "--no-privileges", "--rows-per-insert=50", url)
	pgDump.Stderr = os.Stderr
	out, err := pgDump.Output()
	if err != nil {
		t.Fatal("pg_dump:", err)
	}
	var statements []byte
	for line := range bytes.Lines(out) {
		// Skip commands for psql, and a setting that older servers do not know.
		if !bytes.HasPrefix(line, []byte(`\restrict`)) && !bytes.HasPrefix(line, []byte(`\unrestrict`)) &&
			!bytes.HasPrefix(line, []byte("SET transaction_timeout")) {
			statements = append(statements, line...)
		}
	}
	return statements
}
