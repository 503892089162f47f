// Package setup stores what administrators set up in the console: keys of model vendors, and MCP servers. A value is
// sealed with the server's key and stored like other secrets. It takes effect at once on the node that received it, and
// on other nodes at their next refresh.
//
// Goroutines: the caller runs Book.Keep. Locks: Book.mu is held while the store is read and the functions of OnChange are
// called, so that they get changes in order. These functions must not call the Book.
package setup

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/pacing"
	"parley/port"
)

const (
	maxValue  = 64 << 10 // bytes of one value
	maxSetups = 64       // for each tenant
)

// Store is the store of a Book.
type Store interface {
	Append(context.Context, port.Batch) (port.Appended, error)
	Setups(context.Context) ([]port.Setup, error)
}

// A Value is a setup with its decrypted value.
type Value struct {
	port.Setup
	Plain []byte // JSON
	Wrong string // why Plain is missing
}

// A Book holds all setups of a store.
type Book struct {
	store Store
	aead  cipher.AEAD
	now   func() time.Time
	log   *slog.Logger

	mu       sync.Mutex // guards the following; held while the store is read and onChange is called
	known    []port.Setup
	values   []Value
	onChange []func([]Value)
}

// Open reads the stored setups. key is the server's key.
func Open(ctx context.Context, store Store, key []byte, now func() time.Time, log *slog.Logger) (*Book, error) {
	raw, err := hkdf.Key(sha256.New, key, nil, "parley setups", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	b := &Book{store: store, now: now, log: log}
	if b.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	return b, b.Refresh(ctx)
}

// OnChange calls a function with all values now, and again after each change.
func (b *Book) OnChange(f func([]Value)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onChange = append(b.onChange, f)
	f(b.values)
}

// Of lists a tenant's values of a kind, by name.
func (b *Book) Of(tenant parley.TenantID, kind port.SetupKind) (list []Value) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range b.values {
		if v.Tenant == tenant && v.Kind == kind {
			list = append(list, v)
		}
	}
	return list
}

// Get returns the value with a name, and whether it exists.
func (b *Book) Get(tenant parley.TenantID, kind port.SetupKind, name string) (Value, bool) {
	list := b.Of(tenant, kind)
	i := slices.IndexFunc(list, func(v Value) bool { return v.Name == name })
	if i < 0 {
		return Value{}, false
	}
	return list[i], true
}

// Put stores a value, or removes it if value is nil, and writes an audit record.
func (b *Book) Put(ctx context.Context, who port.Principal, kind port.SetupKind, name string, value any,
	record parley.Audit) error {
	at := b.now().UTC().Truncate(time.Microsecond)
	s := port.Setup{Tenant: who.Tenant, Kind: kind, Name: name, By: who.ID, At: at}
	if value != nil {
		plain, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if len(plain) > maxValue {
			return parley.Errorf(parley.CodeTooLarge, "This is longer than %d KiB.", maxValue>>10)
		}
		if _, ok := b.Get(who.Tenant, kind, name); !ok && len(b.Of(who.Tenant, kind)) >= maxSetups {
			return parley.Errorf(parley.CodeLimited, "There are %d already. Remove one first.", maxSetups)
		}
		s.Sealed = b.aead.Seal(nil, nil, plain, place(s))
	}
	record.At, record.By, record.Source = at, who.ID, parley.ViaHTTP
	if _, err := b.store.Append(ctx, port.Batch{Tenant: who.Tenant, Setup: &s,
		Audit: []parley.Audit{record}}); err != nil {
		return err
	}
	return b.Refresh(ctx)
}

// Note writes an audit record about a setup.
func (b *Book) Note(ctx context.Context, who port.Principal, record parley.Audit) error {
	record.At, record.By, record.Source = b.now().UTC(), who.ID, parley.ViaHTTP
	_, err := b.store.Append(ctx, port.Batch{Tenant: who.Tenant, Audit: []parley.Audit{record}})
	return err
}

// place binds a sealed value to its tenant, kind and name.
func place(s port.Setup) []byte { return fmt.Appendf(nil, "%s\n%s\n%s", s.Tenant, s.Kind, s.Name) }

// Refresh loads changes of this node and of other nodes.
func (b *Book) Refresh(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, err := b.store.Setups(ctx)
	if err != nil {
		return err
	}
	same := func(a, b port.Setup) bool {
		return a.Tenant == b.Tenant && a.Kind == b.Kind && a.Name == b.Name && string(a.Sealed) == string(b.Sealed)
	}
	if slices.EqualFunc(list, b.known, same) {
		return nil
	}
	b.known, b.values = list, nil
	for _, s := range list {
		v := Value{Setup: s}
		if v.Plain, err = b.aead.Open(nil, nil, s.Sealed, place(s)); err != nil {
			v.Wrong = "It was sealed by another server key. Enter it again."
			b.log.Warn("a setup of the console cannot be opened; it was sealed by another server key", "tenant", s.Tenant,
				"kind", s.Kind, "name", s.Name)
		}
		b.values = append(b.values, v)
	}
	for _, changed := range b.onChange {
		changed(b.values)
	}
	return nil
}

// Keep calls Refresh regularly until ctx ends.
func (b *Book) Keep(ctx context.Context, every time.Duration) {
	pacing.Every(ctx, every, func() {
		if err := b.Refresh(ctx); err != nil && ctx.Err() == nil {
			b.log.Warn("the setups of other nodes could not be read", "error", err)
		}
	})
}
