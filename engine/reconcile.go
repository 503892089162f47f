package engine

import (
	"cmp"
	"slices"
	"time"

	"parley"
)

// reconcile starts the steps that should be under way, and cancels workers that
// are no longer wanted. It returns how long to wait before the next look.
func (a *actor) reconcile() (wake time.Duration, err error) {
	e := a.engine
	if err := a.checkLease(e.ctx); err != nil {
		if !isElsewhere(err) && len(a.workers)+len(a.s.steps(e.Now())) == 0 {
			return e.Idle, nil // there is nothing to stop, and the next command checks it again
		}
		return 0, err
	}
	if a.currentProject().missing != nil && len(a.workers) == 0 {
		if err := a.checkProjectServed(a.s.state.Project); err != nil { // a node with the session's project has come
			return 0, cmp.Or(a.s.release(e.ctx, true), err)
		}
	}
	now := e.Now()
	steps := a.s.steps(now)
	draining := e.draining.Load()
	for step, w := range a.workers {
		if !wants(steps, step) || draining && a.onlyWatches(step) {
			w.cancel()
		}
	}
	if wants(steps, parley.LogOn{}) && a.mayContinue(steps) {
		if _, err := a.apply(entry{in: parley.Report{At: e.Now(), Body: parley.Advance{}}}); err != nil {
			return 0, err
		}
		return a.reconcile()
	}
	if t, due := dueTimer(steps); due && a.mayContinue(steps) {
		if err := a.fire(t, now); err != nil {
			return 0, err
		}
		return a.reconcile()
	}
	if run := a.s.state.Run; run != nil && !run.Stranded && a.onlyWanted(steps) &&
		slices.ContainsFunc(steps, a.waitsForProject) {
		if _, err := a.apply(entry{in: parley.Report{At: e.Now(), Run: run.ID, Body: parley.ProjectMissing{
			Message: parley.MessageOf(a.currentProject().missing)}}}); err != nil {
			return 0, err
		}
		return a.reconcile()
	}
	if len(a.awaitingRest) > 0 && a.atRest(steps) {
		for _, r := range a.awaitingRest {
			r.reply <- reply{}
		}
		a.awaitingRest = nil
	}
	if a.s.state.Deleted && !a.swept && len(a.workers) == 0 { // a live worker could still keep file contents
		a.swept = true
		e.sweepSoon()
	}
	wake = e.Idle
	if a.s.state.Head <= 1 {
		wake = min(wake, idleNew)
	}
	for _, step := range steps {
		if w, ok := step.(parley.WakeAt); ok {
			wake = min(wake, max(w.At.Sub(e.Now()), 0)+time.Millisecond)
		}
		// Steps start even while draining: the log says already that they have started.
		if needsWorker(step) && !a.tooEarly(step, steps) && !a.waitsForProject(step) && a.workers[step] == nil &&
			!(draining && a.onlyWatches(step)) {
			if e.Nodes != nil { // two nodes that have loaded the session must not both work
				if err := a.s.claim(e.ctx); err != nil {
					return 0, err
				}
			}
			a.work(step)
		}
	}
	return wake, nil
}

// waitsForProject reports whether a step has to wait until the project of its session is back.
func (a *actor) waitsForProject(step parley.Step) bool {
	_, stops := step.(parley.StopChild)
	return a.currentProject().missing != nil && (needsWorker(step) || step == parley.LogOn{}) && !stops
}

// tooEarly reports whether a step has to wait for work of an ended run: a
// process that is being killed may still change files.
func (a *actor) tooEarly(step parley.Step, wanted []parley.Step) bool {
	report, ok := step.(parley.ReportChanges)
	return ok && report.Turns == 0 && !a.onlyWanted(wanted)
}

// atRest reports whether all work that is no longer wanted has ended, here and
// in children.
func (a *actor) atRest(steps []parley.Step) bool {
	for _, step := range steps {
		if _, stopping := step.(parley.StopChild); stopping {
			return false
		}
	}
	return a.onlyWanted(steps)
}

// onlyWanted reports whether every live worker is still wanted.
func (a *actor) onlyWanted(steps []parley.Step) bool {
	for step := range a.workers {
		if !wants(steps, step) {
			return false
		}
	}
	return true
}

// onlyWatches reports whether a step does no work itself: its work goes on, or
// stops, without it. A server that stops does not wait for people either. An
// evaluation and a title can be asked for later.
func (a *actor) onlyWatches(step parley.Step) bool {
	switch step := step.(type) {
	case parley.RunChild, parley.StopChild, parley.Evaluate, parley.WriteTitle, parley.WatchMission, parley.DeliverPrompt:
		return true
	case parley.CallModel:
		return step.Agent.Remote && a.s.state.Status() == parley.StatusWaiting
	}
	return false
}

// mayContinue reports whether the log may go on by itself: every live worker is still wanted, the server is not
// stopping, and it has the session's project.
func (a *actor) mayContinue(wanted []parley.Step) bool {
	return !a.engine.draining.Load() && a.currentProject().missing == nil && a.onlyWanted(wanted)
}
