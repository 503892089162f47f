package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A peer is another server that supports some of the scenarios. A script in the
// folder with its name installs and starts it; see peers/README.md.
type peer struct {
	Name  string
	About string
	Can   []string       // names of supported scenarios
	ready *regexp.Regexp // matches the line that contains its address
	nats  bool           // uses the protocol of NATS
	agent *agentServer   // nil: the peer is a relay
	dir   string
}

var relayScenarios = []string{"fan", "viewers", "idle"}

var readyRelay = regexp.MustCompile(`ready (127\.0\.0\.1:\d+)`)

var allPeers = []peer{
	{Name: "gws", About: "relay in Go on the library gws", Can: relayScenarios, ready: readyRelay},
	{Name: "node-ws", About: "relay in Node on the package ws", Can: relayScenarios, ready: readyRelay},
	{Name: "nats", About: "nats-server with its WebSocket listener", Can: relayScenarios, nats: true,
		ready: regexp.MustCompile(`Listening for websocket clients on ws://(\S+)`)},
	{Name: "langgraph", About: "LangGraph's development server for JavaScript", Can: agentScenarios, agent: &langGraph,
		ready: regexp.MustCompile(`API:.*http://(127\.0\.0\.1:\d+)`)},
	{Name: "opencode", About: "opencode serve", Can: agentScenarios, agent: &openCode,
		ready: regexp.MustCompile(`listening on http://(127\.0\.0\.1:\d+)`)},
}

// Presence reports whether a peer can be measured.
type Presence struct {
	Name, About string
	Missing     string // why it cannot be measured; empty if it can
}

// Peers lists the peers and whether they can be measured. If install is true, it
// installs them first.
func Peers(ctx context.Context, folder string, names []string, install bool) (list []Presence, err error) {
	chosen, err := choosePeers(folder, names)
	if err != nil {
		return nil, err
	}
	for _, p := range chosen {
		here := Presence{Name: p.Name, About: p.About}
		if install {
			cmd, err := p.script(ctx, "install")
			if err != nil {
				return nil, err
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				here.Missing = fmt.Sprintf("its installation failed: %v: %s", err, lastLine(out))
			}
		}
		if here.Missing == "" {
			here.Missing = p.missing(ctx)
		}
		list = append(list, here)
	}
	return list, nil
}

func choosePeers(folder string, names []string) (list []*peer, err error) {
	all := slices.Contains(names, "all")
	for _, name := range names {
		if name != "all" && !slices.ContainsFunc(allPeers, func(p peer) bool { return p.Name == name }) {
			return nil, fmt.Errorf("there is no peer %q; parley bench peers lists them", name)
		}
	}
	for _, p := range allPeers {
		if all || slices.Contains(names, p.Name) {
			p.dir = filepath.Join(folder, p.Name)
			list = append(list, &p)
		}
	}
	return list, nil
}

// findPeers returns the chosen peers that can be measured, and the reasons why
// others cannot.
func findPeers(ctx context.Context, folder string, names []string) (found []*peer, missing []string, err error) {
	chosen, err := choosePeers(folder, names)
	for _, p := range chosen {
		if why := p.missing(ctx); why != "" {
			missing = append(missing, p.Name+": "+why)
			continue
		}
		found = append(found, p)
	}
	return found, missing, err
}

func (p *peer) script(ctx context.Context, verb string, env ...string) (*exec.Cmd, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	script, err := filepath.Abs(filepath.Join(p.dir, "run"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, script, verb)
	cmd.Env = append(append(os.Environ(), "CACHE="+filepath.Join(cache, "parley-bench", p.Name)), env...)
	return cmd, nil
}

func (p *peer) missing(ctx context.Context) string {
	cmd, err := p.script(ctx, "check")
	if err != nil {
		return err.Error()
	}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "there is no script " + cmd.Path +
			"; start the command in Parley's source tree, or name its bench/peers with --peer-folder"
	case err != nil:
		return lastLine(out) + "; parley bench peers --install installs it"
	}
	return ""
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// startPeer starts the peer on a free port.
func (t *trial) startPeer() error {
	data, err := t.dir()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return err
	}
	cmd, err := t.peer.script(context.Background(), "start", "PORT="+strconv.Itoa(port), "DATA="+data,
		"MODEL_URL="+t.model.URL())
	if err != nil {
		return err
	}
	cmd.Dir = data
	p, err := launch(t.ctx, cmd, t.peer.ready)
	if err != nil {
		return err
	}
	t.server = p
	t.procs = append(t.procs, p)
	if t.peer.agent != nil {
		return t.firstSession()
	}
	return nil
}
