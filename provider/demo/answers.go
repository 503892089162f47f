package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"parley"
)

// An act is a request that the demo model understands.
type act struct {
	say, does string // a line of the help text
	when      *regexp.Regexp
	script    func(p place, words []string) script
}

// acts are tried in this order.
var acts = []act{
	{"hello", "greets you",
		plain(`(?:hello|hi|hiya|hey|howdy|greetings|good (?:morning|afternoon|evening|day))(?:[\s,]+\pL+){0,3}`),
		greet},
	{"/tour", "shows what this server can do", plain(`(?:/tour|(?:give me |take |start )?(?:a |the )?tour)`), tour},
	{"count to 100", "counts; `count slowly to 100` leaves time to cancel", plain(`count(?:\s+(slowly))?\s+to\s+(\d+)`),
		count},
	{"think about X", "thinks first, then answers", plain(`think\s+about\s+(.*[^\s.!?])`), think},
	{"say X", "gives X back; so does `repeat X`", regexp.MustCompile(`(?is)^\s*(?:say|repeat)\s(.*\S.*)$`), repeat},
	{"write X to FILE", "calls write_file", plain(`write\s(.+)\sto\s+(\S*[^\s.!?])`), write},
	{"read FILE", "calls read_file", plain(`read\s+(?:file\s+)?(\S*[^\s.!?])`), read},
	{"list files", "calls list_files", plain(`list\s+(?:the\s+)?files`), list},
	{"delegate X to AGENT", "calls delegate", plain(`delegate\s(.+)\sto\s+(\S*[^\s.!?])`), delegate},
	{"run X", "calls shell with X as a script", plain(`run\s+(.*\S)`), runs},
	{"call SERVER__TOOL {…}", "calls that tool of an MCP server, with those arguments",
		plain(`call\s+([A-Za-z0-9-]+__[A-Za-z0-9_-]+)(?:\s+(\{.*\}))?`), callTool},
	{"remind me in 10 seconds to X", "calls schedule_follow_up, and comes back to you",
		plain(`remind\s+me\s+in\s+(\d+)\s+(second|minute|hour|day)s?\s+(?:to|of|about)\s+(.*[^\s.!?])`), remind},
	{"forget your follow-ups", "calls cancel_follow_ups",
		plain(`forget\s+(?:your|all|my)\s+(?:follow-?ups?|reminders?)`), forget},
	{"ask me", "calls ask_user", plain(`ask\s+me(?:\s+something|\s+a\s+question)?`), ask},
	{"plan X and delegate to AGENT", "calls update_plan, and delegate for the first step",
		plain(`plan\s+(.*\S)\s+and\s+delegate\s+to\s+(\S*[^\s.!?])`), planWithHelp},
	{"plan X", "calls update_plan; in plan mode it waits for your approval, and is carried out then",
		plain(`plan\s+(.*[^\s.!?])`), plan},
	{"remember that X", "takes note; later ask `what do you remember`", plain(`remember\s+(?:that\s+)?(.*[^\s.!?])`),
		remember},
	{"what did I say", "lists what you said before", plain(`what\s+(?:did\s+i\s+say|do\s+you\s+remember)(?:\s+\pL+)?`),
		recall},
	{"what do you know about me", "repeats the context that you gave the agent",
		plain(`what\s+do\s+you\s+know(?:\s+about\s+me)?`), known},
	{"leak", "says what its instructions forbid: the session is halted", plain(`leak`), leak},
	{"lorem 50", "fills space with that many words", plain(`lorem\s+(\d+)`), lorem},
	{"fail", "fails at once; `fail midway` after a few words", plain(`fail(?:\s+(midway))?`), failing},
}

var wantsHelp = plain(`(?:/?help(?:\s+me)?|what\s+can\s+you\s+do|\?)`)

// idlePrompt matches the input of an agent that is idle during a mission.
var idlePrompt = regexp.MustCompile(`(?s)^\[Mission\] .*\n\n\[Your standing instruction\] (.*)$`)

