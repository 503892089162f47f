package parley

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// BusyMode says what happens to an input that comes while a run is going.
type BusyMode string

const (
	Queue BusyMode = "queue" // a run of its own, afterwards
	Steer BusyMode = "steer" // adopted at the next turn of the current run
)

type WithdrawReason string

const (
	WithdrawnByRequest WithdrawReason = "cancelled"
	WithdrawnByHalt    WithdrawReason = "halted"
	WithdrawnByDelete  WithdrawReason = "deleted"
	WithdrawnByMessage WithdrawReason = "user_message" // nobody waited for it, and somebody wrote
)

// An Image that somebody shows to the model, or a PDF document.
type Image struct {
	Type string `json:"type"` // image/png, image/jpeg, image/gif, image/webp or application/pdf
	Data []byte `json:"data"`
	// Of a document: its name, and what the server found in it. One without text may be scanned.
	Name  string `json:"name,omitempty"`
	Pages int    `json:"pages,omitempty"`
	Text  string `json:"text,omitempty"`
}

// TypePDF is the type of documents.
const TypePDF = "application/pdf"

// AsText is how a model reads a document that cannot read its pages.
func (i Image) AsText() string {
	text := i.Text
	if text == "" {
		text = "(It has no text. Its pages may be scanned, and cannot be read here.)"
	}
	return fmt.Sprintf("File %q, the text of a PDF (pages: %d):\n\n%s", i.Name, i.Pages, text)
}

// InputReceived is followed, sooner or later, by one InputAdopted or one
// InputWithdrawn.
type InputReceived struct {
	Content string    `json:"content"`
	Request string    `json:"request,omitempty"` // the wire's name for it
	Agent   AgentRef  `json:"agent"`
	Busy    BusyMode  `json:"busy"`
	Command CommandID `json:"command,omitempty"`
	Deliver bool      `json:"deliver,omitempty"` // its answer is owed to a client without a cursor
	Finding *Finding  `json:"finding,omitempty"` // the sentinel flagged it
	// Classify: the run that adopts it waits for an InputScreened.
	Classify bool    `json:"classify,omitempty"`
	Images   []Image `json:"images,omitempty"`
	Mode     RunMode `json:"mode,omitempty"` // of the run it starts
	// Plan: its run carries out the plan that was approved. Fresh: without
	// what was said before.
	Plan  bool `json:"plan,omitempty"`
	Fresh bool `json:"fresh,omitempty"`
	// Skill is what was added to what the agent of the run is told.
	Skill *SkillUse `json:"skill,omitempty"`
	// Synthetic: nobody said it. A timer did, in the role of the user.
	Synthetic bool `json:"synthetic,omitempty"`
	// Mission: it is an idle prompt, for this mission of the tenant.
	Mission MissionID `json:"mission,omitempty"`
	// Sources the agent has read from that delegates it.
	Sources []Source `json:"sources,omitempty"`
	// Tools that the client offers and carries out itself.
	Tools []ClientTool `json:"tools,omitempty"`
	// ClientCalls: the client carries out the calls of the agent's own tools, too.
	ClientCalls bool `json:"client_calls,omitempty"`
	// Earlier is what was said before, by the client's own record.
	Earlier []EarlierMessage `json:"earlier,omitempty"`
}

// Size is about how many bytes the input holds.
func (b InputReceived) Size() int {
	const fixed = 256 // of the struct, and its share of maps
	n := fixed + len(b.Content)
	for _, i := range b.Images {
		n += len(i.Data) + len(i.Text)
	}
	for _, t := range b.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	for _, m := range b.Earlier {
		n += fixed + len(m.Text)
		for _, c := range m.Calls {
			n += len(c.ID) + len(c.Name) + len(c.Arguments)
		}
	}
	return n
}

func (b InputReceived) fold(s State, e Event) State {
	s.Queue = append(slices.Clip(s.Queue), waiting{ID: InputID(e.Seq), Request: b.Request, Agent: b.Agent, Busy: b.Busy,
		Deliver: b.Deliver, Flagged: b.Finding != nil, Classify: b.Classify, Mode: b.Mode, Plan: b.Plan,
		Synthetic: b.Synthetic, Tools: len(b.Tools) > 0 || b.ClientCalls})
	s.Evaluate = nil
	s = s.reading(b.Sources...)
	if b.Synthetic {
		s.Autonomous++
		return s
	}
	s.Autonomous = 0
	s.Recent = recent(s.Recent, b.Content)
	if s.Title == "" {
		s.Title, s.Unnamed = titleOf(b.Content), true
	}
	return s
}

