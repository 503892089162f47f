package demo

import (
	"slices"
	"strings"
)

// A stop of the tour shows one tool: a text and a call in one turn. The next
// turn begins with a reaction to the result.
type stop struct {
	tool      string
	words     string
	arguments any
	done      func(result string) string
	refused   string
}

var stops = []stop{
	{
		tool:      "list_files",
		words:     "First, a tool that only reads. It runs without asking anybody: I list the workspace.",
		arguments: map[string]int{"depth": 1},
		done: func(result string) string {
			return "That is the workspace:\n\n" + clip(result, 600)
		},
		refused: "The list did not come back, which is worth seeing too: a call always ends, and the model is told how.",
	},
	{
		tool: "write_file",
		words: "Next, a tool that changes something. Depending on the agent's approval mode a card now asks you, and it " +
			"shows exactly what would be written. Take your time: waiting costs nothing, even a restart does not disturb it.",
		arguments: map[string]string{
			"path":    "parley-tour.txt",
			"content": "Written on a tour of Parley. Delete this file whenever you like.\n",
		},
		done: func(string) string {
			return "Done: parley-tour.txt is there now."
		},
		refused: "It was not done, so nothing was written. A denial is a result like any other: I am told and go on.",
	},
	{
		tool:      "ask_user",
		words:     "I can ask you something, too.",
		arguments: question("How is the tour so far?", "Tour", "Clear", "Too fast"),
		done: func(result string) string {
			return "You answered: " + chosen(result) + ". The question has disappeared from every other client by now."
		},
		refused: "No answer is fine as well.",
	},
}

const farewell = `That was the tour. What to try next:

- Say ` + "`count slowly to 100`" + ` and cancel in the middle: not one more number arrives.
- Say it again and restart the server in the middle: the count goes on where it was.
- Open this session in a second client: both see the same, whichever of them speaks.`

// tour visits the stops whose tools the agent has. Each turn begins with the
// reaction to the stop before.
func tour(p place, _ []string) script {
	var steps []step
	var words []string
	if len(p.results) == 0 {
		steps = append(steps, thinking("A tour. I look at which tools I am offered and show each of them once."))
		words = append(words, "Welcome! I am Parley's demo model. What I say is scripted; everything around it "+
			"is real. "+
			"These words are appended to the session's log piece by piece, and shown to you from there.")
	} else {
		last := p.results[len(p.results)-1]
		if i := slices.IndexFunc(stops, func(s stop) bool { return s.tool == last.tool }); i >= 0 {
			words = append(words, stops[i].reaction(last.text))
		}
	}
	next := slices.IndexFunc(stops, func(s stop) bool { return p.tools[s.tool] && !p.called(s.tool) })
	if next < 0 {
		words = append(words, farewell)
		return play(append(steps, text(strings.Join(words, "\n\n")))...)
	}
	words = append(words, stops[next].words)
	return play(append(steps, text(strings.Join(words, "\n\n")), asking(stops[next].tool, stops[next].arguments))...)
}

func (s stop) reaction(result string) string {
	if refused(result) {
		return s.refused
	}
	return s.done(result)
}

func (p place) called(tool string) bool {
	return slices.ContainsFunc(p.results, func(r result) bool { return r.tool == tool })
}
