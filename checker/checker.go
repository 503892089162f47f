// Package checker says whether a log keeps the invariants. It knows nothing of
// Fold and Decide: it reads the log from outside, as a suspicious person would,
// so that a mistake in them cannot hide itself.
package checker

import (
	"fmt"
	"slices"
	"strings"

	"parley"
)

// Check returns what is wrong with the whole log of one session; nothing: every
// invariant that a log by itself can show holds.
func Check(log []parley.Event) []error {
	return read(log, false).wrong
}

// CheckTrimmed is Check for a log that pieces of finished outputs may be missing
// from.
func CheckTrimmed(log []parley.Event) []error {
	return read(log, true).wrong
}

// Settled says what is still going on at the end of a log, other than waiting
// for a person; nothing: every run has ended or visibly waits.
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
	c.must(c.wanted == 0 || c.run != 0, "run %d is still being evaluated", c.wanted)
	for card := range c.explaining {
		c.fail("card %d is still being explained", card)
	}
	switch {
	case c.run != 0 && !waits:
		c.fail("run %d neither ended nor waits for a person", c.run)
	case c.run == 0 && c.received > 0:
		c.fail("%d inputs were received and never answered", c.received)
	}
	return c.wrong
}

func read(log []parley.Event, trimmed bool) *check {
	c := &check{trimmed: trimmed, inputs: map[parley.InputID]string{}, classify: map[parley.InputID]bool{}, flagged: map[parley.InputID]bool{}, screen: map[parley.InputID]bool{}, children: map[parley.SessionID]parley.CallID{}, calls: map[parley.CallID]*call{}, cards: map[parley.CardID]parley.CallID{},
		approvals: map[parley.CardID]bool{}, explaining: map[parley.CardID]bool{}, planned: planned{modes: map[parley.InputID]parley.RunMode{}}, unasked: newUnasked(),
		provenance: newProvenance()}
	for _, e := range log {
		c.event(e)
	}
	return c
}

type check struct {
	trimmed bool // pieces may be missing
	wrong   []error
	at      parley.Event // the event being looked at
	last    parley.Event

	opened, halted, deleted bool
	inputs                  map[parley.InputID]string // what became of it
	classify, flagged       map[parley.InputID]bool
	received                int // neither adopted nor withdrawn

	run      parley.RunID
	input    parley.InputID // its trigger
	adopted  bool
	turn     parley.TurnID
	turns    int
	cuts     int
	output   parley.OutputID
	text     string
	first    parley.Seq
	remote   bool                    // of the run: an agent elsewhere performs it
	hole     parley.Seq              // the first piece of output that is missing
	screen   map[parley.InputID]bool // of the run, to be classified before the next turn
	blocked  bool
	tainted  bool                            // of the run: what has effects needs a person
	foreign  bool                            // of the session: the same
	handed   bool                            // of the session: an agent above it was given something that was flagged
	reported bool                            // of the run: what it did to files
	calls    map[parley.CallID]*call         // of the run
	cards    map[parley.CardID]parley.CallID // open

	children   map[parley.SessionID]parley.CallID // that are out
	compacting bool
	upto       parley.Seq             // what the last compaction covers
	approvals  map[parley.CardID]bool // of the open cards
	explaining map[parley.CardID]bool // of these, what is being explained
	planned
	unasked
	missions map[string]*mission // active, by project
	hooked
	provenance provenance
}

type call struct {
	key                       string // tool and arguments
	source                    parley.Source
	named, distrusted         []parley.Source // sources that its card names; that are not trusted
	class                     parley.ToolClass
	asked, allowed, tainted   bool
	started, ended, lost, run bool
	attempt, output           int
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
	c.must(opening || isFact(e.Body) == (e.Session == parley.TenantSession), "facts of a tenant stand in its own session, and nothing else does")
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
		c.inputs[parley.InputID(e.Seq)] = "received"
		c.classify[parley.InputID(e.Seq)], c.flagged[parley.InputID(e.Seq)] = b.Classify, b.Finding != nil
		c.received++
		c.must(c.received <= parley.MaxQueue, "%d inputs wait", c.received)
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

// isFact reports whether a body is about a tenant as a whole.
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
	c.received--
}

