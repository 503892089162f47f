package policy

import (
	"fmt"

	"parley"
)

// Edit returns the verdict on an edit inside the workspace.
func Edit(mode parley.ApprovalMode) parley.VerdictKind {
	if mode == parley.ApprovalAutoEdit || mode == parley.ApprovalFullAuto {
		return parley.VerdictRun
	}
	return parley.VerdictAsk
}

// Command returns the verdict on a command, and the reason. If there is no
// sandbox, missing is the cause, and no command runs without asking. A command
// that only reads could read every file that the server can. A person who chose
// full-auto chose it for commands in a sandbox.
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
