package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/dialect/native"
	"parley/port"
	"parley/store/postgres/pgtest"
)

// TestTwoServersOneDatabase checks that each server shows the messages that the
// other receives, and lists both. They report when their agent files differ, and a
// stopping server hands its sessions to the other. A server with another key is
// refused.
func TestTwoServersOneDatabase(t *testing.T) {
	t.Parallel()
	url, key, workspace := pgtest.Database(t), strings.Repeat("k", 40), t.TempDir()
	args := func(key, workspace string) []string {
		return []string{"--listen", "127.0.0.1:0", "--data", t.TempDir(), "--database-url", url, "--server-key", key,
			"--workspace", workspace, "--drain", "1ms", "--advertise", "node.example:80"}
	}
	one, stopOne := serve(t, args(key, workspace)...)
	two, stopTwo := serve(t, args(key, workspace)...)
	defer stopTwo()

	c := open(t, one)
	c.say("hello")
	c.until("RunFinished", 1)
	there := &conversation{t, two, c.session}
	there.until("RunFinished", 1)
	there.say("hello again") // forwarded to the other server
	c.until("RunFinished", 2)

	lists := func(addr string) (list []native.Node) {
		t.Helper()
		var got struct{ Nodes []native.Node }
		if err := json.Unmarshal([]byte(get(t, addr+"/api/v1/nodes")), &got); err != nil {
			t.Fatal(err)
		}
		return got.Nodes
	}
	eventually(t, "both servers list both", func() bool {
		a, b := lists(one), lists(two)
		return len(a) == 2 && len(b) == 2 && a[0].ID == b[1].ID && a[1].ID == b[0].ID &&
			a[1].Address == "node.example:80" && a[0].Sessions+a[1].Sessions > 0 &&
			a[1].Projects[0] == a[0].Projects[0] &&
			a[0].Differs == nil && a[1].Differs == nil
	})

	refused(t, "PARLEY_SERVER_KEY", "", append([]string{"serve"}, args(strings.Repeat("x", 40), workspace)...)...)

	other := t.TempDir()
	if err := os.MkdirAll(filepath.Join(other, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "agents", "odd.md"), []byte("---\nname: odd\n---\nBe odd."),
		0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	three, stopThree := serveLogged(t, noEnv, &log, args(key, other)...)
	eventually(t, "a server says that another differs", func() bool {
		return strings.Contains(get(t, three+"/readyz"), `"differ":"node.example:80 (agents)`)
	})
	for _, n := range lists(three)[1:] {
		if !slices.Equal(n.Differs, []string{"agents"}) {
			t.Errorf("a server is listed as %+v", n)
		}
	}
	stopThree()
	if !strings.Contains(log.String(), "nodes of this database differ from this one") {
		t.Errorf("the log does not say that servers differ:\n%s", &log)
	}

	stopOne()
	there.say("and again")
	there.until("RunFinished", 3)
}

// TestARevocationReachesOtherServers checks that a user revoked on one server loses the connections to another
// one, and is refused there.
func TestARevocationReachesOtherServers(t *testing.T) {
	t.Parallel()
	url := bound(t, pgtest.Database(t))
	start := func() (string, func()) {
		return serveLogged(t, func(name string) (string, bool) { return testSecret, name == "PARLEY_JWT_SECRET" },
			io.Discard, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--database-url", url, "--server-key",
			strings.Repeat("k", 40), "--workspace", t.TempDir(), "--auth", "jwt", "--drain", "1ms")
	}
	one, stopOne := start()
	defer stopOne()
	two, stopTwo := start()
	defer stopTwo()
	ann, root := token(t, "acme", "ann", time.Hour, "standard_user"), token(t, "acme", "root", time.Hour, "org_admin")
	request := func(method, url, token, body string, want int) *http.Response {
		t.Helper()
		r, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream") // the log is followed
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		if answer.StatusCode != want {
			t.Fatalf("%s %s: %d, want %d", method, url, answer.StatusCode, want)
		}
		return answer
	}
	const id = "3f0c8a52-6d1e-4b7a-9c40-2f5e8d7b1a63"
	request("POST", one+"/api/v1/sessions", ann, `{"id":"`+id+`"}`, http.StatusCreated)
	log := request("GET", two+"/api/v1/sessions/"+id+"/log", ann, "", http.StatusOK)
	begun := time.Now()
	request("POST", one+"/api/v1/users/ann/revoke", root, "{}", http.StatusOK)
	if _, err := io.Copy(io.Discard, log.Body); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("a log that was followed on the other server ended after %v", took)
	}
	request("GET", two+"/api/v1/me", ann, "", http.StatusUnauthorized)
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// TestStartingNodeDoesNotDiffer: a starting process has not announced its
// version yet, so it counts as equal.
func TestStartingNodeDoesNotDiffer(t *testing.T) {
	n := &nodes{Nodes: known{list: []port.Node{{ID: "starts", Draining: true}, {ID: "same", Version: "1"},
		{ID: "old", Version: "0",
			Address: "old.example:80"}}}, mine: func() port.Node { return port.Node{ID: "me", Version: "1"} }}
	if got := n.differ(); got != "old.example:80 (version)" {
		t.Errorf("these nodes differ: %q", got)
	}
	if list := n.list(0, nil); len(list) != 3 || list[1].ID != "same" || list[2].ID != "old" {
		t.Errorf("these nodes are listed: %+v", list)
	}
}

// known is a fixed list of other nodes.
type known struct {
	port.Nodes
	list []port.Node
}

func (k known) Others() []port.Node { return k.list }
