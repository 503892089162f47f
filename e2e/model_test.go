package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/provider/providertest"
)

// withModels starts a server with one agent, and a file for it to read.
func withModels(t *testing.T, agent string, env ...string) *server {
	t.Helper()
	workspace := t.TempDir()
	for name, text := range map[string]string{"agents/a.md": agent, "a.txt": "the words of a.txt"} {
		name = filepath.Join(workspace, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return startServer(t, options{workspace: workspace, env: env})
}

// bodies returns the events of one type in a thread's log.
func bodies[T parley.EventBody](s *server, thread string) (list []T) {
	s.t.Helper()
	_, log := s.get("/api/v1/sessions/"+thread+"/log", nil)
	for line := range strings.Lines(log) {
		var e parley.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		if body, ok := e.Body.(T); ok {
			list = append(list, body)
		}
	}
	return list
}

const helper = "---\nname: helper\n---\nHelp."

// TestEveryVendorAnswers uses the real binary: a text, and tool calls whose
// results go back to the model.
func TestEveryVendorAnswers(t *testing.T) {
	t.Parallel()
	mock := providertest.Start(t)
	n := startNode(t)
	for _, vendor := range []struct {
		model string
		env   []string
	}{
		{"gpt-4.1", []string{"OPENAI_API_KEY=" + providertest.Key, "OPENAI_BASE_URL=" + mock.URL + "/v1"}},
		{"gpt-5", []string{"OPENAI_API_KEY=" + providertest.Key, "OPENAI_BASE_URL=" + mock.URL + "/v1",
			"PARLEY_OPENAI_API=responses"}},
		{"claude-sonnet-4-5", []string{"ANTHROPIC_API_KEY=" + providertest.Key, "ANTHROPIC_BASE_URL=" + mock.URL}},
		{"gemini-2.5-flash", []string{"GEMINI_API_KEY=" + providertest.Key, "GOOGLE_GEMINI_BASE_URL=" + mock.URL}},
	} {
		t.Run(vendor.model, func(t *testing.T) {
			s := withModels(t, helper, append(vendor.env, "MODEL="+vendor.model)...)
			thread := newThread()
			c := n.dial(s, thread)
			c.ask("say hello")
			if a := c.completed(); a.text != "Hello there, this is a whole answer." {
				t.Errorf("answered %q", a.text)
			}
			c.ask("use tools")
			if a := c.completed(); !strings.Contains(a.text, "Looking.") ||
				!strings.HasSuffix(a.text, "Both were read.") {
				t.Errorf("answered %q", a.text)
			}
			for _, turn := range bodies[parley.TurnStarted](s, thread) {
				if turn.Model != vendor.model {
					t.Errorf("the log says that %q answers", turn.Model)
				}
			}
			if usage := bodies[parley.RunFinished](s, thread)[0].Usage; usage.Input != 12 || usage.Output != 5 ||
				usage.CostMicros == 0 {
				t.Errorf("the first run used %+v", usage)
			}
			calls := bodies[parley.ToolCallRequested](s, thread)
			if results := bodies[parley.ToolCallFinished](s, thread); len(calls) != 2 ||
				calls[0].Provider != "call_first" || len(results) != 2 {
				t.Errorf("calls %+v, results %+v", calls, results)
			}
			if !strings.Contains(mock.Last().Body, "the words of a.txt") {
				t.Errorf("the model was not told what was read: %s", mock.Last().Body)
			}
			if log := strings.Join(s.log.all(), "\n"); strings.Contains(log, providertest.Key) ||
				!strings.Contains(log, "model="+vendor.model) {
				t.Errorf("the server's log has the key, or not the model:\n%s", log)
			}
		})
	}
}

func TestAnotherModelAnswers(t *testing.T) {
	t.Parallel()
	mock := providertest.Start(t)
	n := startNode(t)
	s := withModels(t, "---\nname: helper\nmodel: always-busy\nfallback_models: [claude-sonnet-4-5, "+
		"gpt-4.1]\n---\nHelp.",
		"OPENAI_API_KEY="+providertest.Key, "OPENAI_BASE_URL="+mock.URL+"/v1")
	thread := newThread()
	c := n.dial(s, thread)
	c.ask("say hello")
	if a := c.completed(); a.text != "Hello there, this is a whole answer." {
		t.Errorf("answered %q", a.text)
	}
	fell := bodies[parley.ModelFellBack](s, thread)
	if len(fell) != 2 || fell[0].Preferred != "always-busy" || fell[0].Actual != "claude-sonnet-4-5" ||
		!strings.Contains(fell[0].Reason, "busy") ||
		fell[1].Preferred != "always-busy" || fell[1].Actual != "gpt-4.1" ||
		!strings.Contains(fell[1].Reason, "ANTHROPIC_API_KEY") {
		t.Errorf("%+v", fell)
	}
	s.logged("another model is asked", 2)
}

// TestAModelThatCannotBeCalled: a missing key is a warning at the start and an
// error in the chat. The demo model does not answer instead.
func TestAModelThatCannotBeCalled(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	s := withModels(t, helper, "MODEL=claude-sonnet-4-5")
	s.logged("ANTHROPIC_API_KEY is not set", 1)
	c := n.dial(s, newThread())
	c.ask("say hello")
	a := c.answer()
	if last := a.frames[len(a.frames)-1].raw; a.ending != "error" || a.text != "" ||
		!strings.Contains(last, "ANTHROPIC_API_KEY") {
		t.Errorf("%+v", a)
	}
}

// TestACutAnswerGoesOn: the text that was shown stays, and the model is told to
// continue where it was cut off. Nothing is shown twice.
func TestACutAnswerGoesOn(t *testing.T) {
	t.Parallel()
	mock := providertest.Start(t)
	n := startNode(t)
	s := withModels(t, helper, "OPENAI_BASE_URL="+mock.URL+"/v1", "MODEL=llama3.2") // this server needs no key
	thread := newThread()
	c := n.dial(s, thread)
	c.ask("stop in the middle")
	a := c.completed()
	outputs := bodies[parley.OutputFinished](s, thread)
	if len(outputs) != 2 || !outputs[0].Incomplete || outputs[0].Text == "" ||
		a.text != outputs[0].Text+" And so it ended." {
		t.Errorf("shown %q, in the log %+v", a.text, outputs)
	}
	if turns := bodies[parley.TurnFinished](s, thread); len(turns) != 2 || turns[0].Stop != parley.StopCut ||
		turns[0].Code != parley.CodeUnavailable {
		t.Errorf("%+v", turns)
	}
	if sent := mock.Last(); sent.Header.Get("Authorization") != "" || !strings.Contains(sent.Body, "This is the") {
		t.Errorf("it was asked to go on by %+v", sent)
	}
}
