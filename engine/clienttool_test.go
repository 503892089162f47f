package engine

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/port"
)

func TestClientTools(t *testing.T) { onEveryStore(t, clientToolsOn) }

// The model is offered the client's tools besides the agent's, for the run of
// that input only. A call waits across a restart, and the model gets its
// result.
func clientToolsOn(t *testing.T, open func() port.Store) {
	r := newRig(t)
	r.stop(true)
	r.reopen = open
	r.start()
	id := r.open()
	var mu sync.Mutex
	var offered [][]string
	var told []string
	watch := func() {
		r.puppet.seen = func(m port.ModelRequest) {
			mu.Lock()
			defer mu.Unlock()
			var names []string
			for _, s := range m.Tools {
				if s.Client {
					names = append(names, s.Name)
				}
			}
			offered = append(offered, names)
			if last := m.Messages[len(m.Messages)-1]; last.Role == parley.RoleTool {
				told = append(told, last.Text)
			}
		}
	}
	watch()
	in := input("call paint red | say thanks", parley.Queue)
	in.Tools = []parley.ClientTool{{Name: "paint", Parameters: `{"type":"object"}`}}
	r.do(id, in)
	waits := func(log []parley.Event) bool { return len(all[parley.ToolCallRequested](log)) == 1 }
	log := r.until(id, "the call waits", waits)
	r.restart(false)
	watch()
	call := parley.CallID(0)
	for _, e := range log {
		if _, ok := e.Body.(parley.ToolCallRequested); ok {
			call = parley.CallID(e.Seq)
		}
	}
	if m, err := r.Session(t.Context(), ann, id); err != nil || m.Status != parley.StatusWaiting {
		t.Errorf("%+v, %v", m, err)
	}
	r.do(id, parley.ReturnToolResult{Call: call, Result: "it is red"})
	r.finished(id, 1)
	r.say(id, "say bye")
	log = r.finished(id, 2)
	mu.Lock()
	defer mu.Unlock()
	want := [][]string{{"paint"}, {"paint"}, nil}
	if !slices.EqualFunc(offered, want, slices.Equal) || !slices.Equal(told, []string{"it is red"}) {
		t.Errorf("offered %q, told %q", offered, told)
	}
	if len(all[parley.ToolCallStarted](log)) != 0 {
		t.Errorf("the server has carried it out: %s", story(log))
	}
	r.check(id)
}

// TestClientToolNameConflict checks that a client tool with the name of one of the agent's tools is refused, with
// nothing in the log.
func TestClientToolNameConflict(t *testing.T) {
	r := newRig(t)
	id := r.open()
	before := len(r.log(id))
	in := input("say hello", parley.Queue)
	in.Tools = []parley.ClientTool{{Name: "read"}}
	if _, err := r.try(id, in); parley.CodeOf(err) != parley.CodeInvalid ||
		!strings.Contains(parley.MessageOf(err), `"read"`) {
		t.Errorf("%v", err)
	}
	if len(r.log(id)) != before {
		t.Errorf("%s", story(r.log(id)))
	}
}

// TestClientCalls checks that with ClientCalls the calls of the agent's own tools wait for the client, and the server
// runs nothing.
func TestClientCalls(t *testing.T) {
	r := newRig(t)
	id := r.open()
	var mu sync.Mutex
	var told []string
	r.puppet.seen = func(m port.ModelRequest) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range m.Tools {
			if !s.Client {
				t.Errorf("the server would carry out %s", s.Name)
			}
		}
		if last := m.Messages[len(m.Messages)-1]; last.Role == parley.RoleTool {
			told = append(told, last.Text)
		}
	}
	in := input("call read a.txt | say thanks", parley.Queue)
	in.ClientCalls = true
	r.do(id, in)
	r.until(id, "the call waits", func(log []parley.Event) bool {
		return len(all[parley.ToolCallRequested](log)) == 1
	})
	for _, e := range r.log(id) {
		if _, ok := e.Body.(parley.ToolCallRequested); ok {
			r.do(id, parley.ReturnToolResult{Call: parley.CallID(e.Seq), Result: "recorded"})
		}
	}
	log := r.finished(id, 1)
	if len(all[parley.ToolCallStarted](log)) != 0 {
		t.Errorf("the server has carried it out: %s", story(log))
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(told, []string{"recorded"}) {
		t.Errorf("told %q", told)
	}
	r.check(id)
}
