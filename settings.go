package parley

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Settings are what a tenant has chosen, or else what the server does by itself.
// What an agent's definition says counts for more.
type Settings struct {
	Model    string       `json:"model,omitempty"` // of agents that name none; empty: the server's
	Approval ApprovalMode `json:"approval"`        // likewise
	Turns    int          `json:"turns"`           // of one run; likewise
	// the part of a model's context that may be full before it is made shorter
	CompactAt          float64 `json:"compact_at"`
	MaxDelegationDepth int     `json:"max_delegation_depth"`
}

// defaultSettings are those of a tenant that has chosen nothing.
func defaultSettings() Settings {
	return Settings{Approval: ApprovalSuggest, Turns: defaultTurns, CompactAt: 0.8, MaxDelegationDepth: 2}
}

// A setting is a field of Settings, and what it must be.
type setting struct {
	must  string
	field func(*Settings) any // a pointer
	good  func(Settings) bool
}

// take reads a value into its field, if it is a good one.
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

// Effective are the settings of a tenant: what it has chosen, and else the defaults. What a
// later release may have allowed and this one does not know is passed over.
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

// Complete is an agent with what its definition leaves open.
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

// SettingsChanged: the values replace those of the same name; null takes
// one back to what the server was started with.
type SettingsChanged struct {
	Values map[string]json.RawMessage `json:"values"`
}

type ChangeSettings struct {
	Values map[string]json.RawMessage // as SettingsChanged
}

func (b SettingsChanged) fold(s State, _ Event) State {
	s.Facts.Settings = withSettings(s.Facts.Settings, b.Values)
	return s
}

func (do ChangeSettings) Rules() Rules {
	r := Rules{Action: ActSettings, Tenant: true}
	for _, name := range slices.Sorted(maps.Keys(do.Values)) { // which error is told must not be a matter of chance
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

// withSettings are settings after some were changed; null takes one back.
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
