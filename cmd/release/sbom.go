package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The SBOM is in the JSON format of CycloneDX 1.6. It lists the contents of the binaries: Go modules, the standard
// library of Go, and the npm packages in the console. Tools for builds and tests are not included.

type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     bomMetadata  `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type bomMetadata struct {
	Timestamp string    `json:"timestamp,omitempty"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Group      string     `json:"group,omitempty"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hashes     []bomHash  `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	Expression string `json:"expression"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// A module is a library in a Go binary.
type module struct{ path, version, sum string }

// modulesOf returns the modules of all binaries, sorted by path. Different systems need different modules.
func modulesOf(binaries []string) ([]module, error) {
	all := map[module]bool{}
	for _, name := range binaries {
		info, err := buildinfo.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all[module{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}] = true
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			all[module{m.Path, m.Version, m.Sum}] = true
		}
	}
	byPath := func(a, b module) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version)) }
	return slices.SortedFunc(maps.Keys(all), byPath), nil
}

// newBOM returns the SBOM of a release. lock is the package-lock.json of the console.
func newBOM(version string, at time.Time, modules []module, lock []byte) ([]byte, error) {
	packages, err := npmPackages(lock)
	if err != nil {
		return nil, err
	}
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1}
	if !at.IsZero() {
		b.Metadata.Timestamp = at.UTC().Format(time.RFC3339)
	}
	b.Metadata.Component = component{Type: "application", Ref: "parley", Name: "parley", Version: version,
		Licenses: []license{{"Apache-2.0"}}}
	for _, m := range modules {
		c := component{Type: "library", Ref: "pkg:golang/" + m.path + "@" + m.version, Name: m.path, Version: m.version}
		c.PURL = c.Ref
		if m.sum != "" { // the sum covers all files of the module, so it is not a hash of a file
			c.Properties = []property{{"parley:go.sum", m.sum}}
		}
		b.Components = append(b.Components, c)
	}
	b.Components = append(b.Components, packages...)
	all := dependency{Ref: "parley"}
	for _, c := range b.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{all}
	raw, err := json.MarshalIndent(b, "", "  ")
	return append(raw, '\n'), err
}

// npmPackages returns the packages in a lock file that become part of the console.
func npmPackages(lock []byte) (list []component, err error) {
	var file struct {
		LockfileVersion int
		Packages        map[string]struct {
			Version, Integrity, License string
			Dev, Optional, DevOptional  bool
		}
	}
	if err := json.Unmarshal(lock, &file); err != nil {
		return nil, fmt.Errorf("package-lock.json: %w", err)
	}
	if file.LockfileVersion != 3 {
		return nil, fmt.Errorf("package-lock.json has version %d; this program reads version 3", file.LockfileVersion)
	}
	seen := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(file.Packages)) {
		p := file.Packages[path]
		at := strings.LastIndex(path, "node_modules/")
		if at < 0 || p.Dev || p.DevOptional || p.Optional {
			continue
		}
		name := path[at+len("node_modules/"):]
		c := component{Type: "library", Name: name, Version: p.Version}
		c.PURL = "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + url.PathEscape(p.Version)
		c.Ref = c.PURL
		if scope, rest, scoped := strings.Cut(name, "/"); scoped {
			c.Group, c.Name = scope, rest
		}
		if p.License != "" {
			c.Licenses = []license{{p.License}}
		}
		if c.Hashes, err = hashes(p.Integrity); err != nil {
			return nil, fmt.Errorf("package-lock.json: %s: %w", name, err)
		}
		if !seen[c.Ref] {
			list, seen[c.Ref] = append(list, c), true
		}
	}
	return list, nil
}

// hashes parses npm's format: an algorithm, a hyphen and the hash in base64.
func hashes(integrity string) (list []bomHash, err error) {
	for field := range strings.FieldsSeq(integrity) {
		algorithm, encoded, ok := strings.Cut(field, "-")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !ok {
			return nil, fmt.Errorf("the hash %q cannot be read", field)
		}
		list = append(list, bomHash{"SHA-" + strings.TrimPrefix(algorithm, "sha"), hex.EncodeToString(raw)})
	}
	return list, nil
}
