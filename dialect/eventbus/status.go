package eventbus

import (
	"encoding/json"
	"path"
	"strings"

	"parley"
	"parley/dialect"
)

// The activities of an agent in the document. They are derived from the log.
const (
	modelLoading = "model_loading"
	isThinking   = "thinking"
	callingTool  = "calling_tool"
	working      = "working"
	idle         = "idle"
)

var statusTexts = map[string]string{
	modelLoading: "Model loading...",
	isThinking:   "Thinking...",
	callingTool:  "Calling tool...",
	working:      "Working...",
	idle:         "Idle",
}

// status is an activity in progress. Its messages share an id.
type status struct {
	name   string
	id     string
	detail string
	model  string // the model that is being called
}

// become ends the previous status and starts another. The same status is sent again under its id.
func (p *projection) become(name, detail string) {
	if p.v.status.name != name {
		p.endStatus()
		p.v.status.name, p.v.status.id = name, p.named("status-%d")
	}
	p.v.status.detail, p.v.status.model = detail, ""
	if b, turn := p.e.Body.(parley.TurnStarted); turn {
		p.v.status.model = b.Model
	}
	p.activity(p.v.status, p.v.status.id, "doing")
}

func (p *projection) endStatus() {
	if p.v.status.name != "" {
		p.activity(p.v.status, p.v.status.id, "done")
	}
	p.v.status = status{}
}

// rest ends all activity.
func (p *projection) rest(detail string) {
	p.endStatus()
	p.activity(status{name: idle, detail: detail}, p.named("act-%d"), "done")
}

func (p *projection) activity(s status, id, phase string) {
	text := statusTexts[s.name]
	data := activity{Status: s.name, Lifecycle: phase, Model: s.model, descent: p.v.descent()}
	if s.detail != "" {
		text, data.Detail = s.detail, &s.detail
	}
	p.show(message{ID: id, Kind: "activity", Phase: phase, Text: &text, AgentID: p.v.agent, Data: data})
}

// doing describes a call in a few words, or returns "" if it cannot.
func doing(tool, arguments string) string {
	o, err := dialect.ParseObject([]byte(arguments))
	if err != nil {
		return ""
	}
	of := func(key string) string {
		s, _ := o.String(key) // a missing or wrong argument gives no detail
		return strings.Join(strings.Fields(s), " ")
	}
	about := func(verb, what string) string {
		if what == "" {
			return ""
		}
		return clip(verb+" "+what, maxDetail)
	}
	switch tool {
	case "read_file":
		return about("Reading", base(of("path")))
	case "write_file":
		return about("Writing", base(of("path")))
	case "edit_file":
		return about("Editing", base(of("path")))
	case "apply_patch":
		return "Applying a patch"
	case "list_files":
		if dir := of("path"); dir != "" && dir != "." {
			return about("Listing", dir)
		}
		return "Listing files"
	case "find_files":
		return about("Finding", of("pattern"))
	case "search_files":
		return about("Searching for", of("pattern"))
	case "shell":
		var argv []string
		if json.Unmarshal(o["command"], &argv) != nil {
			return ""
		}
		return about("Running", strings.Join(strings.Fields(strings.Join(argv, " ")), " "))
	}
	return ""
}

const maxDetail = 80

func base(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(name)
}
