package main

import (
	"slices"
	"strings"

	"parley"
	"parley/config"
	"parley/provider"
)

// models reports which models the agents need, whether they can be called, and
// which models the reachable vendors list. It prints the names of variables,
// never their values.
func (d *doctor) models() {
	const name = "models"
	if d.CheckModels() != nil {
		return // settings reports why
	}
	models := newModels(d.Settings)
	defer models.Close()
	var agents []parley.Agent
	for _, f := range d.folders {
		if f.noFiles != nil {
			return // agents reports why
		}
		list, err := config.LoadAgents(f.files, f.Agents, f.Tenant, nil)
		if err != nil {
			return // agents reports why
		}
		agents = append(agents, list.List(f.Tenant)...)
	}
	wanted := modelsOf(agents, models.Default(), d.Classifier)
	reached := models.Reached()
	doubtful := map[string]bool{} // models with a warning, which explains why
	doubt := func(names ...string) {
		for _, model := range names {
			doubtful[model] = true
		}
	}
	for _, vendor := range reached {
		s := askVendor(d.ctx, models, vendor, wanted)
		if s.err != nil {
			do := "correct this"
			if e, ok := s.err.(*parley.Error); ok && e.Hint != "" {
				do = e.Hint
			}
			if len(s.wanted) > 0 {
				do += "; until then agents cannot use " + strings.Join(s.wanted, ", ")
				doubt(s.wanted...)
			}
			d.say(name, warning, do, "%s does not list its models: %s", vendor, reason(s.err))
			continue
		}
		d.say(name, fine, "", "%s answers, and has %d models", vendor, len(s.has))
		for _, model := range s.unlisted {
			d.say(name, warning, "correct the name in MODEL or in the agent's file", "%s does not list %s", vendor,
				model)
		}
		doubt(s.unlisted...)
	}
	for _, model := range wanted {
		if e, ok := models.Check(model).(*parley.Error); ok {
			d.say(name, warning, e.Hint, "%s", e.Message)
			doubt(model)
		}
	}
	ready := slices.DeleteFunc(slices.Clone(wanted), func(model string) bool { return doubtful[model] })
	switch hint := demoHint(d.Settings, models); {
	case hint != "":
		why, do, _ := strings.Cut(hint, "; ")
		d.say(name, warning, do, "%s", why)
	case len(reached) == 0 && slices.Equal(wanted, []string{provider.Demo}):
		d.say(name, fine, "", "the demo answers; with ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY set, a "+
			"model would")
	case len(ready) > 0:
		d.say(name, fine, "", "%s can be called", strings.Join(ready, ", "))
	}
}

// listed reports whether a listed model satisfies the wanted name. Vendors list
// snapshots of models and accept shorter names.
func listed(there, wanted string) bool {
	there = strings.TrimPrefix(there, "models/")
	return there == wanted || strings.HasPrefix(there, strings.TrimSuffix(wanted, "-latest")+"-") ||
		there == wanted+":latest"
}

// reason is the message of an error with its cause, for an operator.
func reason(err error) string {
	message := parley.MessageOf(err)
	if e, ok := err.(*parley.Error); ok && e.Err != nil {
		message += " (" + e.Err.Error() + ")"
	}
	return message
}
