package parley

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A GrantScope says which calls a decision for the rest of the session covers.
type GrantScope string

const (
	scopeExact   GrantScope = "exact"   // exactly the call on the card
	ScopeSimilar GrantScope = "similar" // the rule that the card offered
)

// A SimilarRule covers calls like the one on a card. The policy offers it, and
// determines for every later call which rule covers it.
type SimilarRule struct {
	Text   string `json:"text"`   // for a person to read
	Digest string `json:"digest"` // of the rule and its place
}

// A grant is the permission of a person for the rest of the session, for one call
// or a rule. Despite lists the sources that the card named as untrusted.
type grant struct {
	ID      GrantID
	Card    CardID
	Scope   GrantScope
	Digest  string   // of the call or of the rule
	Despite []Source `json:",omitempty"`
}

// covers reports whether a grant covers the call of a card while some sources are
// untrusted. A rule covers no call after untrusted content, because that content
// could choose the arguments. No grant covers a call after flagged content.
func (g grant) covers(card ApprovalRequested, untrusted []Source) bool {
	if g.Scope == ScopeSimilar {
		return g.Digest != "" && g.Digest == card.Similar.Digest && len(untrusted) == 0
	}
	return g.Digest == card.Digest && !slices.ContainsFunc(untrusted, func(u Source) bool {
		return u.flagged() || !slices.Contains(g.Despite, u)
	})
}

// granted reports whether a person allowed this call for the rest of the
// session, and knew of every source that is untrusted now.
func (s State) granted(card ApprovalRequested, untrusted []Source) bool {
	return card.Digest != "" &&
		slices.ContainsFunc(s.Always, func(g grant) bool { return g.covers(card, untrusted) })
}

// grant folds a decision that holds for the rest of the session. If there are too
// many grants, the oldest is dropped and its calls need approval again.
func (s State) grant(e Event, b ApprovalDecided) State {
	if s.Run == nil || e.Run != s.Run.ID || b.Decision != AllowAlways {
		return s
	}
	c := s.Run.call(b.Call)
	if c == nil {
		return s
	}
	g := grant{ID: GrantID(e.Seq), Card: b.Card, Scope: scopeExact, Digest: c.Digest, Despite: c.Despite}
	if b.Scope == ScopeSimilar {
		g = grant{ID: g.ID, Card: b.Card, Scope: b.Scope, Digest: c.Similar}
	}
	s.Always = append(slices.Clone(s.Always[max(0, len(s.Always)-maxGrants+1):]), g)
	return s
}

// checkScope refuses a rule that the card of a call did not offer.
func (do DecideApproval) checkScope(c *Call) error {
	switch {
	case do.Scope == "" || do.Scope == scopeExact:
	case do.Scope != ScopeSimilar:
		return Errorf(CodeInvalid, "A scope is exact or similar, not %.40q.", do.Scope)
	case do.Decision != AllowAlways:
		return Errorf(CodeInvalid, "Only the decision always has a scope.")
	case c.Similar == "":
		return Errorf(CodeInvalid, "No rule for similar calls was offered. Allow exactly this call, or deny it.")
	}
	return nil
}

// GrantRevoked: calls that the grant covered need approval again.
type GrantRevoked struct {
	Grant GrantID `json:"grant"`
}

func (b GrantRevoked) fold(s State, _ Event) State {
	s.Always = without(s.Always, func(g grant) bool { return g.ID == b.Grant })
	return s
}

// RevokeGrant revokes a grant.
type RevokeGrant struct{ Grant GrantID }

func (RevokeGrant) Rules() Rules { return Rules{Action: ActMessage, Halted: true} }

func (do RevokeGrant) decide(d *decision, _ Command) error {
	if !slices.ContainsFunc(d.s.Always, func(g grant) bool { return g.ID == do.Grant }) {
		return Errorf(CodeNotFound, "There is no such grant: it was revoked, or it never existed.")
	}
	d.emit(0, GrantRevoked{do.Grant})
	return nil
}

// A GrantInfo is an entry in a list of grants.
type GrantInfo struct {
	ID      string      `json:"id"`
	Scope   GrantScope  `json:"scope"`
	Tool    string      `json:"tool"`
	Text    string      `json:"text"` // the call as on its card, or the rule; shortened to MaxNote
	By      PrincipalID `json:"by"`
	At      time.Time   `json:"at"`
	Sources []Source    `json:"sources,omitempty"` // sources that were untrusted at the decision
}

// Grants lists the grants, oldest first. The function event reads one event of
// the log.
func (s State) Grants(event func(Seq) (Event, error)) ([]GrantInfo, error) {
	list := []GrantInfo{}
	for _, g := range s.Always {
		decided, err := event(Seq(g.ID))
		if err != nil {
			return nil, err
		}
		asked, err := event(Seq(g.Card))
		if err != nil {
			return nil, err
		}
		card, _ := asked.Body.(ApprovalRequested)
		text := card.Show
		if g.Scope == ScopeSimilar {
			text = card.Similar.Text
		}
		if len(text) > MaxNote { // the log holds all of a long call
			text = strings.ToValidUTF8(text[:MaxNote], "") + "…"
		}
		list = append(list, GrantInfo{strconv.FormatInt(int64(g.ID), 10), g.Scope, card.Name, text, decided.By,
			decided.At, g.Despite})
	}
	return list, nil
}
