package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestProcessNumberFile checks that the file with a process number does not outlive the process:
// make cluster-kill would kill another program that got the number.
func TestProcessNumberFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "node1")
	p, err := launch(exec.Command("sleep", "600"), name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name + ".pid")
	if want := fmt.Sprintln(p.cmd.Process.Pid); err != nil || string(got) != want {
		t.Errorf("the file has %q (%v), want %q", got, err, want)
	}
	p.stop(syscall.SIGKILL)
	if exists(name + ".pid") {
		t.Error("the process has ended, and its file is still there")
	}
}

// TestBusyPorts checks that a cluster whose ports are taken says so before it starts anything.
func TestBusyPorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for name, first := range map[string]int{"the balancer's": port, "a node's": port - 1} {
		o := options{count: 1, port: first, folder: filepath.Join(t.TempDir(), "cluster")}
		err := with(t.Context(), o, func(*cluster) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "CLUSTER='-port 9000'") || exists(o.folder) {
			t.Errorf("%s port is taken: %v", name, err)
		}
	}
	if err := with(t.Context(), options{}, nil); err == nil || !strings.Contains(err.Error(), "-nodes") {
		t.Error("a cluster without nodes has started")
	}
}
