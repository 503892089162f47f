package checker

import "parley"

// inRun checks runs and turns.
func (c *check) inRun(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.RunStarted:
		c.must(c.run == 0, "run %d must end first", c.run)
		c.must(len(c.children) == 0, "%d sub-agents of the last run have not returned", len(c.children))
		c.must(e.Run == parley.RunID(e.Seq), "expected run %d, because a run has the number of its first "+
			"event; found run %d", e.Seq, e.Run)
		c.must(!c.halted, "the session is halted and must not start a run")
		c.must(c.owed == 0, "the report of the files that run %d changed must come first", c.owed)
		c.must(c.undoing == 0, "the undo of the changes of run %d must end first", c.undoing)
		c.inputWaits(b.Input)
		for id := range c.waiting {
			c.must(id >= b.Input, "input %d was received before input %d, and must be answered first", id, b.Input)
		}
		c.run, c.input, c.adopted, c.turns, c.cuts = e.Run, b.Input, false, 0, 0
		c.remote = b.Agent.Remote
		clear(c.calls)
		clear(c.screen)
		c.blocked, c.tainted, c.reported = false, false, false
	case parley.RunFinished:
		c.must(c.run != 0, "no run is open")
		c.must(c.turn == 0 && c.output == 0, "turn %d must end first", c.turn)
		c.must(len(c.cards) == 0, "%d cards must be closed first", len(c.cards))
		c.callsEnded()
		c.must(b.Outcome != "", "the run has no outcome")
		c.must(b.Outcome != parley.Completed || c.adopted && c.turns > 0, "the run is completed, but it did not adopt "+
			"its input, or had no turn")
		c.must(b.Outcome != parley.Interrupted || c.cuts == parley.MaxCuts || c.abandoned() || c.remote && c.cuts == 1,
			"the run is interrupted, but no call was abandoned; turns cut off: expected %d (1 if the agent is "+
				"remote), found %d", parley.MaxCuts, c.cuts)
		if b.ReportFollows {
			c.must(b.Outcome != parley.Completed && b.Outcome != parley.Failed && !c.reported, "a report of "+
				"changed files may follow a run only if it was stopped before its report; its outcome is %q", b.Outcome)
			c.owed = c.run
		}
		c.run = 0
	case parley.TurnStarted:
		c.betweenTurns()
		c.must(c.adopted, "the run must first adopt input %d, which started it", c.input)
		c.must(len(c.screen) == 0 && !c.blocked, "all adopted inputs must be screened first, and none be "+
			"blocked; %d are not screened, and blocked is %t", len(c.screen), c.blocked)
		for id, k := range c.calls {
			c.must(k.ended && !k.lost, "call %d must end first, and its outcome be known", id)
		}
		c.must(!c.remote || c.cuts == 0, "the remote agent did not finish its last turn, and must not get "+
			"another one in this run")
		c.must(!c.compacting, "the compaction must end first")
		c.must(len(c.children) == 0, "%d sub-agents of the last turn have not returned", len(c.children))
		c.turn = parley.TurnID(e.Seq)
		c.reported = false
		c.turns++
		c.must(b.Number == c.turns, "expected turn number %d, found %d", c.turns, b.Number)
	case parley.TurnFinished:
		c.must(c.turn != 0 && b.Turn == c.turn, "it ends turn %d, but the open turn is %d (0: none)", b.Turn,
			c.turn)
		c.must(c.output == 0, "output %d must end first", c.output)
		for id, k := range c.calls {
			c.must(!c.remote || k.ended, "call %d of the remote agent must end first", id)
		}
		if b.Stop == parley.StopCut && (!b.Handed || c.remote) {
			c.cuts++
			c.must(c.cuts <= parley.MaxCuts, "%d turns of the run were cut off; at most %d may be", c.cuts,
				parley.MaxCuts)
		}
		c.turn = 0
	case parley.ModelFellBack:
		c.beforeOutput(b.Turn)
		c.must(b.Actual != "" && b.Actual != b.Preferred, "expected another model than %q, found %q", b.Preferred,
			b.Actual)
	case parley.ProblemReported:
		if r := b.Retry; r != nil {
			c.beforeOutput(r.Turn)
			c.must(r.Problem != "" && r.Attempt > 0 && r.Attempt <= r.Of && (r.GaveUp || r.Attempt > 1),
				"a retry must have a problem and the number of an attempt; found attempt %d of %d, problem %q",
				r.Attempt, r.Of, r.Problem)
		}
	case parley.FilesChanged:
		if b.After != 0 {
			c.must(e.Run == 0 && c.run == 0 && b.After == c.owed, "expected the report of run %d (0: none), "+
				"outside of runs; found the report of run %d", c.owed, b.After)
			c.must(len(b.Files) <= parley.MaxFilesChanged, "the report has %d files; at most %d may be in it",
				len(b.Files), parley.MaxFilesChanged)
			c.must(len(c.children) == 0, "%d sub-agents of the run have not returned", len(c.children))
			c.owed = 0
			break
		}
		c.must(e.Run != 0 && c.run != 0 && c.turn == 0 && c.turns > 0, "it must be after a turn of a run; open are "+
			"run %d and turn %d (0: none), after %d turns", c.run, c.turn, c.turns)
		c.must(!c.reported, "the files were reported before, after the same turn")
		c.must(len(b.Files) > 0 && len(b.Files) <= parley.MaxFilesChanged, "the report has %d files; expected 1 to %d",
			len(b.Files), parley.MaxFilesChanged)
		c.callsEnded()
		c.reported = true
	case parley.UndoRequested:
		c.must(e.Run == 0 && c.run == 0 && c.undoing == 0, "run %d and the undo of run %d must end first "+
			"(0: none)", c.run, c.undoing)
		c.must(b.Run > 0 && parley.Seq(b.Run) < e.Seq, "no run %d was started before", b.Run)
		c.undoing = b.Run
	case parley.ChangesUndone:
		c.must(e.Run == 0 && c.undoing != 0 && b.Run == c.undoing, "expected the undo of run %d (0: none), outside "+
			"of runs; found the undo of run %d", c.undoing, b.Run)
		c.must((b.Problem == "") == (len(b.Files) > 0), "expected either files or a problem; found %d files and the "+
			"problem %q", len(b.Files), b.Problem)
		c.undoing = 0
	case parley.EffectEnqueued:
		if b.Type != parley.Webhook {
			c.betweenTurns()
		}
	default:
		c.inOutput(e)
	}
}

