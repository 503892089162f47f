package parley

// What a run has done to the files of its project is found out at its end, by
// comparing them with what they were before its first call that could have
// changed any. That takes a while and a look at the disk, so it is a step: the
// run ends when it was reported. A run that is ended from outside (cancelled,
// halted, denied, abandoned) does not wait for it: its report follows, outside
// the run, as soon as its processes are gone. The next run of the session waits
// for that report.

// A FileChange is what became of one file.
type FileChange struct {
	Path    string `json:"path"`
	Summary string `json:"summary"` // Added, Modified, Deleted, Renamed…
	Diff    string `json:"diff,omitempty"`
}

// FilesChanged is what a run has done to the files of its project.
type FilesChanged struct {
	Files     []FileChange `json:"files"`
	Truncated int          `json:"truncated,omitempty"` // files that are left out
	// After is the run that was ended from outside. The event then stands outside
	// every run. It may have no files: the run changed none, or that is not known.
	After RunID `json:"after,omitempty"`
}

func (b FilesChanged) fold(s State, e Event) State {
	if b.After != 0 && b.After == s.Unreported {
		s.Unreported = 0
	}
	return s.inRun(e, func(r *openRun) { r.Reported = true })
}

// ChangesFound is what a run has done to files, by the end of so many turns;
// zero: by the time it had been ended from outside.
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
		return // it was told something more, or has ended
	}
	if len(b.Files) > 0 {
		d.emit(r.ID, FilesChanged{Files: b.Files, Truncated: b.Truncated})
	}
	d.reported = true
	d.advance()
}

// ReportChanges: say what the run has done to files. It has nothing else to
// do before it ends, so many turns after it began. With zero turns, the run was
// ended from outside: nothing of it may be alive when its files are compared.
type ReportChanges struct {
	Run   RunID
	Turns int
}

func (ReportChanges) step() {}

// touchedBy reports whether a call may change files that the run has to tell of.
func (r *openRun) touchedBy(c Call) bool { return r.Agent.Files && c.Class != Pure }