type InputAdopted struct {
	Input   InputID `json:"input"`
	Request string  `json:"request,omitempty"`
}

func (b InputAdopted) fold(s State, _ Event) State {
	i := s.waiting(b.Input)
	if i < 0 {
		return s
	}
	w := s.Queue[i]
	return s.withoutInput(b.Input).withRun(func(r *openRun) {
		if w.ID == r.Input {
			r.Adopted, r.Approved = true, w.Plan
		} else {
			r.Requests = append(slices.Clip(r.Requests), w.Request)
			r.Steered = append(slices.Clip(r.Steered), w.ID)
		}
		r.Flagged = r.Flagged || w.Flagged
		if w.Tools {
			r.Offers = w.ID
		}
		if w.Classify {
			r.Screen = append(slices.Clip(r.Screen), w.ID)
		}
	})
}

type InputWithdrawn struct {
	Input   InputID        `json:"input"`
	Request string         `json:"request,omitempty"`
	Reason  WithdrawReason `json:"reason"`
}

func (b InputWithdrawn) fold(s State, _ Event) State { return s.withoutInput(b.Input) }

// A Waiting input.
type waiting struct {
	ID      InputID
	Request string
	Agent   AgentRef
	Busy    BusyMode
	Deliver bool

	Flagged  bool
	Classify bool
	Mode     RunMode
	Plan     bool // its run carries out the approved plan

	Synthetic bool `json:",omitempty"` // a timer said it
	Tools     bool `json:",omitempty"` // its client carries out calls
}

// SubmitInput says something to the session's agent, or to another by name.
type SubmitInput struct {
	Content string
	Request string // the wire's name for it; its endings carry it
	Agent   AgentRef
	Busy    BusyMode
	Deliver bool // the client has no cursor: keep a bookmark until it was shown the end

	Open      bool   `json:",omitempty"` // the session, if there is none yet
	Name      string `json:",omitempty"` // that the client knows it by, if that is not its id
	Transient bool   `json:",omitempty"` // and leave it out of lists

	// Project, a root or an id, is where the session is opened; empty: the tenant's
	// first. One that is open must be of it. The engine replaces it by the root.
	Project string `json:",omitempty"`

	Images []Image `json:",omitempty"`
	Mode   RunMode `json:",omitempty"`
	// Model and Instructions of the run, instead of the agent's. They need the right to change the agent.
	Model        string `json:",omitempty"`
	Instructions string `json:",omitempty"`

	Tools []ClientTool `json:",omitempty"` // that the client offers for the run
	// ClientCalls: the client carries out all calls of the run. The server runs no tool for it.
	ClientCalls bool `json:",omitempty"`

	Earlier []EarlierMessage `json:",omitempty"` // what was said before, by the client's own record

	// What the engine found out about it.
	Finding  *Finding  // it was flagged
	Classify bool      // a classifier is to look at it before the model does
	Skill    *SkillUse `json:",omitempty"` // that it calls
	// What the agent has read that delegates this, and what of it that agent
	// does not trust. Only the engine sets these.
	Sources, Untrusted []Source `json:",omitempty"`
}

func (do SubmitInput) Rules() Rules {
	r := Rules{Action: ActMessage, Opens: do.Open, Starts: true,
		Limits: []limit{{"message", len(do.Content), MaxContent}, requestLimit(do.Request), nameLimit(do.Name),
			agentLimit(do.Agent.Name), {"instructions", len(do.Instructions), maxInstructions}}}
	switch {
	case strings.HasPrefix(do.Request, "timer_"):
		r.Wrong = Errorf(CodeInvalid, "The id of a request must not begin with timer_: those are the server's own.")
	case do.Request == ChildRequest:
		r.Wrong = Errorf(CodeInvalid,
			"The id of a request must not be %s: that is the name of what an agent delegates.",
			ChildRequest)
	case do.Mode != "" && do.Mode != ModePlan:
		r.Wrong = Errorf(CodeInvalid, "A mode is plan or none, not %.40q.", do.Mode)
	case do.Model != "" && !modelPattern.MatchString(do.Model):
		r.Wrong = Errorf(CodeInvalid, "%.40q is not the name of a model.", do.Model)
	default:
		r.Wrong = cmp.Or(checkClientTools(do.Tools), checkEarlier(do.Earlier))
	}
	return r
}

