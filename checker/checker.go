// Package checker checks whether a log keeps the invariants. It does not use
// Fold and Decide, but reads the log independently, so that it finds their
// mistakes.
package checker

import (
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
			c.fail("call %d still runs", id)
		}
	}
	c.must(c.run != 0 || len(c.children) == 0, "%d children are out", len(c.children))
	c.must(!c.compacting || c.run != 0 && waits, "a compaction is under way")
	c.must(c.owed == 0 || c.deleted, "what run %d did to files is not reported", c.owed)
	c.must(c.undoing == 0 || c.deleted, "the changes of run %d are being undone", c.undoing)
	c.must(c.wanted == 0 || c.run != 0, "run %d is still being evaluated", c.wanted)
	for card := range c.explaining {
		c.fail("card %d is still being explained", card)
	}
	switch {
	case c.run != 0 && !waits:
		c.fail("run %d neither ended nor waits for a person", c.run)
	case c.run == 0 && len(c.waiting) > 0:
		c.fail("%d inputs were received and never answered", len(c.waiting))
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
	inputs                  map[parley.InputID]string // received, adopted or withdrawn
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
		c.must(e.Seq == c.last.Seq+1, "follows seq %d", c.last.Seq)
	}
	c.must(e.Position == 0 || e.Position > c.last.Position, "position %d follows %d", e.Position, c.last.Position)
	c.must(!e.At.Before(c.last.At), "time goes back")
	c.must(c.last.Seq == 0 || e.Session == c.last.Session, "is of session %s", e.Session)
	c.last = e

	_, opening := e.Body.(parley.SessionOpened)
	c.must(opening != c.opened, "opened %v", c.opened)
	c.must(opening || isFact(e.Body) == (e.Session == parley.TenantSession), "facts of a tenant stand in its own "+
		"session, and nothing else does")
	_, late := e.Body.(parley.LateResultNoted)
	_, returned := e.Body.(parley.ChildReturned)
	c.must(!c.deleted || late || returned, "stands after the session was deleted")
	if _, starting := e.Body.(parley.RunStarted); e.Run != 0 && !starting {
		c.must(e.Run == c.run, "is of run %d, open is %d", e.Run, c.run)
	}
	c.planEvent(e)
	c.timerEvent(e)
	c.missionEvent(e)
	c.hookEvent(e)
	c.trustEvent(e)
	switch b := e.Body.(type) {
	case parley.SessionOpened:
		c.opened = true
		c.must(b.Owner != "", "has no owner")
	case parley.SessionForked:
		c.must(e.Seq == 2, "does not follow the opening")
		c.must(b.Source != e.Session && b.At > 0, "is a fork of event %d of %s", b.At, b.Source)
	case parley.SessionHalted:
		c.halted = true
		c.must(c.run == 0, "run %d goes on", c.run)
	case parley.SessionReopened:
		c.must(c.halted, "was not halted")
		c.halted = false
	case parley.SessionDeleted:
		c.deleted = true
		c.must(c.run == 0, "run %d goes on", c.run)

	case parley.InputReceived:
		c.inputs[parley.InputID(e.Seq)], c.waiting[parley.InputID(e.Seq)] = "received", true
		c.classify[parley.InputID(e.Seq)], c.flagged[parley.InputID(e.Seq)] = b.Classify, b.Finding != nil
		c.must(len(c.waiting) <= parley.MaxQueue, "%d inputs wait", len(c.waiting))
		c.must(!c.halted, "the session is halted")
		c.must(!parley.IsBlank(b.Content), "is blank")
	case parley.InputAdopted:
		c.end(b.Input, "adopted")
		c.must(c.run != 0 && c.turn == 0, "not between turns of a run")
		c.adopted = c.adopted || b.Input == c.input
		if c.classify[b.Input] {
			c.screen[b.Input] = true
		}
		c.tainted = c.tainted || c.flagged[b.Input]
	case parley.InputScreened:
		c.must(c.run != 0 && c.turn == 0 && c.screen[b.Input], "input %d is not to be screened", b.Input)
		delete(c.screen, b.Input)
		c.blocked = c.blocked || b.Finding.Verdict == parley.ScreenBlock
		c.tainted = c.tainted || b.Finding.Verdict == parley.ScreenFlag
	case parley.InputWithdrawn:
		c.end(b.Input, "withdrawn")
		c.must(b.Input != c.input || c.run == 0 || c.adopted, "a run was started for it")
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

func (c *check) end(id parley.InputID, how string) {
	c.must(c.inputs[id] == "received", "input %d is %q already", id, c.inputs[id])
	c.inputs[id] = how
	delete(c.waiting, id)
}
