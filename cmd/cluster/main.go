// Command cluster runs several Parley nodes on this machine, to be tried out: a
// PostgreSQL server from the installed programs, a NATS server, the nodes and a TCP
// balancer in front of them. All data is in a temporary folder and gone at the end.
// make cluster builds what it needs and starts it; docs/cluster.md explains it.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
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
	"sync"
	"syscall"
	"time"
)

type options struct {
	parley, nats string
	folder       string
	nodes, port  int
	restart      time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.parley, "parley", "bin/parley", "the program that serves")
	flag.StringVar(&o.nats, "nats", "bin/nats-server", "the NATS server; empty: the nodes use PostgreSQL alone")
	flag.StringVar(&o.folder, "folder", "bin/cluster", "where process numbers and logs are written")
	flag.IntVar(&o.nodes, "nodes", 3, "number of nodes")
	flag.IntVar(&o.port, "port", 8080, "port of the balancer; the nodes have the next ones; 0: any free ones")
	flag.DurationVar(&o.restart, "restart", 20*time.Second, "start a node that ended again after this time; 0: never")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	temp, err := os.MkdirTemp("", "parley-cluster-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := errors.Join(os.RemoveAll(o.folder), os.MkdirAll(o.folder, 0o755), os.Chmod(temp, 0o755)); err != nil {
		return err
	}
	db, err := startPostgres(ctx, filepath.Join(temp, "postgres"), o.folder)
	if err != nil {
		return err
	}
	defer db.stop(syscall.SIGINT)
	fmt.Println("PostgreSQL  ", db.url)

	env := append(os.Environ(), "PARLEY_DATABASE_URL="+db.url, "PARLEY_SERVER_KEY="+newKey())
	if o.nats != "" {
		bus, url, err := startNATS(ctx, o)
		if err != nil {
			return err
		}
		defer bus.stop(syscall.SIGTERM)
		fmt.Println("NATS        ", url)
		env = append(env, "PARLEY_NATS_URL="+url)
	}

	workspace := filepath.Join(temp, "workspace")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		return err
	}
	var nodes []*node
	var wg sync.WaitGroup
	defer wg.Wait()
	b := &balancer{}
	for i := 1; i <= o.nodes; i++ {
		n := &node{options: o, number: i, env: env, listen: "127.0.0.1:0", workspace: workspace,
			data: filepath.Join(temp, fmt.Sprint("node", i))}
		if o.port > 0 {
			n.listen = fmt.Sprint("127.0.0.1:", o.port+i)
		}
		if err := n.start(ctx); err != nil {
			return errors.Join(err, stopAll(nodes))
		}
		fmt.Printf("node %d       http://%s  (process %d)\n", i, n.listen, n.cmd.Process.Pid)
		nodes = append(nodes, n)
		b.targets = append(b.targets, n.listen)
	}
	listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", o.port))
	if err != nil {
		return errors.Join(err, stopAll(nodes))
	}
	wg.Go(func() { b.serve(listener) })
	for _, n := range nodes {
		wg.Go(func() { n.keep(ctx) })
	}
	fmt.Printf("balancer     http://%s\n\n", listener.Addr())
	fmt.Printf("Open the balancer's address in a browser. In another terminal, kill a node while you watch:\n\n"+
		"  make cluster-kill NODE=2\n\nLogs are in %s. Press Ctrl-C to stop everything.\n\n", o.folder)
	<-ctx.Done()
	fmt.Println("stopping")
	err = stopAll(nodes)
	return errors.Join(err, b.close(listener))
}

func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // does not fail
	return hex.EncodeToString(key)
}

func startNATS(ctx context.Context, o options) (*process, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the server cannot say which port it chose
	if err != nil {
		return nil, "", err
	}
	address := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(address)
	p, err := launch(exec.Command(o.nats, "-a", "127.0.0.1", "-p", port), filepath.Join(o.folder, "nats"))
	if err != nil {
		return nil, "", fmt.Errorf("NATS: %w", err)
	}
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return p, "nats://" + address, conn.Close()
		}
		select {
		case <-p.exited:
			return nil, "", fmt.Errorf("NATS ended: %w; see %s.log", p.err, filepath.Join(o.folder, "nats"))
		case <-time.After(20 * time.Millisecond):
		}
	}
	p.stop(syscall.SIGTERM)
	return nil, "", ctx.Err()
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

// start starts the node and waits until it serves.
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
			return os.WriteFile(name+".pid", []byte(strconv.Itoa(p.cmd.Process.Pid)+"\n"), 0o644)
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

// keep starts the node again after it ended.
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

func stopAll(nodes []*node) error {
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() { n.stop(syscall.SIGTERM) })
	}
	wg.Wait()
	return nil
}

// A process writes to a log file, and dies with this one.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // once it has exited
}

func launch(cmd *exec.Cmd, name string) (*process, error) {
	log, err := os.OpenFile(name+".log", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // Ctrl-C is for this process, which stops the others in order
	dieTogether(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// stop ends a process and waits for it.
func (p *process) stop(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal) // it may be gone
	select {
	case <-p.exited:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// lastLines is the end of a log.
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
