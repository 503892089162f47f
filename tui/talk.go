package tui

import (
	"slices"
	"time"

	"parley"
)

// A Talk is the user's view of a session: the conversation, and the state of the session according to its log. Only
// Fold changes it. Its texts are as in the log; drawing removes control characters.
type Talk struct {
	Session parley.SessionID
	Last    parley.Position // position of the last folded event
	Title   string
	Project string

	Items []*Item // the conversation; an item is replaced, never changed in place
	Queue []Waiting
	Cards []Card // waiting cards, the oldest first

	Agent    string // agent of the last run, or of the session
	Model    string
	Run      parley.RunID // the open run; zero: none
	Mode     parley.RunMode
	Since    time.Time // start of the open run
	Doing    string    // current activity of the open run
	Retrying bool
	unsolved int         // number of items up to the last problem that no retry has solved; zero: none
	Plan     parley.Plan // the last plan
	Context  parley.ContextSize
	Used     parley.Usage // usage of runs that have ended
	Using    parley.Usage // usage of finished turns of the open run
	Halted   string       // the reason; empty: not halted
	Deleted  bool

	children []childAgent
}

// childAgent is a sub-agent of the session, at any depth.
type childAgent struct {
	session parley.SessionID
	agent   string
	depth   int
}

// A Kind is the kind of an item.
type Kind int

const (
	Said     Kind = iota // message of a user, or of a timer
	Answered             // text of the agent
	Thought              // thinking of the agent
	Worked               // group of tool calls, including those of sub-agents
	Planned
	Changed // files that a run changed
	Noted
	Troubled
)

// An Item is a part of the conversation.
type Item struct {
	Kind      Kind
	Seq       parley.Seq         // seq of its first event
	By        parley.PrincipalID // for Said
	Synthetic bool               // for Said: the message of a timer
	Images    int                // for Said
	Text      string
	Open      bool // more may follow
	Cut       bool // the answer breaks off
	Began     time.Time
	Ended     time.Time
	Calls     []Call // for Worked
	Plan      parley.Plan
	Files     []parley.FileChange
	Omitted   int // number of files left out
}

// Total returns the usage of the whole session.
func (t Talk) Total() parley.Usage { return t.Used.Plus(t.Using) }

// Waiting is an input that no run has adopted yet.
type Waiting struct {
	ID        parley.InputID
	Request   string
	Text      string
	By        parley.PrincipalID
	Synthetic bool
	Images    int
}

// Fold returns the talk after some events of the session and its sub-agents.
func Fold(t Talk, events ...parley.Event) Talk {
	t.Items = slices.Clone(t.Items)
	for _, e := range events {
		if e.Position != 0 && e.Position <= t.Last {
			continue // the server has sent it before
		}
		t.Last = max(t.Last, e.Position)
		t = t.foldCards(e)
		if e.Session == t.Session {
			t = t.foldSession(e)
			t = t.foldRun(e)
			t = t.foldOutput(e)
		}
		t = t.foldWork(e)
	}
	return t
}

// add appends an item, and closes an open group of calls before it.
func (t Talk) add(e parley.Event, i Item) Talk {
	i.Seq, i.Began = e.Seq, e.At
	if n := len(t.Items) - 1; n >= 0 && t.Items[n].Kind == Worked && t.Items[n].Open {
		t = t.replace(n, func(i *Item) { i.Open = false })
	}
	t.Items = append(t.Items, &i)
	return t
}

func (t Talk) note(e parley.Event, text string) Talk { return t.add(e, Item{Kind: Noted, Text: text}) }

func (t Talk) trouble(e parley.Event, text string) Talk {
	return t.add(e, Item{Kind: Troubled, Text: text})
}

// replace replaces an item by a changed copy. It may write to t.Items, which Fold has copied.
func (t Talk) replace(n int, change func(*Item)) Talk {
	i := *t.Items[n]
	change(&i)
	t.Items[n] = &i
	return t
}

func (t Talk) foldSession(e parley.Event) Talk {
	switch b := e.Body.(type) {
	case parley.SessionOpened:
		t.Title, t.Project = b.Title, b.Project
		if t.Agent == "" {
			t.Agent = b.Agent
		}
	case parley.SessionRenamed:
		t.Title = b.Title
	case parley.SessionForked:
		return t.note(e, "This session goes on from a copy of another conversation.")
	case parley.SessionHalted:
		t.Halted = b.Reason
		return t.trouble(e, "The session was halted: "+b.Reason)
	case parley.SessionReopened:
		t.Halted = ""
		return t.note(e, "The session was reopened.")
	case parley.SessionDeleted:
		t.Deleted = true
		return t.trouble(e, "The session was deleted.")
	case parley.InputReceived:
		t.Queue = append(slices.Clip(t.Queue), Waiting{parley.InputID(e.Seq), b.Request, b.Content, e.By, b.Synthetic,
			len(b.Images)})
		if t.Title == "" && !b.Synthetic {
			t.Title = short(b.Content)
		}
	case parley.InputAdopted:
		return t.adopt(e, b.Input)
	case parley.InputWithdrawn:
		t, _ = t.dequeue(b.Input)
		return t.note(e, "A message was withdrawn.")
	case parley.ContextMeasured:
		t.Context = parley.ContextSize{Tokens: b.Tokens, Limit: b.Limit, Messages: b.Messages, Estimated: b.Estimated}
	case parley.CompactionStarted:
		t.Doing = "compacting"
	case parley.ContextCompacted:
		t.Context = parley.ContextSize{Tokens: b.After, Limit: b.Limit, Messages: b.Messages, Estimated: true}
		t.Used = t.Used.Plus(b.Usage)
		return t.note(e, "Earlier messages were replaced by a summary, to make room in the context of the model.")
	case parley.CompactionFailed:
		return t.trouble(e, "The context was not compacted: "+b.Message)
	case parley.FilesChanged:
		return t.add(e, Item{Kind: Changed, Files: b.Files, Omitted: b.Truncated})
	case parley.ChangesUndone:
		return t.note(e, b.Summary())
	case parley.PlanChanged:
		return t.foldPlan(e, b.Plan)
	case parley.ProblemReported:
		return t.problem(e, b)
	case parley.TimerSet:
		return t.note(e, "A follow-up is set for "+b.At.Local().Format("15:04:05")+".")
	}
	return t
}