func (do SubmitInput) decide(d *decision, c Command) error {
	if do.Open {
		if d.s.Owner == "" {
			open := OpenSession{Name: do.Name, Transient: do.Transient, Project: do.Project}
			if err := open.decide(d, c); err != nil {
				return err
			}
		}
		if err := d.isOpen(false); err != nil {
			return err
		}
	}
	content := CleanText(do.Content)
	switch {
	case IsBlank(content):
		return Errorf(CodeEmpty, "The message is empty.")
	case len(content) > MaxContent:
		return Errorf(CodeTooLarge, "The message is longer than %d bytes.", MaxContent)
	}
	if err := d.room(do.Agent); err != nil {
		return err
	}
	if do.Agent.Remote && do.Mode == ModePlan {
		return errCannotPlan
	}
	if do.Agent.Remote && (len(do.Tools) > 0 || do.ClientCalls) {
		return Errorf(CodeInvalid, "The agent %s runs elsewhere and cannot be offered tools.", do.Agent.Name)
	}
	busy := do.Busy
	if busy == "" {
		busy = Queue
	}
	d.personSpoke()
	d.emit(0, InputReceived{Content: content, Request: do.Request, Agent: do.Agent, Busy: busy, Command: c.ID,
		Deliver: do.Deliver, Finding: do.Finding, Classify: do.Classify, Images: do.Images, Mode: do.Mode,
		Skill: do.Skill, Sources: do.Sources, Tools: do.Tools, ClientCalls: do.ClientCalls,
		Earlier: cleanEarlier(do.Earlier)})
	return nil
}

// room says why an input for an agent cannot be taken.
func (d *decision) room(agent AgentRef) error {
	switch {
	case len(d.s.Queue) >= MaxQueue:
		return Errorf(CodeQueueFull, "%d messages wait in this session already; try again when one is answered.",
			MaxQueue)
	case agent.Name == "":
		return Errorf(CodeInvalid, "No agent was named and the session has none.")
	}
	return nil
}

// WithdrawInput takes back an input that waits and that no run was started for.
type WithdrawInput struct{ Input InputID }

func (WithdrawInput) Rules() Rules { return Rules{Action: ActMessage} }

func (do WithdrawInput) decide(d *decision, _ Command) error {
	i := d.s.waiting(do.Input)
	if i < 0 || d.s.Run != nil && d.s.Run.Input == do.Input {
		return Errorf(CodeClosed, "This message does not wait: it was answered, is being answered or was taken back.")
	}
	d.withdraw(d.s.Queue[i], WithdrawnByRequest)
	return nil
}

func (d *decision) adopt(w waiting) {
	d.emit(d.s.Run.ID, InputAdopted{w.ID, w.Request})
	if w.Deliver {
		d.emit(d.s.Run.ID, EffectEnqueued{Type: SendMessage, Request: w.Request, Autonomous: w.Synthetic})
	}
}

func (d *decision) withdraw(w waiting, why WithdrawReason) {
	d.emit(0, InputWithdrawn{Input: w.ID, Request: w.Request, Reason: why})
}

func (d *decision) withdrawAll(why WithdrawReason) {
	for _, w := range d.s.Queue {
		d.withdraw(w, why)
	}
}

func (s State) waiting(id InputID) int {
	return slices.IndexFunc(s.Queue, func(w waiting) bool { return w.ID == id })
}

func (s State) withoutInput(id InputID) State {
	s.Queue = without(s.Queue, func(w waiting) bool { return w.ID == id })
	return s
}

// recent keeps the ends of the last few inputs.
func recent(list []string, content string) []string {
	const most, size = 3, 1 << 10
	if len(content) > size {
		content = content[len(content)-size:]
		for content != "" && content[0]&0xC0 == 0x80 { // not in the middle of a character
			content = content[1:]
		}
		content = strings.Clone(content) // or it would hold all of a long message
	}
	list = append(slices.Clip(list), content)
	return list[max(len(list)-most, 0):]
}
