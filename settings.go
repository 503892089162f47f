package parley

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Settings are the settings of a tenant, with the server's defaults for the
// settings that it has not changed. An agent's definition takes precedence.
type Settings struct {
	Model    string       `json:"model,omitempty"` // of agents that name no model; empty: the server's default
	Approval ApprovalMode `json:"approval"`        // of agents that name no approval mode
	Turns    int          `json:"turns"`           // of one run, if the agent sets no limit
	// fraction of a model's context window at which the conversation is compacted
	CompactAt          float64 `json:"compact_at"`
	MaxDelegationDepth int     `json:"max_delegation_depth"`
}

// defaultSettings returns the settings of a tenant that has changed none.
func defaultSettings() Settings {
	return Settings{Approval: ApprovalSuggest, Turns: defaultTurns, CompactAt: 0.8, MaxDelegationDepth: 2}
}

// A setting is a field of Settings with its validation.
type setting struct {
	must  string
	field func(*Settings) any // returns a pointer
	good  func(Settings) bool
}

// take decodes a value into its field and reports whether it is valid.
func (k setting) take(s *Settings, raw json.RawMessage) bool {
	return json.Unmarshal(raw, k.field(s)) == nil && k.good(*s)
}

var settings = map[string]setting{
	"model": {"must be the name of a model", func(s *Settings) any { return &s.Model },
		func(s Settings) bool { return modelPattern.MatchString(s.Model) }},
	"approval": {"must be " + approvalModes, func(s *Settings) any { return &s.Approval },
		func(s Settings) bool { return s.Approval.known() }},
	"turns": {"must be a whole number from 1 to 1000", func(s *Settings) any { return &s.Turns },
		func(s Settings) bool { return s.Turns >= 1 && s.Turns <= 1000 }},
	"compact_at": {"must be a number from 0.1 to 0.95", func(s *Settings) any { return &s.CompactAt },
		func(s Settings) bool { return s.CompactAt >= 0.1 && s.CompactAt <= 0.95 }},
	"max_delegation_depth": {"must be a whole number from 0 to 5",
		func(s *Settings) any { return &s.MaxDelegationDepth },
		func(s Settings) bool { return s.MaxDelegationDepth >= 0 && s.MaxDelegationDepth <= 5 }},
}

var modelPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$`)

// Effective returns the settings of a tenant, with defaults for the settings that it has not changed. It ignores
// settings and values that only a later release allows.
func (t tenantFacts) Effective() Settings {
	s := defaultSettings()
	for name, raw := range t.Settings {
		tried := s
		if known, ok := settings[name]; ok && known.take(&tried, raw) {
			s = tried
		}
	}
	return s
}

// Complete returns the agent with the settings for everything that its definition leaves open.
func (s Settings) Complete(a Agent) Agent {
	if a.Model == "" {
		a.Model = s.Model
	}
	if a.Approval == "" {
		a.Approval = s.Approval
	}
	if a.Limits.Turns == 0 {
		a.Limits.Turns = s.Turns
	}
	a.Limits.Compact, a.Limits.Depth = int(s.CompactAt*100+0.5), s.MaxDelegationDepth
	if a.Limits.Depth == 0 {
		a.Limits.Depth = -1
	}
	return a
}

// SettingsChanged: the values replace the settings of the same name; null resets
// a setting to the server's default.
type SettingsChanged struct {
	Values map[string]json.RawMessage `json:"values"`
}

type ChangeSettings struct {
	Values map[string]json.RawMessage // as in SettingsChanged
}

func (b SettingsChanged) fold(s State, _ Event) State {
	s.Facts.Settings = withSettings(s.Facts.Settings, b.Values)
	return s
}

func (do ChangeSettings) Rules() Rules {
	r := Rules{Action: ActSettings, Tenant: true}
	for _, name := range slices.Sorted(maps.Keys(do.Values)) { // sorted, so that the reported error is always the same
		value := do.Values[name]
		r.Limits = append(r.Limits, limit{"name of a setting", len(name), MaxName},
			limit{"value of a setting", len(value), MaxNote})
		if !json.Valid(value) && r.Wrong == nil {
			r.Wrong = Errorf(CodeInvalid, "%.80s must be JSON.", name)
		}
	}
	return r
}

func (do ChangeSettings) decide(d *decision, _ Command) error {
	changed := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(do.Values)) {
		known, ok := settings[name]
		if !ok {
			return Errorf(CodeInvalid, "There is no setting %.80q; there are %s.", name,
				strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		value := json.RawMessage("null")
		if raw := do.Values[name]; !bytes.Equal(bytes.TrimSpace(raw), value) {
			var s Settings
			if !known.take(&s, raw) {
				return Errorf(CodeInvalid, "%s %s.", name, known.must)
			}
			value, _ = json.Marshal(known.field(&s)) // a string or a number: cannot fail
		}
		if was, ok := d.s.Facts.Settings[name]; !bytes.Equal(was, value) && (ok || string(value) != "null") {
			changed[name] = value
		}
	}
	if len(changed) == 0 {
		return nil
	}
	d.emitTenant(SettingsChanged{changed})
	return nil
}

// withSettings returns the settings after a change; null resets a setting.
func withSettings(was, changed map[string]json.RawMessage) map[string]json.RawMessage {
	now := maps.Clone(was)
	if now == nil {
		now = map[string]json.RawMessage{}
	}
	for name, value := range changed {
		if now[name] = value; string(value) == "null" {
			delete(now, name)
		}
	}
	if len(now) == 0 {
		return nil
	}
	return now
}
