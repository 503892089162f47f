package parley

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// BusyMode says how to handle an input that arrives during a run.
type BusyMode string

const (
	Queue BusyMode = "queue" // in a run of its own, afterwards
	Steer BusyMode = "steer" // adopted at the next turn of the current run
)

type WithdrawReason string

const (
	WithdrawnByRequest WithdrawReason = "cancelled"
	WithdrawnByHalt    WithdrawReason = "halted"
	WithdrawnByDelete  WithdrawReason = "deleted"
	WithdrawnByMessage WithdrawReason = "user_message" // an autonomous message, because a person wrote
)

// An Image is an image or a PDF document for the model.
type Image struct {
	Type string `json:"type"` // image/png, image/jpeg, image/gif, image/webp or application/pdf
	Data []byte `json:"data"`
	// Of a document: its name, its number of pages and its text. A document without text may be scanned.
	Name  string `json:"name,omitempty"`
	Pages int    `json:"pages,omitempty"`
	Text  string `json:"text,omitempty"`
}

// TypePDF is the media type of PDF documents.
const TypePDF = "application/pdf"

// AsText returns the text of a document for a model that cannot read its pages.
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
	Request string    `json:"request,omitempty"` // the client's id for it
	Agent   AgentRef  `json:"agent"`
	Busy    BusyMode  `json:"busy"`
	Command CommandID `json:"command,omitempty"`
	Deliver bool      `json:"deliver,omitempty"` // a client without a cursor must get the answer
	Finding *Finding  `json:"finding,omitempty"` // the sentinel flagged it
	// Classify: the run that adopts it waits for an InputScreened.
	Classify bool    `json:"classify,omitempty"`
	Images   []Image `json:"images,omitempty"`
	Mode     RunMode `json:"mode,omitempty"` // of the run it starts
	// Plan: its run carries out the approved plan. Fresh: without the
	// earlier conversation.
	Plan  bool `json:"plan,omitempty"`
	Fresh bool `json:"fresh,omitempty"`
	// Skill was added to the instructions of the run's agent.
	Skill *SkillUse `json:"skill,omitempty"`
	// Synthetic: the input is autonomous. A timer or a mission created it, in the role of the user.
	Synthetic bool `json:"synthetic,omitempty"`
	// Mission: the input is an idle prompt for this mission of the tenant.
	Mission MissionID `json:"mission,omitempty"`
	// Sources that the delegating agent has read from.
	Sources []Source `json:"sources,omitempty"`
	// Tools are client tools: the client offers them and carries out their calls.
	Tools []ClientTool `json:"tools,omitempty"`
	// ClientCalls: the client carries out the calls of the agent's own tools, too.
	ClientCalls bool `json:"client_calls,omitempty"`
	// Earlier is the earlier conversation that the client has kept.
	Earlier []EarlierMessage `json:"earlier,omitempty"`
}

// Size estimates the bytes that the input holds.
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

// waiting is an input in the queue.
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

	Synthetic bool `json:",omitempty"` // a timer or a mission created it
	Tools     bool `json:",omitempty"` // its client carries out calls
}

// SubmitInput sends an input to the session's agent, or to another agent by name.
type SubmitInput struct {
	Content string
	Request string // the client's id for it; the events that end it carry the id
	Agent   AgentRef
	Busy    BusyMode
	Deliver bool // the client has no cursor: keep a bookmark until a client has got the end

	Open      bool   `json:",omitempty"` // open the session if there is none
	Name      string `json:",omitempty"` // the client's name for the session, if it is not the id
	Transient bool   `json:",omitempty"` // leave the session out of lists, and delete it some time after its last event

	// Project is the root or id of the project in which the session is opened;
	// empty: the tenant's first. An open session must belong to it. The engine
	// replaces an id by the root.
	Project string `json:",omitempty"`

	Images []Image `json:",omitempty"`
	Mode   RunMode `json:",omitempty"`
	// Model and Instructions of the run, instead of the agent's. They need the right to change the agent.
	Model        string `json:",omitempty"`
	Instructions string `json:",omitempty"`

	Tools []ClientTool `json:",omitempty"` // tools that the client offers for the run
	// ClientCalls: the client carries out all calls of the run. The server runs no tool for it.
	ClientCalls bool `json:",omitempty"`

	Earlier []EarlierMessage `json:",omitempty"` // the earlier conversation that the client has kept

	// Set by the engine.
	Finding  *Finding  // the sentinel flagged it
	Classify bool      // a classifier must check it before the model gets it
	Skill    *SkillUse `json:",omitempty"` // the skill that it calls
	// Sources are the sources that the delegating agent has read from. It does
	// not trust the sources in Untrusted. Only the engine sets them.
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

// room reports why the session cannot accept an input for an agent.
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

// WithdrawInput withdraws an input from the queue, unless a run was started for it.
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
		for content != "" && content[0]&0xC0 == 0x80 { // do not start in the middle of a character
			content = content[1:]
		}
		content = strings.Clone(content) // so that the slice does not hold all of a long message
	}
	list = append(slices.Clip(list), content)
	return list[max(len(list)-most, 0):]
}
