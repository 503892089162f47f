// Package provider chooses the vendor of a model, calls it with retries, and
// knows the limits and prices of models.
//
// If PROVIDER is set, it decides; otherwise the name of the model does. Other
// names belong to OpenAI, or to a server that is compatible with it. Each
// vendor has its own package below this one.
package provider

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/port"
	"parley/provider/anthropic"
	"parley/provider/demo"
	"parley/provider/google"
	"parley/provider/openai"
	"parley/provider/upstream"
)

// The vendors, by the values of PROVIDER.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Google    = "google"
	Demo      = "demo"
)

// Names lists the vendors.
var Names = []string{OpenAI, Anthropic, Google, Demo}

// vendors are in order of preference: if no model is configured, the first
// vendor with a key has the default model.
var vendors = []vendorRow{
	{Anthropic, "ANTHROPIC_API_KEY", "claude-sonnet-4-5"},
	{OpenAI, "OPENAI_API_KEY", "gpt-4.1"},
	{Google, "GEMINI_API_KEY", "gemini-2.5-flash"},
}

type vendorRow struct{ name, variable, model string }

// Config is the operator's configuration of models.
type Config struct {
	Provider    string // overrides the choice by model name
	Model       string // default model
	OpenAI      Account
	Anthropic   Account
	Google      Account
	Idle        time.Duration // longest silence in an answer; default a minute
	ShowAddress bool          // users may know the addresses of vendors
}

// An Account is the address of a vendor, and the key.
type Account struct {
	Key     string
	BaseURL string
	API     string // for OpenAI: responses or chat
	In      string // where they are set, for errors; empty: the environment
}

// Models calls all models that the configuration can reach. It is a port.Model,
// and may be used concurrently.
type Models struct {
	mu sync.Mutex // held while now is replaced
	// now is the current configuration. A running call keeps the one that it began with.
	now atomic.Pointer[reach]
}

// A reach is a configuration with a speaker for each vendor. It is immutable.
type reach struct {
	config   Config
	speakers map[string]speaker
}

// A speaker calls one vendor.
type speaker interface {
	port.Model
	List(context.Context) ([]string, error)
	Close()
}

var _ port.Model = (*Models)(nil)

func New(c Config) *Models {
	r := &reach{c, map[string]speaker{Demo: theDemo{demo.New()}}}
	for _, v := range vendors {
		r.speakers[v.name] = c.speaker(v.name)
	}
	m := &Models{}
	m.now.Store(r)
	return m
}

// speaker returns a new speaker for a vendor.
func (c Config) speaker(vendor string) speaker {
	a := c.account(vendor)
	account := upstream.Account{Key: a.Key, BaseURL: a.BaseURL, KeyIn: a.In, Idle: c.Idle, ShowAddress: c.ShowAddress}
	switch vendor {
	case Anthropic:
		return anthropic.New(anthropic.Options{Account: account,
			Limit: func(model string) int { return About(model).Output }})
	case Google:
		return google.New(account)
	}
	return openai.New(openai.Options{Account: account, API: a.API})
}

// Vendors lists the names of the vendors that have an API key, in order of preference.
func Vendors() (names []string) {
	for _, v := range vendors {
		names = append(names, v.name)
	}
	return names
}

// Variable returns the environment variable for the key of a vendor.
func Variable(vendor string) string {
	i := slices.IndexFunc(vendors, func(v vendorRow) bool { return v.name == vendor })
	return vendors[i].variable
}

// Account returns the current account of a vendor.
func (m *Models) Account(vendor string) Account { return m.now.Load().config.account(vendor) }

// Use sets another account for a vendor. Running calls continue with the old one.
func (m *Models) Use(vendor string, a Account) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.now.Load()
	r := &reach{was.config, maps.Clone(was.speakers)}
	r.config.set(vendor, a)
	r.speakers[vendor] = r.config.speaker(vendor)
	m.now.Store(r)
	was.speakers[vendor].Close()
}

// Try lists the models of a vendor with another account, without using that account for calls.
func (m *Models) Try(ctx context.Context, vendor string, a Account) ([]string, error) {
	c := m.now.Load().config
	c.set(vendor, a)
	s := c.speaker(vendor)
	defer s.Close()
	return s.List(ctx)
}

// Close closes idle connections.
func (m *Models) Close() error {
	for _, s := range m.now.Load().speakers {
		s.Close()
	}
	return nil
}

