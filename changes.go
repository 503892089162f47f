package parley

// What a run has done to the files of its project is found out at its end, by
// comparing them with what they were before its first call that could have
// changed any. That takes a while and a look at the disk, so it is a step: the
// run ends when it was reported. A run that is ended from outside does not wait
// for it: the batch that ends it is the last that is heard of it.

// MaxFilesChanged bounds the files of one FilesChanged; MaxDiff the characters
// of the diff of one, after which it says that it was cut.
const (
	MaxFilesChanged = 20
	MaxDiff         = 12000
)

// finish ends the run by itself, once what it did to files was reported.
func (d *decision) finish(end RunFinished) {
	r := d.s.Run
	if r.Touched && !r.Reported && !d.reported {
		d.reporting = true
		return
	}
	if end.Outcome == Completed {
		d.endPlan()
	}
	end.Usage = r.Usage
	d.emit(r.ID, end)
}

// ends reports whether a run that has nothing left to do waits for the report.
func (d *decision) ends() bool {
	try := decision{s: d.s, at: d.at}
	try.advance()
	return try.reporting
}

func (d *decision) changesFound(rep Report, b ChangesFound) {
	r := d.s.Run
	if r == nil || r.ID != rep.Run || r.Turns != b.Turns || !d.ends() {
		return // it was told something more, or has ended
	}
	if len(b.Files) > 0 {
		d.emit(r.ID, FilesChanged{Files: b.Files, Truncated: b.Truncated})
	}
	d.reported = true
	d.advance()
}

// touchedBy reports whether a call may change files that the run has to tell of.
func (r *Run) touchedBy(c Call) bool { return r.Agent.Files && c.Class != Pure }
