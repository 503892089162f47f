package parley

// The changes of a run to the files of its project are determined at its end.
// They are compared with their state before the first call of the run that
// could change files. This needs disk access, so it is a step: the run ends
// once the changes are reported. A run that is ended from outside (cancelled,
// halted, denied, abandoned) does not wait. Its report follows outside the run,
// as soon as its processes are gone. The next run of the session waits for that
// report.

// A FileChange is the change of one file.
type FileChange struct {
	Path    string `json:"path"`
	Summary string `json:"summary"` // Added, Modified, Deleted, Renamed…
	Diff    string `json:"diff,omitempty"`
}

// FilesChanged lists the changes of a run to the files of its project.
type FilesChanged struct {
	Files     []FileChange `json:"files"`
	Truncated int          `json:"truncated,omitempty"` // number of files left out
	// After is the run that was ended from outside. The event is then outside
	// every run. Files may be empty: the run changed none, or its changes are not
	// known.
	After RunID `json:"after,omitempty"`
}

func (b FilesChanged) fold(s State, e Event) State {
	if b.After != 0 && b.After == s.Unreported {
		s.Unreported = 0
	}
	return s.inRun(e, func(r *openRun) { r.Reported = true })
}

// ChangesFound reports the changes of a run after this number of turns; zero:
// after the run was ended from outside.
type ChangesFound struct {
	Turns     int
	Files     []FileChange
	Truncated int
}

func (b ChangesFound) decide(d *decision, rep Report) {
	r := d.s.Run
	if b.Turns == 0 {
		if rep.Run != 0 && rep.Run == d.s.Unreported && !d.s.orphans() {
			d.emit(0, FilesChanged{Files: append([]FileChange{}, b.Files...), Truncated: b.Truncated, After: rep.Run})
		}
		return
	}
	if r == nil || r.ID != rep.Run || r.Turns != b.Turns || !d.ends() {
		return // it has adopted another input, or has ended
	}
	if len(b.Files) > 0 {
		d.emit(r.ID, FilesChanged{Files: b.Files, Truncated: b.Truncated})
	}
	d.reported = true
	d.advance()
}

// ReportChanges is a step: report the changes of a run to files. After this
// number of turns, the run has nothing else to do before it ends. Zero turns
// mean that the run was ended from outside: all its processes must be gone
// before the files are compared.
type ReportChanges struct {
	Run   RunID
	Turns int
}

func (ReportChanges) step() {}

// touchedBy reports whether a call may change files that the run must report.
func (r *openRun) touchedBy(c Call) bool { return r.Agent.Files && c.Class != Pure }
