package port

import (
	"slices"
	"time"

	"parley"
)

// A Setup is something that an administrator has set up in the console and that holds secrets: the key of a model
// vendor, or an MCP server. Stores keep it beside the logs, and encrypt it like other secrets.
type Setup struct {
	Tenant parley.TenantID
	Kind   SetupKind
	Name   string // of the vendor or the server
	Sealed []byte // what was set up, sealed by the server's key; nil in a batch removes it
	By     parley.PrincipalID
	At     time.Time
}

// A SetupKind says what a Setup is about.
type SetupKind string

const (
	SetupModel  SetupKind = "model"
	SetupServer SetupKind = "mcp"
)

// A ModelKey says how a vendor of models is reached, without the key.
type ModelKey struct {
	Vendor   string    `json:"vendor"`
	Variable string    `json:"variable"`           // of the environment, which wins
	From     string    `json:"from,omitempty"`     // environment or console; empty: there is no key
	Last     string    `json:"last,omitempty"`     // the last characters of the key
	BaseURL  string    `json:"base_url,omitempty"` // if it is not the vendor's own
	Stored   bool      `json:"stored,omitempty"`   // one was entered in the console
	SetAt    time.Time `json:"set_at,omitzero"`    // when
	Problem  string    `json:"problem,omitempty"`  // why the one that was entered is not used
}

// A ModelKeyTrial is what a vendor answered to a key.
type ModelKeyTrial struct {
	Works  bool     `json:"works"`
	Reason string   `json:"reason,omitempty"` // why not
	Models int      `json:"models,omitempty"` // how many it has
	Names  []string `json:"names,omitempty"`  // some of them
}

// A ServerSetup is an MCP server that was set up in the console. It has a Command or a URL.
type ServerSetup struct {
	Command []string          `json:"command,omitempty"`
	Env     map[string]string `json:"env,omitempty"`  // variables and their values, which are secret
	Read    []string          `json:"read,omitempty"` // folders, besides the workspace
	Writes  bool              `json:"writes,omitempty"`
	Network bool              `json:"network,omitempty"`
	Bare    bool              `json:"bare,omitempty"` // without a sandbox

	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"` // their values are secret
}

// Kept is a setup with the values that were left empty as they were. An empty value goes nowhere else: not to another
// program, and not to another address.
func (s ServerSetup) Kept(was ServerSetup) ServerSetup {
	keep := func(now, then map[string]string, same bool) map[string]string {
		all := map[string]string{}
		for name, value := range now {
			if value == "" && same {
				value = then[name]
			}
			all[name] = value
		}
		return all
	}
	s.Env = keep(s.Env, was.Env, slices.Equal(s.Command, was.Command))
	s.Headers = keep(s.Headers, was.Headers, s.URL == was.URL)
	return s
}

// Shown is a setup without its secrets: names have empty values.
func (s ServerSetup) Shown() ServerSetup {
	s = s.Kept(ServerSetup{}) // whose maps are its own
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for name := range values {
			values[name] = ""
		}
	}
	return s
}

// A ServerTrial is what came of starting an MCP server.
type ServerTrial struct {
	Works  bool         `json:"works"`
	Reason string       `json:"reason,omitempty"` // why not
	Output string       `json:"output,omitempty"` // the last of what its process wrote to stderr
	Tools  []ServerTool `json:"tools"`
}
