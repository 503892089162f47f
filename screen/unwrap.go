package screen

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shorter runs are more often words and numbers than hidden text.
const (
	minRun    = 16
	minGroups = 8
	minBinary = 4
)

// plain returns text in readable form: folded by visible, with encoded texts
// decoded in place, up to two levels deep.
func plain(text string) string {
	text = visible(text)
	for range 2 {
		opened, changed := unwrap(text)
		if !changed {
			break
		}
		text = visible(opened)
	}
	return text
}

// unwrap decodes base64, hexadecimal, binary, percent escapes, backslash
// escapes and HTML entities in place. A part that does not decode to readable
// text stays. A decoded text is never longer than its encoding, so unwrap takes
// linear time however deep the nesting is.
func unwrap(text string) (string, bool) {
	var out strings.Builder
	done := 0 // text[:done] is in out
	replace := func(from, to int, with string) {
		if out.Cap() == 0 {
			out.Grow(len(text))
		}
		out.WriteString(text[done:from])
		out.WriteString(with)
		done = to
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '%' || c == '\\' || c == '&':
			if with, size := escape(text[i:]); size > 0 {
				replace(i, i+size, with)
				i += size
				continue
			}
			i++
		case isBase64[c]:
			end := i + 1
			for end < len(text) && isBase64[text[end]] {
				end++
			}
			var with string
			var ok bool
			switch end - i {
			case 2, 4, 8: // the width of a group: 69, 0x69, 01101001
				var to int
				to, with, ok = groups(text, i)
				end = max(end, to)
			default:
				if end-i >= minRun {
					end = wrapped(text, i, end)
					with, ok = decodeRun(text[i:end])
				}
			}
			if ok {
				replace(i, end, " "+with+" ")
			}
			i = end
		default:
			i++
		}
	}
	if done == 0 {
		return text, false
	}
	out.WriteString(text[done:])
	return out.String(), true
}

var isBase64 = func() (t [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=") {
		t[c] = true
	}
	return t
}()

// wrapped returns the end of a run of base64 that begins at from and may be
// broken into lines. All lines but the last must be long.
func wrapped(text string, from, end int) int {
	for line := from; end-line >= 40; {
		next := end
		if next < len(text) && text[next] == '\r' {
			next++
		}
		if next+1 >= len(text) || text[next] != '\n' || !isBase64[text[next+1]] {
			break
		}
		line = next + 1
		for end = line; end < len(text) && isBase64[text[end]]; {
			end++
		}
	}
	return end
}

func decodeRun(run string) (string, bool) {
	run = strings.Trim(run, "=-")
	if len(run) < minRun {
		return "", false
	}
	if isHex(run) {
		if raw, err := hex.DecodeString(run[:len(run)&^1]); err == nil && readable(raw) {
			return string(raw), true
		}
	}
	// The first characters decide, because most runs are words or noise. A run
	// may directly follow other text, so its groups may begin later.
	for shift := range min(4, len(run)-8) {
		if head := decode64(run[shift:min(len(run), shift+24)]); !readable(head) {
			continue
		}
		if raw := decode64(run[shift:]); readable(raw) {
			return run[:shift] + " " + string(raw), true
		}
	}
	return "", false
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

var urlToStd = strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "", "=", "")

func decode64(run string) []byte {
	run = urlToStd.Replace(run)
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	raw, err := base64.RawStdEncoding.DecodeString(run)
	if err != nil {
		// If the run was cut, the unused bits of the last group may not be
		// zero.
		raw, _ = base64.RawStdEncoding.DecodeString(run[:len(run)&^3])
	}
	return raw
}

// readable reports whether raw is text: nearly all letters, spaces and marks.
func readable(raw []byte) bool {
	if len(raw) < 6 {
		return false
	}
	good, all := 0, 0
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && size == 1 {
			if i+utf8.UTFMax <= len(raw) { // a character cut off at the end is no error
				return false
			}
			break
		}
		all++
		if unicode.IsLetter(r) || r == ' ' || r == '\n' || r == ',' || r == '.' || unicode.IsDigit(r) ||
			unicode.In(r, unicode.Cf, unicode.Mn) || r >= 0xe0000 {
			good++
		} else if r < ' ' && r != '\t' && r != '\r' || r == utf8.RuneError {
			return false
		}
		i += size
	}
	return good*10 >= all*8
}

// groups decodes bytes that are written one by one: "69 67 6e", "0x69, 0x67",
// "01101001 01100111". It always returns how far it has read, so that nothing
// is read twice.
func groups(text string, i int) (int, string, bool) {
	if !isHex(text[i : i+1]) {
		return i, "", false
	}
	var raw []byte
	end := i
	width := 0
	for i < len(text) {
		rest := text[i:]
		if width != 8 && len(rest) > 2 && rest[0] == '0' && rest[1]|0x20 == 'x' {
			rest, i = rest[2:], i+2
		}
		n := 0
		for n < len(rest) && n < 9 && (isHex(rest[n : n+1])) {
			n++
		}
		if n != 2 && n != 8 || width != 0 && n != width {
			break
		}
		width = n
		b, ok := groupByte(rest[:n])
		if !ok {
			break
		}
		raw = append(raw, b)
		i += n
		end = i
		for gap := 0; i < len(text) && gap < 2 && strings.IndexByte(" ,:-\n", text[i]) >= 0; gap++ {
			i++
		}
		if i == end {
			break
		}
	}
	ok := (width == 8 && len(raw) >= minBinary || len(raw) >= minGroups) && readable(raw)
	return end, string(raw), ok
}

func groupByte(group string) (b byte, ok bool) {
	if len(group) == 2 {
		raw, err := hex.DecodeString(group)
		return append(raw, 0)[0], err == nil
	}
	for _, c := range []byte(group) {
		if c != '0' && c != '1' {
			return 0, false
		}
		b = b<<1 | c - '0'
	}
	return b, true
}

// escape decodes one %69, \x69, \u0069 or &#105; at the beginning of s.
func escape(s string) (string, int) {
	digits := 0
	switch {
	case s[0] == '%':
		digits = 2
	case s[0] == '&':
		end := strings.IndexByte(s[:min(len(s), 12)], ';')
		if end < 0 {
			return "", 0
		}
		if with := html.UnescapeString(s[:end+1]); with != s[:end+1] {
			return with, end + 1
		}
		return "", 0
	case len(s) > 1 && s[1] == 'x':
		digits = 2
	case len(s) > 1 && s[1] == 'u':
		digits = 4
	case len(s) > 1 && s[1] == 'n':
		return "\n", 2
	default:
		return "", 0
	}
	from := 1
	if s[0] == '\\' {
		from = 2
	}
	if len(s) < from+digits || !isHex(s[from:from+digits]) {
		return "", 0
	}
	raw, _ := hex.DecodeString(s[from : from+digits]) // isHex has checked it
	if digits == 4 {
		return string(rune(raw[0])<<8 | rune(raw[1])), from + digits
	}
	return string(raw), from + digits
}
