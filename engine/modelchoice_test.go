package engine

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/port"
)

// TestModelChoiceNeedsPermission checks that only people who may change the agent choose the model of a run.
func TestModelChoiceNeedsPermission(t *testing.T) {
	r := newRig(t)
	id := r.open()
	in := parley.SubmitInput{Content: "say hello", Model: "other-model"}
	bob, own := member("bob", parley.RoleStandardUser), parley.SessionID("22222222-2222-4222-8222-0000000000f1")
	if code := r.as(bob, own, parley.OpenSession{}); code != "" {
		t.Fatal(code)
	}
	if code := r.as(bob, own, in); code != parley.CodeForbidden {
		t.Errorf("a user who may not change the agent: %q", code)
	}
	r.do(id, in)
	log := r.finished(id, 1)
	if model := all[parley.RunStarted](log)[0].Agent.Model; model != "other-model" {
		t.Errorf("the run has the model %s", model)
	}
	in = parley.SubmitInput{Content: "say hello", Instructions: "Be another."}
	if code := r.as(bob, own, in); code != parley.CodeForbidden {
		t.Errorf("instructions of a user who may not change the agent: %q", code)
	}
	var mu sync.Mutex
	told := ""
	r.puppet.seen = func(m port.ModelRequest) {
		mu.Lock()
		defer mu.Unlock()
		told = m.Instructions
	}
	r.do(id, in)
	r.finished(id, 2)
	mu.Lock()
	defer mu.Unlock()
	if !strings.HasPrefix(told, "Be another.") {
		t.Errorf("the instructions are %q", told)
	}
}

// TestAModelChoiceJoinsOnlyARunOfThatModel checks that a message that names the model of the current run is adopted by
// that run. A message that names another model waits for a run of its own.
func TestAModelChoiceJoinsOnlyARunOfThatModel(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.do(id, parley.SubmitInput{Content: "call ask x | say done", Model: "other-model"})
	q := card[parley.QuestionAsked](r, id, 1)
	r.do(id, parley.SubmitInput{Content: "say steered", Model: "other-model", Busy: parley.Steer})
	r.do(id, parley.SubmitInput{Content: "say third", Model: "third-model", Busy: parley.Steer})
	r.do(id, parley.AnswerQuestion{Card: q, Answers: [][]string{{"x"}}})
	var models []string
	for _, run := range all[parley.RunStarted](r.finished(id, 2)) {
		models = append(models, run.Agent.Model)
	}
	if want := []string{"other-model", "third-model"}; !slices.Equal(models, want) {
		t.Errorf("the runs have the models %v, want %v", models, want)
	}
}