func (c *check) inRun(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.RunStarted:
		c.must(c.run == 0, "run %d is open", c.run)
		c.must(len(c.children) == 0, "%d children of the last run are out", len(c.children))
		c.must(e.Run == parley.RunID(e.Seq), "is named %d", e.Run)
		c.must(!c.halted, "the session is halted")
		c.must(c.inputs[b.Input] == "received", "its input %d is %q", b.Input, c.inputs[b.Input])
		for id, state := range c.inputs {
			c.must(state != "received" || id >= b.Input, "input %d has waited longer than %d", id, b.Input)
		}
		c.run, c.input, c.adopted, c.turns, c.cuts = e.Run, b.Input, false, 0, 0
		c.remote = b.Agent.Remote
		clear(c.calls)
		clear(c.screen)
		c.blocked, c.tainted, c.reported = false, false, false
	case parley.RunFinished:
		c.must(c.run != 0, "no run is open")
		c.must(c.turn == 0 && c.output == 0, "turn %d is open", c.turn)
		c.must(len(c.cards) == 0, "%d cards are open", len(c.cards))
		for id, k := range c.calls {
			c.must(k.ended, "call %d is open", id)
		}
		c.must(b.Outcome != "", "has no outcome")
		c.must(b.Outcome != parley.Completed || c.adopted && c.turns > 0, "completed without an answer")
		c.must(b.Outcome != parley.Interrupted || c.cuts == parley.MaxCuts || c.abandoned() || c.remote && c.cuts == 1, "interrupted after %d cuts", c.cuts)
		c.run = 0

	case parley.TurnStarted:
		c.must(c.run != 0 && c.turn == 0, "run %d, turn %d", c.run, c.turn)
		c.must(c.adopted, "the input that started the run is not adopted")
		c.must(len(c.screen) == 0 && !c.blocked, "what was said was not screened, or blocked")
		for id, k := range c.calls {
			c.must(k.ended && !k.lost, "call %d is open", id)
		}
		c.must(!c.remote || c.cuts == 0, "an agent elsewhere that was lost is asked again")
		c.must(!c.compacting, "a compaction is under way")
		c.must(len(c.children) == 0, "%d children of the last turn are out", len(c.children))
		c.turn = parley.TurnID(e.Seq)
		c.reported = false
		c.turns++
		c.must(b.Number == c.turns, "is number %d, not %d", b.Number, c.turns)
	case parley.TurnFinished:
		c.must(c.turn != 0 && b.Turn == c.turn, "open is turn %d", c.turn)
		c.must(c.output == 0, "output %d is open", c.output)
		for id, k := range c.calls {
			c.must(!c.remote || k.ended, "call %d of an agent elsewhere is open", id)
		}
		if b.Stop == parley.StopCut {
			c.cuts++
			c.must(c.cuts <= parley.MaxCuts, "%d cuts", c.cuts)
		}
		c.turn = 0

	case parley.ModelFellBack:
		c.must(c.turn != 0 && b.Turn == c.turn && c.output == 0, "turn %d, output %d", c.turn, c.output)
		c.must(b.Actual != "" && b.Actual != b.Preferred, "from %s to %s", b.Preferred, b.Actual)

	case parley.OutputStarted:
		c.must(c.turn != 0 && b.Turn == c.turn && c.output == 0, "turn %d, output %d", c.turn, c.output)
		c.output, c.text, c.first, c.hole = parley.OutputID(e.Seq), "", 0, 0
	case parley.OutputAppended:
		c.must(c.output != 0 && b.Output == c.output, "open is output %d", c.output)
		c.must(b.Offset == len(c.text) && c.hole == 0, "offset %d after %d bytes, hole %d", b.Offset, len(c.text), c.hole)
		c.must(b.Text != "", "is empty")
		if c.first == 0 {
			c.first = e.Seq
		}
		c.text += b.Text
	case parley.OutputFinished:
		c.must(c.output != 0 && b.Output == c.output, "open is output %d", c.output)
		if c.hole != 0 { // all pieces of an output go, or none
			c.must(c.first == 0 && b.First == c.hole && b.Text != "", "the pieces of output %d were not all deleted", c.output)
		} else {
			c.must(b.Text == c.text && b.First == c.first, "its text is not its pieces")
		}
		c.output = 0

	case parley.ContextMeasured:
		c.must(c.run != 0 && c.turn == 0, "not after a turn")
	case parley.CompactionStarted:
		c.must(!c.compacting, "one is under way")
		c.compacting = true
	case parley.CompactionFailed:
		c.must(c.compacting, "none is under way")
		c.compacting = false
	case parley.ContextCompacted:
		c.must(c.compacting, "none is under way")
		c.must(c.turn == 0, "turn %d is open", c.turn)
		for id, k := range c.calls {
			c.must(c.run == 0 || k.ended && !k.lost, "call %d is open", id)
		}
		c.must(b.After < b.Before, "from %d tokens to %d", b.Before, b.After)
		c.must(b.From <= b.Upto && b.Upto < e.Seq && b.Upto > c.upto, "from %d up to %d, the last was up to %d", b.From, b.Upto, c.upto)
		c.compacting, c.upto = false, b.Upto
	case parley.ChildSpawned:
		k := c.call(b.Call)
		c.must(!k.ended && !k.started && !k.asked, "call %d has ended, started or waits", b.Call)
		c.must(c.children[b.Child] == 0, "child %s is there already", b.Child)
		c.children[b.Child] = b.Call
		own := parley.Source("remote:" + b.Agent) // which the child knows anyway
		k.distrusted = slices.DeleteFunc(k.distrusted, func(s parley.Source) bool { return s == own })
	case parley.ChildReturned:
		c.must(c.children[b.Child] == b.Call && b.Call != 0, "child %s is not out for call %d", b.Child, b.Call)
		if e.Run != 0 {
			k := c.call(b.Call)
			c.must(!k.ended, "call %d has ended", b.Call)
			c.must(!k.asked || k.allowed, "call %d was not allowed", b.Call)
		}
		delete(c.children, b.Child)
	case parley.FilesChanged:
		c.must(c.run != 0 && c.turn == 0 && c.turns > 0, "not after the last turn of a run")
		c.must(!c.reported, "was said already")
		c.must(len(b.Files) > 0 && len(b.Files) <= parley.MaxFilesChanged, "has %d files", len(b.Files))
		for id, k := range c.calls {
			c.must(k.ended, "call %d is open", id)
		}
		c.reported = true
	case parley.EffectEnqueued:
		c.must(b.Type == parley.Webhook || c.run != 0 && c.turn == 0, "not between turns of a run")
	case parley.LateResultNoted:
		c.must(e.Run == 0, "late evidence inside run %d", e.Run)
		c.must(b.Run != c.run || c.call(b.Call).ended, "call %d is open", b.Call)
	default:
		c.inCall(e)
	}
}

