package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/client"
)

type approvalsCommand struct {
	List    approvalsList    `cmd:"" default:"withargs" help:"List everything that waits for a person (the default): approvals, questions and calls of unknown outcome."`
	Show    approvalsShow    `cmd:"" help:"Print all of one card: the exact call or the questions."`
	Allow   approvalsAllow   `cmd:"" help:"Allow a call once, or for the rest of the session."`
	Deny    approvalsDeny    `cmd:"" help:"Deny a call; the agent goes on without it."`
	Answer  approvalsAnswer  `cmd:"" help:"Answer the questions of an agent."`
	Resolve approvalsResolve `cmd:"" help:"Decide about a call of unknown outcome."`
}

type approvalsList struct {
	listFlags
	Session string `placeholder:"ID" help:"List one session only, by its id or the beginning of it."`
}

func (*approvalsList) Help() string {
	return `Example:

  $ parley approvals
  $ parley approvals show 3f0c0a52-….12
  $ parley approvals allow 3f0c0a52-….12
  $ parley approvals deny 3f0c0a52-….12 --note "Use the test database."`
}

func (c *approvalsList) Run(p *program) error {
	return listing[client.Card]{
		fetch: func(to *connection) ([]client.Card, error) {
			id, err := to.maybeSession(c.Session)
			if err != nil {
				return nil, err
			}
			return cards(p, to.Client, client.CardQuery{Session: id})
		},
		title: []string{"ID", "KIND", "AGENT", "ASKED", "ABOUT"},
		row: func(card client.Card) []string {
			return []string{card.ID, string(card.Kind), card.Agent, ago(card.AskedAt, time.Now()),
				clip(aboutCard(card), 80)}
		},
		none: "Nothing waits for a person.",
	}.show(p, c.listFlags)
}

// withCard connects to the server of a command about an open card, and calls do with the connection and the card.
func (p *program) withCard(f serverFlags, id string, do func(to *connection, card client.Card) error) error {
	return p.with(f, func(to *connection) error {
		card, err := cardNamed(p, to.Client, id)
		if err != nil {
			return err
		}
		return do(to, card)
	})
}

// cards returns all open cards, oldest first.
func cards(p *program, c *client.Client, q client.CardQuery) ([]client.Card, error) {
	q.Limit = 200
	approvals, err1 := c.Approvals(p.ctx, q)
	questions, err2 := c.Questions(p.ctx, q)
	calls, err3 := c.LostCalls(p.ctx, q)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return nil, err
		}
	}
	list := slices.Concat(approvals, questions, calls)
	slices.SortStableFunc(list, func(a, b client.Card) int { return a.AskedAt.Compare(b.AskedAt) })
	return list, nil
}

// aboutCard describes a card on one line.
func aboutCard(card client.Card) string {
	if len(card.Questions) > 0 {
		return card.Questions[0].Question
	}
	return toolUse{card.Tool, card.Arguments}.String()
}

type approvalsShow struct {
	listFlags
	Card string `arg:"" help:"Id of the card, as parley approvals prints it."`
}

func (c *approvalsShow) Run(p *program) error {
	return p.withCard(c.serverFlags, c.Card, func(_ *connection, card client.Card) error {
		if c.JSON {
			return printJSON(p.stdout, card)
		}
		showCard(&terminal{out: p.stdout}, card)
		return nil
	})
}

func showCard(t *terminal, card client.Card) {
	t.say(fmt.Sprintf("%s of %s, session %s\n", card.Kind, card.Agent, card.Session))
	if card.Why != "" {
		t.say(card.Why + "\n")
	}
	for _, q := range card.Questions {
		t.say(q.Question + "\n")
		for _, o := range q.Options {
			t.say(strings.TrimRight("  "+o.Label+"  "+o.Description, " ") + "\n")
		}
	}
	if len(card.Questions) == 0 {
		t.say(strings.TrimRight(card.Show, "\n") + "\n")
	}
	if card.Similar != "" {
		t.say("Similar: " + card.Similar + "\n")
	}
}

