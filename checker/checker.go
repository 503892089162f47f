// Package checker checks whether a log keeps the invariants. It does not use
// Fold and Decide, but reads the log independently, so that it finds their
// mistakes.
package checker

import (
	"cmp"
	"fmt"

	"parley"
)

// Check returns the violations of invariants in the whole log of one session;
// nil: every invariant that a log by itself can show holds.
func Check(log []parley.Event) []error {
	return read(log, false).wrong
}

// CheckTrimmed is Check for a log from which chunks of finished outputs may be
// missing.
func CheckTrimmed(log []parley.Event) []error {
	return read(log, true).wrong
}

// Settled returns what is still under way at the end of a log, other than
// waiting for a person; nil: every run has ended or visibly waits.
func Settled(log []parley.Event) []error {
	c := read(log, true)
	c.wrong = nil
	waits := len(c.cards) > 0
	for id, k := range c.calls {
		waits = waits || k.lost
		if k.started && !k.ended {
			c.fail("call %d was started and has not ended", id)
		}
	}
	c.must(c.run != 0 || len(c.children) == 0, "%d sub-agents have not returned", len(c.children))
	c.must(!c.compacting || c.run != 0 && waits, "a compaction was started and has not ended")
	c.must(c.owed == 0 || c.deleted, "the report of the files that run %d changed is missing", c.owed)
	c.must(c.undoing == 0 || c.deleted, "an undo of the changes of run %d was requested and has not ended", c.undoing)
	c.must(c.wanted == 0 || c.run != 0, "the evaluation of run %d for follow-ups has not ended", c.wanted)
	for card := range c.explaining {
		c.fail("an explanation of card %d was requested and has not arrived", card)
	}
	switch {
	case c.run != 0 && !waits:
		c.fail("run %d has not ended, and does not wait for a person", c.run)
	case c.run == 0 && len(c.waiting) > 0:
		c.fail("%d inputs were received, and no run has adopted them", len(c.waiting))
	}
	return c.wrong
}

func read(log []parley.Event, trimmed bool) *check {
	c := &check{trimmed: trimmed, inputs: map[parley.InputID]string{}, waiting: map[parley.InputID]bool{},
		classify: map[parley.InputID]bool{},
		flagged:  map[parley.InputID]bool{}, screen: map[parley.InputID]bool{},
		children: map[parley.SessionID]parley.CallID{}, calls: map[parley.CallID]*call{},
		cards:     map[parley.CardID]parley.CallID{},
		approvals: map[parley.CardID]bool{}, explaining: map[parley.CardID]bool{},
		planned: planned{modes: map[parley.InputID]parley.RunMode{}}, unasked: newUnasked(),
		provenance: newProvenance()}
	for _, e := range log {
		c.event(e)
	}
	return c
}

type check struct {
	trimmed bool // chunks may be missing
	wrong   []error
	at      parley.Event // the event under check
	last    parley.Event

	opened, halted, deleted bool
	inputs                  map[parley.InputID]string // "received", "was adopted" or "was withdrawn"
	waiting                 map[parley.InputID]bool   // neither adopted nor withdrawn
	classify, flagged       map[parley.InputID]bool

	run      parley.RunID
	input    parley.InputID // the trigger
	adopted  bool
	turn     parley.TurnID
	turns    int
	cuts     int
	output   parley.OutputID
	text     []byte // of the output so far
	first    parley.Seq
	remote   bool                    // of the run: its agent is remote
	hole     parley.Seq              // the first missing chunk of the output
	screen   map[parley.InputID]bool // inputs of the run that must be classified before the next turn
	blocked  bool
	tainted  bool                            // of the run: calls with effects need a person
	foreign  bool                            // of the session: the same
	handed   bool                            // of the session: a parent session had a flagged message
	reported bool                            // of the run: its changes to files were reported
	owed     parley.RunID                    // the run whose changes to files must be reported after its end
	undoing  parley.RunID                    // the run whose changes to files are being undone
	calls    map[parley.CallID]*call         // of the run
	cards    map[parley.CardID]parley.CallID // open

	children   map[parley.SessionID]parley.CallID // that have not returned
	compacting bool
	upto       parley.Seq             // covered by the last compaction
	approvals  map[parley.CardID]bool // of the open cards
	explaining map[parley.CardID]bool // open cards that are being explained
	planned
	unasked
	missions map[string]*mission // active, by project
	hooked
	provenance provenance
}

func (c *check) fail(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Errorf("seq %d, %T: %s", c.at.Seq, c.at.Body, fmt.Sprintf(format, args...)))
}

func (c *check) must(ok bool, format string, args ...any) {
	if !ok {
		c.fail(format, args...)
	}
}

