package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// A cluster contains all running processes.
type cluster struct {
	options
	db       *database
	bus      *natsServer // nil: there is no NATS server
	nodes    []*node
	balancer string  // address of the balancer
	lines    []*line // proxies between nodes and servers; none unless proxied
	wg       sync.WaitGroup
}

// with starts a cluster, calls do and stops the cluster.
func with(ctx context.Context, o options, do func(*cluster) error) (err error) {
	if o.count < 1 {
		return fmt.Errorf("-nodes is %d; a cluster has at least one node", o.count)
	}
	listener, err := listen(o)
	if err != nil {
		return err
	}
	defer listener.Close()
	temp, err := os.MkdirTemp("", "parley-cluster-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := errors.Join(os.RemoveAll(o.folder), os.MkdirAll(o.folder, 0o755), os.Chmod(temp, 0o755)); err != nil {
		return err
	}
	c := &cluster{options: o}
	defer c.wg.Wait()
	if c.db, err = startPostgres(ctx, filepath.Join(temp, "postgres"), o.folder); err != nil {
		return err
	}
	defer func() { c.db.stop(syscall.SIGINT) }() // c.db may have been restarted
	fmt.Println("PostgreSQL  ", c.db.url)
	if o.nats != "" {
		if c.bus, err = startNATS(ctx, o); err != nil {
			return err
		}
		defer func() { c.bus.stop(syscall.SIGTERM) }()
		fmt.Println("NATS        ", "nats://"+c.bus.address)
	}
	defer func() {
		for _, l := range c.lines {
			err = errors.Join(err, l.close())
		}
	}()
	defer c.stopNodes()
	if err := c.startNodes(ctx, temp); err != nil {
		return err
	}
	b := &balancer{}
	for _, n := range c.nodes {
		b.targets = append(b.targets, n.listen)
	}
	c.wg.Go(func() { b.serve(listener) })
	defer func() { err = errors.Join(err, b.close(listener)) }()
	c.balancer = listener.Addr().String()
	fmt.Printf("balancer     http://%s\n\n", c.balancer)
	return do(c)
}

// listen takes the port of the balancer, and tries the ports of the nodes.
func listen(o options) (net.Listener, error) {
	balancer, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", o.port))
	for i := 1; err == nil && o.port > 0 && i <= o.count; i++ {
		var node net.Listener
		if node, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", o.port+i)); err == nil {
			err = node.Close()
		}
	}
	if err != nil {
		if balancer != nil {
			_ = balancer.Close()
		}
		return nil, fmt.Errorf("the balancer and the nodes need the ports %d to %d: %w; "+
			"choose others: make cluster CLUSTER='-port 9000'", o.port, o.port+o.count, err)
	}
	return balancer, nil
}

func (c *cluster) startNodes(ctx context.Context, temp string) error {
	workspace := filepath.Join(temp, "workspace")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		return err
	}
	key := newKey()
	for i := 1; i <= c.count; i++ {
		env, err := c.environment(key)
		if err != nil {
			return err
		}
		n := &node{options: c.options, number: i, env: env, listen: "127.0.0.1:0", workspace: workspace,
			data: filepath.Join(temp, fmt.Sprint("node", i))}
		if c.port > 0 {
			n.listen = fmt.Sprint("127.0.0.1:", c.port+i)
		}
		if err := n.start(ctx); err != nil {
			return err
		}
		fmt.Printf("node %d       http://%s  (process %d)\n", i, n.listen, n.cmd.Process.Pid)
		c.nodes = append(c.nodes, n)
	}
	return nil
}

// environment returns the environment of the next node. If connections can be cut,
// each node has lines of its own.
func (c *cluster) environment(key string) ([]string, error) {
	database, bus := c.db.url, ""
	if c.bus != nil {
		bus = c.bus.address
	}
	if c.proxied {
		l, err := newLine("unix", c.db.socket)
		if err != nil {
			return nil, err
		}
		c.lines = append(c.lines, l)
		database = "postgres://postgres@" + l.address() + "/postgres?sslmode=disable"
		if bus != "" {
			if l, err = newLine("tcp", bus); err != nil {
				return nil, err
			}
			c.lines = append(c.lines, l)
			bus = l.address()
		}
	}
	env := append(os.Environ(), "PARLEY_DATABASE_URL="+database, "PARLEY_SERVER_KEY="+key)
	if c.proxied {
		ahead := []string{"-4s", "0s", "5s"}[len(c.nodes)%3]
		env = append(env, "PARLEY_CLOCK="+ahead) // only programs with the build tag failpoint read it
	}
	if bus != "" {
		env = append(env, "PARLEY_NATS_URL=nats://"+bus)
	}
	return env, nil
}

func (c *cluster) stopNodes() {
	var wg sync.WaitGroup
	for _, n := range c.nodes {
		wg.Go(func() { n.stop(syscall.SIGTERM) })
	}
	wg.Wait()
}
