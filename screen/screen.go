package screen

import (
	"cmp"
	"slices"
	"sync/atomic"

	"parley"
	"parley/port"
)

// Screen implements port.Screen.
type Screen struct {
	key      []byte
	mode     string
	sentinel *Sentinel
	own      []string
	known    atomic.Pointer[redactors]
}

// redactors holds a redactor for the server's own secrets and others that know more.
type redactors struct {
	server *Redactor
	tenant map[parley.TenantID]*Redactor // for the secrets of the server and of the tenant
	all    *Redactor                     // for the secrets of the server and of all tenants
}

var _ port.Screen = (*Screen)(nil)

// New returns the screen of a server. Canaries are derived from key; own lists
// the secrets of the server itself. mode decides what happens to findings of
// the sentinel: block, flag (findings that would block only flag) or off.
func New(key []byte, mode string, own ...string) *Screen {
	s := &Screen{key: key, mode: mode, sentinel: Default(), own: own}
	s.Also(nil)
	return s
}

// Also replaces the secrets of tenants. A tenant's secrets are removed from text for that tenant, and from the server's
// log.
func (s *Screen) Also(secrets map[parley.TenantID][]string) {
	r := &redactors{server: NewRedactor(s.own...), tenant: map[parley.TenantID]*Redactor{}}
	all := slices.Clone(s.own)
	for tenant, list := range secrets {
		r.tenant[tenant] = NewRedactor(slices.Concat(s.own, list)...)
		all = append(all, list...)
	}
	r.all = r.server
	if len(secrets) > 0 {
		r.all = NewRedactor(all...)
	}
	s.known.Store(r)
}

func (s *Screen) of(tenant parley.TenantID) *Redactor {
	r := s.known.Load()
	return cmp.Or(r.tenant[tenant], r.server)
}

// Prepare builds the data that all screens share, which takes some
// milliseconds. Otherwise New and the first message would wait for it.
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

func (s *Screen) Redactor(tenant parley.TenantID) port.Filter {
	return redacting{s.of(tenant).Stream()}
}

func (s *Screen) LogRedactor() port.Filter { return redacting{s.known.Load().all.Stream()} }

func (s *Screen) HasSecret(tenant parley.TenantID, text string) bool {
	return s.of(tenant).HasOwn(text)
}

// word is the canary of one session.
type word string

func (w word) Word() string              { return string(w) }
func (w word) Filter() port.LeakFilter   { return &leaks{Filter: NewFilter(string(w))} }
func (w word) Contains(text string) bool { return Contains(string(w), text) }

// leaks is a Filter that remembers whether it found the token.
type leaks struct {
	*Filter
	leaked bool
}

func (l *leaks) Write(piece string) (safe string) {
	safe, l.leaked = l.Filter.Write(piece)
	return safe
}

func (l *leaks) Leaked() bool { return l.leaked }

// redacting is a RedactStream that does not return its findings.
type redacting struct{ s *RedactStream }

func (r redacting) Write(piece string) string {
	text, _ := r.s.Write(piece)
	return text
}

func (r redacting) Close() string {
	text, _ := r.s.Close()
	return text
}
