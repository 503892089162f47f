package engine

import (
	"context"
	"fmt"

	"parley"
	"parley/port"
)

// ref returns the reference to an agent for a run that starts in the project.
func (in *Project) ref(agent parley.Agent) parley.AgentRef {
	ref := agent.Ref()
	ref.Files = in.Changes != nil && !ref.Remote // file changes of remote agents are not tracked
	return ref
}

// changes tracks the file changes of the actor's runs. It is nil if the project does not track them.
func (a *actor) changes() port.Changes { return a.currentProject().Changes }

// noteName returns the name under which Changes keeps the state of the files before a run.
func (a *actor) noteName(run parley.RunID) string {
	return fmt.Sprintf("%s.%s.%d", a.tenant, a.session, run)
}

// noteFiles notes the state of the files before a call that may change them. It
// runs before every such call, and Changes keeps only the first note of a run.
// An error is only logged: a run must not fail because its changes cannot be
// reported.
func (a *actor) noteFiles(ctx context.Context, run parley.RunID) {
	changes := a.changes()
	if changes == nil { // changes were tracked when the run began
		return
	}
	if err := changes.Note(ctx, a.noteName(run)); err != nil && ctx.Err() == nil {
		a.log.Warn("the file changes of a run will not be reported", "run", run, "error", err)
	}
}

// reportChanges returns an empty report if the changes cannot be found: the run must not wait for it in vain.
func (a *actor) reportChanges(ctx context.Context, step parley.ReportChanges) parley.ReportBody {
	found := parley.ChangesFound{Turns: step.Turns}
	changes := a.changes()
	if changes == nil {
		return found
	}
	changed, err := changes.Since(ctx, a.noteName(step.Run))
	switch {
	case ctx.Err() != nil:
		return nil // the run goes on, or the server stops: the step comes again
	case err != nil:
		a.log.Warn("the file changes of a run cannot be reported", "run", step.Run, "error", err)
		return found
	}
	for _, f := range changed.Files {
		f.Diff = a.redacted(f.Diff)
		found.Files = append(found.Files, f)
	}
	found.Truncated = changed.Truncated
	return found
}

// mayUndo refuses to undo the changes of a run if they cannot be undone, or if the principal may not talk to the run's
// agent.
func (a *actor) mayUndo(who port.Principal, via string, do parley.UndoChanges) error {
	if _, err := parley.Decide(a.s.state, parley.Command{Do: do}); err != nil {
		return err // files that another run is changing are not read
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
		return parley.Errorf(parley.CodeClosed, "This server does not save the contents of files before a run: "+
			"git is not installed.")
	}
	return changes.MayUndo(ctx, a.noteName(do.Run))
}

// restoreFiles gives files the state that they had before a run.
func (a *actor) restoreFiles(ctx context.Context, step parley.RestoreFiles) parley.ReportBody {
	changes := a.changes()
	if changes == nil {
		return parley.FilesEnded{Problem: "git is not installed."}
	}
	files, err := changes.Undo(ctx, a.noteName(step.Run))
	switch {
	case ctx.Err() != nil && err != nil:
		return nil // the server stops: the step comes again
	case err != nil:
		a.log.Warn("files were not restored", "run", step.Run, "error", err)
		return parley.FilesEnded{Problem: parley.MessageOf(err)}
	}
	return parley.FilesEnded{Files: files}
}
