package screen

import "strings"

// A scanner searches one text for secrets. Each of its methods passes through
// the text once and adds its findings.
type scanner struct {
	rules *secretGrammar
	text  string
	spans []span
}

func (s *scanner) add(from, to int, kind string) { s.spans = append(s.spans, span{from, to, kind}) }

func (s *scanner) ownSecrets(own *trie) {
	at := int32(0)
	for i := range len(s.text) {
		at = own.step(at, s.text[i])
		if n := int(own.nodes[at].match); n > 0 {
			s.add(i+1-n, i+1, "own")
		}
	}
}

// prefixes finds tokens that begin with the fixed prefix of their issuer.
func (s *scanner) prefixes() {
	at, done := int32(0), 0
	for i := range len(s.text) {
		at = s.rules.prefix.step(at, toLower(s.text[i]))
		n := int(s.rules.prefix.nodes[at].match)
		from := i + 1 - n
		if n == 0 || i < done || from > 0 && (isAlnum(s.text[from-1]) || s.text[from-1] == '+' ||
			s.text[from-1] == '/') {
			continue
		}
		written := s.text[from : i+1]
		p := s.rules.shapes[strings.ToLower(written)]
		if written != p.text && strings.IndexFunc(p.text, notAlnum) < 0 {
			continue
		}
		end := i + 1
		for end < len(s.text) && (isAlnum(s.text[end]) && (!p.hex || hexDigit(s.text[end]) < 16) ||
			p.wide && strings.IndexByte("-_.=+/~", s.text[end]) >= 0) {
			end++
		}
		end = from + len(strings.TrimRight(s.text[from:end], ".-/"))
		if tail := s.text[min(i+1, end):end]; len(tail) >= p.min && (!p.wide || !isWords(tail)) {
			if last := len(s.spans) - 1; last >= 0 && s.spans[last].from == from && s.spans[last].kind != "own" {
				s.spans = s.spans[:last] // of two prefixes at the same place, the longer one is more specific
			}
			s.add(from, end, p.kind)
		}
		if end-i > 1000 { // search a run this long only once, for its first prefix
			done = end
		}
	}
}

func notAlnum(r rune) bool { return r > 0x7f || !isAlnum(byte(r)) }

// isWords reports whether s consists of words, perhaps with a number among
// them. A part that mixes letters and digits, or lower case and capitals, is
// not a word.
func isWords(s string) bool {
	letters, digits, turns, pairs, allDigits := 0, 0, 0, 0, 0
	for i := range len(s) + 1 {
		switch {
		case i == len(s) || !isAlnum(s[i]):
			if letters > 0 && digits > 0 && letters+digits >= 4 || turns > 3 && pairs > 1 {
				return false
			}
			letters, digits, turns, pairs = 0, 0, 0, 0
		case s[i] <= '9':
			digits++
			allDigits++
		default:
			letters++
			switch {
			case letters < 2:
			case isUpper(s[i]) != isUpper(s[i-1]):
				turns++
			case isUpper(s[i]):
				pairs++
			}
		}
	}
	return allDigits*3 < len(s)
}

func (s *scanner) infixes() {
	for _, p := range s.rules.infixes {
		for from := 0; ; {
			i := strings.Index(s.text[from:], p.text)
			if i < 0 {
				break
			}
			i += from
			begin, end := i, i+len(p.text)
			for begin > from && isTokenByte(s.text[begin-1]) {
				begin--
			}
			for end < len(s.text) && isTokenByte(s.text[end]) {
				end++
			}
			if end-begin >= p.min {
				s.add(begin, end, p.kind)
			}
			from = end
		}
	}
	// A JSON web token: parts separated by dots. The first two begin alike,
	// because they are JSON.
	for from := 0; ; {
		i := strings.Index(s.text[from:], ".ey")
		if i < 0 {
			break
		}
		dot := from + i
		begin, end := dot, dot+1
		for begin > from && isTokenByte(s.text[begin-1]) && s.text[begin-1] != '.' {
			begin--
		}
		for end < len(s.text) && isTokenByte(s.text[end]) {
			end++
		}
		if head := strings.TrimLeft(s.text[begin:dot], "=/+-_"); strings.HasPrefix(head, "ey") && len(head) >= 17 &&
			end-dot > 17 {
			s.add(dot-len(head), end, "jwt")
		}
		from = end
	}
}

func isTokenByte(c byte) bool {
	return isAlnum(c) || c == '-' || c == '_' || c == '.' || c == '~' || c == '/' || c == '=' || c == '+'
}

