package dialect

import (
	"fmt"
	"net/http"
	"strings"

	"parley"
)

// Notices writes notices in words about cards that wait. A client that knows only the types of its document shows no
// cards. Without a notice, the conversation would seem to hang until a person finds the card elsewhere.
type Notices struct {
	// Console is the address of the server as browsers know it. If it is empty,
	// notices name only a path.
	Console string
	// Off is set for clients that show cards.
	Off bool
}

// ShowsCards reports whether the client's request says that it shows cards.
func ShowsCards(r *http.Request) bool { return r.URL.Query().Get("cards") == "1" }

// Text returns the notice about a card. It names the page of the console where
// the card can be answered; session is the conversation at the top of the tree.
func (n Notices) Text(c Card, session parley.SessionID) string {
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

// line returns the first line of a text, shortened to 200 characters.
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
