package main

import (
	"bufio"
	"fmt"
	"net"
	"testing"
)

// echo serves connections: it sends a name and then repeats lines.
func echo(t *testing.T, name string) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				fmt.Fprintln(conn, name)
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintln(conn, lines.Text())
				}
			}()
		}
	}()
	return l
}

// TestTheBalancer checks that connections go to the nodes in turn, and that a node
// that refuses is skipped.
func TestTheBalancer(t *testing.T) {
	one, two, three := echo(t, "one"), echo(t, "two"), echo(t, "three")
	defer one.Close()
	defer three.Close()
	b := &balancer{targets: []string{one.Addr().String(), two.Addr().String(), three.Addr().String()}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { b.serve(l); close(done) }()
	visit := func() string {
		t.Helper()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		lines := bufio.NewScanner(conn)
		if !lines.Scan() {
			t.Fatal("no node answers")
		}
		name := lines.Text()
		fmt.Fprintln(conn, "hello")
		if !lines.Scan() || lines.Text() != "hello" {
			t.Fatal("a line did not come back")
		}
		return name
	}
	for _, want := range []string{"one", "two", "three", "one"} {
		if got := visit(); got != want {
			t.Errorf("node %s where %s was next", got, want)
		}
	}
	two.Close()
	for _, want := range []string{"three", "one", "three"} {
		if got := visit(); got != want {
			t.Errorf("node %s where %s was next", got, want)
		}
	}
	kept, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	lines := bufio.NewScanner(kept)
	lines.Scan()
	if err := b.close(l); err != nil {
		t.Error(err)
	}
	if lines.Scan() {
		t.Error("a connection outlives the balancer")
	}
	<-done
}
