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
	"slices"
	"strings"
	"time"

	"parley"
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
var vendors = []vendor{
	{Anthropic, "ANTHROPIC_API_KEY", "claude-sonnet-4-5"},
	{OpenAI, "OPENAI_API_KEY", "gpt-4.1"},
	{Google, "GEMINI_API_KEY", "gemini-2.5-flash"},
}

type vendor struct{ name, variable, model string }

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
}

// Models has every model speak that the configuration can reach. It is a
// parley.Model, and may be used concurrently.
type Models struct {
	config   Config
	speakers map[string]speaker
}

// A speaker speaks for one vendor.
type speaker interface {
	parley.Model
	List(context.Context) ([]string, error)
	Close()
}

var _ parley.Model = (*Models)(nil)

func New(c Config) *Models {
	return &Models{c, map[string]speaker{
		OpenAI: openai.New(openai.Options{Key: c.OpenAI.Key, BaseURL: c.OpenAI.BaseURL, API: c.OpenAI.API,
			Idle: c.Idle, ShowAddress: c.ShowAddress}),
		Anthropic: anthropic.New(anthropic.Options{Key: c.Anthropic.Key, BaseURL: c.Anthropic.BaseURL, Idle: c.Idle,
			ShowAddress: c.ShowAddress, Limit: func(model string) int { return About(model).Output }}),
		Google: google.New(google.Options{Key: c.Google.Key, BaseURL: c.Google.BaseURL, Idle: c.Idle,
			ShowAddress: c.ShowAddress}),
		Demo: theDemo{demo.New()},
	}}
}

// Close gives up the connections that are kept.
func (m *Models) Close() error {
	for _, s := range m.speakers {
		s.Close()
	}
	return nil
}

// Default is the model of agents that name none.
func (m *Models) Default() string {
	if m.config.Model != "" {
		return m.config.Model
	}
	for _, v := range vendors {
		if v.name == m.config.Provider || m.config.Provider == "" && m.account(v.name).Key != "" {
			return v.model
		}
	}
	return Demo
}

// Provider says who speaks for a model.
func (m *Models) Provider(model string) string {
	switch lower := strings.ToLower(model); {
	case model == Demo: // it says so itself
		return Demo
	case m.config.Provider != "":
		return m.config.Provider
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
	return name != Demo && m.account(name).BaseURL == ""
}

func (m *Models) account(name string) Account {
	switch name {
	case OpenAI:
		return m.config.OpenAI
	case Anthropic:
		return m.config.Anthropic
	case Google:
		return m.config.Google
	}
	return Account{}
}

// Check says what a model lacks: the variable that should hold its key. A server
// of one's own needs none, until it says so itself.
func (m *Models) Check(model string) error {
	name := m.Provider(model)
	account := m.account(name)
	i := slices.IndexFunc(vendors, func(v vendor) bool { return v.name == name })
	if i < 0 || account.Key != "" || name == OpenAI && account.BaseURL != "" {
		return nil
	}
	return &parley.Error{Code: parley.CodeModel, Message: fmt.Sprintf("The model %s needs a key, and %s is not set.",
		model, vendors[i].variable),
		Hint: fmt.Sprintf("set %s in the environment or in .env", vendors[i].variable)}
}

// Reached lists the vendors that can be asked something, by name.
func (m *Models) Reached() (names []string) {
	for _, v := range vendors {
		if a := m.account(v.name); a.Key != "" || v.name == OpenAI && a.BaseURL != "" {
			names = append(names, v.name)
		}
	}
	return names
}

// List asks a vendor which models it has for this key.
func (m *Models) List(ctx context.Context, name string) ([]string, error) {
	return m.speakers[name].List(ctx)
}

// Stream has a model speak, and says what it costs.
func (m *Models) Stream(ctx context.Context, req parley.ModelRequest) iter.Seq2[parley.Said, error] {
	if req.Model == "" {
		req.Model = m.Default()
	}
	name := m.Provider(req.Model)
	return func(yield func(parley.Said, error) bool) {
		if err := m.Check(req.Model); err != nil {
			yield(parley.Said{}, err)
			return
		}
		about := About(req.Model)
		if name != OpenAI { // whose compatible servers may well have names with a stroke
			req.Model = bare(req.Model)
		}
		for said, err := range m.speakers[name].Stream(ctx, req) {
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
