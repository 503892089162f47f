package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley"
	"parley/provider/providertest"
)

// A server is killed in the middle of an action and started again. An action
// that must not happen twice adds a line to a file each time it begins:
// deploy.sh. It goes on when a reader opens the pipe beside it.
const deployScript = "#!/bin/sh\necho ran >> witness.txt\nread go < gate\necho deployed\n"

func newDeployment(t *testing.T, mock *providertest.Mock, env ...string) *server {
	t.Helper()
	workspace := t.TempDir()
	put(t, workspace, "deploy.sh", deployScript)
	put(t, workspace, "witness.txt", "")
	if err := syscall.Mkfifo(filepath.Join(workspace, "gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	agentFile(t, workspace, "a-auto", "approval: full-auto")
	agentFile(t, workspace, "b-asks", "approval: suggest")
	return startServer(t, withModel(mock, options{workspace: workspace}, append(env, "PATH="+os.Getenv("PATH"))...))
}

// witnesses counts how often an action was begun.
func (s *server) witnesses() int {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.o.workspace, "witness.txt"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Count(string(raw), "ran\n")
}

// begun waits until the command has opened the gate.
func (s *server) begun() *os.File {
	s.t.Helper()
	var gate *os.File
	await(s.t, patience, "a command at the gate", func() (ok bool) {
		// This fails as long as the gate has no reader.
		f, err := os.OpenFile(filepath.Join(s.o.workspace, "gate"), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		gate = f
		return err == nil
	})
	return gate
}

// pass lets a command go on.
func (s *server) pass() {
	s.t.Helper()
	gate := s.begun()
	defer gate.Close()
	if _, err := gate.WriteString("through\n"); err != nil {
		s.t.Fatal(err)
	}
}

// killedAtTheGate kills the server when a command is at the gate, and starts
// another server.
func (s *server) killedAtTheGate() *server {
	s.t.Helper()
	gate := s.begun()
	defer gate.Close() // otherwise the command would read the end of the file
	s.kill()
	await(s.t, patience, "the command to end", func() bool { // or it would be taken for the command of the next server
		f, err := os.OpenFile(filepath.Join(s.o.workspace, "gate"), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			f.Close()
		}
		return err != nil
	})
	return s.again()
}

// waiting returns the only open card of a kind.
func (s *server) waiting(path, session string) (id string) {
	s.t.Helper()
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	await(s.t, patience, path, func() bool {
		status, body := s.get("/api/v1/"+path+sep+"session="+session, nil)
		var list struct {
			Approvals, Questions, Calls []struct{ ID string }
		}
		if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
			s.t.Fatalf("%s: %d %s", path, status, body)
		}
		all := append(append(list.Approvals, list.Questions...), list.Calls...)
		if len(all) > 1 {
			s.t.Fatalf("%s: %s", path, body)
		}
		if len(all) == 1 {
			id = all[0].ID
		}
		return id != ""
	})
	return id
}

func killedScripts() [][]fixture {
	return [][]fixture{
		script("deploy it", asks("", shellCall("sh", "deploy.sh")), says("It is deployed.")),
		script("look at the gate", asks("", shellCall("cat", "gate")), says("Somebody came through.")),
		script("ask me",
			asks("", call("ask_user",
				map[string]any{"questions": []any{map[string]any{"question": "Which way?", "header": "Way",
					"options":      []any{map[string]any{"label": "Left"}, map[string]any{"label": "Right"}},
					"multi_select": false}}})), says("That way.")),
		script("have the gate looked at",
			asks("", call("delegate", map[string]any{"agent_id": "a-auto", "task": "look at the gate"})),
			says("It was looked at.")),
		script("have it deployed",
			asks("", call("delegate", map[string]any{"agent_id": "a-auto", "task": "deploy it"})),
			says("They deployed it.")),
	}
}

// TestKilledDuringACommand: the outcome of the command is unknown, and a person
// decides what happens next.
func TestKilledDuringACommand(t *testing.T) {
	t.Parallel()
	mock := startModel(t, killedScripts()...)
	for _, c := range []struct {
		resolution string
		witnesses  int
		outcome    parley.Outcome
		told       string // text for the model
	}{
		{"rerun", 2, parley.Completed, "exit code 0\\ndeployed"},
		{"mark_done", 1, parley.Completed, "A person looked and says that this was done. I saw it"},
		{"abandon", 1, parley.Interrupted, ""},
	} {
		t.Run(c.resolution, func(t *testing.T) {
			t.Parallel()
			s := newDeployment(t, mock)
			session := s.says("a-auto", "deploy it")
			s = s.killedAtTheGate()
			id := s.waiting("calls?status=unknown", session)
			s.kill() // kill it again: the card still waits, and the command is not run
			s = s.again()
			if again := s.waiting("calls?status=unknown", session); again != id || s.witnesses() != 1 {
				t.Errorf("%s waits, and then %s; it was begun %d times", id, again, s.witnesses())
			}
			wantStatus(t, s, session, parley.StatusWaiting)
			s.send("/calls/"+id, `{"resolution":"`+c.resolution+`","note":"I saw it"}`)
			if c.resolution == "rerun" {
				s.pass()
			}
			log := s.ends(session)
			if end := finished(t, log); end.Outcome != c.outcome || s.witnesses() != c.witnesses {
				t.Errorf("it ended as %+v, begun %d times", end, s.witnesses())
			}
			results := those[parley.ToolCallFinished](log)
			if results[0].Outcome != parley.CallUnknown || len(results) != c.witnesses {
				t.Errorf("results: %+v", results)
			}
			if c.told != "" && !strings.Contains(strings.Join(toldModel(mock, "deploy it"), "\n"), c.told) {
				t.Errorf("the model was not told %s", c.told)
			}
			if status, _ := s.post("/calls/"+id, `{"resolution":"rerun"}`); status != http.StatusGone ||
				s.witnesses() != c.witnesses {
				t.Errorf("resolved once more: %d", status)
			}
		})
	}
}

func wantStatus(t *testing.T, s *server, session string, want parley.Status) {
	t.Helper()
	if _, body := s.get("/api/v1/sessions/"+session, nil); !strings.Contains(body, `"status":"`+string(want)+`"`) {
		t.Errorf("the session is %s", body)
	}
}

// TestKilledWhileReading: a read-only call is repeated without asking.
func TestKilledWhileReading(t *testing.T) {
	t.Parallel()
	mock := startModel(t, killedScripts()...)
	s := newDeployment(t, mock)
	session := s.says("b-asks", "look at the gate")
	s = s.killedAtTheGate()
	s = s.killedAtTheGate()
	s.pass()
	log := s.ends(session)
	var attempts []int
	for _, b := range those[parley.ToolCallStarted](log) {
		attempts = append(attempts, b.Attempt)
	}
	if end := finished(t, log); end.Outcome != parley.Completed || fmt.Sprint(attempts) != "[1 2 3]" {
		t.Errorf("%+v after attempts %v", end, attempts)
	}
	if r := those[parley.ToolCallFinished](log); len(r) != 1 || r[0].Result != "exit code 0\nthrough\n" {
		t.Errorf("%+v", r)
	}
	if n := len(toldModel(mock, "look at the gate")); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestKilledDuringAnApproval: the approval still waits, and the allowed call
// runs once.
func TestKilledDuringAnApproval(t *testing.T) {
	t.Parallel()
	s := newDeployment(t, startModel(t, killedScripts()...))
	session := s.says("b-asks", "deploy it")
	id := s.waiting("approvals", session)
	s.kill()
	s = s.again()
	if again := s.waiting("approvals", session); again != id || s.witnesses() != 0 {
		t.Errorf("%s waits, and then %s; it was begun %d times", id, again, s.witnesses())
	}
	s.send("/approvals/"+id, `{"decision":"allow"}`)
	if status, _ := s.post("/approvals/"+id, `{"decision":"allow"}`); status != http.StatusGone {
		t.Errorf("allowed once more: %d", status)
	}
	s.pass()
	if end := finished(t, s.ends(session)); end.Outcome != parley.Completed || s.witnesses() != 1 {
		t.Errorf("it ended as %+v, begun %d times", end, s.witnesses())
	}
	s.kill()
	s = s.again()
	wantStatus(t, s, session, parley.StatusIdle)
	if s.witnesses() != 1 {
		t.Errorf("begun %d times", s.witnesses())
	}
}

func TestKilledDuringAQuestion(t *testing.T) {
	t.Parallel()
	mock := startModel(t, killedScripts()...)
	s := newDeployment(t, mock)
	session := s.says("a-auto", "ask me")
	id := s.waiting("questions", session)
	s.kill()
	s = s.again()
	if again := s.waiting("questions", session); again != id {
		t.Errorf("%s waits, and then %s", id, again)
	}
	s.send("/questions/"+id, `{"answers":[["Left"]]}`)
	log := s.ends(session)
	if end := finished(t, log); end.Outcome != parley.Completed || spoken(log) != "That way." ||
		!strings.Contains(mock.Last().Body, `Left`) {
		t.Errorf("%+v, %q, told %s", end, spoken(log), mock.Last().Body)
	}
}

// TestKilledDuringASubAgent: the child goes on, and its parent gets its result
// once.
func TestKilledDuringASubAgent(t *testing.T) {
	t.Parallel()
	mock := startModel(t, killedScripts()...)
	child := func(t *testing.T, s *server, session string) string {
		t.Helper()
		log := s.exported(session)
		spawned := those[parley.ChildSpawned](log)
		if len(spawned) != 1 {
			t.Fatalf("children: %+v", spawned)
		}
		return string(spawned[0].Child)
	}
	returned := func(t *testing.T, s *server, session, result string) {
		t.Helper()
		log := s.ends(session)
		if back := those[parley.ChildReturned](log); len(back) != 1 || back[0].Outcome != parley.Completed ||
			back[0].Result != result {
			t.Errorf("returned: %+v", back)
		}
		if end := finished(t, log); end.Outcome != parley.Completed {
			t.Errorf("%+v", end)
		}
		s.settled(child(t, s, session))
	}
	t.Run("that reads", func(t *testing.T) {
		t.Parallel()
		s := newDeployment(t, mock)
		session := s.says("b-asks", "have the gate looked at")
		s = s.killedAtTheGate()
		s.pass()
		returned(t, s, session, "Somebody came through.")
	})
	t.Run("that does something", func(t *testing.T) {
		t.Parallel()
		s := newDeployment(t, mock)
		session := s.says("b-asks", "have it deployed")
		s = s.killedAtTheGate()
		id := s.waiting("calls?status=unknown", child(t, s, session))
		s.send("/calls/"+id, `{"resolution":"mark_done"}`)
		returned(t, s, session, "It is deployed.")
		if s.witnesses() != 1 {
			t.Errorf("begun %d times", s.witnesses())
		}
	})
}
