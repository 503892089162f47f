package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/checker"
)

// A project is a git repository that agents work on: a script with a mistake,
// and a test that finds it.
const (
	greetScript = "#!/bin/sh\n# Greets somebody.\necho \"Helo, $1!\"\n"
	testScript  = "#!/bin/sh\ngot=$(sh greet.sh World)\nif [ \"$got\" = 'Hello, World!' ]; then echo 'ok: greets'; else echo \"FAIL: $got\"; exit 1; fi\n"
	greetPatch  = "*** Begin Patch\n*** Update File: greet.sh\n@@\n # Greets somebody.\n-echo \"Helo, $1!\"\n+echo \"Hello, $1!\"\n*** End Patch\n"
	greetFixed  = "#!/bin/sh\n# Greets somebody.\necho \"Hello, $1!\"\n"
)

// newProject creates a project in the workspace of a server.
func newProject(t *testing.T) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "project")
	put(t, folder, "greet.sh", greetScript)
	put(t, folder, "test.sh", testScript)
	git(t, folder, "init", "-q")
	git(t, folder, "add", ".")
	git(t, folder, "-c", "user.name=e2e", "-c", "user.email=e2e@example.invalid", "commit", "-q", "-m", "A greeting")
	return folder
}

// agentFile defines an agent of a project.
func agentFile(t *testing.T, folder, name, settings string) {
	t.Helper()
	put(t, folder, "agents/"+name+".md", "---\nname: "+name+"\n"+settings+"\n---\nYou work on code.\n")
}

// git runs git without the settings of the user who runs the tests.
func git(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = folder
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// exported is a session in the format of `parley export`. Its log must be
// valid.
func (s *server) exported(session string) (log []parley.Event) {
	s.t.Helper()
	out, errs, code := run(s.t, "export", "--data", s.o.data, session)
	if code != 0 {
		s.t.Fatalf("export: %s", errs)
	}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, `{"session":`) {
			continue // skip the header and definitions of agents
		}
		var e parley.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		log = append(log, e)
	}
	for _, err := range checker.Check(log) {
		s.t.Errorf("session %s: %v", session, err)
	}
	return log
}

// settled returns an exported session without an active run.
func (s *server) settled(session string) []parley.Event {
	s.t.Helper()
	log := s.exported(session)
	for _, err := range checker.Settled(log) {
		s.t.Errorf("session %s: %v", session, err)
	}
	return log
}

// those returns the events of one type.
func those[B parley.EventBody](log []parley.Event) (list []B) {
	for _, e := range log {
		if b, ok := e.Body.(B); ok {
			list = append(list, b)
		}
	}
	return list
}

// finished returns how the last run of a log ended.
func finished(t *testing.T, log []parley.Event) parley.RunFinished {
	t.Helper()
	ends := those[parley.RunFinished](log)
	if len(ends) == 0 {
		t.Fatal("no run has ended")
	}
	return ends[len(ends)-1]
}

// spoken returns all text of the model in a log.
func spoken(log []parley.Event) (text string) {
	for _, o := range those[parley.OutputFinished](log) {
		if o.Kind == parley.Text {
			text += o.Text
		}
	}
	return text
}

// send sends a request of the native protocol that must be accepted.
func (s *server) send(path, body string) string {
	s.t.Helper()
	status, answer := s.post(path, body)
	if status >= 300 {
		s.t.Fatalf("POST %s %.200s: %d %s", path, body, status, answer)
	}
	return answer
}

func (s *server) post(path, body string) (int, string) {
	s.t.Helper()
	v := visitor{server: s}
	return v.ask(http.MethodPost, "/api/v1"+path, body)
}

// says sends a message to a new session, by the native protocol.
func (s *server) says(agent, content string) (session string) {
	s.t.Helper()
	session = newThread()
	raw, _ := json.Marshal(map[string]string{"id": session, "agent": agent}) // strings: Marshal cannot fail
	s.send("/sessions", string(raw))
	s.tells(session, content)
	return session
}

func (s *server) tells(session, content string) {
	s.t.Helper()
	raw, _ := json.Marshal(map[string]string{"content": content}) // the value is a string: Marshal cannot fail
	s.send("/sessions/"+session+"/inputs", string(raw))
}

// ends waits for the end of the run of a session, and reads the log.
func (s *server) ends(session string) []parley.Event {
	s.t.Helper()
	follows := false // whether a change report comes after the run
	s.awaitEvent(session, func(e event) bool {
		if e.Type == "RunFinished" {
			follows = e.Body.Follows
			return !follows
		}
		return follows && e.Type == "FilesChanged"
	})
	return s.settled(session)
}
