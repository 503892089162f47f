package rules

import "parley"

// Held returns the refusal to erase a session under a legal hold.
func Held(id parley.SessionID) error {
	return parley.Errorf(parley.CodeConflict, "Session %s came under a legal hold meanwhile. All data is kept; sessions "+
		"that were ended stay ended.", id)
}

// Changed returns the refusal to erase a session that was changed meanwhile.
func Changed(id parley.SessionID) error {
	return parley.Errorf(parley.CodeConflict, "Session %s was changed meanwhile. Nothing was erased.", id)
}
