package demo

import (
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley"
	"parley/port"
)

// A script is the rest of a turn.
//
// Thinking comes before all text, and a call comes last. An interrupted turn is
// known only by its text, so a thought between two texts would be ambiguous: it
// may have been sent or not.
type script struct {
	steps []step
	slow  bool
}

type step interface{ step() }

type (
	text     string
	thinking string
	call     parley.MessageCall
	failure  string // an error message for users
)

func (text) step()     {}
func (thinking) step() {}
func (call) step()     {}
func (failure) step()  {}

func play(steps ...step) script { return script{steps: steps} }

// scriptFor returns the script for a request. It is pure.
func scriptFor(req port.ModelRequest) script {
	at := placeIn(req)
	if strings.Contains(req.Instructions, `{"injection":`) {
		return judge(at.input)
	}
	if strings.HasPrefix(req.Instructions, "You make records of conversations") {
		return summary(at.input)
	}
	if strings.HasPrefix(req.Instructions, "You explain a tool call") {
		return explain(at.input)
	}
	if strings.HasPrefix(req.Instructions, "You judge the answer of an assistant") {
		return grade(at.input)
	}
	s := answer(at)
	for i, st := range s.steps {
		if c, ok := st.(call); ok {
			c.Provider = fmt.Sprintf("demo-%d", at.calls+1)
			s.steps[i] = c
		}
	}
	if at.begun {
		return s.after(at.said)
	}
	return s
}

// summary is the script for a summary of a conversation. It lists the inputs.
func summary(record string) script {
	var asked []string
	for part := range strings.SplitSeq(record, "<user>\n") {
		line, _, _ := strings.Cut(strings.TrimSpace(part), "\n")
		if asked = append(asked, "- "+clip(line, 80)); len(asked) > 20 {
			break
		}
	}
	return script{
		steps: []step{text("Tasks: people asked for these things, and all of it was answered.\n" +
			strings.Join(asked[1:], "\n"))}}
}

// judge is the script for the prompt-injection classifier. It knows one word.
func judge(message string) script {
	verdict := `{"injection": false, "confidence": 1, "reason": "the demo sees nothing in it"}`
	if strings.Contains(strings.ToLower(message), "jailbreak") {
		verdict = `{"injection": true, "confidence": 0.9, "reason": "says jailbreak"}`
	}
	return script{steps: []step{text(verdict)}}
}

var (
	gradedPart = regexp.MustCompile(`(?s)<(criterion|answer) (\S+)>\n(.*?)\n</(?:criterion|answer) \S+>`)
	quotedText = regexp.MustCompile(`"([^"]+)"`)
)

// grade is the script for grading an answer. It looks for the texts that the criterion has in quotes.
func grade(message string) script {
	parts := map[string]string{}
	for _, m := range gradedPart.FindAllStringSubmatch(message, -1) {
		parts[m[1]] = m[3]
	}
	for _, q := range quotedText.FindAllStringSubmatch(parts["criterion"], -1) {
		if !strings.Contains(parts["answer"], q[1]) {
			return play(text(fmt.Sprintf("The demo misses %q in the answer.\nVERDICT: FAIL", q[1])))
		}
	}
	return play(text("The answer has all texts that the criterion quotes; the demo sees no more than " +
		"that.\nVERDICT: PASS"))
}

// explain is the script that explains a call to the person who must approve it.
func explain(message string) script {
	_, rest, _ := strings.Cut(message, "Tool: ")
	tool, rest, _ := strings.Cut(rest, "\nArguments: ")
	arguments, _, _ := strings.Cut(rest, "\n\nThe person is shown:\n")
	does := fmt.Sprintf("It would call `%s` with %s.", tool, clip(arguments, 500))
	var file struct{ Path, Content string }
	if tool == "write_file" && json.Unmarshal([]byte(arguments), &file) == nil && file.Path != "" {
		does = fmt.Sprintf("It would write %d bytes to %s in the workspace. If there is a file of that name, what it "+
			"holds now would be gone.",
			len(file.Content), clip(file.Path, 200))
	}
	return play(text(does + " I am only a demo model and see no more in it than that: read for yourself what you " +
		"are shown."))
}

// A place is the state of a session at a request.
type place struct {
	input   string   // the last input
	earlier []string // inputs before it
	results []result // results of calls since the last input
	said    string   // text of interrupted turns since the last result
	begun   bool     // there were interrupted turns, perhaps without text
	calls   int      // number of calls in the whole session
	tools   map[string]bool

	instructions string
	plan         []string // titles of the session's plan
	planning     bool     // plan mode
}

type result struct{ tool, text string }

func placeIn(req port.ModelRequest) place {
	p := place{tools: map[string]bool{}, instructions: req.Instructions, plan: planIn(req.Instructions),
		planning: strings.Contains(req.Instructions, "You are planning.")}
	for _, t := range req.Tools {
		p.tools[t.Name] = true
	}
	names := map[parley.CallID]string{}
	inputs := 0
	for _, m := range req.Messages {
		switch m.Role {
		case parley.RoleUser:
			if inputs++; inputs > 1 {
				p.earlier = append(p.earlier, p.input)
			}
			p.input, p.results, p.said, p.begun = m.Text, nil, "", false
		case parley.RoleAssistant:
			p.said, p.begun = p.said+m.Text, true
			p.calls += len(m.Calls)
			for _, c := range m.Calls {
				names[c.ID] = c.Name
			}
		case parley.RoleTool:
			p.results = append(p.results, result{names[m.Call], m.Text})
			p.said, p.begun = "", false
		}
	}
	return p
}

// after returns the rest of a script after the text said. If the script does
// not begin with that text, it has changed (an agent's tools may change across
// a restart), and after returns the whole script.
func (s script) after(said string) script {
	rest := script{slow: s.slow}
	for _, st := range s.steps {
		switch st := st.(type) {
		case thinking:
		case text:
			n := min(len(st), len(said))
			if string(st[:n]) != said[:n] {
				return s
			}
			said = said[n:]
			if n < len(st) {
				rest.steps = append(rest.steps, st[n:])
			}
		default:
			rest.steps = append(rest.steps, st)
		}
	}
	if said != "" {
		return s
	}
	return rest
}

// pieces yields a script in chunks. It ends after a failure.
func (s script) pieces() iter.Seq2[port.ModelChunk, error] {
	return func(yield func(port.ModelChunk, error) bool) {
		for _, st := range s.steps {
			switch st := st.(type) {
			case text:
				for p := range split(string(st)) {
					if !yield(port.ModelChunk{Text: p}, nil) {
						return
					}
				}
			case thinking:
				for p := range split(string(st)) {
					if !yield(port.ModelChunk{Thinking: p}, nil) {
						return
					}
				}
			case call:
				if !yield(port.ModelChunk{Call: (*parley.MessageCall)(&st)}, nil) {
					return
				}
			case failure:
				yield(port.ModelChunk{}, parley.Errorf(parley.CodeModel, "%s", string(st)))
				return
			}
		}
	}
}

const longestPiece = 8 // characters

// split cuts a text before each word, and cuts long words. It never cuts a
// character, so that each chunk is valid UTF-8.
func split(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, chars, space := 0, 0, false
		for i, r := range s {
			wordBegins := space && !unicode.IsSpace(r)
			if wordBegins || chars == longestPiece {
				if !yield(s[start:i]) {
					return
				}
				start, chars = i, 0
			}
			chars++
			space = unicode.IsSpace(r)
		}
		if start < len(s) {
			yield(s[start:])
		}
	}
}

// clip shortens a quoted text.
func clip(s string, chars int) string {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) <= chars {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:chars])) + "…"
}
