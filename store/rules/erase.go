package rules

import "parley"

// Held refuses to erase a session under a legal hold.
func Held(id parley.SessionID) error {
	return parley.Errorf(parley.CodeConflict, "Session %s is under a legal hold. Nothing was erased.", id)
}

// Changed refuses to erase a session that was changed meanwhile.
func Changed(id parley.SessionID) error {
	return parley.Errorf(parley.CodeConflict, "Session %s was changed meanwhile. Nothing was erased.", id)
}
