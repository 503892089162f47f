package provider

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"parley/port"
)

// A lister is a vendor that only lists its models.
type lister struct {
	speaker
	names []string
	err   error
	asked int
}

func (l *lister) List(context.Context) ([]string, error) {
	l.asked++
	return l.names, l.err
}

// TestOffers checks that every vendor with a key is asked, but not for every client.
func TestOffers(t *testing.T) {
	m := New(Config{Anthropic: Account{Key: "k"}, OpenAI: Account{BaseURL: "http://127.0.0.1:1/v1"},
		Google: Account{Key: "k"}})
	defer m.Close()
	claude := &lister{names: []string{"claude-sonnet-4-5", "claude-unheard-of"}}
	own := &lister{names: []string{"claude-elsewhere", "llama3.2:latest"}}
	gemini := &lister{names: []string{"models/gemini-2.5-pro"}}
	for name, l := range map[string]*lister{Anthropic: claude, OpenAI: own, Google: gemini} {
		l.speaker, m.now.Load().speakers[name] = m.now.Load().speakers[name], l
	}
	now := time.Unix(0, 0)
	offers := NewOffers(m, slog.New(slog.DiscardHandler), func() time.Time { return now })
	want := []port.ModelInfo{
		{ID: "claude-sonnet-4-5", Provider: Anthropic, Default: true, Window: 200_000, InputPrice: 3, OutputPrice: 15},
		{ID: "claude-unheard-of", Provider: Anthropic},
		{ID: "llama3.2:latest", Provider: OpenAI},
		{ID: "gemini-2.5-pro", Provider: Google, Window: 1_048_576, InputPrice: 1.25, OutputPrice: 10},
		{ID: Demo, Provider: Demo},
	}
	expect := func(byDefault string, asked int) {
		t.Helper()
		got, err := offers.List(t.Context(), byDefault)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v %+v", err, got)
		}
		if claude.asked != asked {
			t.Errorf("asked %d times, want %d", claude.asked, asked)
		}
	}
	expect("", 1)
	expect("", 1)

	// A vendor that does not answer keeps its list, and is soon asked again.
	now = now.Add(offersHold)
	own.err = errors.New("it does not run")
	expect("", 2)
	now = now.Add(offersRetry)
	expect("", 3)

	// A tenant may have chosen a default model that no vendor lists.
	want = append([]port.ModelInfo{{ID: "gpt-4.1", Provider: OpenAI, Default: true, Window: 1_047_576, InputPrice: 2,
		OutputPrice: 8}}, want...)
	want[1].Default = false
	expect("gpt-4.1", 3)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	offers.turn <- struct{}{} // another client is asking
	if _, err := offers.List(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestTheDemoIsOffered checks that the demo is offered without any key.
func TestTheDemoIsOffered(t *testing.T) {
	m := New(Config{})
	defer m.Close()
	got, err := NewOffers(m, slog.New(slog.DiscardHandler), time.Now).List(t.Context(), "")
	if err != nil || !reflect.DeepEqual(got, []port.ModelInfo{{ID: Demo, Provider: Demo, Default: true}}) {
		t.Errorf("%v %+v", err, got)
	}
}
