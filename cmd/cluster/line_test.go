package main

import (
	"bufio"
	"fmt"
	"net"
	"testing"
)

// TestALine checks that a line that is cut closes its connections and refuses new
// ones, and that a silent line delivers data later.
func TestALine(t *testing.T) {
	server := echo(t, "server")
	defer server.Close()
	l, err := newLine("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dial := func() (net.Conn, *bufio.Scanner) {
		t.Helper()
		conn, err := net.Dial("tcp", l.address())
		if err != nil {
			t.Fatal(err)
		}
		return conn, bufio.NewScanner(conn)
	}
	conn, lines := dial()
	defer conn.Close()
	if !lines.Scan() || lines.Text() != "server" {
		t.Fatal("the server was not reached")
	}
	l.set(silent)
	fmt.Fprintln(conn, "hello")
	came := make(chan bool)
	go func() { came <- lines.Scan() && lines.Text() == "hello" }()
	other, more := dial() // its data from the server passes the same line
	defer other.Close()
	l.set(whole)
	if !<-came || !more.Scan() {
		t.Error("what was sent into a silent line is lost")
	}
	l.set(cut)
	if lines.Scan() {
		t.Error("a connection outlives the cut of its line")
	}
	if late, lines := dial(); lines.Scan() {
		t.Error("a line that is cut takes a connection")
	} else {
		late.Close()
	}
	l.set(whole)
	again, lines := dial()
	defer again.Close()
	if !lines.Scan() {
		t.Error("a line that is healed takes no connection")
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
}
