package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/provider/providertest"
)

// Trouble with vendors, through a whole server. model_test.go tests cut
// answers, a missing key and a chain of models.

func turn(n int) *int { return &n }

// TestABusyModelIsAskedAgain: a client of thread chat does not see the retry. TestARetryIsSeen covers the other
// dialects.
func TestABusyModelIsAskedAgain(t *testing.T) {
	t.Parallel()
	busy := response{Error: map[string]any{"message": "slow down", "type": "rate_limit_error"},
		Status: http.StatusTooManyRequests}
	mock := startModel(t, []fixture{
		{Match: match{User: "be quick", Sequence: turn(0)}, Response: busy},
		{Match: match{User: "be quick", Sequence: turn(1)}, Response: response{Content: "x"},
			Chaos: map[string]any{"dropRate": 1}},
		{Match: match{User: "be quick"}, Response: says("Here I am.")},
	})
	s := startServer(t, withModel(mock, options{}))
	c := startNode(t).dial(s, newThread())
	c.ask("be quick")
	if a := c.completed(); a.text != "Here I am." {
		t.Errorf("%q", a.text)
	}
	log := s.settled(c.thread)
	if len(toldModel(mock, "be quick")) != 3 || len(those[parley.TurnStarted](log)) != 1 ||
		len(those[parley.ModelFellBack](log)) != 0 {
		t.Errorf("asked %d times; the log has %+v", len(toldModel(mock, "be quick")), log)
	}
	s.logged("a model is tried again", 2)
}

// TestFallingBackIsShown: a fallback is shown in the protocols that have a place for it.
func TestFallingBackIsShown(t *testing.T) {
	t.Parallel()
	mock := startModel(t, []fixture{
		{Match: match{User: "who are you", Model: "gpt-4.1"}, Response: response{Content: "x"},
			Chaos: map[string]any{"dropRate": 1}},
		{Match: match{User: "who are you", Model: "claude-sonnet-4-5"},
			Response: response{Content: "I am the other one.", Usage: map[string]int{"input_tokens": 1000,
				"output_tokens": 100}}},
	})
	workspace := t.TempDir()
	agentFile(t, workspace, "a", "fallback_models: [claude-sonnet-4-5]")
	s, n := startServer(t, withModel(mock, options{workspace: workspace})), startNode(t)
	bus, loop := n.tune(s, ""), n.loop(s, "/")
	loop.input("who are you")
	list := loop.items(slices.Concat([]string{"loading", "system", "system", "system", "assistant"}, answered)...)
	if said := list[3].text(); !strings.Contains(said, "gpt-4.1") || !strings.Contains(said, "claude-sonnet-4-5") ||
		list[4].text() != "I am the other one." {
		t.Errorf("%s\n%s", list[3].raw, list[4].raw)
	}
	if shown := last(bus.until("model_fallback", "*")); !strings.Contains(shown.raw, `"preferred":"gpt-4.1"`) ||
		!strings.Contains(shown.raw, `"actual":"claude-sonnet-4-5"`) {
		t.Errorf("%s", shown.raw)
	}
	log := s.settled(loop.session())
	if fell := those[parley.ModelFellBack](log); len(fell) != 1 || fell[0].Reason == "" {
		t.Errorf("%+v", fell)
	}
	if cost := finished(t, log).Usage.CostMicros; cost != 1000*3+100*15 {
		t.Errorf("it cost %d, which is not what the other one takes", cost)
	}
}

// TestASilentModelIsGivenUp: before its first chunk the model is asked again.
// After it, the answer counts as cut off, and another turn continues it.
func TestASilentModelIsGivenUp(t *testing.T) {
	t.Parallel()
	mock := startModel(t, []fixture{
		{Match: match{User: "hang at first", Sequence: turn(0)}, Response: says("x"),
			Chaos: map[string]any{"latencyMs": 20000}},
		{Match: match{User: "hang at first"}, Response: says("It took a while.")},
		{Match: match{User: "hang half way"}, Response: says("The first half, and"), ChunkSize: 16,
			Timings: map[string]any{"ttftMs": 0, "interChunkDelaysMs": []int{0, 20000}, "totalDurationMs": 20000}},
		{Match: match{User: "Go on exactly where it ends", Turn: turn(1)}, Response: says("the second.")},
	})
	s, n := startServer(t, withModel(mock, options{}, "PARLEY_MODEL_SILENCE=1s")), startNode(t)
	t.Run("before the first word", func(t *testing.T) {
		t.Parallel()
		c := n.in(t).dial(s.in(t), newThread())
		c.ask("hang at first")
		if a := c.completed(); a.text != "It took a while." {
			t.Errorf("%q", a.text)
		}
	})
	t.Run("in the middle", func(t *testing.T) {
		t.Parallel()
		s := s.in(t)
		c := n.in(t).dial(s, newThread())
		c.ask("hang half way")
		a := c.completed()
		log := s.settled(c.thread)
		outputs := those[parley.OutputFinished](log)
		if len(outputs) != 2 || !outputs[0].Incomplete || a.text != outputs[0].Text+outputs[1].Text ||
			strings.Count(a.text, "The first half") != 1 {
			t.Errorf("shown %q, in the log %+v", a.text, outputs)
		}
		if cut := those[parley.TurnFinished](log)[0]; cut.Stop != parley.StopCut ||
			!strings.Contains(cut.Message, "1s") {
			t.Errorf("%+v", cut)
		}
	})
}

// TestAModelThatNeverAnswers: the run ends with a message that says why.
func TestAModelThatNeverAnswers(t *testing.T) {
	t.Parallel()
	mock := providertest.Start(t)
	s := startServer(t, withModel(mock, options{}))
	for said, want := range map[string]string{"break down": "is in trouble", "wrong key": "OPENAI_API_KEY",
		"be busy": "is busy"} {
		session := s.says("", said)
		end := finished(t, s.ends(session))
		if end.Outcome != parley.Failed || !strings.Contains(end.Message, want) ||
			strings.Contains(end.Message, providertest.Key) {
			t.Errorf("%s: %+v", said, end)
		}
	}
}

// TestTheDoctorMissesAKey: the report names the variable for the key.
func TestTheDoctorMissesAKey(t *testing.T) {
	t.Parallel()
	for model, variable := range map[string]string{"gpt-4.1": "OPENAI_API_KEY",
		"claude-sonnet-4-5": "ANTHROPIC_API_KEY", "gemini-2.5-flash": "GEMINI_API_KEY"} {
		out, _, _ := run(t, "doctor", "--data", t.TempDir(), "--workspace", t.TempDir(), "--model", model)
		if !strings.Contains(out, "The model "+model+" needs a key, and "+variable+" is not set → set "+variable+
			" in the environment or in .env") {
			t.Errorf("%s:\n%s", model, out)
		}
	}
}
