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
		c.must(!k.ended && !k.started && !k.asked, "call %d must not have started, asked for an approval or "+
			"ended", b.Call)
		c.must(c.children[b.Child] == 0, "the sub-agent session %s exists already", b.Child)
		c.children[b.Child] = b.Call
		own := parley.Source("remote:" + b.Agent) // the child's own words are not new to it
		k.distrusted = slices.DeleteFunc(k.distrusted, func(s parley.Source) bool { return s == own })
	case parley.ChildReturned:
		c.must(c.children[b.Child] == b.Call && b.Call != 0, "call %d has no sub-agent session %s that has not "+
			"returned yet", b.Call, b.Child)
		if e.Run != 0 {
			k := c.call(b.Call)
			c.must(!k.ended, "call %d has ended already", b.Call)
			c.must(!k.asked || k.allowed, "call %d has asked for an approval, and was not allowed", b.Call)
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
		c.must(c.run != 0 && (c.turn == b.Turn || b.RerunOf != 0), "it belongs to turn %d, but the open turn is "+
			"%d (0: none)", b.Turn, c.turn)
		c.must(b.Remote == c.remote, "a call must be remote exactly if the agent of the run is; expected %t, found %t",
			c.remote, b.Remote)
		c.must(b.Remote || !b.Made, "the call is made for a remote agent, but it is not a remote call")
		k := &call{made: b.Made, key: b.Name + " " + b.Arguments, source: sourceOf(b), distrusted: c.distrusted(),
			class: b.Class, tainted: c.tainted || c.foreign || c.handed, client: b.Client}
		if b.RerunOf != 0 {
			old := c.call(b.RerunOf)
			c.must(old.lost && old.run, "call %d was not resolved with the decision to run it again", b.RerunOf)
			old.lost, old.run, k.allowed = false, false, true
		}
		c.calls[parley.CallID(e.Seq)] = k
	case parley.ToolCallBlocked:
		k := c.call(b.Call)
		c.must(!k.ended && !k.started, "call %d has started or ended already", b.Call)
		k.ended = true
	case parley.ToolCallStarted:
		k := c.call(b.Call)
		c.must(c.turn == 0 || c.remote, "turn %d must end first", c.turn)
		c.must(!k.ended, "call %d has ended already", b.Call)
		c.must(!k.client, "call %d must be carried out by the client, not by the server", b.Call)
		c.must(!k.asked || k.allowed, "call %d has asked for an approval, and was not allowed", b.Call)
		c.must(!k.tainted || k.allowed || k.class == parley.Pure || c.remote && !k.made && !k.asked,
			"call %d may have effects and follows flagged content, so a person must allow it first", b.Call)
		c.must(len(k.distrusted) == 0 || k.allowed || k.class == parley.Pure || c.remote && !k.made && !k.asked ||
			c.provenance.granted(k.key, k.distrusted),
			"call %d may have effects and follows content from %s, which the agent does not trust, so a person must "+
				"allow it first", b.Call, k.distrusted)
		c.must(b.Attempt == k.attempt+1, "expected attempt %d, found %d", k.attempt+1, b.Attempt)
		c.must(!k.started || k.class == parley.Pure || k.class == parley.Idempotent, "call %d must not "+
			"start again, because it may have had its effect already", b.Call)
		k.started, k.attempt, k.output = true, b.Attempt, 0
	case parley.ToolOutputAppended:
		k := c.call(b.Call)
		c.must(k.started && !k.ended, "call %d has not started, or has ended already", b.Call)
		c.must(b.Offset == k.output, "expected offset %d, found %d", k.output, b.Offset)
		k.output += len(b.Text)
	case parley.ToolCallFinished:
		k := c.call(b.Call)
		c.foreign = c.foreign || b.Finding != nil
		if b.Outcome != parley.CallDenied && b.Outcome != parley.CallCancelled {
			c.reads(k.source)
		}
		c.must(!k.ended, "call %d has ended already", b.Call)
		for card, id := range c.cards {
			c.must(id != b.Call, "card %d of call %d must be closed first", card, b.Call)
		}
		if b.Outcome == parley.CallUnknown {
			c.must(k.started && k.class != parley.Pure && k.class != parley.Idempotent, "the outcome of call %d "+
				"cannot be unknown: it did not start, or repeating it is harmless", b.Call)
		}
		k.ended, k.lost = true, b.Outcome == parley.CallUnknown
	case parley.ToolCallResolved:
		k := c.call(b.Call)
		c.must(k.lost && !k.run, "the outcome of call %d is known, or it was resolved already", b.Call)
		k.run = b.Resolution == parley.Rerun
		k.lost = b.Resolution != parley.MarkDone
	case parley.LateResultNoted:
		c.must(e.Run == 0, "a late result must be outside of runs; found run %d", e.Run)
		c.must(b.Run != c.run || c.call(b.Call).ended, "call %d has not ended, so its result is not late", b.Call)
	default:
		c.inCard(e)
	}
}

