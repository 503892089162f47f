package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"parley"
)

// A terminal shows the events of a session and its child sessions, and asks about
// cards one at a time. Text from outside is printed only through visible.
type terminal struct {
	out     io.Writer
	session parley.SessionID
	color   bool

	within bool // the current line is not empty
	live   bool // the current line is live output of a tool
	dialog bool // the current line is a question to the person

	open     parley.RunID // the current run
	requests []string     // requests that the run answers
	model    string
	spoke    bool // the run has produced text
	cut      bool // the last text was incomplete
	shown    int  // printed bytes of the open output
	cost     int64
	gone     bool   // the session was deleted
	retrying bool   // the model did not answer and is called again
	unsolved string // a problem that retries did not solve, until a later event shows its consequence

	calls  map[ref]toolUse
	agents map[parley.SessionID]string // names of sub-agents

	cards   []card     // open cards, oldest first
	answers [][]string // answers so far to the questions of the first card
}

// A ref names an event of a session or of a child session.
type ref struct {
	session parley.SessionID
	seq     parley.Seq
}

func (r ref) String() string { return fmt.Sprintf("%s.%d", r.session, r.seq) }

type toolUse struct{ name, arguments string }

// say prints text from outside.
func (t *terminal) say(text string) { t.print(visible(text)) }

func (t *terminal) print(text string) {
	if text == "" {
		return
	}
	io.WriteString(t.out, text) // an error has no place to be shown
	t.within = !strings.HasSuffix(text, "\n")
	t.live, t.dialog = false, false
}

// line begins a new line, if the current one is not empty.
func (t *terminal) line() {
	if t.within {
		t.print("\n")
	}
}

// typed records that the person's Enter has ended the line.
func (t *terminal) typed() { t.within, t.dialog = false, false }

