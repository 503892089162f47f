package parley

import "slices"

// MCP servers can be switched off for one session. The choice applies from the next turn on, to the session and to
// sub-agents that start later.

// ToolServersChosen: exactly these servers are off from now on.
type ToolServersChosen struct {
	Off []string `json:"off"` // sorted
}

func (b ToolServersChosen) fold(s State, _ Event) State {
	s.Off = b.Off
	if len(b.Off) == 0 {
		s.Off = nil
	}
	return s
}

// ChooseToolServers switches these servers off, and all others on.
type ChooseToolServers struct{ Off []string }

// maxServersOff bounds how many servers one conversation has off.
const maxServersOff = 128

func (do ChooseToolServers) Rules() Rules {
	r := Rules{Action: ActMessage, Limits: []limit{{"list of tool servers", len(do.Off), maxServersOff}}}
	for _, name := range do.Off {
		if !ValidServerName(name) {
			r.Wrong = Errorf(CodeInvalid, "%.40q is not the name of a tool server.", name)
		}
	}
	return r
}

func (do ChooseToolServers) decide(d *decision, _ Command) error {
	off := slices.Compact(slices.Sorted(slices.Values(do.Off)))
	switch {
	case d.s.Parent != nil:
		return Errorf(CodeInvalid, "A sub-agent uses the tool servers that were on when it started.")
	case slices.Equal(off, d.s.Off):
		return nil
	}
	d.emit(0, ToolServersChosen{append([]string{}, off...)})
	return nil
}
