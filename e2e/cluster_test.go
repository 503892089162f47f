package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/store/postgres/pgtest"
)

// A cluster is a cluster as make cluster starts it.
type cluster struct {
	balancer *server        // only its address is set
	database string         // a URL
	pids     map[int]string // of the nodes, as the program prints them
}

var (
	clusterNode     = regexp.MustCompile(`^node (\d+) .*\(process (\d+)\)$`)
	clusterDatabase = regexp.MustCompile(`^PostgreSQL +(\S+)$`)
	clusterBalancer = regexp.MustCompile(`^balancer +http://(\S+)$`)
)

// clusterPrograms skips the test unless it finds the programs of make cluster and a NATS server.
func clusterPrograms(t *testing.T) (cluster, nats string) {
	t.Helper()
	pgtest.Program(t, "postgres") // skips the test if it is missing
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"cluster": {"parley/cmd/cluster"},
		"nats":    {"-modfile=../tools/go.mod", "github.com/nats-io/nats-server/v2"},
	} {
		build := append([]string{"build", "-o", filepath.Join(dir, name)}, args...)
		if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(build, " "), err, out)
		}
	}
	return filepath.Join(dir, "cluster"), filepath.Join(dir, "nats")
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	program, nats := clusterPrograms(t)
	cmd := exec.Command(program, "-parley", binary(t), "-nats", nats, "-folder", filepath.Join(dir, "logs"), "-port",
		"0", "-restart", "0")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := newList[string]()
	done := make(chan error, 1)
	go func() {
		readLines(bufio.NewReader(stdout), said)
		done <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := <-done; err != nil {
			t.Errorf("the cluster ended with %v:\n%s", err, tail(said.all(), 50))
		}
		if logs, _ := filepath.Glob(filepath.Join(dir, "logs", "node*.log")); t.Failed() {
			for _, name := range logs {
				raw, _ := os.ReadFile(name)
				t.Logf("%s:\n%s", filepath.Base(name), tail(strings.Split(string(raw), "\n"), 40))
			}
		}
	})
	line, err := said.find(within(t, 2*patience), clusterBalancer.MatchString)
	if err != nil {
		t.Fatalf("the cluster does not start: %v\n%s", err, tail(said.all(), 50))
	}
	c := &cluster{balancer: &server{t, &process{address: clusterBalancer.FindStringSubmatch(line)[1]}},
		pids: map[int]string{}}
	for _, line := range said.all() {
		if m := clusterNode.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			c.pids[n] = m[2]
		}
		if m := clusterDatabase.FindStringSubmatch(line); m != nil {
			c.database = m[1]
		}
	}
	return c
}

// holder returns the number of the node that holds a session.
func (c *cluster) holder(t *testing.T, session string) int {
	t.Helper()
	ctx := within(t, patience)
	conn, err := pgx.Connect(ctx, c.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var lease string
	if err := conn.QueryRow(ctx, `SELECT lease FROM due WHERE session = $1`, session).Scan(&lease); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(strings.TrimPrefix(c.database, "postgres://postgres@/postgres?host="))
	for n := range c.pids {
		name, err := os.ReadFile(filepath.Join(folder, fmt.Sprint("node", n), "parley.node"))
		if err == nil && strings.TrimSpace(string(name)) == lease {
			return n
		}
	}
	t.Fatalf("no node is called %q", lease)
	return 0
}

// A conversation through the balancer outlives the node that holds it: its
// clients reconnect to other nodes, and get each event once.
func TestANodeIsKilledInMidAnswer(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	n := startNode(t)
	thread := newThread()
	if status, body := n.fetch(c.balancer, "POST", "/api/v1/sessions", `{"id":"`+thread+`"}`); status >= 300 {
		t.Fatalf("%d %s", status, body)
	}
	path := "/api/v1/sessions/" + thread
	var followers []*socket // the balancer connects each to another node
	for range c.pids {
		f := n.begin(map[string]any{"do": "listen", "url": "http://" + c.balancer.address + path + "/log"})
		f.opened()
		followers = append(followers, f)
	}
	if status, body := n.fetch(c.balancer, "POST", path+"/inputs", `{"content":"count to 100"}`); status != 202 {
		t.Fatalf("%d %s", status, body)
	}
	logs := make([][]event, len(followers))
	take := func(i int, until func(event) bool) {
		t.Helper()
		for {
			h := followers[i].next()
			if h.Event != "message" {
				continue // it lost its connection and reconnects
			}
			e := parseEvent(t, h.Data)
			logs[i] = append(logs[i], e)
			if until(e) {
				return
			}
		}
	}
	for i := range followers {
		text := ""
		take(i, func(e event) bool {
			if e.Type == "OutputAppended" {
				text += e.Body.Text
			}
			return strings.Contains(text, " 10 ")
		})
	}
	victim := c.holder(t, thread)
	pid, err := strconv.Atoi(c.pids[victim])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	for i := range followers {
		take(i, func(e event) bool { return e.Type == "TurnFinished" })
	}
	t.Logf("node %d was killed, and its session was taken over after %v", victim,
		time.Since(killed).Round(time.Millisecond))
	for i := range followers {
		take(i, func(e event) bool { return e.Type == "RunFinished" })
	}
	for i, log := range logs {
		var text strings.Builder
		for j, e := range log {
			if e.Seq != j+1 {
				t.Fatalf("follower %d got event %d after event %d", i, e.Seq, j)
			}
			if e.Type == "OutputAppended" {
				text.WriteString(e.Body.Text)
			}
		}
		for number := 1; number <= 100; number++ {
			if times := len(regexp.MustCompile(fmt.Sprintf(`\b%d\b`, number)).FindAllString(text.String(),
				-1)); times != 1 {
				t.Errorf("follower %d got the number %d %d times in %q", i, number, times, text.String())
				break
			}
		}
	}
}

// Nodes, PostgreSQL, NATS and the connections between them fail at random for a few seconds, and the clocks of nodes
// differ. Afterwards every accepted input has one ending, and all followers have seen the same log. make cluster-check
// does the same for longer.
func TestAClusterUnderANemesis(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes two minutes")
	}
	t.Parallel()
	program, nats := clusterPrograms(t)
	logs := filepath.Join(t.TempDir(), "logs")
	cmd := exec.CommandContext(t.Context(), program, "-parley", mortalServer(t), "-nats", nats, "-folder", logs,
		"check",
		"-seed", "1", "-seeds", "5", "-seconds", "6", "-sessions", "3")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err == nil {
		return
	}
	t.Error(err)
	names, _ := filepath.Glob(filepath.Join(logs, "*", "node*.log"))
	for _, name := range names {
		raw, _ := os.ReadFile(name)
		t.Logf("%s:\n%s", name, tail(strings.Split(string(raw), "\n"), 40))
	}
}