func (t *terminal) prompt() {
	t.print("> ")
	t.dialog = true
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

// in returns text in a colour, if the terminal uses colours.
func (t *terminal) in(colour, text string) string {
	if !t.color {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// note prints a text on a line of its own.
func (t *terminal) note(colour, text string) {
	t.line()
	t.print(t.in(colour, visible(text)) + "\n")
}

// show shows an event, if it is for people.
func (t *terminal) show(e parley.Event) {
	t.showCards(e)
	if e.Session == t.session {
		t.showTalk(e)
	}
	t.showWork(e)
}

// showTalk shows the conversation of the session itself.
func (t *terminal) showTalk(e parley.Event) {
	t.settleRetry(e)
	t.settleProblem(e)
	switch b := e.Body.(type) {
	case parley.RunStarted:
		t.open, t.requests, t.spoke, t.cut = parley.RunID(e.Seq), nil, false, false
	case parley.InputAdopted:
		t.requests = append(t.requests, b.Request)
	case parley.TurnStarted:
		t.model = b.Model
	case parley.ModelFellBack:
		t.note(dim, fmt.Sprintf("(%s answers instead of %s: %s)", b.Actual, b.Preferred, b.Reason))
		t.model = b.Actual
	case parley.OutputStarted:
		if t.shown = 0; b.Kind == parley.Text && t.spoke && !t.cut {
			t.line()
			t.print("\n") // the texts of two turns are two paragraphs
		}
	case parley.OutputAppended:
		t.speak(b.Kind, b.Offset, b.Text)
	case parley.OutputFinished:
		t.speak(b.Kind, 0, b.Text)
		if b.Kind == parley.Text {
			t.spoke, t.cut = true, b.Incomplete
		}
	case parley.PlanChanged:
		t.showPlan(b.Plan)
	case parley.FilesChanged:
		for _, f := range b.Files {
			t.note(dim, "  "+f.Summary+" "+f.Path)
		}
	case parley.ChangesUndone:
		t.note(dim, "("+b.Summary()+")")
	case parley.ContextCompacted:
		t.note(dim, "(the conversation so far was summarized, to make room)")
	case parley.ProblemReported:
		t.problem(b)
	case parley.SessionHalted:
		t.note(red, "(this session was halted: "+b.Reason+")")
	case parley.SessionDeleted:
		t.note(red, "(this session was deleted)")
		t.gone = true
	case parley.InputWithdrawn:
		t.note(dim, "(a message was taken back)")
	case parley.RunFinished:
		t.finish(b)
	}
}

// problem shows a problem that does not end the run. While retries continue it is only a note. The last failed retry
// usually ends the run; if it does not, settleProblem shows the problem.
func (t *terminal) problem(b parley.ProblemReported) {
	t.retrying = b.Retry != nil && !b.Retry.GaveUp
	switch {
	case t.retrying:
		t.note(dim, "("+b.Message+")")
	case b.Retry != nil:
		t.unsolved = b.Message
	default:
		t.note(red, "("+b.Message+")")
	}
}

// settleProblem shows a problem that retries did not solve, unless the end of the run explains it.
func (t *terminal) settleProblem(e parley.Event) {
	if t.unsolved == "" {
		return
	}
	switch b := e.Body.(type) {
	case parley.RunFinished:
		if b.Message == "" {
			t.note(red, "("+t.unsolved+")")
		}
	case parley.ModelFellBack, parley.TurnStarted, parley.OutputStarted:
		t.note(red, "("+t.unsolved+")")
	default:
		return
	}
	t.unsolved = ""
}

// settleRetry prints that a retry succeeded, before the output of the model.
func (t *terminal) settleRetry(e parley.Event) {
	if !t.retrying {
		return
	}
	switch b := e.Body.(type) {
	case parley.OutputStarted, parley.ToolCallRequested, parley.TurnFinished:
		if end, ok := b.(parley.TurnFinished); ok && end.Failed() {
			return
		}
		t.note(dim, "(a retry succeeded)")
		t.retrying = false
	case parley.ModelFellBack, parley.RunFinished: // these events have their own texts
		t.retrying = false
	}
}

// speak prints the part of an output that is not printed yet. It skips thinking.
func (t *terminal) speak(kind parley.OutputKind, offset int, text string) {
	if kind != parley.Text {
		return
	}
	if skip := t.shown - offset; skip < len(text) {
		if t.live || t.dialog {
			t.line()
		}
		t.say(text[max(skip, 0):])
		t.shown = offset + len(text)
	}
}

func (t *terminal) finish(b parley.RunFinished) {
	t.open, t.requests = 0, nil
	end := map[parley.Outcome]string{parley.Completed: "", parley.Cancelled: "(stopped)"}
	note, ok := end[b.Outcome]
	if !ok {
		note = "(" + b.Message + ")"
	}
	switch {
	case note == "":
		t.line()
	case t.within && !t.live && !t.dialog:
		t.say(" " + note + "\n")
	default:
		t.note(red, note)
	}
	t.cost += b.Usage.CostMicros
	if u := b.Usage; t.model != "demo" && u.Input+u.Output > 0 {
		price := ""
		if u.CostMicros > 0 {
			price = ", " + dollars(u.CostMicros)
		}
		t.note(dim, fmt.Sprintf("(%s: %d tokens read, %d written%s)", t.model, u.Input, u.Output, price))
	}
}

func dollars(micros int64) string { return fmt.Sprintf("$%.4f", float64(micros)/1e6) }

var marks = map[parley.ItemStatus]string{parley.ItemPending: "[ ]", parley.ItemInProgress: "[~]",
	parley.ItemDone: "[x]", parley.ItemSkipped: "[-]"}

func (t *terminal) showPlan(p parley.Plan) {
	t.note(bold, "Plan ("+string(p.Status)+") "+p.Summary)
	for _, i := range p.Items {
		t.note("0", "  "+marks[i.Status]+" "+i.Title)
	}
}

// showWork shows tool calls and sub-agents, also in child sessions.
func (t *terminal) showWork(e parley.Event) {
	if t.calls == nil {
		t.calls, t.agents = map[ref]toolUse{}, map[parley.SessionID]string{}
	}
	who := ""
	if agent := t.agents[e.Session]; agent != "" {
		who = agent + ": "
	}
	of := func(call parley.CallID) ref { return ref{e.Session, parley.Seq(call)} }
	switch b := e.Body.(type) {
	case parley.ToolCallRequested:
		t.calls[ref{e.Session, e.Seq}] = toolUse{b.Name, b.Arguments}
	case parley.ToolCallStarted:
		again := ""
		if b.Attempt > 1 {
			again = " (again)"
		}
		t.note(cyan, "· "+who+t.calls[of(b.Call)].String()+again)
	case parley.ToolOutputAppended:
		t.output(b.Text)
	case parley.ToolCallBlocked:
		t.note(red, "· "+who+b.Name+" was not carried out: "+b.Reason)
	case parley.ToolCallFinished:
		t.result(b)
		delete(t.calls, of(b.Call))
	case parley.ChildSpawned:
		t.agents[b.Child] = b.Agent
		t.note(cyan, "· "+who+"delegate to "+b.Agent+": "+b.Task)
	case parley.ChildReturned:
		t.note(dim, "  "+b.Agent+" is back ("+string(b.Outcome)+")")
		delete(t.agents, b.Child)
	}
}

const bar = "  │ "

// output prints the live output of a command.
func (t *terminal) output(text string) {
	if !t.live {
		t.line()
	}
	var b strings.Builder
	within := t.within
	for l := range strings.Lines(visible(text)) {
		if !within {
			b.WriteString(bar)
		}
		b.WriteString(l)
		within = !strings.HasSuffix(l, "\n")
	}
	t.print(b.String())
	t.live = true
}

// result prints a short form of a call's result. The whole result is for the model,
// and is in the log.
func (t *terminal) result(b parley.ToolCallFinished) {
	lines := strings.Split(strings.TrimRight(b.Result, "\n"), "\n")
	switch {
	case b.Outcome == parley.CallCancelled, b.Outcome == parley.CallUnknown: // the end of the run or a card shows it
	case b.Outcome == parley.CallDenied:
		t.note(dim, "  not allowed")
	case b.Exit != nil || strings.HasPrefix(b.Result, "stopped: "):
		colour := dim
		if b.Outcome != parley.CallSucceeded {
			colour = red
		}
		t.note(colour, "  "+lines[0])
	case b.Outcome != parley.CallSucceeded:
		for _, l := range lines[:min(len(lines), 5)] {
			t.note(red, "  "+l)
		}
	case slices.Contains([]string{"write_file", "edit_file", "apply_patch"}, b.Name):
		for _, l := range lines[:min(len(lines), 20)] {
			t.note(dim, "  "+l)
		}
	case slices.Contains([]string{"ask_user", "update_plan", "delegate"}, b.Name): // other events show it
	case len(lines) == 1:
		t.note(dim, fmt.Sprintf("  %.100s", lines[0]))
	default:
		t.note(dim, fmt.Sprintf("  %d lines", len(lines)))
	}
}
