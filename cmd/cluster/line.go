package main

import (
	"io"
	"net"
	"sync"
)

// A line is a proxy between a node and one of its servers. It can be cut. It can
// also be silent: data that is sent meanwhile arrives later.
type line struct {
	network, target string
	listener        net.Listener
	wg              sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	state  state
	open   map[net.Conn]bool
	change *sync.Cond
}

type state int

const (
	whole  state = iota
	cut          // connections are closed, and new ones are refused
	silent       // data is held back
	closed
)

func newLine(network, target string) (*line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &line{network: network, target: target, listener: listener, open: map[net.Conn]bool{}}
	l.change = sync.NewCond(&l.mu)
	l.wg.Go(l.serve)
	return l, nil
}

func (l *line) address() string { return l.listener.Addr().String() }

// set changes the state. The states cut and closed close all connections.
func (l *line) set(s state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
	if s == cut || s == closed {
		for conn := range l.open {
			_ = conn.Close()
		}
	}
	l.change.Broadcast()
}

func (l *line) close() error {
	err := l.listener.Close()
	l.set(closed)
	l.wg.Wait()
	return err
}

func (l *line) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.carry(near) })
	}
}

func (l *line) carry(near net.Conn) {
	defer near.Close()
	far, err := net.Dial(l.network, l.target)
	if err != nil {
		return
	}
	defer far.Close()
	l.mu.Lock()
	refused := l.state == cut || l.state == closed
	if !refused {
		l.open[near], l.open[far] = true, true
	}
	l.mu.Unlock()
	if refused {
		return
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, near)
		delete(l.open, far)
	}()
	var wg sync.WaitGroup
	wg.Go(func() { l.pass(far, near) })
	l.pass(near, far)
	wg.Wait()
}

// pass copies until one side ends, and then closes both.
func (l *line) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	_, _ = io.Copy(gate{l, to}, from)
}

// A gate holds data back while its line is silent.
type gate struct {
	line *line
	to   io.Writer
}

func (g gate) Write(b []byte) (int, error) {
	g.line.mu.Lock()
	for g.line.state == silent {
		g.line.change.Wait()
	}
	g.line.mu.Unlock()
	return g.to.Write(b)
}
