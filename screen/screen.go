package screen

import (
	"slices"
	"sync/atomic"

	"parley"
	"parley/port"
)

// Screen is a port.Screen.
type Screen struct {
	key      []byte
	mode     string
	sentinel *Sentinel
	own      []string
	redactor atomic.Pointer[Redactor]
}

var _ port.Screen = (*Screen)(nil)

// New makes the screen of a server. The key is what canaries are made of; own
// are secrets of the server itself. The mode says what becomes of what the
// sentinel finds: block, flag (what would be blocked is flagged) or off.
func New(key []byte, mode string, own ...string) *Screen {
	s := &Screen{key: key, mode: mode, sentinel: Default(), own: own}
	s.Also()
	return s
}

// Also has more secrets be taken out from now on, in place of those of the last call.
func (s *Screen) Also(secrets ...string) {
	s.redactor.Store(NewRedactor(slices.Concat(s.own, secrets)...))
}

// Prepare makes what all screens share, which takes some milliseconds. New and
// the first message would otherwise wait for it.
func Prepare() {
	Default()
	theSecretGrammar()
}

func (s *Screen) Scan(recent []string, text string) parley.Finding {
	if s.mode == "off" {
		return parley.Finding{Verdict: parley.ScreenAllow}
	}
	f := s.sentinel.Scan(recent, text)
	if s.mode == "flag" && f.Verdict == Block {
		f.Verdict = Flag
	}
	return parley.Finding{Verdict: parley.ScreenVerdict(f.Verdict), Score: f.Score, Reason: f.Reason}
}

func (s *Screen) Canary(tenant parley.TenantID, session parley.SessionID) port.Canary {
	return word(Canary(s.key, string(tenant), string(session)))
}

func (s *Screen) Redactor() port.Filter { return redacting{s.redactor.Load().Stream()} }

func (s *Screen) HasSecret(text string) bool { return s.redactor.Load().HasOwn(text) }

// word is the canary of one session.
type word string

func (w word) Word() string              { return string(w) }
func (w word) Filter() port.LeakFilter   { return &leaks{Filter: NewFilter(string(w))} }
func (w word) Contains(text string) bool { return Contains(string(w), text) }

// leaks is a Filter that remembers.
type leaks struct {
	*Filter
	leaked bool
}

func (l *leaks) Write(piece string) (safe string) {
	safe, l.leaked = l.Filter.Write(piece)
	return safe
}

func (l *leaks) Leaked() bool { return l.leaked }

// redacting is a RedactStream that does not say what it found.
type redacting struct{ s *RedactStream }

func (r redacting) Write(piece string) string {
	text, _ := r.s.Write(piece)
	return text
}

func (r redacting) Close() string {
	text, _ := r.s.Close()
	return text
}
