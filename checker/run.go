package checker

import "parley"

// inRun checks runs and turns.
func (c *check) inRun(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.RunStarted:
		c.must(c.run == 0, "run %d is open", c.run)
		c.must(len(c.children) == 0, "%d children of the last run are out", len(c.children))
		c.must(e.Run == parley.RunID(e.Seq), "is named %d", e.Run)
		c.must(!c.halted, "the session is halted")
		c.must(c.owed == 0, "what run %d did to files is not reported", c.owed)
		c.must(c.undoing == 0, "the changes of run %d are being undone", c.undoing)
		c.must(c.inputs[b.Input] == "received", "its input %d is %q", b.Input, c.inputs[b.Input])
		for id := range c.waiting {
			c.must(id >= b.Input, "input %d has waited longer than %d", id, b.Input)
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
		c.callsEnded()
		c.must(b.Outcome != "", "has no outcome")
		c.must(b.Outcome != parley.Completed || c.adopted && c.turns > 0, "completed without an answer")
		c.must(b.Outcome != parley.Interrupted || c.cuts == parley.MaxCuts || c.abandoned() || c.remote && c.cuts == 1,
			"interrupted after %d cuts", c.cuts)
		if b.ReportFollows {
			c.must(b.Outcome != parley.Completed && b.Outcome != parley.Failed && !c.reported, "was to report before")
			c.owed = c.run
		}
		c.run = 0
	case parley.TurnStarted:
		c.must(c.run != 0 && c.turn == 0, "run %d, turn %d", c.run, c.turn)
		c.must(c.adopted, "the input that started the run is not adopted")
		c.must(len(c.screen) == 0 && !c.blocked, "what was said was not screened, or blocked")
		for id, k := range c.calls {
			c.must(k.ended && !k.lost, "call %d is open", id)
		}
		c.must(!c.remote || c.cuts == 0, "a remote agent that was lost is asked again")
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
			c.must(!c.remote || k.ended, "call %d of a remote agent is open", id)
		}
		if b.Stop == parley.StopCut && (!b.Handed || c.remote) {
			c.cuts++
			c.must(c.cuts <= parley.MaxCuts, "%d cuts", c.cuts)
		}
		c.turn = 0
	case parley.ModelFellBack:
		c.must(c.turn != 0 && b.Turn == c.turn && c.output == 0, "turn %d, output %d", c.turn, c.output)
		c.must(b.Actual != "" && b.Actual != b.Preferred, "from %s to %s", b.Preferred, b.Actual)
	case parley.ProblemReported:
		if r := b.Retry; r != nil {
			c.must(c.turn != 0 && r.Turn == c.turn && c.output == 0, "turn %d, output %d", c.turn, c.output)
			c.must(r.Problem != "" && r.Attempt > 0 && r.Attempt <= r.Of && (r.GaveUp || r.Attempt > 1),
				"attempt %d of %d", r.Attempt, r.Of)
		}
	case parley.FilesChanged:
		if b.After != 0 {
			c.must(e.Run == 0 && c.run == 0 && b.After == c.owed, "the report of run %d is owed", c.owed)
			c.must(len(b.Files) <= parley.MaxFilesChanged, "has %d files", len(b.Files))
			c.must(len(c.children) == 0, "%d children of the run are out", len(c.children))
			c.owed = 0
			break
		}
		c.must(e.Run != 0 && c.run != 0 && c.turn == 0 && c.turns > 0, "not after the last turn of a run")
		c.must(!c.reported, "was said already")
		c.must(len(b.Files) > 0 && len(b.Files) <= parley.MaxFilesChanged, "has %d files", len(b.Files))
		c.callsEnded()
		c.reported = true
	case parley.UndoRequested:
		c.must(e.Run == 0 && c.run == 0 && c.undoing == 0, "run %d is open, the changes of run %d are being undone", c.run,
			c.undoing)
		c.must(b.Run > 0 && parley.Seq(b.Run) < e.Seq, "there is no run %d", b.Run)
		c.undoing = b.Run
	case parley.ChangesUndone:
		c.must(e.Run == 0 && c.undoing != 0 && b.Run == c.undoing, "the changes of run %d are being undone", c.undoing)
		c.must((b.Problem == "") == (len(b.Files) > 0), "%d files, and the problem %q", len(b.Files), b.Problem)
		c.undoing = 0
	case parley.EffectEnqueued:
		c.must(b.Type == parley.Webhook || c.run != 0 && c.turn == 0, "not between turns of a run")
	default:
		c.inOutput(e)
	}
}

// inOutput checks the output of models.
func (c *check) inOutput(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.OutputStarted:
		c.must(c.turn != 0 && b.Turn == c.turn && c.output == 0, "turn %d, output %d", c.turn, c.output)
		c.output, c.text, c.first, c.hole = parley.OutputID(e.Seq), c.text[:0], 0, 0
	case parley.OutputAppended:
		c.must(c.output != 0 && b.Output == c.output, "open is output %d", c.output)
		c.must(b.Offset == len(c.text) && c.hole == 0, "offset %d after %d bytes, hole %d", b.Offset, len(c.text),
			c.hole)
		c.must(b.Text != "", "is empty")
		if c.first == 0 {
			c.first = e.Seq
		}
		c.text = append(c.text, b.Text...)
	case parley.OutputFinished:
		c.must(c.output != 0 && b.Output == c.output, "open is output %d", c.output)
		if c.hole != 0 { // either all chunks of an output are deleted, or none
			c.must(c.first == 0 && b.First == c.hole && b.Text != "", "the pieces of output %d were not all deleted",
				c.output)
		} else {
			c.must(b.Text == string(c.text) && b.First == c.first, "its text is not its pieces")
		}
		c.output = 0
	default:
		c.inContext(e)
	}
}

// inContext checks measures and compactions of the context.
func (c *check) inContext(e parley.Event) {
	switch b := e.Body.(type) {
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
		c.must(b.From <= b.Upto && b.Upto < e.Seq && b.Upto > c.upto, "from %d up to %d, the last was up to %d", b.From,
			b.Upto, c.upto)
		c.compacting, c.upto = false, b.Upto
	default:
		c.inChild(e)
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

// callsEnded checks that no call of the run is open.
func (c *check) callsEnded() {
	for id, k := range c.calls {
		c.must(k.ended, "call %d is open", id)
	}
}
