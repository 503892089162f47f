package tui

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// screenBuffer is a terminal that closes a channel when it has received a given text.
type screenBuffer struct {
	mu    sync.Mutex
	text  bytes.Buffer
	await string
	seen  chan struct{}
}

func (b *screenBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(p)
	if b.await != "" && strings.Contains(b.text.String(), b.await) {
		b.await = ""
		close(b.seen)
	}
	return len(p), nil
}

// TestACrashRestoresTheTerminal checks that a panic in a goroutine of the screen leaves the terminal as it was before.
func TestACrashRestoresTheTerminal(t *testing.T) {
	out := &screenBuffer{await: "\x1b[?1049h", seen: make(chan struct{})}
	e := &edge{ctx: context.Background()}
	p := tea.NewProgram(screen{model: newTestModel(), edge: e}, tea.WithInput(nil), tea.WithOutput(out),
		tea.WithWindowSize(60, 20), tea.WithoutSignals(), tea.WithEnvironment([]string{"TERM=xterm-256color"}))
	e.feed = &feed{session: testSession, updates: make(chan update, 1), cancel: func() {}}
	e.feed.updates <- update{crash: "a bug, which this test plants"}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-out.seen
		p.Send(updatesMsg{session: testSession}) // now the screen waits for the next updates
	}()
	_, err := p.Run()
	<-ended
	if !errors.Is(err, tea.ErrProgramPanic) {
		t.Errorf("the program ended with %v", err)
	}
	if text := out.text.String(); strings.LastIndex(text, "\x1b[?1049l") < strings.LastIndex(text, "\x1b[?1049h") {
		t.Errorf("the terminal is left in the alternate screen: %q", text)
	}
}
