package config

import (
	"cmp"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"parley"
	"parley/port"
	"parley/workspace"
)

// A definition is an agent and its place in a file.
type definition struct {
	path    string
	lines   map[string]int // by key
	agent   parley.Agent
	ignored []string
}

// frontMatter has every documented key. Other keys are errors, and place
// rejects keys that do not fit the runtime.
type frontMatter struct {
	Name        string   `yaml:"name"`
	Description string   `yaml:"description"`
	Model       string   `yaml:"model"`
	Tools       []string `yaml:"tools"`
	Approval    string   `yaml:"approval"`
	Limits      struct {
		Turns   *int    `yaml:"turns"`
		Tokens  int64   `yaml:"tokens"`
		CostUSD float64 `yaml:"cost_usd"`
		Minutes float64 `yaml:"minutes"`
	} `yaml:"limits"`

	FallbackModels   []string        `yaml:"fallback_models"`
	Delegates        []string        `yaml:"delegates"`
	Trust            []parley.Source `yaml:"trust"`
	IdlePrompt       string          `yaml:"idle_prompt"`
	IdleIntervalSecs *int64          `yaml:"idle_interval_secs"`

	Allow *struct {
		Roles []parley.UserRole    `yaml:"roles"`
		Users []parley.PrincipalID `yaml:"users"`
	} `yaml:"allow"`
	Runtime  string   `yaml:"runtime"`
	Address  string   `yaml:"address"`
	Command  []string `yaml:"command"`
	Env      []string `yaml:"env"`
	Autonomy struct {
		Enabled        bool  `yaml:"enabled"`
		MaxConsecutive int64 `yaml:"max_consecutive"`
		CooldownMS     int64 `yaml:"cooldown_ms"`
		MaxFollowUps   int64 `yaml:"max_follow_ups"`
		Evaluator      struct {
			Model string `yaml:"model"`
		} `yaml:"evaluator"`
	} `yaml:"autonomy"`
	Webhook *webhookFile `yaml:"webhook"`
}

// ofTheLoop are keys that have no effect on a remote agent, because Parley does not
// run it. approval has an effect if the agent is a program.
var ofTheLoop = []string{"approval", "delegates", "fallback_models"}

// readAgent reads an agent's file in a folder. The path is used in messages.
func readAgent(folder *workspace.Dir, name, path string) (definition, error) {
	f, _, err := folder.Open(name)
	if err != nil {
		return definition{}, at(path, 1, "%s", parley.MessageOf(err))
	}
	defer f.Close()
	raw, err := io.ReadAll(f)
	if err != nil {
		return definition{}, err
	}
	return parseAgent(path, string(raw))
}

