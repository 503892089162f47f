package engine

import (
	"context"
	"fmt"

	"parley"
)

// ref names a definition for a run that is to start in the project.
func (in *Project) ref(agent parley.Agent) parley.AgentRef {
	ref := agent.Ref()
	ref.Files = in.Changes != nil && !ref.Remote // what is elsewhere is not looked at
	return ref
}

// changes finds what the actor's runs do to files. It is nil outside a project.
func (a *actor) changes() parley.Changes { return a.in().Changes }

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
