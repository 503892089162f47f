package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
)

// A delivery is a request that a receiver got.
type delivery struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// A listenPort is a port that belongs to the test. It refuses connections until
// listen is called.
type listenPort struct {
	t    *testing.T
	fd   int
	addr string
}

func newPort(t *testing.T) *listenPort {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return &listenPort{t, fd, fmt.Sprint("127.0.0.1:", at.(*syscall.SockaddrInet4).Port)}
}

func (p *listenPort) listen() net.Listener {
	p.t.Helper()
	f := os.NewFile(uintptr(p.fd), p.addr)
	defer f.Close() // the listener has a copy of the descriptor
	if err := syscall.Listen(p.fd, 128); err != nil {
		p.t.Fatal(err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

// A hookReceiver is a server that keeps its requests. answer may be nil.
func hookReceiver(t *testing.T, p *listenPort, answer func(http.ResponseWriter, *http.Request)) (came *list[delivery]) {
	t.Helper()
	l := p.listen()
	came = newList[delivery]()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d := delivery{Headers: map[string]string{}, Body: string(body)}
		for name := range r.Header {
			d.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		came.add(d)
		if answer != nil {
			answer(w, r)
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return came
}

func (s *server) put(method, path, body string) (status int, answer string) {
	s.t.Helper()
	response := s.request(within(s.t, patience), method, path, http.Header{"Content-Type": {"application/json"}}, body)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// hooked opens a session with a webhook, and returns its secret.
func (s *server) hooked(session, url string) (secret string) {
	s.t.Helper()
	if status, body := s.put("POST", "/api/v1/sessions",
		fmt.Sprintf(`{"id":%q}`, session)); status != http.StatusCreated {
		s.t.Fatal(status, body)
	}
	status, body := s.put("PUT", "/api/v1/sessions/"+session+"/webhook", fmt.Sprintf(`{"url":%q}`, url))
	var info struct{ Secret string }
	if err := json.Unmarshal([]byte(body), &info); err != nil || status != http.StatusOK ||
		!strings.HasPrefix(info.Secret, "whsec_") {
		s.t.Fatal(status, body)
	}
	return info.Secret
}

func (s *server) say(session, content string) {
	s.t.Helper()
	if status, body := s.put("POST", "/api/v1/sessions/"+session+"/inputs",
		fmt.Sprintf(`{"content":%q}`, content)); status != http.StatusAccepted {
		s.t.Fatal(status, body)
	}
}

var allowHere = []string{"PARLEY_WEBHOOK_ALLOW=127.0.0.0/8"}

// TestWebhooksAsDocumented: the receiver of docs/webhooks.md, in its own
// process, is told that a person is needed. The message has a link that answers
// the card. Then it is told that the run has ended.
func TestWebhooksAsDocumented(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{env: allowHere})
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	cmd := exec.CommandContext(within(t, time.Minute), "node", "../examples/webhook-receiver.mjs", "0")
	cmd.Env = []string{"WEBHOOK_SECRET=" + secret}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, over := newList[string](), make(chan struct{})
	go func() {
		defer close(over)
		readLines(stdout, said)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-over
		_ = cmd.Wait()
	})
	line, err := said.find(within(t, patience), func(l string) bool { return strings.HasPrefix(l, "listening on ") })
	if err != nil {
		t.Fatal(err)
	}
	session := newThread()
	if status, body := s.put("POST", "/api/v1/sessions",
		fmt.Sprintf(`{"id":%q}`, session)); status != http.StatusCreated {
		t.Fatal(status, body)
	}
	ask := fmt.Sprintf(`{"url":"http://127.0.0.1:%s/parley","secret":%q}`, strings.TrimPrefix(line, "listening on "),
		secret)
	if status, body := s.put("PUT", "/api/v1/sessions/"+session+"/webhook", ask); status != http.StatusOK ||
		!strings.Contains(body, secret) {
		t.Fatal(status, body)
	}
	if status, body := s.put("GET", "/api/v1/sessions/"+session+"/webhook", ""); status != http.StatusOK ||
		strings.Contains(body, "whsec_") || !strings.Contains(body, `"status":"active"`) {
		t.Error("the secret is told again:", status, body)
	}
	s.say(session, "write the words my private matter to note.txt")
	told := func(kind string) map[string]any {
		t.Helper()
		line, err := said.find(within(t, patience),
			func(l string) bool { return strings.Contains(l, `"type":"`+kind+`"`) })
		if err != nil {
			t.Fatalf("%s: %v; it said %q", kind, err, said.all())
		}
		var m struct{ Data map[string]any }
		if err := json.Unmarshal([]byte(line[strings.Index(line, "{"):]), &m); err != nil {
			t.Fatal(err)
		}
		return m.Data
	}
	card := told("person_needed")
	answer := card["links"].(map[string]any)["answer"].(string)
	if card["kind"] != "approval" || card["tool"] != "write_file" || card["session"] != session ||
		!strings.HasPrefix(answer, "http://"+s.address+"/api/v1/approvals/") {
		t.Errorf("%v", card)
	}
	if status, body := s.put("POST", strings.TrimPrefix(answer, "http://"+s.address),
		`{"decision":"allow"}`); status != http.StatusAccepted {
		t.Fatal(status, body)
	}
	if end := told("run_finished"); end["outcome"] != "completed" || end["agent"] != "helpful-assistant" {
		t.Errorf("%v", end)
	}
	if all := strings.Join(said.all(), "\n"); strings.Contains(all, "private matter") {
		t.Errorf("what was said is told:\n%s", all)
	}

	// No log, of the session or of the server, contains the secret.
	_, log := s.get("/api/v1/sessions/"+session+"/log", nil)
	for what, text := range map[string]string{"the log": log, "the server's log": strings.Join(s.log.all(), "\n")} {
		if strings.Contains(text, secret) || strings.Contains(text, strings.TrimPrefix(secret, "whsec_")) ||
			strings.Contains(text, "/parley\"") {
			t.Errorf("%s tells the secret or the url", what)
		}
	}
	files, _ := filepath.Glob(filepath.Join(s.o.data, "parley.db*"))
	for _, name := range files {
		if raw, err := os.ReadFile(name); err != nil || strings.Contains(string(raw), secret[6:]) {
			t.Errorf("%s has the secret in the open (%v)", name, err)
		}
	}
	if status, body := s.put("DELETE", "/api/v1/sessions/"+session+"/webhook", ""); status != http.StatusOK {
		t.Error(status, body)
	}
	if status, body := s.put("GET", "/api/v1/sessions/"+session+"/webhook", ""); status != http.StatusNotFound {
		t.Error(status, body)
	}
}

// TestSignaturesForOthers: npm standardwebhooks accepts the deliveries of a
// session's and an agent's webhook, and refuses a changed one.
func TestSignaturesForOthers(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("node_modules/standardwebhooks"); err != nil {
		t.Fatal("npm standardwebhooks is not installed; run npm ci in e2e, or make test")
	}
	at := newPort(t)
	came := hookReceiver(t, at, nil)
	workspace := t.TempDir()
	const ofAgent = "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"
	if err := os.Mkdir(filepath.Join(workspace, "agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := "---\nname: coder\nwebhook: {url: 'http://" + at.addr +
		"/agent', events: [run_finished], secret_env: CODER_HOOK}\n---\nHelp.\n"
	if err := os.WriteFile(filepath.Join(workspace, "agents", "coder.md"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, options{workspace: workspace, env: append([]string{"CODER_HOOK=" + ofAgent}, allowHere...)})
	session := newThread()
	secret := s.hooked(session, "http://"+at.addr+"/session")
	s.say(session, "say hello")
	ids := map[string]bool{}
	for i := range 2 {
		d, err := came.at(within(t, patience), i)
		if err != nil {
			t.Fatal(err, came.all())
		}
		ids[d.Headers["webhook-id"]] = true
	}
	if len(ids) != 2 {
		t.Errorf("two messages have the ids %v", ids)
	}
	right := map[string]int{}
	for _, d := range came.all() {
		for _, d.Secret = range []string{secret, ofAgent} {
			if verifies(t, d) == "good" {
				right[d.Secret]++
				d.Body += " "
				if verifies(t, d) == "good" {
					t.Error("a changed body is accepted")
				}
			}
		}
	}
	if right[secret] != 1 || right[ofAgent] != 1 {
		t.Errorf("accepted are %v of %+v", right, came.all())
	}
}

func verifies(t *testing.T, d delivery) string {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(within(t, patience), "node", "verify-webhook.mjs")
	cmd.Stdin = strings.NewReader(string(raw) + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestKilledWithWebhooksOwed: a server that is killed before a delivery makes
// it after the next start. A server that is killed after the delivery, but
// before it is recorded, repeats it under the same id.
func TestKilledWithWebhooksOwed(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); killedWithWebhooksOwed(t, nil) })
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		killedWithWebhooksOwed(t, []string{"PARLEY_DATABASE_URL=" + pgtest.Database(t)})
	})
}

func killedWithWebhooksOwed(t *testing.T, env []string) {
	const longest = 90 * time.Second // on PostgreSQL a claim expires after half a minute
	at := newPort(t)                 // it has no listener yet
	s := startServer(t, options{env: append(append(env, "PARLEY_PUBLIC_URL=https://parley.example"), allowHere...)})
	session := newThread()
	s.hooked(session, "http://"+at.addr+"/")
	s.say(session, "say hello")
	s.logged("a webhook delivery failed", 1)
	s.kill()

	running := make(chan *server, 1) // the first delivery may come before the test knows the new server
	var once atomic.Bool
	came := hookReceiver(t, at, func(http.ResponseWriter, *http.Request) {
		if !once.Swap(true) { // the receiver has the message, but the server dies before it can record that
			(<-running).kill()
		}
	})
	s = s.again()
	running <- s
	first, err := came.at(within(t, longest), 0)
	if err != nil {
		t.Fatal(err)
	}
	<-s.exited
	s = s.again()
	second, err := came.at(within(t, longest), 1)
	if err != nil {
		t.Fatal(err)
	}
	if first.Headers["webhook-id"] == "" || first.Headers["webhook-id"] != second.Headers["webhook-id"] ||
		first.Body != second.Body {
		t.Errorf("once %+v, then %+v", first, second)
	}
	s.logged("effect_delivered", 1)
	status, body := s.put("GET", "/api/v1/effects?session="+session, "")
	if status != http.StatusOK || !strings.Contains(body, `"status":"completed"`) ||
		strings.Count(body, `"type":"webhook"`) != 1 {
		t.Error(status, body)
	}
	if n := len(came.all()); n != 2 {
		t.Errorf("it was told %d times", n)
	}
}

// TestBadWebhooksLeaveNoTrace: the error names the mistake, and nothing has
// changed.
func TestBadWebhooksLeaveNoTrace(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	session := newThread()
	if status, body := s.put("POST", "/api/v1/sessions",
		fmt.Sprintf(`{"id":%q}`, session)); status != http.StatusCreated {
		t.Fatal(status, body)
	}
	path := "/api/v1/sessions/" + session + "/webhook"
	for body, want := range map[string]string{
		`{}`:                                                            "400 .*is missing",
		`{"url":7}`:                                                     "400 ",
		`{"url":"http://example.com"}`:                                  "403 .*needs an https address",
		`{"url":"https://127.0.0.1/x"}`:                                 "403 .*private addresses",
		`{"url":"https://localhost/x"}`:                                 "403 .*name of this machine",
		`{"url":"https://2130706433/"}`:                                 "400 .*unusual form",
		`{"url":"https://a@b.example"}`:                                 "400 .*no name and password",
		`{"url":"https://[::ffff:7f00:1]`:                               "400 ",
		`{"url":"https://x.example","events":[]}`:                       "400 .*events",
		`{"url":"https://x.example","events":["deleted"]}`:              "400 .*no .*deleted",
		`{"url":"https://x.example","secret":"too short"}`:              "400 .*whsec_",
		`{"url":"https://x.example/` + strings.Repeat("x", 3000) + `"}`: "400 .*at most",
	} {
		status, answer := s.put("PUT", path, body)
		if got := fmt.Sprint(status, " ", answer); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%.60s: %s, want %s", body, got, want)
		}
	}
	if status, _ := s.put("GET", path, ""); status != http.StatusNotFound {
		t.Errorf("there is a webhook: %d", status)
	}
	if status, _ := s.put("DELETE", path, ""); status != http.StatusNotFound {
		t.Errorf("there was one to be taken away: %d", status)
	}
	if _, log := s.get("/api/v1/sessions/"+session+"/log", nil); strings.Count(log, "\n") != 1 {
		t.Errorf("the log has\n%s", log)
	}
	if status, body := s.put("POST", "/api/v1/agents",
		`{"name":"spy","instructions":"Help.","webhook":{"url":"https://x.example","secret_env":"HOME"}}`); status != http.StatusBadRequest || !strings.Contains(body, "webhook") {
		t.Errorf("people make agents with webhooks: %d %s", status, body)
	}
	if status, body := s.put("PUT", path, `{"url":"https://hooks.example.com/x"}`); status != http.StatusOK {
		t.Error(status, body)
	}
}
