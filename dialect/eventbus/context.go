package eventbus

import (
	"parley"
	"parley/dialect"
)

// runContext is the content of a run: inputs, answers and tool results.
type runContext struct {
	Run      run            `json:"run"`
	Summary  contextSummary `json:"summary"`
	Messages []contextEntry `json:"messages"` // null unless asked for
}

type contextSummary struct {
	Messages int    `json:"message_count"`
	User     int    `json:"user_messages"`
	Agent    int    `json:"agent_messages"`
	System   int    `json:"system_messages"` // results of tools, problems
	Started  int64  `json:"started_at"`
	Ended    *int64 `json:"ended_at"`
}

type contextEntry struct {
	Agent       string `json:"agent_id"`
	From        string `json:"from_id"`
	To          string `json:"to_id"`
	Content     string `json:"content"`
	Timestamp   int64  `json:"timestamp"` // seconds
	Observation bool   `json:"is_observation"`
}

// maxContext is the maximum number of bytes of content in an answer. Later messages are left out.
const maxContext = 8 << 20

// runContext returns the content of a run. A message belongs to the run that its events name, whenever it was sent.
func (h *Handler) runContext(r request) (any, error) {
	i, err := h.runNamed(r)
	if err != nil {
		return nil, err
	}
	view := r.URL.Query().Get("view")
	if view != "" && view != "summary" && view != "raw" {
		return nil, dialect.Invalid("view must be summary or raw")
	}
	m, err := h.Door.Session(r.Context(), r.who, i.Session)
	if err != nil {
		return nil, err
	}
	start, err := h.eventAt(r, i.Session, parley.Seq(i.Run))
	if err != nil {
		return nil, err
	}
	began, ok := start.Body.(parley.RunStarted)
	if !ok {
		return nil, unknownRun
	}
	c := contextOf{run: i.Run, agent: i.Agent, raw: view == "raw", inputs: map[parley.InputID]contextEntry{}}
	if err := dialect.ReadLog(r.Context(), h.Door, r.who, i.Session, parley.Seq(began.Input), m.Head,
		c.add); err != nil {
		return nil, err
	}
	answer := runContext{Run: runOf(h.firstRoot(r.who.Tenant), i), Summary: c.summary}
	answer.Summary.Started, answer.Summary.Ended = answer.Run.Started, answer.Run.Ended
	if c.raw {
		answer.Messages = append([]contextEntry{}, c.entries...)
	}
	return answer, nil
}

// contextOf collects the content of one run.
type contextOf struct {
	run     parley.RunID
	agent   string
	raw     bool
	size    int
	inputs  map[parley.InputID]contextEntry // inputs that no run has adopted yet
	summary contextSummary
	entries []contextEntry
}

func (c *contextOf) add(e parley.Event) {
	if b, ok := e.Body.(parley.InputReceived); ok { // the run that adopts the input counts it
		from := "user"
		if b.Synthetic {
			from, b.Content = "system", unaskedText(b)
		}
		c.inputs[parley.InputID(e.Seq)] = contextEntry{From: from, To: b.Agent.Name, Content: b.Content,
			Timestamp: e.At.Unix()}
	}
	if e.Run != c.run {
		return
	}
	switch b := e.Body.(type) {
	case parley.InputAdopted:
		c.count(&c.summary.User, c.inputs[b.Input])
		delete(c.inputs, b.Input)
	case parley.OutputFinished:
		if b.Kind == parley.Text {
			c.count(&c.summary.Agent, contextEntry{From: c.agent, To: "user", Content: b.Text, Timestamp: e.At.Unix()})
		}
	case parley.ToolCallFinished:
		c.count(&c.summary.System, contextEntry{From: b.Name, To: c.agent, Content: b.Result, Timestamp: e.At.Unix(),
			Observation: true})
	case parley.ToolCallBlocked:
		c.count(&c.summary.System, contextEntry{From: b.Name, To: c.agent, Content: b.Reason, Timestamp: e.At.Unix(),
			Observation: true})
	case parley.ProblemReported:
		if b.Retry != nil {
			return // about the call of the model, not a message
		}
		c.count(&c.summary.System, contextEntry{From: "system", To: c.agent, Content: b.Message,
			Timestamp: e.At.Unix()})
	}
}

func (c *contextOf) count(kind *int, entry contextEntry) {
	*kind++
	c.summary.Messages++
	entry.Agent = c.agent
	if c.size += len(entry.Content); c.raw && c.size <= maxContext {
		c.entries = append(c.entries, entry)
	}
}
