package checker

import (
	"slices"
	"strings"

	"parley"
)

type call struct {
	key                       string // tool and arguments
	source                    parley.Source
	named, distrusted         []parley.Source // sources that its card names; sources that the agent does not trust
	class                     parley.ToolClass
	asked, allowed, tainted   bool
	client                    bool // the client carries it out
	offered                   bool // its card offers a rule for similar calls
	made                      bool // the server makes it for a remote agent
	started, ended, lost, run bool
	attempt, output           int
}

// inChild checks sub-agents.
func (c *check) inChild(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.ChildSpawned:
		k := c.call(b.Call)
		c.must(!k.ended && !k.started && !k.asked, "call %d has ended, started or waits", b.Call)
		c.must(c.children[b.Child] == 0, "child %s is there already", b.Child)
		c.children[b.Child] = b.Call
		own := parley.Source("remote:" + b.Agent) // the child's own words are not new to it
		k.distrusted = slices.DeleteFunc(k.distrusted, func(s parley.Source) bool { return s == own })
	case parley.ChildReturned:
		c.must(c.children[b.Child] == b.Call && b.Call != 0, "child %s is not out for call %d", b.Child, b.Call)
		if e.Run != 0 {
			k := c.call(b.Call)
			c.must(!k.ended, "call %d has ended", b.Call)
			c.must(!k.asked || k.allowed, "call %d was not allowed", b.Call)
		}
		delete(c.children, b.Child)
	default:
		c.inCall(e)
	}
}

// inCall checks tool calls.
func (c *check) inCall(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.ToolCallRequested:
		c.must(c.run != 0 && (c.turn == b.Turn || b.RerunOf != 0), "turn %d is open, not %d", c.turn, b.Turn)
		c.must(b.Remote == c.remote, "a remote agent makes its calls itself, and no other agent does")
		c.must(b.Remote || !b.Made, "the server makes a call for a remote agent that is none of its calls")
		k := &call{made: b.Made, key: b.Name + " " + b.Arguments, source: sourceOf(b), distrusted: c.distrusted(),
			class: b.Class, tainted: c.tainted || c.foreign || c.handed, client: b.Client}
		if b.RerunOf != 0 {
			old := c.call(b.RerunOf)
			c.must(old.lost && old.run, "call %d was not to be run again", b.RerunOf)
			old.lost, old.run, k.allowed = false, false, true
		}
		c.calls[parley.CallID(e.Seq)] = k
	case parley.ToolCallBlocked:
		k := c.call(b.Call)
		c.must(!k.ended && !k.started, "call %d has ended or started", b.Call)
		k.ended = true
	case parley.ToolCallStarted:
		k := c.call(b.Call)
		c.must(c.turn == 0 || c.remote, "turn %d is open", c.turn)
		c.must(!k.ended, "call %d has ended", b.Call)
		c.must(!k.client, "call %d is the client's to carry out", b.Call)
		c.must(!k.asked || k.allowed, "call %d was not allowed", b.Call)
		c.must(!k.tainted || k.allowed || k.class == parley.Pure || c.remote && !k.made && !k.asked,
			"call %d has effects, follows on what was flagged, and nobody was asked", b.Call)
		c.must(len(k.distrusted) == 0 || k.allowed || k.class == parley.Pure || c.remote && !k.made && !k.asked ||
			c.provenance.granted(k.key, k.distrusted),
			"call %d has effects, follows on content from %s, and nobody was asked", b.Call, k.distrusted)
		c.must(b.Attempt == k.attempt+1, "attempt %d after %d", b.Attempt, k.attempt)
		c.must(!k.started || k.class == parley.Pure || k.class == parley.Idempotent, "call %d may have had its effect "+
			"already", b.Call)
		k.started, k.attempt, k.output = true, b.Attempt, 0
	case parley.ToolOutputAppended:
		k := c.call(b.Call)
		c.must(k.started && !k.ended, "call %d does not run", b.Call)
		c.must(b.Offset == k.output, "offset %d after %d bytes", b.Offset, k.output)
		k.output += len(b.Text)
	case parley.ToolCallFinished:
		k := c.call(b.Call)
		c.foreign = c.foreign || b.Finding != nil
		if b.Outcome != parley.CallDenied && b.Outcome != parley.CallCancelled {
			c.reads(k.source)
		}
		c.must(!k.ended, "call %d has ended", b.Call)
		for card, id := range c.cards {
			c.must(id != b.Call, "card %d of it is open", card)
		}
		if b.Outcome == parley.CallUnknown {
			c.must(k.started && k.class != parley.Pure && k.class != parley.Idempotent, "call %d is not unknown",
				b.Call)
		}
		k.ended, k.lost = true, b.Outcome == parley.CallUnknown
	case parley.ToolCallResolved:
		k := c.call(b.Call)
		c.must(k.lost && !k.run, "call %d needs no resolution", b.Call)
		k.run = b.Resolution == parley.Rerun
		k.lost = b.Resolution != parley.MarkDone
	case parley.LateResultNoted:
		c.must(e.Run == 0, "late evidence inside run %d", e.Run)
		c.must(b.Run != c.run || c.call(b.Call).ended, "call %d is open", b.Call)
	default:
		c.inCard(e)
	}
}