// Default returns the default model.
func (m *Models) Default() string {
	c := m.now.Load().config
	if c.Model != "" {
		return c.Model
	}
	for _, v := range vendors {
		if v.name == c.Provider || c.Provider == "" && c.account(v.name).Key != "" {
			return v.model
		}
	}
	return Demo
}

// Provider returns the vendor of a model.
func (m *Models) Provider(model string) string {
	c := m.now.Load().config
	switch lower := strings.ToLower(model); {
	case model == Demo: // independent of the configuration
		return Demo
	case c.Provider != "":
		return c.Provider
	case strings.HasPrefix(lower, "claude-") || strings.Contains(lower, "anthropic"):
		return Anthropic
	case strings.HasPrefix(lower, "gemini-") || strings.Contains(lower, "google"):
		return Google
	}
	return OpenAI
}

// OwnAddress reports whether a model is called at its vendor's own address. An operator's own server is slower, often
// answers one request at a time, or is a mock.
func (m *Models) OwnAddress(model string) bool {
	name := m.Provider(model)
	return name != Demo && m.Account(name).BaseURL == ""
}

// SeesPDF reports whether a model gets the pages of PDF documents. A server with a compatible Chat Completions API gets
// their text.
func (m *Models) SeesPDF(model string) bool {
	switch name := m.Provider(model); name {
	case Anthropic, Google:
		return true
	case OpenAI:
		a := m.Account(OpenAI)
		return openai.APIOf(a.API, a.BaseURL) == openai.Responses
	}
	return false
}

func (c Config) account(name string) Account {
	switch name {
	case OpenAI:
		return c.OpenAI
	case Anthropic:
		return c.Anthropic
	case Google:
		return c.Google
	}
	return Account{}
}

func (c *Config) set(name string, a Account) {
	switch name {
	case OpenAI:
		a.API = c.OpenAI.API // users cannot enter it with the account
		c.OpenAI = a
	case Anthropic:
		c.Anthropic = a
	case Google:
		c.Google = a
	}
}

// Check returns an error if the key of a model's vendor is missing; the error
// names the variable for it. An operator's own server needs no key, unless it
// refuses calls without one.
func (m *Models) Check(model string) error {
	name := m.Provider(model)
	account := m.Account(name)
	i := slices.IndexFunc(vendors, func(v vendorRow) bool { return v.name == name })
	if i < 0 || account.Key != "" || name == OpenAI && account.BaseURL != "" {
		return nil
	}
	hint := fmt.Sprintf("set %s in the environment or in .env", vendors[i].variable)
	if m.now.Load().config.ShowAddress { // here the users are the operators
		hint += ", or enter the key in the console: Settings, Models"
	}
	return &parley.Error{Code: parley.CodeModel, Message: fmt.Sprintf("The model %s needs a key, and %s is not set.",
		model, vendors[i].variable), Hint: hint}
}

// Reached lists the vendors that can be called, in order of preference.
func (m *Models) Reached() (names []string) {
	for _, v := range vendors {
		if a := m.Account(v.name); a.Key != "" || v.name == OpenAI && a.BaseURL != "" {
			names = append(names, v.name)
		}
	}
	return names
}

// List lists the models of a vendor for the configured key.
func (m *Models) List(ctx context.Context, name string) ([]string, error) {
	return m.now.Load().speakers[name].List(ctx)
}

// Stream calls a model, and adds the cost to the usage.
func (m *Models) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	if req.Model == "" {
		req.Model = m.Default()
	}
	name := m.Provider(req.Model)
	return func(yield func(port.ModelChunk, error) bool) {
		if err := m.Check(req.Model); err != nil {
			yield(port.ModelChunk{}, err)
			return
		}
		about := About(req.Model)
		if name != OpenAI { // model names of compatible servers may contain a slash
			req.Model = bare(req.Model)
		}
		for said, err := range m.now.Load().speakers[name].Stream(ctx, req) {
			if said.Done != nil && name != Demo {
				said.Done.Usage.CostMicros = about.Cost(said.Done.Usage)
			}
			if !yield(said, err) {
				return
			}
		}
	}
}

// theDemo is the demo as a vendor with one model.
type theDemo struct{ *demo.Model }

func (theDemo) List(context.Context) ([]string, error) { return []string{Demo}, nil }
func (theDemo) Close()                                 {}