// inCard checks approvals and questions.
func (c *check) inCard(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.ApprovalRequested:
		c.call(b.Call).asked = true
		c.must(b.Digest != "" && b.Show != "", "an approval must show the call and have its digest")
		k := c.call(b.Call)
		k.named, k.offered = b.Sources, b.Similar != parley.SimilarRule{}
		c.must(!k.offered || len(b.Sources) == 0, "a card must not offer a rule after untrusted content")
		for _, s := range k.distrusted {
			named := slices.Contains(b.Sources, s) && strings.Contains(b.Why, string(s))
			c.must(k.class == parley.Pure || named, "the card and its reason must name %s, which the agent does not "+
				"trust", s)
		}
		c.cards[parley.CardID(e.Seq)] = b.Call
		c.approvals[parley.CardID(e.Seq)] = true
	case parley.ExplanationRequested:
		c.must(c.cards[b.Card] == b.Call && c.approvals[b.Card], "card %d of call %d is not an open approval",
			b.Card, b.Call)
		c.must(!c.explaining[b.Card], "an explanation of card %d was requested already", b.Card)
		c.explaining[b.Card] = true
	case parley.ApprovalExplained:
		c.must(c.cards[b.Card] == b.Call && c.explaining[b.Card], "no explanation of card %d was "+
			"requested", b.Card)
		c.must(!parley.IsBlank(b.Text), "the explanation is blank")
		delete(c.explaining, b.Card)
	case parley.ApprovalDecided:
		c.closeCard(b.Card, b.Call)
		k := c.call(b.Call)
		k.allowed = b.Decision == parley.AllowOnce || b.Decision == parley.AllowAlways
		c.must(b.Scope == "" || b.Scope == parley.ScopeSimilar && b.Decision == parley.AllowAlways && k.offered,
			"the decision has the scope %q, which the card did not offer", b.Scope)
		switch {
		case b.Scope != "":
			c.provenance.grants[parley.GrantID(e.Seq)] = grant{}
		case b.Decision == parley.AllowAlways:
			c.provenance.grants[parley.GrantID(e.Seq)] = grant{k.key, k.named}
		}
	case parley.GrantRevoked:
		_, known := c.provenance.grants[b.Grant]
		c.must(known && e.Run == 0, "grant %d must be in effect, and be revoked outside of runs; found run %d",
			b.Grant, e.Run)
		delete(c.provenance.grants, b.Grant)
	case parley.ToolServersChosen:
		c.must(e.Run == 0 && slices.IsSorted(b.Off), "tool servers must be chosen outside of runs, and be sorted; "+
			"found run %d and %q", e.Run, b.Off)
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
		c.fail("call %d was not requested in this run", id)
		k = &call{}
	}
	return k
}

func (c *check) closeCard(card parley.CardID, id parley.CallID) {
	c.must(c.cards[card] == id && id != 0, "call %d has no open card %d", id, card)
	delete(c.cards, card)
	delete(c.approvals, card)
	delete(c.explaining, card)
}
