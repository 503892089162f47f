package parley

import "encoding/json"

// FoldVersion is the version of the states that Fold computes. It is raised
// whenever a log folds to a different state than before, or the State type
// changes. Snapshots of another version are discarded, not migrated.
const FoldVersion = 8

// A Snapshot is the state after an event, kept so that a long log need not be
// folded from its beginning.
type Snapshot struct {
	Seq     Seq
	Version int // of the fold
	Body    []byte
}

// Snapshot returns false while a turn is open: the text of an open output is
// not part of a snapshot, and the turn will end soon.
func (s State) Snapshot() (Snapshot, bool) {
	if s.Run != nil && s.Run.Turn != nil {
		return Snapshot{}, false
	}
	raw, err := json.Marshal(s)
	return Snapshot{s.Head, FoldVersion, raw}, err == nil
}

// State decodes the state; false if this release cannot.
func (s Snapshot) State() (State, bool) {
	var state State
	err := json.Unmarshal(s.Body, &state)
	return state, err == nil && s.Version == FoldVersion && state.Head == s.Seq
}
