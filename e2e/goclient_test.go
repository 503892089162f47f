package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTheGoClientExample builds the example outside of the server's module. It gets its answer from the real server.
func TestTheGoClientExample(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	program := filepath.Join(t.TempDir(), "go-client")
	if out, err := exec.Command("go", "build", "-o", program,
		"parley/examples/go-client").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	address := "http://" + s.address
	out, err := exec.CommandContext(within(t, patience), program, address, "say hello there").CombinedOutput()
	if err != nil || string(out) != "hello there\n" {
		t.Errorf("%s, %v", out, err)
	}
}