func (t Talk) dequeue(input parley.InputID) (Talk, Waiting) {
	i := slices.IndexFunc(t.Queue, func(w Waiting) bool { return w.ID == input })
	if i < 0 {
		return t, Waiting{}
	}
	w := t.Queue[i]
	t.Queue = slices.Delete(slices.Clone(t.Queue), i, i+1)
	return t, w
}

// adopt moves an input from the queue to the conversation.
func (t Talk) adopt(e parley.Event, input parley.InputID) Talk {
	t, w := t.dequeue(input)
	if w.ID == 0 {
		return t
	}
	return t.add(e, Item{Kind: Said, Text: w.Text, By: w.By, Synthetic: w.Synthetic, Images: w.Images})
}

// foldPlan shows one plan for each run, in its latest state.
func (t Talk) foldPlan(e parley.Event, p parley.Plan) Talk {
	t.Plan = p
	for n := len(t.Items) - 1; n >= 0 && t.Items[n].Kind != Said; n-- {
		if t.Items[n].Kind == Planned {
			return t.replace(n, func(i *Item) { i.Plan = p })
		}
	}
	return t.add(e, Item{Kind: Planned, Plan: p})
}

// problem shows a problem that does not end the run. A retry is shown as a note and on the status line.
func (t Talk) problem(e parley.Event, b parley.ProblemReported) Talk {
	if t.Retrying = b.Retry != nil && !b.Retry.GaveUp; t.Retrying {
		t.Doing = b.Message
		return t.note(e, b.Message)
	}
	t = t.trouble(e, b.Message)
	if b.Retry != nil {
		t.unsolved = len(t.Items)
	}
	return t
}

func (t Talk) foldRun(e parley.Event) Talk {
	switch b := e.Body.(type) {
	case parley.RunStarted:
		t.Run, t.Since, t.Agent, t.Mode, t.Doing = parley.RunID(e.Seq), e.At, b.Agent.Name, b.Mode, "starting"
	case parley.TurnStarted:
		t.Model, t.Doing = b.Model, "waiting for the model"
	case parley.TurnFinished:
		t.Using, t.Retrying = t.Using.Plus(b.Usage), false
		if t.Run != 0 {
			t.Doing = "working"
		}
	case parley.ChildReturned:
		t.Using = t.Using.Plus(b.Usage)
	case parley.ModelFellBack:
		t.Model = b.Actual
		return t.note(e, b.Actual+" answers instead of "+b.Preferred+": "+b.Reason)
	case parley.RunFinished:
		t.Run, t.Doing, t.Mode, t.Retrying = 0, "", "", false
		t.Used, t.Using = t.Used.Plus(b.Usage), parley.Usage{}
		if n := len(t.Items) - 1; n >= 0 && t.Items[n].Open {
			t = t.replace(n, func(i *Item) { i.Open = false })
		}
		switch b.Outcome {
		case parley.Completed:
		case parley.Cancelled:
			return t.note(e, "Stopped.")
		default:
			text := b.Message
			if text == "" {
				text = "The run ended: " + string(b.Outcome) + "."
			}
			if n := len(t.Items); n > 0 && n == t.unsolved { // the end of the run gives the reason
				return t.replace(n-1, func(i *Item) { i.Text = text })
			}
			return t.trouble(e, text)
		}
	}
	return t
}

// foldOutput joins the chunks of an output. The event that finishes the output has the whole text.
func (t Talk) foldOutput(e parley.Event) Talk {
	switch b := e.Body.(type) {
	case parley.OutputStarted:
		t.Doing, t.Retrying = "writing", false
		kind := Answered
		if b.Kind == parley.Thinking {
			kind, t.Doing = Thought, "thinking"
		}
		return t.add(e, Item{Kind: kind, Open: true})
	case parley.OutputAppended:
		return t.output(b.Output, func(i *Item) {
			if b.Offset <= len(i.Text) {
				i.Text = i.Text[:b.Offset] + b.Text
			}
		})
	case parley.OutputFinished:
		return t.output(b.Output, func(i *Item) {
			i.Text, i.Open, i.Cut, i.Ended = b.Text, false, b.Incomplete, e.At
		})
	}
	return t
}

func (t Talk) output(id parley.OutputID, change func(*Item)) Talk {
	for n := len(t.Items) - 1; n >= 0; n-- {
		if t.Items[n].Seq == parley.Seq(id) && (t.Items[n].Kind == Answered || t.Items[n].Kind == Thought) {
			return t.replace(n, change)
		}
	}
	return t
}
