package port

import (
	"slices"
	"time"

	"parley"
)

// A Setup is an item with secrets that an administrator has set up in the console: the key of a model vendor, or an MCP
// server. Stores keep it beside the logs, and encrypt it like other secrets.
type Setup struct {
	Tenant parley.TenantID
	Kind   SetupKind
	Name   string // of the vendor or the server
	Sealed []byte // the data, sealed by the server's key; nil in a batch removes the setup
	By     parley.PrincipalID
	At     time.Time
}

// A SetupKind says what kind of item a Setup is.
type SetupKind string

const (
	SetupModel  SetupKind = "model"
	SetupServer SetupKind = "mcp"
)

// A ModelKey describes the access to a model vendor, without the key.
type ModelKey struct {
	Vendor   string    `json:"vendor"`
	Variable string    `json:"variable"`           // of the environment, which takes precedence
	From     string    `json:"from,omitempty"`     // environment or console; empty: there is no key
	Last     string    `json:"last,omitempty"`     // the last characters of the key
	BaseURL  string    `json:"base_url,omitempty"` // if it is not the vendor's own
	Stored   bool      `json:"stored,omitempty"`   // a key was entered in the console
	SetAt    time.Time `json:"set_at,omitzero"`    // when the key was entered
	Problem  string    `json:"problem,omitempty"`  // why the entered key is not used
}

// A ModelKeyTrial is the result of testing a key with its vendor.
type ModelKeyTrial struct {
	Works  bool     `json:"works"`
	Reason string   `json:"reason,omitempty"` // why it does not work
	Models int      `json:"models,omitempty"` // number of models
	Names  []string `json:"names,omitempty"`  // some of the models
}

// A ServerSetup is an MCP server that was set up in the console. It has a Command or a URL.
type ServerSetup struct {
	Command []string          `json:"command,omitempty"`
	Env     map[string]string `json:"env,omitempty"`  // variables and their secret values
	Read    []string          `json:"read,omitempty"` // folders in addition to the workspace
	Writes  bool              `json:"writes,omitempty"`
	Network bool              `json:"network,omitempty"`
	Bare    bool              `json:"bare,omitempty"` // without a sandbox

	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"` // their values are secret
}

// Kept returns the setup with empty values replaced by the stored ones. A stored value is kept only for the same
// command or URL: it must not go to another program or address.
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

// Shown returns a setup without its secrets: all values are empty.
func (s ServerSetup) Shown() ServerSetup {
	s = s.Kept(ServerSetup{}) // a copy with its own maps
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for name := range values {
			values[name] = ""
		}
	}
	return s
}

// A ServerTrial is the result of starting an MCP server.
type ServerTrial struct {
	Works  bool         `json:"works"`
	Reason string       `json:"reason,omitempty"` // why it does not work
	Output string       `json:"output,omitempty"` // the end of its process's stderr
	Tools  []ServerTool `json:"tools"`
}
