package parley

import (
	"fmt"
	"slices"
	"strings"
)

// A Source is where content comes from that a model has read. The empty source is
// the conversation: the words of people, of the agent and of the server, which
// every agent trusts.
//
// A session remembers the sources it has read from, for as long as it lives: the
// content, or a summary of it, stays in the context of later runs. Whether they
// are trusted is for the agent of each run to say. While one is not, every call
// with effects asks a person, whatever the approval mode.
type Source string

const (
	SourceWorkspace Source = "workspace" // files, and the output of commands in the sandbox
	SourceNetwork   Source = "network"   // the output of commands that ran outside of a sandbox

	mcpPrefix     = "mcp:"
	remotePrefix  = "remote:"
	flaggedPrefix = "flagged:" // what follows is the source of content that was flagged
	flaggedInput  = Source(flaggedPrefix + "message")
)

// ServerSource is an MCP server.
func ServerSource(server string) Source { return Source(mcpPrefix + server) }

// remoteSource is an agent that runs elsewhere.
func remoteSource(agent string) Source { return Source(remotePrefix + agent) }

// flagged reports whether the content was flagged. No agent can trust it.
func (s Source) flagged() bool { return strings.HasPrefix(string(s), flaggedPrefix) }

// Trust is the list of sources an agent trusts, sorted and joined by commas: steps
// are compared, and a step names its agent. Empty: defaultTrust.
type trust string

const (
	defaultTrust = trust(SourceWorkspace)
	// trustNothing trusts the conversation alone, as every list does.
	trustNothing trust = "conversation"
)

// trustOf is the trust of an agent whose definition lists these sources; nil: it
// has no list.
func trustOf(list []Source) trust {
	if list == nil {
		return ""
	}
	if len(list) == 0 {
		return trustNothing
	}
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = string(s)
	}
	slices.Sort(names)
	return trust(strings.Join(slices.Compact(names), ","))
}

func (t trust) list() []Source {
	if t == "" {
		t = defaultTrust
	}
	var list []Source
	for name := range strings.SplitSeq(string(t), ",") {
		list = append(list, Source(name))
	}
	return list
}

// without is the trust with some sources taken away.
func (t trust) without(sources []Source) trust {
	kept := []Source{}
	for _, s := range t.list() {
		if !slices.Contains(sources, s) && s != Source(trustNothing) {
			kept = append(kept, s)
		}
	}
	return trustOf(kept)
}

// CheckTrust says which entry of a trust list is wrong.
func CheckTrust(list []Source) error {
	for _, s := range list {
		server, isServer := strings.CutPrefix(string(s), mcpPrefix)
		agent, isAgent := strings.CutPrefix(string(s), remotePrefix)
		switch {
		case s == SourceWorkspace, s == SourceNetwork, isServer && ValidServerName(server),
			isAgent && ValidAgentName(agent):
		default:
			return fmt.Errorf("trust lists workspace, network, mcp:<server> and remote:<agent>, not %.80q", s)
		}
	}
	return nil
}

// trusts reports whether content from a source does not make calls of this agent
// ask. An agent that runs elsewhere trusts its own words.
func (a AgentRef) trusts(s Source) bool {
	return !s.flagged() && slices.Contains(a.Trust.list(), s) || a.Remote && s == remoteSource(a.Name)
}

// WithoutTrust is the definition with less trust: a sub-agent does not trust what
// the agent that gave it its task has read and did not trust.
func (a AgentRef) WithoutTrust(sources []Source) AgentRef {
	if len(sources) > 0 {
		a.Trust = a.Trust.without(sources)
	}
	return a
}

// untrusted lists what the session has read and the agent of the open run does not
// trust.
func (s State) untrusted() (list []Source) {
	if s.Run.Flagged {
		list = append(list, flaggedInput)
	}
	for _, source := range s.Sources {
		if !s.Run.Agent.trusts(source) {
			list = append(list, source)
		}
	}
	return list
}

// flagged reports whether something was flagged that the model still reads.
func (s State) flagged() bool {
	return s.Run != nil && s.Run.Flagged || slices.ContainsFunc(s.Sources, Source.flagged)
}

// whyUntrusted is what the card of a call says about the sources that made it ask.
func whyUntrusted(agent string, untrusted []Source) string {
	var flagged, others []string
	for _, s := range untrusted {
		if of, ok := strings.CutPrefix(string(s), flaggedPrefix); s != flaggedInput && ok {
			flagged = append(flagged, of)
		} else if !ok {
			others = append(others, string(s))
		}
	}
	var reasons []string
	if slices.Contains(untrusted, flaggedInput) {
		reasons = append(reasons, "a message that led to this was flagged")
	}
	if flagged != nil {
		reasons = append(reasons, "content from "+some(flagged)+" was flagged")
	}
	if others != nil {
		reasons = append(reasons, "this conversation holds content from "+some(others)+", which "+agent+
			" does not trust")
	}
	return strings.Join(reasons, ", and ")
}

// some names the first few.
func some(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// ask emits the card of a call that needs a person, unless a grant covers it. The
// policy may want that, or the call has effects and follows untrusted content.
func (d *decision) ask(card ApprovalRequested, policy bool, untrusted []Source) {
	if !policy && len(untrusted) == 0 || d.s.granted(card, untrusted) {
		return
	}
	if len(untrusted) > 0 {
		card.Similar = SimilarRule{}
	}
	card.Why, card.Sources = whyUntrusted(d.s.Run.Agent.Name, untrusted), untrusted
	d.emit(d.s.Run.ID, card)
}

// reading is the state after content from some sources was read.
func (s State) reading(sources ...Source) State {
	for _, source := range sources {
		if i, there := slices.BinarySearch(s.Sources, source); source != "" && !there {
			s.Sources = slices.Insert(slices.Clone(s.Sources), i, source)
		}
	}
	return s
}

// readResult folds the sources of what a call of the open run came to.
func (s State) readResult(e Event, b ToolCallFinished) State {
	if s.Run == nil || e.Run != s.Run.ID {
		return s
	}
	c := s.Run.call(b.Call)
	if c == nil || b.Outcome == CallDenied || b.Outcome == CallCancelled {
		return s // the model is told what the server or a person says of it
	}
	if b.Finding != nil {
		of := c.Source
		if of == "" {
			of = Source(c.Name)
		}
		s = s.reading(flaggedPrefix + of)
	}
	return s.reading(c.Source)
}

// source is where the result of a call comes from. Logs of earlier releases do not
// say it; the name of an MCP tool names its server.
func (b ToolCallRequested) source(agent AgentRef) Source {
	server, _, ofServer := strings.Cut(b.Name, ServerSeparator)
	switch {
	case b.Source != "":
		return b.Source
	case b.Remote:
		return remoteSource(agent.Name)
	case ofServer:
		return ServerSource(server)
	}
	return ""
}