// cardNamed finds an open card.
func cardNamed(p *program, c *client.Client, id string) (card client.Card, err error) {
	session, _, ok := parley.ParseRef(id)
	if !ok {
		return card, fmt.Errorf("%q is not the id of a card; parley approvals lists them", id)
	}
	list, err := cards(p, c, client.CardQuery{Session: session})
	if err != nil {
		return card, err
	}
	i := slices.IndexFunc(list, func(card client.Card) bool { return card.ID == id })
	if i < 0 {
		return card, fmt.Errorf("%s does not wait for a person; it was answered, or it is over", id)
	}
	return list[i], nil
}

type approvalsAllow struct {
	serverFlags
	Card    string `arg:"" help:"Id of the approval, as parley approvals prints it."`
	Always  bool   `xor:"scope" help:"Allow exactly this call for the rest of the session."`
	Similar bool   `xor:"scope" help:"Allow the rule that the card shows for the rest of the session."`
}

func (c *approvalsAllow) Run(p *program) error {
	a := client.Approval{Decision: parley.AllowOnce}
	if c.Always || c.Similar {
		a.Decision = parley.AllowAlways
	}
	if c.Similar {
		a.Scope = parley.ScopeSimilar
	}
	return p.decide(c.serverFlags, c.Card, a, "Allowed.")
}

type approvalsDeny struct {
	serverFlags
	Card string `arg:"" help:"Id of the approval, as parley approvals prints it."`
	Note string `placeholder:"TEXT" help:"Reason, which the agent reads."`
	Stop bool   `help:"End the run, too."`
}

func (c *approvalsDeny) Run(p *program) error {
	a := client.Approval{Decision: parley.Deny, Note: c.Note}
	if c.Stop {
		a.Decision = parley.DenyAndStop
	}
	return p.decide(c.serverFlags, c.Card, a, "Denied.")
}

// decide decides the call that the card shows. The server refuses the decision if the call changed meanwhile.
func (p *program) decide(f serverFlags, id string, a client.Approval, done string) error {
	return p.withCard(f, id, func(to *connection, card client.Card) error {
		if card.Kind != parley.CardApproval {
			return fmt.Errorf("%s is a %s, not an approval; see parley approvals --help", id, card.Kind)
		}
		a.Digest = card.Digest
		if _, err := to.Decide(p.ctx, id, a); err != nil {
			return err
		}
		_, err := fmt.Fprintln(p.stdout, done)
		return err
	})
}

type approvalsAnswer struct {
	serverFlags
	Card    string   `arg:"" help:"Id of the question, as parley approvals prints it."`
	Answers []string `arg:"" help:"One answer for each question: a text, or the label of an option."`
}

func (c *approvalsAnswer) Run(p *program) error {
	return p.withCard(c.serverFlags, c.Card, func(to *connection, card client.Card) error {
		if len(card.Questions) != len(c.Answers) {
			return fmt.Errorf("the card has %d questions, and there are %d answers; parley approvals show %s prints "+
				"them", len(card.Questions), len(c.Answers), c.Card)
		}
		var answers [][]string
		for i, q := range card.Questions {
			answers = append(answers, choices(q, c.Answers[i]))
		}
		if _, err := to.Answer(p.ctx, c.Card, answers); err != nil {
			return err
		}
		_, err := fmt.Fprintln(p.stdout, "Answered.")
		return err
	})
}

type approvalsResolve struct {
	serverFlags
	Card       string            `arg:"" help:"Id of the call, as parley approvals prints it."`
	Resolution parley.Resolution `arg:"" help:"Decision: rerun, mark_done or abandon."`
	Note       string            `placeholder:"TEXT" help:"Note, which the agent reads."`
}

func (c *approvalsResolve) Run(p *program) error {
	if !slices.Contains([]parley.Resolution{parley.Rerun, parley.MarkDone, parley.Abandon}, c.Resolution) {
		return errors.New("the decision must be rerun, mark_done or abandon")
	}
	return p.with(c.serverFlags, func(to *connection) error {
		if _, err := to.Resolve(p.ctx, c.Card, c.Resolution, c.Note); err != nil {
			return err
		}
		_, err := fmt.Fprintln(p.stdout, "Resolved.")
		return err
	})
}
