package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"version", "--version"} {
		stdout, stderr, code := run(t, command)
		want := regexp.MustCompile(`^parley \S+ go\S+ ` + runtime.GOOS + "/" + runtime.GOARCH + "\n$")
		if code != 0 || stderr != "" || !want.MatchString(stdout) {
			t.Errorf("%s: exit %d, %q, %q", command, code, stdout, stderr)
		}
	}
}

func TestASecondServerOnTheSameDataIsRefusedAndToldOfTheFirst(t *testing.T) {
	t.Parallel()
	first, n := startServer(t, options{}), startNode(t)
	_, stderr, code := run(t, "serve", "--listen", "127.0.0.1:0", "--data", first.o.data, "--workspace",
		first.o.workspace)
	if code == 0 || code == -1 {
		t.Errorf("the second server ended with %d", code)
	}
	for _, name := range []string{fmt.Sprintf("process %d", first.cmd.Process.Pid), first.address, first.o.data} {
		if !strings.Contains(stderr, name) {
			t.Errorf("the second server does not name %s:\n%s", name, stderr)
		}
	}
	silent(t, n.dial(first, newThread()))
}

func TestAnAddressInUseIsRefusedByName(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	data := filepath.Join(state, "parley", "other-0123456789ab")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	first := startServer(t, options{data: data})
	_, stderr, code := runWith(t, []string{"XDG_STATE_HOME=" + state}, "", "serve", "--listen", first.address, "--data",
		t.TempDir(), "--workspace", t.TempDir())
	if code == 0 || code == -1 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{first.address, "--listen", "another Parley serves there",
		fmt.Sprintf("process %d, data folder %s", first.cmd.Process.Pid, data)} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in %s", want, stderr)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	for path, want := range map[string]string{
		"/healthz":    `{"status":"ok"}`,
		"/readyz":     `{"status":"ready"}`,
		"/api/health": `{"ok":true,"status":"ok"}`,
	} {
		if status, body := s.get(path, nil); status != http.StatusOK || body != want+"\n" {
			t.Errorf("GET %s: %d %q", path, status, body)
		}
	}
}

// In local mode every request to the server may do everything, and a page of
// any site can make a browser send requests. The Host header, or the Origin of
// the page, reveals them.
func TestOtherSitesAreKeptOut(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	for _, visit := range []struct {
		name    string
		headers map[string]string
		api, ws int // status codes
	}{
		{"no browser", nil, 200, 101},
		{"our own page", map[string]string{"Origin": "http://" + s.address}, 200, 101},
		{"our own page by name", map[string]string{"Host": "localhost:" + port, "Origin": "http://localhost:" + port},
			200, 101},
		{"a name made to resolve here", map[string]string{"Host": "evil.example"}, 403, 403},
		{"that name and its page", map[string]string{"Host": "evil.example:" + port, "Origin": "http://evil.example:" +
			port}, 403, 403},
		{"a name that begins like ours", map[string]string{"Host": "localhost.evil.example"}, 403, 403},
		{"a page elsewhere", map[string]string{"Origin": "https://evil.example"}, 403, 403},
		{"a page of another program on this machine", map[string]string{"Origin": "http://localhost:3000"}, 403, 403},
		{"a page whose name begins like ours", map[string]string{"Origin": "http://127.0.0.1.evil.example"}, 403, 403},
		{"a page without a name", map[string]string{"Origin": "null"}, 403, 403},
	} {
		t.Run(visit.name, func(t *testing.T) {
			s, n := s.in(t), n.in(t)
			header := http.Header{}
			for k, v := range visit.headers {
				header.Set(k, v)
			}
			for _, path := range []string{"/healthz", "/api/v1/sessions"} {
				if status, body := s.get(path, header); status != visit.api {
					t.Errorf("GET %s: %d %s", path, status, body)
				}
			}
			c := n.open("ws://"+s.address+"/api/chat/ws?threadId="+newThread(), visit.headers)
			if visit.ws == http.StatusSwitchingProtocols {
				c.opened()
				c.close()
			} else if status, body := c.refused(); status != visit.ws || body == "" {
				t.Errorf("the upgrade: %d %q", status, body)
			}
		})
	}
}
