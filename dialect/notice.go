package dialect

import (
	"fmt"
	"net/http"
	"strings"

	"parley"
)

// A Notices says whether a client is told in words what waits for a person: a
// client that knows only the types of its document shows no cards, and would fall
// silent until a person finds the card elsewhere.
type Notices struct {
	// Console is the address of the server as browsers know it; empty: unknown,
	// and the words name a path.
	Console string
	// Off: the client shows cards.
	Off bool
}

// ShowsCards reports whether a client says with its request that it shows cards.
func ShowsCards(r *http.Request) bool { return r.URL.Query().Get("cards") == "1" }

// Of is what a client is told of a card, and the page of the console where the
// card can be answered; session is the conversation, at the top of its tree.
func (n Notices) Of(c Card, session parley.SessionID) string {
	what, do := "", ""
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		what, do = "approval of "+b.Name+": "+line(b.Show), "Allow or deny it"
	case parley.QuestionAsked:
		what, do = "an answer", "Answer it"
		if len(b.Questions) > 0 {
			what += ": " + line(b.Questions[0].Question)
		}
		if more := len(b.Questions) - 1; more > 0 {
			what += fmt.Sprintf(" (and %d more)", more)
		}
	case parley.ToolCallFinished:
		what, do = "a decision: the outcome of "+b.Name+" is unknown", "Decide"
	}
	who := "Waiting"
	if c.Agent != "" {
		who = "The sub-agent " + line(c.Agent) + " is waiting"
	}
	return fmt.Sprintf("%s for %s\n%s at %s/chat/%s", who, what, do, n.Console, session)
}

// line is the first line of a text, as far as it fits on one.
func line(text string) string {
	const most = 200
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(first); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	if first = strings.TrimSuffix(first, ":"); rest != "" {
		first += " …"
	}
	return first
}
