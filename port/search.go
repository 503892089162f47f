package port

import (
	"time"

	"parley"
)

// Full-text search finds messages of people and finished answers of agents. Only the log contains the texts. Stores
// keep an index of their words, written in the transaction that appends the event.

// SearchText returns the text of an event for the search; empty: none. Sessions of sub-agents are not searched, because
// their results are part of the conversation above them.
func SearchText(e parley.Event) string {
	if e.Root != e.Session {
		return ""
	}
	switch b := e.Body.(type) {
	case parley.InputReceived:
		if !b.Synthetic && !b.Plan && b.Mission == 0 {
			return b.Content
		}
	case parley.OutputFinished:
		if b.Kind == parley.Text {
			return b.Text
		}
	}
	return ""
}

// A SearchQuery asks for passages. Text has words and, in double quotes, phrases; all of them must occur in one
// message. A word finds every word that begins with it. Case and diacritics do not count.
type SearchQuery struct {
	Text    string
	Owner   parley.PrincipalID // empty: sessions of all users
	Project Project            // only sessions of this project; zero: of every project
	Before  parley.Position    // only messages before this position; zero: from the newest
	Limit   int
}

// Found is a page of passages, newest first.
type Found struct {
	Passages []Passage
	Next     parley.Position // Before of the next page; zero: this is the last page
	Indexing bool            // earlier messages are still being indexed, and may be missing
}

// A Passage is the part of a message that a search has found.
type Passage struct {
	Session parley.SessionID   `json:"session"`
	Title   string             `json:"title"`
	Owner   parley.PrincipalID `json:"owner"`
	Seq     parley.Seq         `json:"seq"` // of the event that holds the message
	At      time.Time          `json:"at"`
	From    Speaker            `json:"from"`
	Text    string             `json:"text"`  // some words around the first match
	Marks   []Mark             `json:"marks"` // the matches in Text

	Position parley.Position `json:"-"`
}

// A Mark is where a match begins and ends, counted in characters (Unicode code points) of the passage.
type Mark struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// A Speaker is the side of the conversation that a message comes from.
type Speaker string

const (
	FromPerson Speaker = "person"
	FromAgent  Speaker = "agent"
)

// SpeakerOf returns the side that an event with a text comes from.
func SpeakerOf(e parley.Event) Speaker {
	if _, input := e.Body.(parley.InputReceived); input {
		return FromPerson
	}
	return FromAgent
}
