package engine

import (
	"context"
	"fmt"

	"parley"
	"parley/port"
)

// ref names a definition for a run that is to start in the project.
func (in *Project) ref(agent parley.Agent) parley.AgentRef {
	ref := agent.Ref()
	ref.Files = in.Changes != nil && !ref.Remote // what is elsewhere is not looked at
	return ref
}

// changes finds what the actor's runs do to files. It is nil outside a project.
func (a *actor) changes() port.Changes { return a.in().Changes }

// noted is the name under which the files are noted that a run finds.
func (a *actor) noted(run parley.RunID) string {
	return fmt.Sprintf("%s.%s.%d", a.tenant, a.session, run)
}

// noteFiles is done before every call that may change files; it is up to Changes
// that it counts once. A run is not to fail for want of a report of it.
func (a *actor) noteFiles(ctx context.Context, run parley.RunID) {
	changes := a.changes()
	if changes == nil { // there was one when the run began
		return
	}
	if err := changes.Note(ctx, a.noted(run)); err != nil && ctx.Err() == nil {
		a.log.Warn("what a run does to files will not be reported", "run", run, "error", err)
	}
}

// reportChanges always comes to an end: a run must not wait for it in vain.
func (a *actor) reportChanges(ctx context.Context, step parley.ReportChanges) parley.ReportBody {
	found := parley.ChangesFound{Turns: step.Turns}
	changes := a.changes()
	if changes == nil {
		return found
	}
	changed, err := changes.Since(ctx, a.noted(step.Run))
	switch {
	case ctx.Err() != nil:
		return nil // the run goes on, or the server stops: it will be asked for again
	case err != nil:
		a.log.Warn("what a run did to files cannot be reported", "run", step.Run, "error", err)
		return found
	}
	for _, f := range changed.Files {
		f.Diff = a.redacted(f.Diff)
		found.Files = append(found.Files, f)
	}
	found.Truncated = changed.Truncated
	return found
}

// mayUndo says why the changes of a run are not to be undone: a principal that may not talk to
// its agent may not change what it did either.
func (a *actor) mayUndo(who port.Principal, via string, do parley.UndoChanges) error {
	if _, err := parley.Decide(a.s.state, parley.Command{Do: do}); err != nil {
		return err // files that another run is changing are not looked at
	}
	ctx := a.engine.ctx
	_, run, err := readEvent[parley.RunStarted](ctx, a, parley.Seq(do.Run))
	if err != nil {
		return parley.Errorf(parley.CodeNotFound, "There is no such run.")
	}
	if err := a.mayTalkTo(who, via, run.Agent); err != nil {
		return err
	}
	changes := a.changes()
	if changes == nil {
		return parley.Errorf(parley.CodeClosed, "This server does not keep what files were before a run: "+
			"git is not installed.")
	}
	return changes.MayUndo(ctx, a.noted(do.Run))
}

// restoreFiles gives files the state that they had before a run.
func (a *actor) restoreFiles(ctx context.Context, step parley.RestoreFiles) parley.ReportBody {
	changes := a.changes()
	if changes == nil {
		return parley.FilesEnded{Problem: "git is not installed."}
	}
	files, err := changes.Undo(ctx, a.noted(step.Run))
	switch {
	case ctx.Err() != nil && err != nil:
		return nil // the server stops: it will be asked for again
	case err != nil:
		a.log.Warn("files were not restored", "run", step.Run, "error", err)
		return parley.FilesEnded{Problem: parley.MessageOf(err)}
	}
	return parley.FilesEnded{Files: files}
}
