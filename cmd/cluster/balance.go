package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// A balancer forwards each connection to the next node. If that node refuses,
// it tries the one after it. It knows nothing of HTTP, so any TCP balancer can
// replace it.
type balancer struct {
	targets []string
	wg      sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	next   int
	closed bool
	open   map[net.Conn]bool
}

// serve forwards connections until the listener is closed.
func (b *balancer) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		b.wg.Go(func() { b.carry(conn) })
	}
}

// close ends all connections.
func (b *balancer) close(l net.Listener) error {
	err := l.Close()
	b.mu.Lock()
	b.closed = true
	for conn := range b.open {
		_ = conn.Close()
	}
	b.mu.Unlock()
	b.wg.Wait()
	return err
}

func (b *balancer) carry(client net.Conn) {
	defer client.Close()
	node := b.dial()
	if node == nil {
		return
	}
	defer node.Close()
	if !b.keep(client, node) {
		return
	}
	defer b.forget(client, node)
	var wg sync.WaitGroup
	wg.Go(func() { pipe(node, client) })
	pipe(client, node)
	wg.Wait()
}

// pipe copies until one side ends, and then ends the other side.
func pipe(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close() // the connection broke, so both sides are closed
		_ = from.Close()
		return
	}
	if c, ok := to.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
}

// dial connects to the next node that accepts. It returns nil if no node does.
func (b *balancer) dial() net.Conn {
	for range b.targets {
		b.mu.Lock()
		target := b.targets[b.next%len(b.targets)]
		b.next++
		b.mu.Unlock()
		if conn, err := net.DialTimeout("tcp", target, time.Second); err == nil {
			return conn
		}
	}
	return nil
}

func (b *balancer) keep(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open = map[net.Conn]bool{}
	}
	for _, c := range conns {
		b.open[c] = true
	}
	return !b.closed
}

func (b *balancer) forget(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		delete(b.open, c)
	}
}
