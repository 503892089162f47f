package engine

import (
	"testing"

	"parley"
)

// TestHowACommandEndedIsInTheLog checks that the log holds a command's exit
// status, for clients that show it.
func TestHowACommandEndedIsInTheLog(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "call exit 0 | call exit 3 | call read x | say done")
	ended := all[parley.ToolCallFinished](r.finished(id, 1))
	if len(ended) != 3 {
		t.Fatalf("%+v", ended)
	}
	if e := ended[0]; e.Exit == nil || *e.Exit != 0 || e.Outcome != parley.CallSucceeded || e.Result != "it ended" {
		t.Errorf("%+v", e)
	}
	if e := ended[1]; e.Exit == nil || *e.Exit != 3 || e.Outcome != parley.CallFailed || e.Result != "it ended" {
		t.Errorf("%+v", e)
	}
	if e := ended[2]; e.Exit != nil || e.Outcome != parley.CallSucceeded {
		t.Errorf("%+v", e)
	}
	r.check(id)
}