// plain matches words as people type them: in any case, with an optional
// "please" before them and punctuation after them.
func plain(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?is)^\s*(?:please\s+)?` + words + `[\s.!?]*$`)
}

// answer returns the whole script of a turn, from its beginning.
func answer(p place) script {
	if parley.IsBlank(p.input) {
		return greet(p, nil)
	}
	if wantsHelp.MatchString(p.input) {
		return help()
	}
	if told := idlePrompt.FindStringSubmatch(p.input); told != nil {
		p.input = told[1] // follow the standing instruction
		return answer(p)
	}
	if p.input == parley.PlanIsApproved {
		return approved(p)
	}
	for _, a := range acts {
		if words := a.when.FindStringSubmatch(p.input); words != nil {
			return a.script(p, words)
		}
	}
	if p.planning { // in plan mode, every other input gets a plan
		return plan(p, []string{"", p.input})
	}
	return play(text(fmt.Sprintf("You said: “%s”. I am only a demo model and have nothing cleverer to say about that. "+
		"Type `help` for what I understand.", clip(p.input, 200))))
}

func greet(place, []string) script {
	return play(text("Hello! I am Parley's demo model: scripted, the same every time, and not clever. " +
		"I need no key and no network; with a vendor's key in the environment a real model answers instead. " +
		"Try `/tour` to see what this server can do, or `help` for what I understand."))
}

func help() script {
	var b strings.Builder
	b.WriteString("I am a demo model. This is what I understand:\n\n")
	for _, a := range acts {
		fmt.Fprintf(&b, "- `%s` %s\n", a.say, a.does)
	}
	b.WriteString("\nAnything else I only repeat.")
	return play(text(b.String()))
}

const most = 10000 // maximum number of numbers or words in one answer

// upTo parses a number; false: it is too large or not positive.
func upTo(digits string) (int, bool) {
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 1 && n <= most
}

func count(_ place, words []string) script {
	n, ok := upTo(words[2])
	if !ok {
		return play(text(fmt.Sprintf("I count to anything from 1 to %d.", most)))
	}
	var b strings.Builder
	for i := 1; i < n; i++ {
		b.WriteString(strconv.Itoa(i))
		b.WriteByte(' ')
	}
	b.WriteString(strconv.Itoa(n))
	return script{steps: []step{text(b.String())}, slow: words[1] != ""}
}

func lorem(_ place, words []string) script {
	n, ok := upTo(words[1])
	if !ok {
		return play(text(fmt.Sprintf("I write anything from 1 to %d words.", most)))
	}
	filler := strings.Fields(
		"lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt " +
			"ut labore et dolore magna aliqua")
	said := make([]string, n)
	for i := range said {
		said[i] = filler[i%len(filler)]
	}
	return play(text(strings.Join(said, " ")))
}

func think(_ place, words []string) script {
	about := clip(words[1], 200)
	return play(
		thinking(fmt.Sprintf("The question is what to say about %s. I have a script, not an opinion. I shall say so.",
			about)),
		text(fmt.Sprintf("I thought about %s, as far as a script can. A real model would have more to say; "+
			"how thinking arrives before an answer is what you can see here.", about)))
}

func repeat(_ place, words []string) script { return play(text(words[1])) }

func remember(_ place, words []string) script {
	return play(text(fmt.Sprintf("Noted: %s. Nothing is stored in me; it stays in the session's log. "+
		"Ask `what do you remember` whenever you like, also after a restart.", clip(words[1], 200))))
}

const recalled = 50 // inputs at most

func recall(p place, _ []string) script {
	if len(p.earlier) == 0 {
		return play(text("This is the first thing you say in this session."))
	}
	var b strings.Builder
	b.WriteString("In this session you said:\n")
	first := max(0, len(p.earlier)-recalled)
	if first > 0 {
		fmt.Fprintf(&b, "\n(%d older ones)", first)
	}
	for i, input := range p.earlier[first:] {
		line := strings.Join(strings.Fields(input), " ")
		fmt.Fprintf(&b, "\n%d. %s", first+i+1, clip(line, 200))
	}
	return play(text(b.String()))
}

func failing(_ place, words []string) script {
	const message = "The demo model failed, as it was asked to."
	if words[1] == "" {
		return play(failure(message))
	}
	return play(text("This answer will break off in the middle of the "), failure(message))
}

func list(p place, _ []string) script {
	return using(p, "list_files", struct{}{}, "I look at the files of the workspace.", func(result string) string {
		return "The workspace holds:\n\n" + clip(result, 2000)
	})
}

func read(p place, words []string) script {
	file := words[1]
	return using(p, "read_file", map[string]string{"path": file}, "I read "+file+".", func(result string) string {
		return file + " says:\n\n" + clip(result, 2000)
	})
}

func write(p place, words []string) script {
	args := map[string]string{"path": words[2], "content": words[1]}
	return using(p, "write_file", args, "I write that to "+words[2]+".", func(result string) string {
		return "It is written. The tool says: " + clip(result, 300)
	})
}

func delegate(p place, words []string) script {
	args := map[string]string{"agent_id": words[2], "task": words[1]}
	return using(p, "delegate", args, "I leave that to "+words[2]+".", func(result string) string {
		return words[2] + " says: " + clip(result, 2000)
	})
}

func runs(p place, words []string) script {
	args := map[string][]string{"command": {"bash", "-lc", words[1]}}
	return using(p, "shell", args, "I run that.", func(result string) string {
		return "It ran:\n\n" + clip(result, 2000)
	})
}

func callTool(p place, words []string) script {
	arguments := "{}"
	if words[2] != "" {
		arguments = words[2]
	}
	if !json.Valid([]byte(arguments)) {
		return play(text("What stands behind the name of the tool is not JSON."))
	}
	return using(p, words[1], json.RawMessage(arguments), "I call "+words[1]+".", func(result string) string {
		return "It answered:\n\n" + clip(result, 2000)
	})
}

func remind(p place, words []string) script {
	unit := map[string]int64{"second": 1, "minute": 60, "hour": 60 * 60, "day": 24 * 60 * 60}[strings.ToLower(words[2])]
	n, err := strconv.ParseInt(words[1], 10, 32)
	if err != nil {
		return play(text("That is longer than I can count."))
	}
	if !p.tools["schedule_follow_up"] && len(p.results) == 0 {
		return play(text("I would come back to you by myself, but follow-ups are off for this agent. " +
			"Where its file does not forbid them, a server that is started with `AUTONOMY_ENABLED=true` has them."))
	}
	args := map[string]any{"delay_seconds": n * unit, "reason": "You wanted to be reminded.",
		"message": "say Reminder: " + words[3]}
	return using(p, "schedule_follow_up", args, "I note that.", func(result string) string {
		return "I will remind you. " + clip(result, 300)
	})
}

func forget(p place, _ []string) script {
	return using(p, "cancel_follow_ups", struct{}{}, "I forget them.", func(result string) string { return result })
}

func ask(p place, _ []string) script {
	q := question("Tea or coffee?", "Drink", "Tea", "Coffee")
	return using(p, "ask_user", q, "Then here is a question.", func(result string) string {
		return "Your answer: " + chosen(result) + ". An excellent choice, as every choice would have been."
	})
}

// using returns the script of an answer with one call: the turn with the call,
// or the turn after its result.
func using(p place, tool string, arguments any, before string, after func(result string) string) script {
	if len(p.results) > 0 {
		last := p.results[len(p.results)-1].text
		if refused(last) {
			return play(text("That came to nothing. I was told: " + clip(last, 300)))
		}
		return play(text(after(last)))
	}
	if !p.tools[tool] {
		return play(text(fmt.Sprintf("For that I would call `%s`, but this agent does not offer it to me.", tool)))
	}
	return play(text(before), asking(tool, arguments))
}

func asking(tool string, arguments any) call {
	raw, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // cannot fail for strings, bools and slices of them, or valid JSON
	}
	return call{Name: tool, Arguments: string(raw)}
}

func question(words, header string, labels ...string) any {
	type option struct {
		Label string `json:"label"`
	}
	type question struct {
		Question    string   `json:"question"`
		Header      string   `json:"header"`
		Options     []option `json:"options"`
		MultiSelect bool     `json:"multi_select"`
	}
	q := question{Question: words, Header: header}
	for _, l := range labels {
		q.Options = append(q.Options, option{l})
	}
	return map[string][]question{"questions": {q}}
}

// refused reports whether a result says that the call was not executed, in the
// words that the engine uses.
func refused(result string) bool {
	for _, beginning := range []string{"Blocked: ", "Failed: ", "Cancelled", "A person did not allow this",
		"Nobody answered"} {
		if strings.HasPrefix(result, beginning) {
			return true
		}
	}
	return false
}

// chosen returns a person's answer to the first question.
func chosen(result string) string {
	var r struct {
		Answers [][]string `json:"answers"`
	}
	if json.Unmarshal([]byte(result), &r) != nil || len(r.Answers) == 0 || len(r.Answers[0]) == 0 {
		return clip(result, 200)
	}
	return clip(strings.Join(r.Answers[0], ", "), 200)
}