// beforeOutput checks that an event of a turn is in that turn, and in none of its outputs.
func (c *check) beforeOutput(turn parley.TurnID) {
	c.must(c.turn != 0 && turn == c.turn && c.output == 0, "it must be in turn %d and in no output; open are turn %d "+
		"and output %d (0: none)", turn, c.turn, c.output)
}

// inOutput checks the output of models.
func (c *check) inOutput(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.OutputStarted:
		c.beforeOutput(b.Turn)
		c.output, c.text, c.first, c.hole = parley.OutputID(e.Seq), c.text[:0], 0, 0
	case parley.OutputAppended:
		c.must(c.output != 0 && b.Output == c.output, "it belongs to output %d, which is not open",
			b.Output)
		c.must(b.Offset == len(c.text) && c.hole == 0, "expected offset %d, found %d; the first missing chunk "+
			"is event %d (0: none)", len(c.text), b.Offset, c.hole)
		c.must(b.Text != "", "the chunk is empty")
		if c.first == 0 {
			c.first = e.Seq
		}
		c.text = append(c.text, b.Text...)
	case parley.OutputFinished:
		c.must(c.output != 0 && b.Output == c.output, "it belongs to output %d, which is not open",
			b.Output)
		if c.hole != 0 { // either all chunks of an output are deleted, or none
			c.must(c.first == 0 && b.First == c.hole && b.Text != "", "some chunks of output %d are "+
				"missing; either all must be deleted, or none", c.output)
		} else {
			c.must(b.Text == string(c.text) && b.First == c.first, "its text, or the number of its first "+
				"chunk, differs from the chunks; expected %d as the first chunk, found %d", c.first, b.First)
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
		c.betweenTurns()
	case parley.CompactionStarted:
		c.must(!c.compacting, "the compaction before it must end first")
		c.compacting = true
	case parley.CompactionFailed:
		c.must(c.compacting, "no compaction was started")
		c.compacting = false
	case parley.ContextCompacted:
		c.must(c.compacting, "no compaction was started")
		c.must(c.turn == 0, "turn %d must end first", c.turn)
		for id, k := range c.calls {
			c.must(c.run == 0 || k.ended && !k.lost, "call %d must end first, and its outcome be known", id)
		}
		c.must(b.After < b.Before, "a compaction must make the context smaller; found %d tokens before it and "+
			"%d after it", b.Before, b.After)
		c.must(b.From <= b.Upto && b.Upto < e.Seq && b.Upto > c.upto, "expected a range that ends before this "+
			"event and after event %d, where the last one ended; found %d to %d", c.upto, b.From, b.Upto)
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
		c.must(k.ended, "call %d must end first", id)
	}
}
