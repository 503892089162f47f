package parley

import "encoding/json"

// FoldVersion names what Fold makes of a log. It is raised whenever a log folds
// to something else than before, or State looks different: snapshots of another
// version are thrown away, not migrated.
const FoldVersion = 8

// A Snapshot is the state after an event, kept so that a long log need not be
// folded from its beginning.
type Snapshot struct {
	Seq     Seq
	Version int // of the fold
	Body    []byte
}

// Snapshot is false while an output is open: its text so far is no control
// fact, and it will not be open for long.
func (s State) Snapshot() (Snapshot, bool) {
	if s.Run != nil && s.Run.Turn != nil {
		return Snapshot{}, false
	}
	raw, err := json.Marshal(s)
	return Snapshot{s.Head, FoldVersion, raw}, err == nil
}

// State is what the snapshot was made of; false if this release cannot tell.
func (s Snapshot) State() (State, bool) {
	var state State
	err := json.Unmarshal(s.Body, &state)
	return state, err == nil && s.Version == FoldVersion && state.Head == s.Seq
}
