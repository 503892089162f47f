package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
)

var asJSON = http.Header{"Content-Type": {"application/json"}}

// tell sends a POST request of the native protocol.
func (s *server) tell(path, body string) {
	s.t.Helper()
	response := s.request(within(s.t, patience), http.MethodPost, path, asJSON, body)
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		s.t.Fatalf("POST %s: %s", path, response.Status)
	}
}

// TestSessionExportAndImport exports a session while the server runs, and again
// from the data after kill -9. The copy goes on elsewhere, and the original in
// its place.
func TestSessionExportAndImport(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	id := uuid.NewString()
	s.tell("/api/v1/sessions", `{"id":"`+id+`"}`)
	s.tell("/api/v1/sessions/"+id+"/inputs", `{"content":"count slowly to 500"}`)
	s.logged("content_chunk_streaming", 2)

	file := filepath.Join(t.TempDir(), "session.jsonl")
	if _, said, code := run(t, "export", id, "--data", s.o.data, "--output", file); code != 0 {
		t.Fatalf("export: %s", said)
	}
	if out, said, code := run(t, "doctor", "--data", s.o.data, "--listen", s.address); code != 0 ||
		!strings.Contains(out, "a Parley serves on "+s.address) {
		t.Errorf("doctor, exit code %d:\n%s%s", code, out, said)
	}
	if _, said, code := run(t, "import", file, "--data", s.o.data); code != 1 ||
		!strings.Contains(said, "serving on "+s.address) {
		t.Errorf("import under a running server, exit code %d: %s", code, said)
	}
	s.kill()
	if out, said, code := run(t, "export", id, "--data", s.o.data); code != 0 ||
		!strings.Contains(out, `"type":"OutputAppended"`) {
		t.Errorf("export of what a crash left, exit code %d: %s", code, said)
	}

	other := options{data: t.TempDir()}
	if out, said, code := run(t, "import", file, "--data", other.data); code != 0 || !strings.Contains(out, "running") {
		t.Fatalf("import: %s", said)
	}
	for _, s := range []*server{s.again(), startServer(t, other)} {
		s.logged("content_chunk_streaming", 1)
		s.tell("/api/v1/sessions/"+id+"/cancel", `{}`)
		if _, log := s.get("/api/v1/sessions/"+id+"/log", nil); !strings.Contains(log, `"stop":"cut"`) ||
			!strings.Contains(log, `"outcome":"cancelled"`) {
			t.Errorf("the run did not go on as after a crash:\n%s", log)
		}
	}
}

// TestDoctorsExitCode checks the exit code, which scripts use.
func TestDoctorsExitCode(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if out, said, code := run(t, "doctor", "--data", data, "--listen", "127.0.0.1:0"); code != 0 {
		t.Errorf("on an empty folder, exit code %d:\n%s%s", code, out, said)
	}
	if out, said, code := run(t, "doctor", "--data", filepath.Join(data, "not", "there"), "--listen",
		"nonsense"); code != 1 || !strings.Contains(out, "problem  settings") {
		t.Errorf("with a problem, exit code %d:\n%s%s", code, out, said)
	}
}
