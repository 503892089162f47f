package screen

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalikes lists groups of a Latin letter and letters that look like it.
// Letters that Unicode considers compatible (fullwidth, mathematical, circled)
// are not listed: normalization maps them.
const lookalikes = `aаαɑᴀⲁАΑᎪ bвβƅʙᏏВΒᏼᏴ cсᴄϲⲥСϹᏟ dԁɗᴅđᎠ eеεєᴇҽЕΕᎬ fғƒꜰϝ gɡɢցԍᏀ hһнհʜħНΗᎻ iіιıɪӏІΙᎥ jјϳյᴊЈᎫ
kкκᴋКΚᏦ lʟłⅼᏞ mмᴍⅿМΜᎷ nηпոɴΝ oоοօᴏøσОΟⲟ pрρᴘРΡᏢ qԛգզ rгʀᴦᎡᏒ sѕꜱЅᏚᏕ tтτᴛŧТΤᎢ uυսᴜцᑌ
vνᴠѵᏙᐯ wωԝᴡшᎳᏔ xхχⅹХΧ yуγʏүУΥ zᴢᏃΖ`

var lookalike = func() map[rune]rune {
	m := map[rune]rune{}
	for group := range strings.FieldsSeq(lookalikes) {
		latin, size := utf8.DecodeRuneInString(group)
		for _, r := range group[size:] {
			m[r] = latin
		}
	}
	return m
}()

// visible returns text as a reader sees it, in as few alphabets as possible.
// Letters that look Latin become Latin, accents are removed, and invisible
// characters are removed. Characters of the tag block, which are invisible to
// people but not to models, become the ASCII characters they stand for. Case is
// kept, because base64 needs it.
func visible(text string) string {
	i := 0
	for i < len(text) && text[i] < utf8.RuneSelf && !control(text[i]) {
		i++
	}
	if i == len(text) {
		return text
	}
	out := make([]byte, i, len(text)+16)
	copy(out, text)
	for i < len(text) {
		if c := text[i]; c < utf8.RuneSelf {
			i++
			if !control(c) { // models ignore control characters
				out = append(out, c)
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		out = appendFolded(out, r, text[i:i+size])
		i += size
	}
	return string(out)
}

func control(c byte) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f }

// folded holds the folded forms of the first alphabets, because Unicode's
// tables are slow.
var folded = sync.OnceValue(func() []string {
	table := make([]string, 0x3000)
	for r := rune(utf8.RuneSelf); int(r) < len(table); r++ {
		table[r] = string(appendSlowly(nil, r, string(r)))
	}
	return table
})

func appendFolded(out []byte, r rune, raw string) []byte {
	if r < 0x3000 {
		return append(out, folded()[r]...)
	}
	return appendSlowly(out, r, raw)
}

func appendSlowly(out []byte, r rune, raw string) []byte {
	switch {
	case r >= 0xe0020 && r <= 0xe007e:
		return append(out, byte(r-0xe0000))
	case r >= 0x1f130 && r <= 0x1f189: // squared and negative circled letters
		return append(out, 'a'+byte((r-0x1f130)%32%26))
	case r >= 0x1f1e6 && r <= 0x1f1ff: // regional indicators
		return append(out, 'a'+byte(r-0x1f1e6))
	case r == '’' || r == '‘' || r == 'ʼ':
		return append(out, '\'')
	case r >= 0x4e00 && r <= 0x9fff || r >= 0x3040 && r <= 0x30ff:
		return append(out, raw...)
	}
	if latin, ok := lookalike[r]; ok {
		return append(out, byte(latin))
	}
	if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Mn, unicode.Me) || r == '\u3164' || r == '\u115f' ||
		r == '\u1160' || r == '\u2800' {
		return out
	}
	if unicode.IsSpace(r) {
		return append(out, ' ')
	}
	decomposed := norm.NFKD.PropertiesString(raw).Decomposition()
	if decomposed == nil {
		return append(out, raw...)
	}
	for len(decomposed) > 0 {
		d, size := utf8.DecodeRune(decomposed)
		if latin, ok := lookalike[d]; ok {
			out = append(out, byte(latin))
		} else if !unicode.Is(unicode.Mn, d) {
			out = append(out, decomposed[:size]...)
		}
		decomposed = decomposed[size:]
	}
	return out
}
