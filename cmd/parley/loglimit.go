package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// In each logWindow, at most maxLines lines of the same message are logged.
// Otherwise a full disk, or a client that is refused again and again, would
// fill the log.
const (
	maxLines  = 20
	logWindow = 10 * time.Second
)

// A logLimiter passes log records to the next handler. Of the warnings and
// errors with the same message, it suppresses those above the limit, and logs
// their number when the window ends. Close must be called; it logs the
// remaining numbers.
type logLimiter struct {
	next  slog.Handler
	state *limiterState // shared with the handlers that are derived from this one
}

type limiterState struct {
	plain slog.Handler // the handler without attributes, for the numbers of suppressed lines

	mu      sync.Mutex // guards the fields below; leaf
	closed  bool
	windows map[string]*logWindowOf // by message; there are few, because messages are constants
}

// A logWindowOf counts the lines of one message.
type logWindowOf struct {
	level      slog.Level // of the first suppressed line
	lines      int
	suppressed int
	end        *time.Timer
}

func newLogLimiter(next slog.Handler) *logLimiter {
	return &logLimiter{next, &limiterState{plain: next, windows: map[string]*logWindowOf{}}}
}

func (l *logLimiter) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}
func (l *logLimiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logLimiter{l.next.WithAttrs(attrs), l.state}
}
func (l *logLimiter) WithGroup(name string) slog.Handler {
	return &logLimiter{l.next.WithGroup(name), l.state}
}

func (l *logLimiter) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && !l.state.admit(r.Level, r.Message) {
		return nil
	}
	return l.next.Handle(ctx, r)
}

// admit reports whether a line may be logged.
func (s *limiterState) admit(level slog.Level, message string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.windows[message]
	if w == nil {
		w = &logWindowOf{}
		if !s.closed {
			w.end = time.AfterFunc(logWindow, func() { s.endWindow(message) })
			s.windows[message] = w
		}
	}
	if w.lines++; w.lines <= maxLines {
		return true
	}
	if w.suppressed++; w.suppressed == 1 {
		w.level = level
	}
	return false
}

func (s *limiterState) endWindow(message string) {
	s.mu.Lock()
	w := s.windows[message]
	delete(s.windows, message)
	s.mu.Unlock()
	if w != nil {
		s.summarize(message, w)
	}
}

func (s *limiterState) summarize(message string, w *logWindowOf) {
	if w.suppressed == 0 {
		return
	}
	r := slog.NewRecord(time.Now(), w.level, message, 0)
	r.AddAttrs(slog.Int("suppressed", w.suppressed))
	_ = s.plain.Handle(context.Background(), r) // a log that fails cannot report it
}

// Close logs the numbers of the open windows. Later records are passed on
// without a limit.
func (l *logLimiter) Close() error {
	l.state.mu.Lock()
	open := l.state.windows
	l.state.windows, l.state.closed = map[string]*logWindowOf{}, true
	l.state.mu.Unlock()
	for message, w := range open {
		w.end.Stop()
		l.state.summarize(message, w)
	}
	return nil
}
