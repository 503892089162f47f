package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley"
	"parley/config"
	"parley/engine"
	"parley/provider"
	"parley/screen"
	"parley/setup"
)

// setups are the settings that administrators entered in the console. From Start to Close, changes that other nodes
// have stored are loaded.
type setups struct {
	*setup.Book
	config *config.Settings
	models *provider.Models
	shared bool // other nodes use the store

	stop context.CancelFunc
	wg   sync.WaitGroup
}

// openSetups loads the stored settings, and makes the screen redact their secrets.
func openSetups(ctx context.Context, c *config.Settings, s store, key []byte, models *provider.Models,
	screen *screen.Screen, log *slog.Logger) (*setups, error) {
	book, err := setup.Open(ctx, s, key, time.Now, log)
	if err != nil {
		return nil, err
	}
	book.OnChange(redactSetups(screen))
	return &setups{Book: book, config: c, models: models, shared: nodesOf(s) != nil}, nil
}

// redactSetups returns a function that makes the screen redact the secrets of each tenant's settings for that tenant.
func redactSetups(screen *screen.Screen) func([]setup.Value) {
	return func(values []setup.Value) {
		all := map[parley.TenantID][]string{}
		for tenant, secrets := range setup.Secrets(values) {
			for _, s := range secrets {
				all[tenant] = append(all[tenant], config.EnteredSecret(s.Name, s.Text)...)
			}
		}
		screen.Also(all)
	}
}

func (s *setups) keys(door *engine.Engine) *setup.Keys {
	k := &setup.Keys{Book: s.Book, Models: accounts{s.models}, Vendors: vendors(),
		Local: s.config.Auth == "local", Tenant: s.config.DefaultTenant, May: door.May}
	k.Start()
	return k
}

// accounts adapts the models to the interface of setup.Keys.
type accounts struct{ *provider.Models }

func (a accounts) Account(vendor string) setup.Account {
	now := a.Models.Account(vendor)
	return setup.Account{Key: now.Key, BaseURL: now.BaseURL, In: now.In}
}

func (a accounts) Use(vendor string, now setup.Account) {
	a.Models.Use(vendor, provider.Account{Key: now.Key, BaseURL: now.BaseURL, In: now.In})
}

func (a accounts) Try(ctx context.Context, vendor string, now setup.Account) ([]string, error) {
	return a.Models.Try(ctx, vendor, provider.Account{Key: now.Key, BaseURL: now.BaseURL, In: now.In})
}

func vendors() (list []setup.Vendor) {
	for _, name := range provider.Vendors() {
		list = append(list, setup.Vendor{Name: name, Variable: provider.Variable(name), Keyless: name == provider.OpenAI})
	}
	return list
}

// Start begins to look for changes of other nodes.
func (s *setups) Start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	if s.shared {
		s.wg.Go(func() { s.Keep(ctx, time.Second) })
	}
}

// Close ends the background work.
func (s *setups) Close(context.Context) error {
	if s.stop != nil {
		s.stop()
	}
	s.wg.Wait()
	return nil
}
