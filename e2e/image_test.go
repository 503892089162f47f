package e2e

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestTheImageHere starts the server with the settings of the image: as its user, with a read-only root, with and
// without user namespaces. The programs are those of this machine; make image-check takes Debian's packages.
func TestTheImageHere(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").Run() != nil {
		t.Skip("bubblewrap cannot run here")
	}
	cmd := exec.CommandContext(within(t, patience), "../deploy/image-check", "--here", binary(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"has run: bubblewrap", "has run: Landlock"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