func (c *check) event(e parley.Event) {
	c.at = e
	if e.Seq > c.last.Seq+1 && c.trimmed && c.output != 0 {
		if c.hole == 0 {
			c.hole = c.last.Seq + 1
		}
	} else {
		c.must(e.Seq == c.last.Seq+1, "expected seq %d", c.last.Seq+1)
	}
	c.must(e.Position == 0 || e.Position > c.last.Position, "its position %d is not after %d, the position of the "+
		"event before it", e.Position, c.last.Position)
	if e.At.Before(c.last.At) {
		c.fail("its time %v is before %v, the time of the event before it", e.At, c.last.At)
	}
	c.must(c.last.Seq == 0 || e.Session == c.last.Session, "it does not belong to session %s, as the "+
		"event before it", c.last.Session)
	c.last = e

	_, opening := e.Body.(parley.SessionOpened)
	c.must(opening || c.opened, "the first event of a log must be SessionOpened")
	c.must(!opening || !c.opened, "the session was opened before")
	c.must(opening || isFact(e.Body) == (e.Session == parley.TenantSession), "facts of a tenant, and "+
		"no other events, must be in the tenant's own session")
	_, late := e.Body.(parley.LateResultNoted)
	_, returned := e.Body.(parley.ChildReturned)
	c.must(!c.deleted || late || returned, "the session was deleted before this event")
	if _, starting := e.Body.(parley.RunStarted); e.Run != 0 && !starting {
		c.must(e.Run == c.run, "it belongs to run %d, but the open run is %d (0: none)", e.Run, c.run)
	}
	c.planEvent(e)
	c.timerEvent(e)
	c.missionEvent(e)
	c.hookEvent(e)
	c.trustEvent(e)
	switch b := e.Body.(type) {
	case parley.SessionOpened:
		c.opened = true
		c.must(b.Owner != "", "the session has no owner")
	case parley.SessionForked:
		c.must(e.Seq == 2, "SessionForked must be event 2, directly after SessionOpened")
		c.must(b.Source != e.Session && b.At > 0, "a fork must have another session and an event of it as its "+
			"source; found event %d of session %s", b.At, b.Source)
	case parley.SessionHalted:
		c.halted = true
		c.must(c.run == 0, "run %d must end first", c.run)
	case parley.SessionReopened:
		c.must(c.halted, "the session is not halted")
		c.halted = false
	case parley.SessionDeleted:
		c.deleted = true
		c.must(c.run == 0, "run %d must end first", c.run)

	case parley.InputReceived:
		c.inputs[parley.InputID(e.Seq)], c.waiting[parley.InputID(e.Seq)] = "received", true
		c.classify[parley.InputID(e.Seq)], c.flagged[parley.InputID(e.Seq)] = b.Classify, b.Finding != nil
		c.must(len(c.waiting) <= parley.MaxQueue, "%d inputs wait; at most %d may", len(c.waiting),
			parley.MaxQueue)
		c.must(!c.halted, "the session is halted and must not receive inputs")
		c.must(!parley.IsBlank(b.Content), "its content is blank")
	case parley.InputAdopted:
		c.end(b.Input, "was adopted")
		c.betweenTurns()
		c.adopted = c.adopted || b.Input == c.input
		if c.classify[b.Input] {
			c.screen[b.Input] = true
		}
		c.tainted = c.tainted || c.flagged[b.Input]
	case parley.InputScreened:
		c.must(c.run != 0 && c.turn == 0 && c.screen[b.Input], "input %d must be adopted and not screened "+
			"yet, and the screening be between turns of a run", b.Input)
		delete(c.screen, b.Input)
		c.blocked = c.blocked || b.Finding.Verdict == parley.ScreenBlock
		c.tainted = c.tainted || b.Finding.Verdict == parley.ScreenFlag
	case parley.InputWithdrawn:
		c.end(b.Input, "was withdrawn")
		c.must(b.Input != c.input || c.run == 0 || c.adopted, "input %d has started run %d, which must adopt it",
			b.Input, c.run)
	default:
		c.inRun(e)
	}
}

// isFact reports whether an event is a fact of a tenant.
func isFact(body parley.EventBody) bool {
	switch body.(type) {
	case parley.AgentStarted, parley.AgentStopped, parley.AgentChanged, parley.SettingsChanged, parley.ToolsAccepted,
		parley.MissionSet, parley.MissionCleared, parley.OverrideSet, parley.AgentPrompted, parley.PromptSettled:
		return true
	}
	return false
}

// betweenTurns checks that an event is in a run, and in none of its turns.
func (c *check) betweenTurns() {
	c.must(c.run != 0 && c.turn == 0, "it must be between turns of a run; open are run %d and turn %d (0: none)", c.run,
		c.turn)
}

// inputWaits checks that an input was received, and neither adopted nor withdrawn.
func (c *check) inputWaits(id parley.InputID) {
	c.must(c.inputs[id] == "received", "input %d must wait in the queue, but it %s", id,
		cmp.Or(c.inputs[id], "was never received"))
}

func (c *check) end(id parley.InputID, how string) {
	c.inputWaits(id)
	c.inputs[id] = how
	delete(c.waiting, id)
}
