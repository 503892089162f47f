// Package provider finds who speaks for a model, knows what models can read and
// cost, and is patient with them.
//
// PROVIDER wins; else the name of the model says whose it is; else it is
// OpenAI's, or that of a server that is compatible with it. Each vendor has a
// package of its own beneath this one, on the vendor's own SDK.
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
)

// The vendors, by the names that PROVIDER takes.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Google    = "google"
	Demo      = "demo"
)

// Names lists them.
var Names = []string{OpenAI, Anthropic, Google, Demo}

// vendors in the order in which one with a key is preferred, if nothing says
// which model is wanted.
var vendors = []vendorRow{
	{Anthropic, "ANTHROPIC_API_KEY", "claude-sonnet-4-5"},
	{OpenAI, "OPENAI_API_KEY", "gpt-4.1"},
	{Google, "GEMINI_API_KEY", "gemini-2.5-flash"},
}

type vendorRow struct{ name, variable, model string }

// Config is what an operator says about models.
type Config struct {
	Provider    string // wins over what names say
	Model       string // of agents that name none
	OpenAI      Account
	Anthropic   Account
	Google      Account
	Idle        time.Duration // longest silence in an answer; default a minute
	ShowAddress bool          // users may know the addresses of vendors
}

// An Account is where a vendor is, and with which key.
type Account struct {
	Key     string
	BaseURL string
	API     string // of OpenAI: responses or chat
	In      string // the place that holds them, for errors; empty: the environment
}

// Models has every model speak that the configuration can reach. It is a
// port.Model, and may be used concurrently.
type Models struct {
	mu sync.Mutex // held while now is replaced
	// now is what can be reached now. Calls go on with what they began with.
	now atomic.Pointer[reach]
}

// A reach is a configuration with a speaker for each vendor. It does not change.
type reach struct {
	config   Config
	speakers map[string]speaker
}

// A speaker speaks for one vendor.
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

// speaker is a new one for a vendor.
func (c Config) speaker(vendor string) speaker {
	a := c.account(vendor)
	switch vendor {
	case Anthropic:
		return anthropic.New(anthropic.Options{Key: a.Key, BaseURL: a.BaseURL, KeyIn: a.In, Idle: c.Idle,
			ShowAddress: c.ShowAddress, Limit: func(model string) int { return About(model).Output }})
	case Google:
		return google.New(google.Options{Key: a.Key, BaseURL: a.BaseURL, KeyIn: a.In, Idle: c.Idle,
			ShowAddress: c.ShowAddress})
	}
	return openai.New(openai.Options{Key: a.Key, BaseURL: a.BaseURL, KeyIn: a.In, API: a.API, Idle: c.Idle,
		ShowAddress: c.ShowAddress})
}

// Vendors lists the vendors that have keys, by name.
func Vendors() (names []string) {
	for _, v := range vendors {
		names = append(names, v.name)
	}
	return names
}

// Variable is the one that holds the key of a vendor.
func Variable(vendor string) string {
	i := slices.IndexFunc(vendors, func(v vendorRow) bool { return v.name == vendor })
	return vendors[i].variable
}

// Account is how a vendor is reached now.
func (m *Models) Account(vendor string) Account { return m.now.Load().config.account(vendor) }

// Use has a vendor be reached by another account from now on. Calls that run go on.
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

// Try asks a vendor by an account which models it has.
func (m *Models) Try(ctx context.Context, vendor string, a Account) ([]string, error) {
	c := m.now.Load().config
	c.set(vendor, a)
	s := c.speaker(vendor)
	defer s.Close()
	return s.List(ctx)
}

// Close gives up the connections that are kept.
func (m *Models) Close() error {
	for _, s := range m.now.Load().speakers {
		s.Close()
	}
	return nil
}

// Default is the model of agents that name none.
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

// Provider says who speaks for a model.
func (m *Models) Provider(model string) string {
	c := m.now.Load().config
	switch lower := strings.ToLower(model); {
	case model == Demo: // it says so itself
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

// OwnAddress reports whether a model is asked at its vendor's own address. A server of the operator's is slower, often
// answers one question at a time, or is a mock.
func (m *Models) OwnAddress(model string) bool {
	name := m.Provider(model)
	return name != Demo && m.Account(name).BaseURL == ""
}

// SeesPDF reports whether a model is shown the pages of PDF documents. A server that is compatible with OpenAI's Chat
// Completions API is given their text.
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
		a.API = c.OpenAI.API // it is not part of the account that people enter
		c.OpenAI = a
	case Anthropic:
		c.Anthropic = a
	case Google:
		c.Google = a
	}
}

// Check says what a model lacks: the variable that should hold its key. A server
// of one's own needs none, until it says so itself.
func (m *Models) Check(model string) error {
	name := m.Provider(model)
	account := m.Account(name)
	i := slices.IndexFunc(vendors, func(v vendorRow) bool { return v.name == name })
	if i < 0 || account.Key != "" || name == OpenAI && account.BaseURL != "" {
		return nil
	}
	hint := fmt.Sprintf("set %s in the environment or in .env", vendors[i].variable)
	if m.now.Load().config.ShowAddress { // its users are its operators
		hint += ", or enter the key in the console: Settings, Models"
	}
	return &parley.Error{Code: parley.CodeModel, Message: fmt.Sprintf("The model %s needs a key, and %s is not set.",
		model, vendors[i].variable), Hint: hint}
}

// Reached lists the vendors that can be asked something, by name.
func (m *Models) Reached() (names []string) {
	for _, v := range vendors {
		if a := m.Account(v.name); a.Key != "" || v.name == OpenAI && a.BaseURL != "" {
			names = append(names, v.name)
		}
	}
	return names
}

// List asks a vendor which models it has for this key.
func (m *Models) List(ctx context.Context, name string) ([]string, error) {
	return m.now.Load().speakers[name].List(ctx)
}

// Stream has a model speak, and says what it costs.
func (m *Models) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.Said, error] {
	if req.Model == "" {
		req.Model = m.Default()
	}
	name := m.Provider(req.Model)
	return func(yield func(port.Said, error) bool) {
		if err := m.Check(req.Model); err != nil {
			yield(port.Said{}, err)
			return
		}
		about := About(req.Model)
		if name != OpenAI { // whose compatible servers may well have names with a stroke
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

// theDemo has one model, which needs nothing.
type theDemo struct{ *demo.Model }

func (theDemo) List(context.Context) ([]string, error) { return []string{Demo}, nil }
func (theDemo) Close()                                 {}
