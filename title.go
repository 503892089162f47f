package parley

// Titles of conversations that a model writes. A conversation is named by the first line of its first message until a
// person renames it. After its first completed run, the model of that run may be asked for a better title, once: not
// again after a failure, and never if a person has chosen one.

// titling is a pending title: the model of this run must write it.
type titling struct {
	Run   RunID
	Agent AgentRef
}

// titles returns the titling that a finished run leads to; nil: none.
func (s State) titles(r *openRun, b RunFinished) *titling {
	if r == nil || b.Outcome != Completed || !r.Agent.Titles || r.Flagged || !s.Unnamed || s.Titling != nil {
		return s.Titling
	}
	return &titling{r.ID, r.Agent}
}

// Titled reports whether a run of the session can lead to a title by a model.
func (s State) Titled() bool {
	return (s.Unnamed || s.Title == "") && s.Parent == nil && !s.Transient && s.Titling == nil
}

// WriteTitle asks a model for the title of the conversation.
type WriteTitle struct {
	Run   RunID
	Agent AgentRef
}

func (WriteTitle) step() {}

// TitleWritten reports the title that a model wrote; empty: it could not.
type TitleWritten struct {
	Run   RunID
	Title string
	Usage Usage
	// Leaked: the model leaked the canary. The server has withheld that text.
	Leaked bool
}

// decide keeps the first line as the title after a failure, and the model is not asked again.
func (b TitleWritten) decide(d *decision, _ Report) {
	t := d.s.Titling
	if t == nil || t.Run != b.Run {
		return // a person has renamed the session, or it was deleted
	}
	if b.Leaked {
		d.halt(CanaryLeak)
		return
	}
	title := titleOf(CleanText(b.Title))
	if IsBlank(title) {
		title = d.s.Title
	}
	d.emit(0, SessionRenamed{Title: title, Agent: t.Agent.Name, Usage: b.Usage})
}