// inCard checks approvals and questions.
func (c *check) inCard(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.ApprovalRequested:
		c.call(b.Call).asked = true
		c.must(b.Digest != "" && b.Show != "", "shows nothing")
		k := c.call(b.Call)
		k.named, k.offered = b.Sources, b.Similar != parley.SimilarRule{}
		c.must(!k.offered || len(b.Sources) == 0, "offers a rule after untrusted content")
		for _, s := range k.distrusted {
			named := slices.Contains(b.Sources, s) && strings.Contains(b.Why, string(s))
			c.must(k.class == parley.Pure || named, "does not name %s", s)
		}
		c.cards[parley.CardID(e.Seq)] = b.Call
		c.approvals[parley.CardID(e.Seq)] = true
	case parley.ExplanationRequested:
		c.must(c.cards[b.Card] == b.Call && c.approvals[b.Card], "card %d is no approval that is open", b.Card)
		c.must(!c.explaining[b.Card], "card %d is being explained already", b.Card)
		c.explaining[b.Card] = true
	case parley.ApprovalExplained:
		c.must(c.cards[b.Card] == b.Call && c.explaining[b.Card], "nobody asked about card %d", b.Card)
		c.must(!parley.IsBlank(b.Text), "says nothing")
		delete(c.explaining, b.Card)
	case parley.ApprovalDecided:
		c.closeCard(b.Card, b.Call)
		k := c.call(b.Call)
		k.allowed = b.Decision == parley.AllowOnce || b.Decision == parley.AllowAlways
		c.must(b.Scope == "" || b.Scope == parley.ScopeSimilar && b.Decision == parley.AllowAlways && k.offered,
			"a rule was allowed that was not offered")
		switch {
		case b.Scope != "":
			c.provenance.grants[parley.GrantID(e.Seq)] = grant{}
		case b.Decision == parley.AllowAlways:
			c.provenance.grants[parley.GrantID(e.Seq)] = grant{k.key, k.named}
		}
	case parley.GrantRevoked:
		_, known := c.provenance.grants[b.Grant]
		c.must(known && e.Run == 0, "there is no grant %d, or a run revoked it", b.Grant)
		delete(c.provenance.grants, b.Grant)
	case parley.ToolServersChosen:
		c.must(e.Run == 0 && slices.IsSorted(b.Off), "a run chose tool servers, or they are in no order: %q", b.Off)
	case parley.QuestionAsked:
		c.call(b.Call).asked = true
		c.cards[parley.CardID(e.Seq)] = b.Call
	case parley.QuestionAnswered:
		c.closeCard(b.Card, b.Call)
	}
}

func (c *check) call(id parley.CallID) *call {
	k := c.calls[id]
	if k == nil {
		c.fail("call %d is not of this run", id)
		k = &call{}
	}
	return k
}

func (c *check) closeCard(card parley.CardID, id parley.CallID) {
	c.must(c.cards[card] == id && id != 0, "card %d is not open", card)
	delete(c.cards, card)
	delete(c.approvals, card)
	delete(c.explaining, card)
}
