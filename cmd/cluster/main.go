// Command cluster runs several Parley nodes on this machine for experiments and
// tests: a PostgreSQL server from the installed programs, a NATS server, the nodes,
// and a TCP balancer in front of them. All data is in a temporary folder that is
// deleted at the end. make cluster builds the programs and starts it;
// docs/cluster.md explains it.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	parley, nats string
	folder       string
	count, port  int
	restart      time.Duration
	proxied      bool // the connections between a node and its servers can be cut
}

func main() {
	var o options
	flag.StringVar(&o.parley, "parley", "bin/parley", "the program that serves")
	flag.StringVar(&o.nats, "nats", "bin/nats-server", "the NATS server; empty: the nodes use PostgreSQL alone")
	flag.StringVar(&o.folder, "folder", "bin/cluster", "where process numbers and logs are written")
	flag.IntVar(&o.count, "nodes", 3, "number of nodes")
	flag.IntVar(&o.port, "port", 8080, "port of the balancer; the nodes have the next ones; 0: any free ones")
	flag.DurationVar(&o.restart, "restart", 20*time.Second, "start a node that ended again after this time; 0: never")
	flag.Parse()
	do, known := map[string]func(context.Context, options, []string) error{"": plainly, "check": check,
		"takeover": takeover, "rolling": rolling}[flag.Arg(0)]
	if !known {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := do(ctx, o, flag.Args()[min(1, flag.NArg()):]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func plainly(ctx context.Context, o options, _ []string) error {
	return with(ctx, o, func(c *cluster) error {
		for _, n := range c.nodes {
			c.wg.Go(func() { n.keep(ctx) })
		}
		fmt.Printf("Open the balancer's address in a browser. In another terminal, kill a node while you watch:\n\n"+
			"  make cluster-kill NODE=2\n\nLogs are in %s. Press Ctrl-C to stop everything.\n\n", o.folder)
		<-ctx.Done()
		fmt.Println("stopping")
		return nil
	})
}

func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return hex.EncodeToString(key)
}

// A natsServer keeps its address when it is restarted.
type natsServer struct {
	*process
	program, name, address string
}

func startNATS(ctx context.Context, o options) (*natsServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the server cannot report a port that it chooses
	if err != nil {
		return nil, err
	}
	s := &natsServer{program: o.nats, name: filepath.Join(o.folder, "nats"), address: l.Addr().String()}
	_ = l.Close()
	return s, s.start(ctx)
}

func (s *natsServer) start(ctx context.Context) error {
	host, port, _ := net.SplitHostPort(s.address)
	p, err := launch(exec.Command(s.program, "-a", host, "-p", port), s.name)
	if err != nil {
		return fmt.Errorf("NATS: %w", err)
	}
	s.process = p
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", s.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.exited:
			return fmt.Errorf("NATS ended: %w; see %s.log", p.err, s.name)
		case <-time.After(20 * time.Millisecond):
		}
	}
	p.stop(syscall.SIGTERM)
	return ctx.Err()
}

// A node is a Parley server.
type node struct {
	options
	*process
	number                  int
	env                     []string
	listen, data, workspace string
}

var ready = regexp.MustCompile(`msg="parley is ready" address=http://(\S+)`)

// start starts the node and waits until it is ready.
func (n *node) start(ctx context.Context) error {
	name := filepath.Join(n.folder, fmt.Sprint("node", n.number))
	cmd := exec.Command(n.parley, "serve", "--listen", n.listen, "--data", n.data, "--workspace", n.workspace)
	cmd.Env = n.env
	p, err := launch(cmd, name)
	if err != nil {
		return fmt.Errorf("node %d: %w", n.number, err)
	}
	for ctx.Err() == nil {
		if found := ready.FindStringSubmatch(lastLines(name + ".log")); found != nil {
			n.process, n.listen = p, found[1]
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("node %d ended: %w\n%s", n.number, p.err, lastLines(name+".log"))
		case <-time.After(50 * time.Millisecond):
		}
	}
	p.stop(syscall.SIGTERM)
	return ctx.Err()
}

// keep restarts the node whenever it has ended.
func (n *node) keep(ctx context.Context) {
	for {
		select {
		case <-n.exited:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return
		}
		fmt.Printf("%s node %d ended: %v\n", time.Now().Format(time.TimeOnly), n.number, n.err)
		if n.restart == 0 {
			return
		}
		select {
		case <-time.After(n.restart):
		case <-ctx.Done():
			return
		}
		if err := n.start(ctx); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s node %d is back (process %d)\n", time.Now().Format(time.TimeOnly), n.number, n.cmd.Process.Pid)
	}
}

// A process writes to a log file, and ends when this process ends. While it runs, a file has its process number.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // set once it has exited
}

// launch starts a process. The log of an earlier process with the name is kept under a number.
func launch(cmd *exec.Cmd, name string) (*process, error) {
	for i := 1; ; i++ {
		if earlier := fmt.Sprintf("%s.%d.log", name, i); !exists(earlier) {
			if exists(name + ".log") {
				_ = os.Rename(name+".log", earlier)
			}
			break
		}
	}
	log, err := os.OpenFile(name+".log", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // Ctrl-C must reach only this process, which stops the others in order
	dieTogether(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	err = os.WriteFile(name+".pid", []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o644)
	go func() {
		p.err = cmd.Wait()
		_ = os.Remove(name + ".pid") // another program may get the number
		close(p.exited)
	}()
	if err != nil {
		p.stop(syscall.SIGKILL)
		return nil, err
	}
	return p, nil
}

// stop stops a process and waits for it.
func (p *process) stop(signal syscall.Signal) { p.end(signal, 15*time.Second) }

// end sends a signal to a process and waits for its end. If that takes too long, it kills the process and returns
// false.
func (p *process) end(signal syscall.Signal, within time.Duration) bool {
	_ = p.cmd.Process.Signal(signal) // it may have ended
	select {
	case <-p.exited:
		return true
	case <-time.After(within):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return false
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// lastLines returns the last 50 lines of a log.
func lastLines(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	var lines []string
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if lines = append(lines, scan.Text()); len(lines) > 50 {
			lines = lines[1:]
		}
	}
	return strings.Join(lines, "\n")
}
