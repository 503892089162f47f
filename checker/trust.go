package checker

import (
	"slices"
	"strings"

	"parley"
)

// provenance is the state of sources in a log.
type provenance struct {
	read   map[parley.Source]bool // sources that the session has read so far
	agent  parley.AgentRef        // of the run
	grants map[parley.GrantID]grant
}

// A grant is a call that a person allowed for the rest of the session, by tool and
// arguments, with the sources that its card named. A grant of a rule has no call,
// because rules cover no call after untrusted content.
type grant struct {
	call  string
	named []parley.Source
}

func newProvenance() provenance {
	return provenance{read: map[parley.Source]bool{}, grants: map[parley.GrantID]grant{}}
}

// trustEvent checks sources.
func (c *check) trustEvent(e parley.Event) {
	p := &c.provenance
	switch b := e.Body.(type) {
	case parley.InputReceived:
		c.reads(b.Sources...)
	case parley.SessionForked:
		c.reads(b.Sources...)
	case parley.RunStarted:
		if p.agent = b.Agent; b.Agent.Remote {
			c.reads(parley.Source("remote:" + b.Agent.Name))
		}
	case parley.ChildReturned:
		if e.Run != 0 {
			c.reads(b.Sources...)
		}
	case parley.ChildSpawned:
		for s := range p.read {
			c.must(slices.Contains(b.Sources, s), "the sources of the sub-agent must include %s, which was read", s)
		}
	}
}

func (c *check) reads(sources ...parley.Source) {
	for _, s := range sources {
		if strings.HasPrefix(string(s), "flagged:") {
			c.foreign = c.foreign || s != "flagged:message"
			c.handed = c.handed || s == "flagged:message"
		} else if s != "" {
			c.provenance.read[s] = true
		}
	}
}

// distrusted returns the sources read so far that the agent of the run does not
// trust.
func (c *check) distrusted() (list []parley.Source) {
	p := &c.provenance
	trust := strings.Split(string(p.agent.Trust), ",")
	if p.agent.Trust == "" {
		trust = []string{"workspace"}
	}
	for s := range p.read {
		own := p.agent.Remote && s == parley.Source("remote:"+p.agent.Name)
		if !own && !slices.Contains(trust, string(s)) {
			list = append(list, s)
		}
	}
	return list
}

// granted reports whether a grant covers the call. The card of the grant must have
// named all these sources, and the grant must not have been revoked.
func (p provenance) granted(call string, sources []parley.Source) bool {
	for _, g := range p.grants {
		unnamed := func(s parley.Source) bool { return !slices.Contains(g.named, s) }
		if g.call == call && !slices.ContainsFunc(sources, unnamed) {
			return true
		}
	}
	return false
}

// sourceOf returns the source of the result of a call.
func sourceOf(b parley.ToolCallRequested) parley.Source {
	if server, _, ok := strings.Cut(b.Name, "__"); b.Source == "" && ok && !b.Remote {
		return parley.Source("mcp:" + server)
	}
	return b.Source
}
