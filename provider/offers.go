package provider

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/port"
)

const (
	offersHold  = 5 * time.Minute  // how long the lists of vendors are cached
	offersRetry = 30 * time.Second // how long they are cached if a vendor did not answer
	offersTake  = 10 * time.Second // timeout for a vendor's answer
)

// Offers lists the models that can be called. It caches the answers of the vendors for a while, because clients may ask
// often.
type Offers struct {
	models *Models
	log    *slog.Logger
	now    func() time.Time

	turn   chan struct{} // its holder may use the fields below
	names  map[string][]string
	expire time.Time
	of     *reach // configuration of the cached lists
}

func NewOffers(m *Models, log *slog.Logger, now func() time.Time) *Offers {
	return &Offers{models: m, log: log, now: now, turn: make(chan struct{}, 1), names: map[string][]string{}}
}

// List lists the models that can be called. The default comes first (byDefault, or the server's default if that is
// empty), then the models of each vendor with a key, by name, and the demo.
func (o *Offers) List(ctx context.Context, byDefault string) ([]port.ModelInfo, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !o.now().Before(o.expire) || o.of != o.models.now.Load() {
		o.ask(ctx)
	}
	if byDefault == "" {
		byDefault = o.models.Default()
	}
	first := o.info(byDefault)
	first.Default = true
	list := []port.ModelInfo{first}
	for _, vendor := range o.models.Reached() {
		for _, name := range o.names[vendor] {
			// Skip a name that would be sent to another vendor.
			if name != byDefault && o.models.Provider(name) == vendor {
				list = append(list, o.info(name))
			}
		}
	}
	if byDefault != Demo {
		list = append(list, o.info(Demo))
	}
	return list, nil
}

func (o *Offers) info(name string) port.ModelInfo {
	info := port.ModelInfo{ID: name, Provider: o.models.Provider(name)}
	if m := About(name); len(m.prices) > 0 { // the model is in the table
		info.Window, info.InputPrice, info.OutputPrice = m.Window, m.prices[0].input, m.prices[0].output
	}
	return info
}

// ask asks every vendor. If a vendor does not answer, ask keeps its old list.
func (o *Offers) ask(client context.Context) {
	ctx, cancel := context.WithTimeout(client, offersTake)
	defer cancel()
	of := o.models.now.Load()
	vendors := o.models.Reached()
	lists, errs := make([][]string, len(vendors)), make([]error, len(vendors))
	var all sync.WaitGroup
	for i, vendor := range vendors {
		all.Go(func() { lists[i], errs[i] = o.models.List(ctx, vendor) })
	}
	all.Wait()
	if client.Err() != nil { // the client is gone; the next one asks again
		return
	}
	hold := offersHold
	for i, vendor := range vendors {
		if errs[i] != nil {
			o.log.Warn("a vendor does not say which models it has", "vendor", vendor, "error", errs[i])
			hold = offersRetry
			continue
		}
		o.names[vendor] = nil
		for _, name := range lists[i] {
			if vendor == Google {
				name = bare(name)
			}
			if !slices.Contains(o.names[vendor], name) {
				o.names[vendor] = append(o.names[vendor], name)
			}
		}
	}
	o.expire, o.of = o.now().Add(hold), of
}
