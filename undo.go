package parley

import (
	"fmt"
	"slices"
	"strings"
)

// A person can undo the changes of a run to the files of its project. The
// request is a fact of the log, and then a step. If a server stops in between,
// it restores the remaining files after its restart: it leaves alone files that
// already have their earlier state. The session starts no run meanwhile.

// UndoRequested is followed by a ChangesUndone.
type UndoRequested struct {
	Run RunID `json:"run"` // whose changes must be undone
}

func (b UndoRequested) fold(s State, _ Event) State {
	s.Undoing = b.Run
	return s
}

// ChangesUndone lists the files that have their state from before a run again.
type ChangesUndone struct {
	Run   RunID        `json:"run"`
	Files []UndoneFile `json:"files,omitempty"`
	// Problem is the reason why the files were not restored; empty: all of them
	// were.
	Problem string `json:"problem,omitempty"`
}

func (b ChangesUndone) fold(s State, _ Event) State {
	s.Undoing = 0
	if b.Problem == "" {
		s.Undone = append(slices.Clip(s.Undone), b.Run)
		s.Undone = s.Undone[max(0, len(s.Undone)-maxUndone):]
	}
	return s
}

// An UndoneFile is the result for one file.
type UndoneFile struct {
	Path string         `json:"path"`
	Did  UndoneFileKind `json:"did"`
}

type UndoneFileKind string

const (
	FileRestored    UndoneFileKind = "restored"     // the run had changed it
	FileRemoved     UndoneFileKind = "deleted"      // the run had added it
	FileBroughtBack UndoneFileKind = "brought_back" // the run had deleted it
)

// UndoChanges restores files to their state before a run. The engine refuses it
// if a file has changed since the run.
type UndoChanges struct{ Run RunID }

func (UndoChanges) Rules() Rules { return Rules{Action: ActMessage, Starts: true} }

func (do UndoChanges) decide(d *decision, _ Command) error {
	switch {
	case slices.Contains(d.s.Undone, do.Run):
		return Errorf(CodeClosed, "The changes of this run were undone already.")
	case d.s.Undoing != 0:
		return Errorf(CodeConflict, "The changes of a run are being undone. Wait until that has ended.")
	case d.s.Run != nil || len(d.s.Queue) > 0 || d.s.Unreported != 0 || d.s.orphans():
		return Errorf(CodeConflict, "A run of this conversation is working. Stop it, or undo changes "+
			"when it has ended.")
	}
	d.emit(0, UndoRequested(do))
	return nil
}

// RestoreFiles is a step: restore files to their state before a run.
type RestoreFiles struct{ Run RunID }

func (RestoreFiles) step() {}

// FilesEnded is the result of RestoreFiles.
type FilesEnded struct {
	Files   []UndoneFile
	Problem string // empty: all files are restored
}

func (b FilesEnded) decide(d *decision, rep Report) {
	if rep.Run != 0 && rep.Run == d.s.Undoing {
		d.emit(0, ChangesUndone{Run: rep.Run, Files: b.Files, Problem: b.Problem})
	}
}

// Summary describes the result in one sentence.
func (b ChangesUndone) Summary() string {
	if b.Problem != "" {
		return "The changes of the run were not undone. " + b.Problem
	}
	text := "The user undid what a run before this had changed:"
	for i, f := range b.Files {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %q was %s", CleanText(f.Path), strings.ReplaceAll(string(f.Did), "_", " "))
	}
	return text + "."
}