func parseAgent(path, text string) (definition, error) {
	front, body, end, err := splitFrontMatter(path, text)
	if err != nil {
		return definition{}, err
	}
	doc, err := parseYAML(path, []byte(front))
	if err != nil {
		return definition{}, err
	}
	var f frontMatter
	if err := doc.decode(&f); err != nil {
		return definition{}, err
	}
	agent := parley.Agent{
		Name:         cmp.Or(f.Name, strings.TrimSuffix(filepath.Base(path), ".md")),
		Description:  f.Description,
		Model:        f.Model,
		Fallback:     f.FallbackModels,
		Tools:        f.Tools,
		Instructions: strings.TrimSpace(body),
		Delegates:    f.Delegates,
		Trust:        f.Trust,
	}
	if err := f.place(doc, &agent); err != nil {
		return definition{}, err
	}
	agent.Limits.Tokens, agent.Limits.Minutes, agent.Limits.CostUSD = f.Limits.Tokens, f.Limits.Minutes,
		f.Limits.CostUSD
	if agent.Tools == nil {
		agent.Tools = []string{"*"}
	}
	if f.Limits.Turns != nil {
		agent.Limits.Turns = *f.Limits.Turns
	}
	if f.Allow != nil {
		agent.Allow = &parley.AgentAllow{Roles: f.Allow.Roles, Users: f.Allow.Users}
	}
	if agent.IdlePrompt, agent.IdleSeconds, err = f.idle(doc); err != nil {
		return definition{}, err
	}
	if agent.Autonomy, err = f.autonomy(doc); err != nil {
		return definition{}, err
	}
	if agent.Webhook, err = f.webhook(doc); err != nil {
		return definition{}, err
	}
	mode, badMode := parley.ParseApprovalMode(f.Approval)
	agent.Approval = mode
	def := definition{path: path, lines: map[string]int{}, agent: agent}
	for _, e := range doc.entries {
		def.lines[e.key] = e.line
	}
	switch {
	case !parley.ValidAgentName(agent.Name):
		err = at(path, doc.line("name"), "%q cannot be an agent's name; use up to 63 of a-z, 0-9, - and _, beginning "+
			"with a letter or digit", agent.Name)
	case f.Approval != "" && badMode != nil:
		err = at(path, doc.line("approval"), "approval is %v", badMode)
	case f.Limits.Turns != nil && agent.Limits.Turns < 1:
		err = at(path, doc.line("limits.turns"), "limits.turns is 1 or more, not %d", agent.Limits.Turns)
	case f.Limits.Tokens < 0:
		err = at(path, doc.line("limits.tokens"), "limits.tokens is 1 or more, not %d", f.Limits.Tokens)
	case f.Limits.CostUSD < 0:
		err = at(path, doc.line("limits.cost_usd"), "limits.cost_usd is more than 0, not %g", f.Limits.CostUSD)
	case f.Limits.Minutes < 0:
		err = at(path, doc.line("limits.minutes"), "limits.minutes is more than 0, not %g", f.Limits.Minutes)
	case agent.Allow != nil && agent.Allow.Check() != nil:
		err = at(path, doc.line("allow"), "%v; write allow: {roles: [...], users: [...]}, or remove it to let in "+
			"everybody who may talk to agents", agent.Allow.Check())
	case slices.ContainsFunc(f.FallbackModels, parley.IsBlank):
		err = at(path, doc.line("fallback_models"), "fallback_models has a name that is empty; write the names of "+
			"models, like [gpt-4.1]")
	case twice(append([]string{f.Model}, f.FallbackModels...)) != "":
		err = at(path, doc.line("fallback_models"), "fallback_models has %s, which was asked already; name others",
			twice(append([]string{f.Model}, f.FallbackModels...)))
	case parley.CheckTrust(f.Trust) != nil:
		err = at(path, doc.line("trust"), "%v", parley.CheckTrust(f.Trust))
	case badAddress(agent.Address) != nil:
		err = at(path, doc.line("address"), "%s", badAddress(agent.Address))
	case parley.IsBlank(agent.Instructions) && !agent.Elsewhere(): // a remote agent may have its own
		err = at(path, end, "the instructions are missing; they follow this line")
	}
	for _, e := range doc.entries {
		switch {
		case agent.Elsewhere() && slices.Contains(ofTheLoop, e.key) && (agent.Address != "" || e.key != "approval"):
			def.ignored = append(def.ignored, at(path, e.line, "%s has no effect on an agent that runs elsewhere",
				e.key).Error())
		}
	}
	return def, err
}

func badAddress(address string) error {
	if address == "" {
		return nil
	}
	_, _, err := port.ParseAddress(address)
	return err
}

// splitFrontMatter splits a file at its two lines of dashes. end is the line
// number of the second one. The front begins with an empty line in place of the
// first one, so that it has the same line numbers as the file. A file without
// front matter is an error: after a typing error in the first line, the keys
// would be read as instructions and the limits would be lost.
func splitFrontMatter(path, text string) (front, body string, end int, err error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		switch dashes := strings.TrimRight(line, " \t\n") == "---"; {
		case i == 0 && !dashes:
			return "", "", 0, at(path, 1, "the file begins with a line of three dashes, keys like name or model, and "+
				"a second line of three dashes")
		case i > 0 && dashes:
			return "\n" + strings.Join(lines[1:i], ""), strings.Join(lines[i+1:], ""), i + 1, nil
		}
	}
	return "", "", 0, at(path, 1, "the front matter that begins here is never closed; end it with a line of "+
		"three dashes")
}

// twice returns the first name that occurs twice in a list.
func twice(names []string) string {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return name
		}
	}
	return ""
}
