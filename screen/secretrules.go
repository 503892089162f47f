package screen

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed secrets.yaml
var secretRules []byte

// A shape is a kind of secret that is recognized by a fixed part.
type shape struct {
	kind string
	text string
	min  int
	wide bool
	hex  bool
}

// A nameKind is what the name of a value says about the value.
type nameKind int

const (
	unknownName nameKind = iota
	harmlessName
	serviceName
	secretName
	passwordName
)

// secretGrammar is the compiled form of secrets.yaml.
type secretGrammar struct {
	shapes  map[string]shape // the prefixes, by their text in lower case
	prefix  *trie
	infixes []shape
	names   map[string]nameKind
}

// theSecretGrammar returns the compiled secrets.yaml. The file is part of the
// program, and tests check that it is valid.
var theSecretGrammar = sync.OnceValue(func() *secretGrammar {
	var file struct {
		Prefixes map[string]struct {
			Min    int      `yaml:"min"`
			Wide   bool     `yaml:"wide"`
			Hex    bool     `yaml:"hex"`
			Begins []string `yaml:"begins"`
		} `yaml:"prefixes"`
		Infixes map[string]struct {
			Min int      `yaml:"min"`
			Has []string `yaml:"has"`
		} `yaml:"infixes"`
		Names struct {
			Secret   []string `yaml:"secret"`
			Password []string `yaml:"password"`
			Service  []string `yaml:"service"`
			Harmless []string `yaml:"harmless"`
		} `yaml:"names"`
	}
	if err := yaml.NewDecoder(bytes.NewReader(secretRules), yaml.DisallowUnknownField()).Decode(&file); err != nil {
		panic(err)
	}
	g := &secretGrammar{shapes: map[string]shape{}, names: map[string]nameKind{}}
	var texts []string
	for kind, p := range file.Prefixes {
		for _, text := range p.Begins {
			low := strings.ToLower(text)
			if old, ok := g.shapes[low]; ok && old.min <= p.Min {
				continue
			}
			g.shapes[low] = shape{kind, text, p.Min, p.Wide, p.Hex}
			texts = append(texts, low)
		}
	}
	g.prefix = newTrie(texts)
	for kind, p := range file.Infixes {
		for _, text := range p.Has {
			g.infixes = append(g.infixes, shape{kind: kind, text: text, min: p.Min})
		}
	}
	slices.SortFunc(g.infixes, func(a, b shape) int { return strings.Compare(a.text, b.text) }) // map order
	for _, list := range []struct {
		kind  nameKind
		words []string
	}{{harmlessName, file.Names.Harmless}, {serviceName, file.Names.Service}, {secretName, file.Names.Secret},
		{passwordName, file.Names.Password}} {
		for _, w := range list.words {
			g.names[w] = list.kind
		}
	}
	return g
})
