package screen

import (
	"math/rand/v2"
	"os"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
	"unicode"
)

// A foreignRule is a gitleaks rule for secrets. The tests use it only to make
// texts with secrets in them.
type foreignRule struct {
	id       string
	regex    *regexp.Regexp
	keywords []string
}

// foreignRules parses the subset of TOML that the file uses.
func foreignRules(t testing.TB) (rules []foreignRule) {
	raw, err := os.ReadFile(corpus(t, "secrets", "gitleaks.toml"))
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile(`"([^"]*)"`)
	for _, block := range strings.Split(string(raw), "[[rules]]")[1:] {
		block, _, _ = strings.Cut(block, "[[rules.allowlists]]")
		var r foreignRule
		lists := false
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			key, value, _ := strings.Cut(line, " = ")
			switch {
			case key == "id":
				r.id = strings.Trim(value, `"`)
			case key == "regex":
				r.regex = regexp.MustCompile(strings.TrimSuffix(strings.TrimPrefix(value, "'''"), "'''"))
			case key == "keywords":
				lists = true
				fallthrough
			case lists:
				for _, m := range quoted.FindAllStringSubmatch(line, -1) {
					r.keywords = append(r.keywords, m[1])
				}
				lists = !strings.Contains(line, "]")
			}
		}
		if r.regex != nil {
			rules = append(rules, r)
		}
	}
	if len(rules) < 200 {
		t.Fatalf("only %d rules", len(rules))
	}
	return rules
}

// A maker makes texts that match a regular expression.
type maker struct {
	r    *rand.Rand
	wild bool // include optional parts, with random contents
}

// sample returns a text that matches the rule, with one of its keywords, and
// the secret in it.
func (m maker) sample(rule foreignRule) (text, secret string) {
	parsed, err := syntax.Parse(rule.regex.String(), syntax.Perl)
	if err != nil {
		return "", ""
	}
	for range 200 {
		var b strings.Builder
		m.write(&b, parsed)
		text := b.String()
		if len(rule.keywords) > 0 && !m.has(text, rule.keywords) {
			text = rule.keywords[m.r.IntN(len(rule.keywords))] + " " + text
		}
		groups := rule.regex.FindStringSubmatch(text)
		if groups == nil {
			continue
		}
		secret := ""
		for _, g := range groups[1:] { // some groups only contain a part of the name
			if len(g) > len(secret) {
				secret = g
			}
		}
		if len(secret) < 8 {
			secret = groups[0]
		}
		return text, strings.Trim(secret, "\"'`")
	}
	return "", ""
}

func (m maker) has(text string, keywords []string) bool {
	text = strings.ToLower(text)
	for _, k := range keywords {
		if strings.Contains(text, strings.ToLower(k)) {
			return true
		}
	}
	return false
}

func (m maker) write(b *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			b.WriteRune(c)
		}
	case syntax.OpCharClass:
		b.WriteRune(m.pick(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(byte('a' + m.r.IntN(26)))
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			m.write(b, sub)
		}
	case syntax.OpAlternate:
		m.write(b, re.Sub[m.r.IntN(len(re.Sub))])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		least, most := map[syntax.Op]int{syntax.OpPlus: 1, syntax.OpRepeat: re.Min}[re.Op], re.Max
		if re.Op != syntax.OpRepeat {
			most = least + 1
		}
		if most < 0 || most > least+12 {
			most = least + 12
		}
		n := least
		if least > 0 || m.wild && re.Flags&syntax.NonGreedy == 0 {
			n += m.r.IntN(most - least + 1)
		}
		for range n {
			m.write(b, re.Sub[0])
		}
	}
}

// pick returns a printable character of a class.
func (m maker) pick(class []rune) rune {
	var some []rune
	for i := 0; i < len(class); i += 2 {
		for r := class[i]; r <= min(class[i+1], 0x7e); r++ {
			if r == ' ' || unicode.IsGraphic(r) && r != ' ' {
				some = append(some, r)
			}
		}
	}
	if len(some) == 0 {
		return ' '
	}
	return some[m.r.IntN(len(some))]
}