func (c *check) abandoned() bool {
	for _, k := range c.calls {
		if k.lost {
			return true
		}
	}
	return false
}

func (c *check) inCall(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.ToolCallRequested:
		c.must(c.run != 0 && (c.turn == b.Turn || b.RerunOf != 0), "turn %d is open, not %d", c.turn, b.Turn)
		c.must(b.Remote == c.remote, "an agent elsewhere makes its calls itself, and no other agent does")
		k := &call{key: b.Name + " " + b.Arguments, source: sourceOf(b), distrusted: c.distrusted(), class: b.Class,
			tainted: c.tainted || c.foreign || c.handed}
		if b.RerunOf != 0 {
			old := c.call(b.RerunOf)
			c.must(old.lost && old.run, "call %d was not to be run again", b.RerunOf)
			old.lost, old.run, k.allowed = false, false, true
		}
		c.calls[parley.CallID(e.Seq)] = k
	case parley.ToolCallBlocked:
		k := c.call(b.Call)
		c.must(!k.ended && !k.started, "call %d has ended or started", b.Call)
		k.ended = true
	case parley.ToolCallStarted:
		k := c.call(b.Call)
		c.must(c.turn == 0 || c.remote, "turn %d is open", c.turn)
		c.must(!k.ended, "call %d has ended", b.Call)
		c.must(!k.asked || k.allowed, "call %d was not allowed", b.Call)
		c.must(!k.tainted || k.allowed || k.class == parley.Pure || c.remote && !k.asked, "call %d has effects, follows on what was flagged, and nobody was asked", b.Call)
		c.must(len(k.distrusted) == 0 || k.allowed || k.class == parley.Pure || c.remote && !k.asked ||
			c.provenance.grants[k.key].cover(k.distrusted), "call %d has effects, follows on content from %s, and nobody was asked", b.Call, k.distrusted)
		c.must(b.Attempt == k.attempt+1, "attempt %d after %d", b.Attempt, k.attempt)
		c.must(!k.started || k.class == parley.Pure || k.class == parley.Idempotent, "call %d may have had its effect already", b.Call)
		k.started, k.attempt, k.output = true, b.Attempt, 0
	case parley.ToolOutputAppended:
		k := c.call(b.Call)
		c.must(k.started && !k.ended, "call %d does not run", b.Call)
		c.must(b.Offset == k.output, "offset %d after %d bytes", b.Offset, k.output)
		k.output += len(b.Text)
	case parley.ToolCallFinished:
		k := c.call(b.Call)
		c.foreign = c.foreign || b.Finding != nil
		if b.Outcome != parley.CallDenied && b.Outcome != parley.CallCancelled {
			c.reads(k.source)
		}
		c.must(!k.ended, "call %d has ended", b.Call)
		for card, id := range c.cards {
			c.must(id != b.Call, "card %d of it is open", card)
		}
		if b.Outcome == parley.CallUnknown {
			c.must(k.started && k.class != parley.Pure && k.class != parley.Idempotent, "call %d is not unknown", b.Call)
		}
		k.ended, k.lost = true, b.Outcome == parley.CallUnknown
	case parley.ToolCallResolved:
		k := c.call(b.Call)
		c.must(k.lost && !k.run, "call %d needs no resolution", b.Call)
		k.run = b.Resolution == parley.Rerun
		k.lost = b.Resolution != parley.MarkDone

	case parley.ApprovalRequested:
		c.call(b.Call).asked = true
		c.must(b.Digest != "" && b.Show != "", "shows nothing")
		k := c.call(b.Call)
		k.named = b.Sources
		for _, s := range k.distrusted {
			named := slices.Contains(b.Sources, s) && strings.Contains(b.Why, string(s))
			c.must(k.class == parley.Pure || named, "does not name %s", s)
		}
		c.cards[parley.CardID(e.Seq)] = b.Call
		c.approvals[parley.CardID(e.Seq)] = true
	case parley.ExplanationRequested:
		c.must(c.cards[b.Card] == b.Call && c.approvals[b.Card], "card %d is no approval that is open", b.Card)
		c.must(!c.explaining[b.Card], "card %d is being explained already", b.Card)
		c.explaining[b.Card] = true
	case parley.ApprovalExplained:
		c.must(c.cards[b.Card] == b.Call && c.explaining[b.Card], "nobody asked about card %d", b.Card)
		c.must(!parley.IsBlank(b.Text), "says nothing")
		delete(c.explaining, b.Card)
	case parley.ApprovalDecided:
		c.closeCard(b.Card, b.Call)
		k := c.call(b.Call)
		k.allowed = b.Decision == parley.AllowOnce || b.Decision == parley.AllowAlways
		if b.Decision == parley.AllowAlways {
			c.provenance.grants[k.key] = append(c.provenance.grants[k.key], k.named)
		}
	case parley.QuestionAsked:
		c.call(b.Call).asked = true
		c.cards[parley.CardID(e.Seq)] = b.Call
	case parley.QuestionAnswered:
		c.closeCard(b.Card, b.Call)
	}
}

func (c *check) call(id parley.CallID) *call {
	k := c.calls[id]
	if k == nil {
		c.fail("call %d is not of this run", id)
		k = &call{}
	}
	return k
}

func (c *check) closeCard(card parley.CardID, id parley.CallID) {
	c.must(c.cards[card] == id && id != 0, "card %d is not open", card)
	delete(c.cards, card)
	delete(c.approvals, card)
	delete(c.explaining, card)
}
