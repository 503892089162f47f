package policy

import (
	"fmt"

	"parley"
)

// Edit says what is to become of an edit inside the workspace.
func Edit(mode parley.ApprovalMode) parley.VerdictKind {
	if mode == parley.ApprovalAutoEdit || mode == parley.ApprovalFullAuto {
		return parley.VerdictRun
	}
	return parley.VerdictAsk
}

// Command says what is to become of a command, and why that is not what it
// would otherwise be. Without a sandbox, missing says why there is none: then
// nothing runs unasked, because a command that only reads may read whatever the
// server can, and who chose full-auto chose it for inside a sandbox.
func Command(mode parley.ApprovalMode, j Judgement, missing error) (parley.VerdictKind, string) {
	switch {
	case missing != nil && mode == parley.ApprovalFullAuto:
		return parley.VerdictBlock, fmt.Sprintf("under full-auto commands run in a sandbox only, and there is none: %v",
			missing)
	case missing != nil:
		return parley.VerdictAsk, fmt.Sprintf("it would run without a sandbox: %v", missing)
	case j.Safe || mode == parley.ApprovalFullAuto:
		return parley.VerdictRun, ""
	}
	return parley.VerdictAsk, j.Why
}
