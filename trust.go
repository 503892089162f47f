package parley

import (
	"fmt"
	"slices"
	"strings"
)

// A Source is the origin of content that a model has read. The empty source is
// the conversation: the words of people, of the agent and of the server. Every
// agent trusts the conversation.
//
// A session remembers its sources as long as it lives, because the content, or a
// summary of it, stays in the context of later runs. The agent of each run
// determines which sources it trusts. While one source is untrusted, every call
// with effects needs a person, whatever the approval mode.
type Source string

const (
	SourceWorkspace Source = "workspace" // files, and the output of commands in the sandbox
	SourceNetwork   Source = "network"   // the output of commands outside the sandbox

	mcpPrefix     = "mcp:"
	remotePrefix  = "remote:"
	flaggedPrefix = "flagged:" // followed by the source of flagged content
	flaggedInput  = Source(flaggedPrefix + "message")
)

// ServerSource returns the source for an MCP server.
func ServerSource(server string) Source { return Source(mcpPrefix + server) }

// remoteSource returns the source for a remote agent.
func remoteSource(agent string) Source { return Source(remotePrefix + agent) }

// flagged reports whether the content was flagged. No agent trusts it.
func (s Source) flagged() bool { return strings.HasPrefix(string(s), flaggedPrefix) }

// trust is the list of sources that an agent trusts, sorted and joined by commas.
// It is a string because steps are compared, and a step contains its agent. Empty:
// defaultTrust.
type trust string

const (
	defaultTrust = trust(SourceWorkspace)
	// trustNothing trusts only the conversation, as every list does.
	trustNothing trust = "conversation"
)

// trustOf returns the trust of an agent with this list; nil: the definition has
// no list.
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

// without returns the trust without some sources.
func (t trust) without(sources []Source) trust {
	kept := []Source{}
	for _, s := range t.list() {
		if !slices.Contains(sources, s) && s != Source(trustNothing) {
			kept = append(kept, s)
		}
	}
	return trustOf(kept)
}

// CheckTrust rejects an unknown entry of a trust list.
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

// trusts reports whether this agent trusts a source. Content from a trusted
// source does not make its calls need approval. A remote agent trusts its own
// words.
func (a AgentRef) trusts(s Source) bool {
	return !s.flagged() && slices.Contains(a.Trust.list(), s) || a.Remote && s == remoteSource(a.Name)
}

// WithoutTrust returns a with less trust. A sub-agent does not trust sources that
// the agent that gave it its task had read and did not trust.
func (a AgentRef) WithoutTrust(sources []Source) AgentRef {
	if len(sources) > 0 {
		a.Trust = a.Trust.without(sources)
	}
	return a
}

// untrusted lists the sources that the session has read and that the agent of the
// open run does not trust.
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

// flagged reports whether the context of the model contains flagged content.
func (s State) flagged() bool {
	return s.Run != nil && s.Run.Flagged || slices.ContainsFunc(s.Sources, Source.flagged)
}

// whyUntrusted returns the text of a card about the sources that require it.
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

// some joins the first few names.
func some(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// ask emits the card of a call that needs a person, unless a grant covers it. A
// call needs a person if the policy demands it, or if it has effects and follows
// untrusted content.
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

// reading returns the state after content from some sources was read.
func (s State) reading(sources ...Source) State {
	for _, source := range sources {
		if i, there := slices.BinarySearch(s.Sources, source); source != "" && !there {
			s.Sources = slices.Insert(slices.Clone(s.Sources), i, source)
		}
	}
	return s
}

// readResult folds the source of the result of a call of the open run.
func (s State) readResult(e Event, b ToolCallFinished) State {
	if s.Run == nil || e.Run != s.Run.ID {
		return s
	}
	c := s.Run.call(b.Call)
	if c == nil || b.Outcome == CallDenied || b.Outcome == CallCancelled {
		return s // the result is a message of the server or of a person
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

// source returns the source of the result of a call. Events of earlier releases do
// not contain it; then the name of an MCP tool identifies its server.
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
