package engine

import (
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// small gives models a small context window.
func small(tokens int) func(*Config) {
	return func(c *Config) { c.Window = func(string) int { return tokens } }
}

// asks collects the requests to the model, except those for summaries.
func (r *rig) asks() *[]port.ModelRequest {
	var list []port.ModelRequest
	r.puppet.seen = func(m port.ModelRequest) {
		if !strings.HasPrefix(m.Instructions, SummaryPrompt) {
			list = append(list, m)
		}
	}
	return &list
}

// tell submits a message that is too long to be its own request name.
func (r *rig) tell(id parley.SessionID, content string) {
	r.t.Helper()
	r.do(id, parley.SubmitInput{Content: content})
}

func outline(m []parley.Message) (list []string) {
	for _, m := range m {
		list = append(list, fmt.Sprintf("%s: %.40s", m.Role, m.Text))
	}
	return list
}

func TestAContextIsMeasured(t *testing.T) {
	r := newRig(t, small(1000))
	id := r.open()
	r.say(id, "say hello")
	m := all[parley.ContextMeasured](r.until(id, "it ended", seen[parley.RunFinished](1)))
	if len(m) != 1 || m[0].Limit != 1000 || m[0].Tokens != 3 || m[0].Messages != 2 || m[0].Estimated {
		t.Errorf("%+v", m) // the vendor's counts: the puppet reports 1 and 2
	}
}

// TestACompactedContext checks that a summary replaces the conversation except
// its last exchange. After a restart it is the same.
func TestACompactedContext(t *testing.T) {
	r := newRig(t, small(400))
	id := r.open()
	for i := range 5 {
		r.tell(id, fmt.Sprintf("say %s %d", strings.Repeat("word ", 40), i))
		r.until(id, "it ended", seen[parley.RunFinished](i+1))
	}
	r.do(id, parley.CompactContext{})
	log := r.until(id, "it was compacted", seen[parley.ContextCompacted](1))
	c := all[parley.ContextCompacted](log)[0]
	if c.Auto || c.After >= c.Before || c.Limit != 400 || c.Usage.Input != 3 {
		t.Errorf("%+v", c)
	}
	for i, again := range []bool{false, true} {
		if again {
			r.restart(false)
		}
		asked := r.asks()
		r.say(id, fmt.Sprint("say last ", again))
		log = r.until(id, "it ended", seen[parley.RunFinished](6+i))
		m := (*asked)[len(*asked)-1].Messages
		if !strings.Contains(m[0].Text, "summary of ") || strings.Contains(fmt.Sprint(outline(m)), " 0") ||
			m[len(m)-1].Text != fmt.Sprint("say last ", again) {
			t.Errorf("again %v: the model was given %q", again, outline(m))
		}
	}
	// The log is read only as far back as it is needed.
	if from := all[parley.ContextCompacted](log)[0].From; from < seqOf[parley.RunFinished](log, 3) {
		t.Errorf("the log is read from %d on", from)
	}
}

// TestAFullContextIsCompacted checks that a nearly full context is compacted
// before the next turn, even in the middle of a run. The run goes on from the
// summary.
func TestAFullContextIsCompacted(t *testing.T) {
	r := newRig(t, small(200))
	asked := r.asks()
	id := r.open()
	long := strings.Repeat("much ", 150)
	r.puppet.uncounted = true
	r.tell(id, "say "+long+"; call read a | say "+long+"; call read b | say end")
	log := r.until(id, "it ended", seen[parley.RunFinished](1))
	if got := all[parley.RunFinished](log)[0]; got.Outcome != parley.Completed {
		t.Fatalf("%+v", got)
	}
	done := all[parley.ContextCompacted](log)
	if len(done) == 0 || !done[0].Auto {
		t.Fatalf("not compacted:\n%s", story(log))
	}
	if m := (*asked)[1].Messages; !strings.Contains(m[0].Text, "summary of ") {
		t.Errorf("the second turn was given %q", outline(m))
	}
}

// TestACompactionThatGainsNothing checks that such a compaction changes
// nothing, is reported, and is not tried again and again.
func TestACompactionThatGainsNothing(t *testing.T) {
	for _, test := range []struct{ input, message string }{
		{"say hello; say babble", "The conversation cannot be made shorter than it is."},
		{"say cannot be summarised", "The puppet will not."},
		{"say leak while summarising", "The model could not make the conversation shorter."},
	} {
		r := newRig(t, small(1000), screened)
		id := r.open()
		r.say(id, test.input)
		r.until(id, "it ended", seen[parley.RunFinished](1))
		r.do(id, parley.CompactContext{})
		failed := all[parley.CompactionFailed](r.until(id, "it failed", seen[parley.CompactionFailed](1)))[0]
		if failed.Message != test.message || failed.Auto {
			t.Errorf("%s: %+v", test.input, failed)
		}
		asked := r.asks()
		r.say(id, "say more")
		r.until(id, "it ended", seen[parley.RunFinished](2))
		if m := (*asked)[0].Messages; m[0].Text != test.input {
			t.Errorf("%s: the model was given %q", test.input, outline(m))
		}
	}

	r := newRig(t, small(50))
	r.puppet.uncounted = true
	id := r.open()
	r.tell(id, "say babble "+strings.Repeat("x", 400)+"; call read a | call read b | call read c | say end")
	log := r.until(id, "it ended", seen[parley.RunFinished](1))
	if n := len(all[parley.CompactionFailed](log)); n == 0 || n > 2 {
		t.Errorf("tried %d times:\n%s", n, story(log))
	}
}

// TestACompactionSurvives checks a crash in the middle of a compaction, and an
// input during it.
func TestACompactionSurvives(t *testing.T) {
	r := newRig(t, small(1000))
	id := r.open()
	for i := range 3 {
		r.tell(id, fmt.Sprintf("say hang while summarising %s %d", strings.Repeat("word ", 30), i))
		r.until(id, "it ended", seen[parley.RunFinished](i+1))
	}
	r.do(id, parley.CompactContext{})
	r.do(id, parley.CompactContext{}) // a second request changes nothing
	r.say(id, "say after it")
	r.until(id, "the next run waits", seen[parley.RunStarted](4))
	r.noHang = true
	r.restart(true)
	log := r.until(id, "it ended", seen[parley.RunFinished](4))
	if n := len(all[parley.CompactionStarted](log)); n != 1 {
		t.Errorf("started %d times", n)
	}
	if compacted, turn := seqOf[parley.ContextCompacted](log, 1), seqOf[parley.TurnStarted](log, 4); compacted == 0 ||
		compacted > turn {
		t.Errorf("compacted at %d, after the turn at %d", compacted, turn)
	}
}

// TestWaitingInputOutlivesACompaction checks an input that was received within the
// compacted part of the log and adopted after it. The input is read from where
// it was received.
func TestWaitingInputOutlivesACompaction(t *testing.T) {
	r := newRig(t, small(200))
	r.puppet.uncounted = true
	id := r.open()
	r.tell(id, "say "+strings.Repeat("much ", 200)+"; call write x | say end")
	log := r.until(id, "it asks", seen[parley.ApprovalRequested](1))
	r.tell(id, "say this waited")
	asked := r.asks()
	r.do(id, parley.DecideApproval{Card: parley.CardID(seqOf[parley.ApprovalRequested](log, 1)),
		Decision: parley.AllowOnce})
	log = r.until(id, "both ended", seen[parley.RunFinished](2))
	if len(all[parley.ContextCompacted](log)) == 0 {
		t.Fatalf("nothing was compacted:\n%s", story(log))
	}
	m := (*asked)[len(*asked)-1].Messages
	if m[len(m)-1].Text != "say this waited" {
		t.Errorf("the model was given %q", outline(m))
	}
}

func TestNothingToCompact(t *testing.T) {
	r := newRig(t)
	id := r.open()
	if _, err := r.try(id, parley.CompactContext{}); parley.CodeOf(err) != parley.CodeEmpty {
		t.Error(err)
	}
}