// urls finds passwords in URLs, and URLs that are secrets themselves.
func (s *scanner) urls() {
	for from := 0; ; {
		i := strings.Index(s.text[from:], "://")
		if i < 0 {
			return
		}
		host := from + i + 3
		end := host
		for end < len(s.text) && s.text[end] > ' ' && s.text[end] < 0x7f &&
			strings.IndexByte("\"'`<>()", s.text[end]) < 0 {
			end++
		}
		from = end
		rest := s.text[host:end]
		authority := rest
		if slash := strings.IndexByte(rest, '/'); slash >= 0 {
			authority = rest[:slash]
		}
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			if colon := strings.IndexByte(authority[:at], ':'); colon >= 0 && at-colon > 3 &&
				!isPlaceholder(authority[colon+1:at]) {
				s.add(host+colon+1, host+at, "url_password")
			}
		}
		if i := strings.Index(rest, "hook"); i >= 0 {
			for part := range strings.SplitSeq(rest[i:], "/") {
				if looksRandom(part, 16) {
					s.add(host, end, "webhook")
					break
				}
			}
		}
	}
}

// authorizations finds credentials after Bearer and Basic, and after curl -u.
func (s *scanner) authorizations() {
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER ", "Basic ", "basic ", "BASIC "} {
		for from := 0; ; {
			i := strings.Index(s.text[from:], scheme)
			if i < 0 {
				break
			}
			begin := from + i + len(scheme)
			end := begin
			for end < len(s.text) && isTokenByte(s.text[end]) {
				end++
			}
			from = end
			if value := s.text[begin:end]; looksRandom(value, 12) || len(value) >= 12 && strings.HasSuffix(value, "=") {
				s.add(begin, end, "authorization")
			}
		}
	}
	for _, option := range []string{" -u", " --user"} {
		for from := 0; ; {
			i := strings.Index(s.text[from:], option)
			if i < 0 {
				break
			}
			begin := from + i + len(option)
			from = begin
			line := s.text[begin:min(len(s.text), begin+300)]
			if n := strings.IndexByte(line, '\n'); n >= 0 {
				line = line[:n]
			}
			value := strings.TrimLeft(line, " =")
			begin += len(line) - len(value)
			stop := " \t"
			if value != "" && (value[0] == '"' || value[0] == '\'') {
				stop = value[:1]
				value = value[1:]
				begin++
			}
			if n := strings.IndexAny(value, stop); n >= 0 {
				value = value[:n]
			}
			before := s.text[max(0, begin-1000):begin]
			before = before[lineStart(before, len(before)):]
			if user, password, ok := strings.Cut(value, ":"); ok && len(user)+len(password) >= 4 &&
				!strings.HasPrefix(password, "$") &&
				strings.Contains(before, "curl") {
				s.add(begin, begin+len(value), "authorization")
			}
		}
	}
}

// isPlaceholder reports whether a value is only a placeholder for a secret.
func isPlaceholder(v string) bool {
	if v == "" || strings.ContainsAny(v, "<>{}$()[]") || strings.HasPrefix(v, "%") || strings.Trim(v, "*") == "" ||
		strings.Trim(v, "xX.") == "" {
		return true
	}
	switch strings.ToLower(v) {
	case "null", "none", "true", "false", "string", "password", "secret", "token", "nil", "undefined", "changeme",
		"redacted":
		return true
	}
	return false
}

// looksRandom reports whether v has at least n bytes and mixes letters and
// digits like no word or number.
func looksRandom(v string, n int) bool {
	if len(v) < n {
		return false
	}
	v = v[:min(len(v), 96)]
	letters, digits, changes, distinct := 0, 0, 0, 0
	var seen [256]bool
	var before byte
	for i := range len(v) {
		c := v[i]
		kind := byte('-')
		switch {
		case c >= '0' && c <= '9':
			kind = '0'
			digits++
		case c >= 'a' && c <= 'z':
			kind = 'a'
			letters++
		case c >= 'A' && c <= 'Z':
			kind = 'A'
			letters++
		}
		if i > 0 && kind != before {
			changes++
		}
		before = kind
		if !seen[c] {
			seen[c] = true
			distinct++
		}
	}
	return digits >= 2 && letters >= 2 && changes*5 >= len(v) && distinct >= 7
}

// nameKindOf returns what a name says about its value. A part that marks a
// secret decides, unless the last part marks a harmless value: token_id,
// key_hash.
func (g *secretGrammar) nameKindOf(name string) nameKind {
	kind, last := unknownName, unknownName
	word := make([]byte, 0, 64)
	flush := func() {
		if len(word) == 0 {
			return
		}
		if last = g.names[string(word)]; last == unknownName {
			last = g.beginning(word)
		}
		kind = max(kind, last)
		word = word[:0]
	}
	for i := range len(name) {
		c := name[i]
		if !isAlnum(c) || isUpper(c) && i > 0 && name[i-1] >= 'a' {
			flush()
		}
		if isAlnum(c) {
			word = append(word, toLower(c))
		}
	}
	flush()
	if last == harmlessName && kind == secretName {
		return harmlessName
	}
	return kind
}

// beginning classifies a word that is a compound without separators:
// dbpassword, herokukey.
func (g *secretGrammar) beginning(word []byte) nameKind {
	for n := min(len(word)-1, 12); n >= 4; n-- {
		if k := g.names[string(word[:n])]; k == serviceName {
			return k
		}
		if k := g.names[string(word[len(word)-n:])]; k >= secretName {
			return k
		}
	}
	return unknownName
}
