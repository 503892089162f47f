package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// frame is any message of the server.
type frame struct {
	Type      string     `json:"type"`
	RequestID string     `json:"requestId"`
	Content   string     `json:"content"`
	Error     string     `json:"error"`
	ID        string     `json:"id"`
	Tool      string     `json:"tool"`
	Message   string     `json:"message"`
	Command   string     `json:"command"`
	Why       string     `json:"why"`
	Questions []question `json:"questions"`
}

type question struct {
	Question string `json:"question"`
	Options  []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// A terminal shows frames, and asks about cards one at a time.
type terminal struct {
	out     io.Writer
	running string // the request that is being answered
	request string // the last one that was
	printed int    // bytes of its answer
	shown   int    // bytes of it received since the last chat.started

	cards   []frame    // that wait for the person, oldest first
	answers [][]string // to questions of the first one
}

func (t *terminal) prompt() { fmt.Fprint(t.out, "> ") }

func (t *terminal) card() *frame {
	if len(t.cards) == 0 {
		return nil
	}
	return &t.cards[0]
}

func (t *terminal) show(f frame) {
	switch f.Type {
	case "chat.started":
		if f.RequestID != t.request {
			t.request, t.printed = f.RequestID, 0
		}
		t.running, t.shown = f.RequestID, 0
	case "content":
		// A run is shown from its start to who comes back.
		if skip := t.printed - t.shown; skip < len(f.Content) {
			fmt.Fprint(t.out, f.Content[max(skip, 0):])
			t.printed = t.shown + len(f.Content)
		}
		t.shown += len(f.Content)
	case "chat.completed":
		t.end("")
	case "cancelled":
		t.end(" (stopped)")
	case "error":
		t.end(" (" + f.Error + ")")
	case "approval_request", "question", "tool_call_unknown":
		for _, c := range t.cards {
			if c.ID == f.ID {
				return // we came back to it
			}
		}
		if t.cards = append(t.cards, f); len(t.cards) == 1 {
			t.present()
		}
	case "approval_closed", "question_closed", "tool_call_resolved":
		t.close(f.ID)
	}
}

func (t *terminal) end(note string) {
	t.running = ""
	fmt.Fprintln(t.out, note)
}

// close takes a card away that was answered elsewhere, expired or cancelled.
func (t *terminal) close(id string) {
	for i, c := range t.cards {
		if c.ID != id {
			continue
		}
		t.cards = append(t.cards[:i:i], t.cards[i+1:]...)
		if i == 0 {
			fmt.Fprintln(t.out, "(closed)")
			t.next()
		}
		return
	}
}

// next presents the next card, if there is one.
func (t *terminal) next() {
	if t.answers = nil; len(t.cards) > 0 {
		t.present()
	}
}

// present asks what the first card asks.
func (t *terminal) present() {
	switch c := t.cards[0]; c.Type {
	case "approval_request":
		why := ""
		if c.Why != "" {
			why = ": " + c.Why
		}
		fmt.Fprintf(t.out, "\n[%s wants your approval%s]\n%s\nAllow? [y]es, [a]lways exactly this, [n]o, [s]top: ", c.Tool, why, c.Command)
	case "tool_call_unknown":
		fmt.Fprintf(t.out, "\n[%s: outcome unknown] %s\n[r]un it again, it is [d]one, [a]bandon the run: ", c.Tool, c.Message)
	case "question":
		q := c.Questions[len(t.answers)]
		fmt.Fprintf(t.out, "\n[question] %s\n", q.Question)
		for i, o := range q.Options {
			fmt.Fprintf(t.out, "  %d  %s  %s\n", i+1, o.Label, o.Description)
		}
		fmt.Fprint(t.out, "Your answer: ")
	}
}

var (
	decisions   = map[string]string{"y": "allow", "yes": "allow", "a": "always", "always": "always", "n": "deny", "no": "deny", "s": "stop", "stop": "stop"}
	resolutions = map[string]string{"r": "rerun", "run": "rerun", "d": "mark_done", "done": "mark_done", "a": "abandon", "abandon": "abandon"}
)

// answer is the message that a line amounts to as an answer to the first card;
// nil: it needs more.
func (t *terminal) answer(line string) map[string]any {
	c, word := t.cards[0], strings.ToLower(strings.TrimSpace(line))
	message := map[string]any{"id": c.ID}
	switch c.Type {
	case "approval_request":
		message["type"], message["decision"] = "approval_response", decisions[word]
		if decisions[word] == "" {
			fmt.Fprint(t.out, "Answer y, a, n or s: ")
			return nil
		}
	case "tool_call_unknown":
		message["type"], message["resolution"] = "tool_call_resolution", resolutions[word]
		if resolutions[word] == "" {
			fmt.Fprint(t.out, "Answer r, d or a: ")
			return nil
		}
	case "question":
		if word == "" {
			fmt.Fprint(t.out, "Your answer: ")
			return nil
		}
		t.answers = append(t.answers, []string{choice(c.Questions[len(t.answers)], line)})
		if len(t.answers) < len(c.Questions) {
			t.present()
			return nil
		}
		message["type"], message["answers"] = "question_response", t.answers
	}
	t.cards = t.cards[1:]
	t.next()
	return message
}

// choice takes the number of an option for its label.
func choice(q question, line string) string {
	line = strings.TrimSpace(line)
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(q.Options) {
		return q.Options[n-1].Label
	}
	return line
}
