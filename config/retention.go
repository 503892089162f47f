package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"parley"
	"parley/port"
)

// Retention contains how long tenants keep their data, from the key retention in the file of --config. If a tenant has
// an entry of its own, only that entry counts.
type Retention struct {
	All     port.Retention
	Tenants map[parley.TenantID]port.Retention
}

// Of returns the rules of a tenant.
func (r Retention) Of(tenant parley.TenantID) port.Retention {
	if own, ok := r.Tenants[tenant]; ok {
		return own
	}
	return r.All
}

// Any reports whether a tenant has a rule.
func (r Retention) Any() bool {
	return r.All != (port.Retention{}) || slices.ContainsFunc(slices.Collect(maps.Values(r.Tenants)),
		func(t port.Retention) bool { return t != (port.Retention{}) })
}

type (
	retentionRules struct {
		Chunks      string `yaml:"chunks"`
		Transcripts string `yaml:"transcripts"`
		Artifacts   string `yaml:"artifacts"`
		Audit       string `yaml:"audit"`
	}
	retentionFile struct {
		Rules   retentionRules            `yaml:",inline"`
		Tenants map[string]retentionRules `yaml:"tenants"`
	}
)

// shortestRetention protects recent data from a mistake in the unit.
const shortestRetention = time.Hour

// readRetention reads the key retention of a file.
func readRetention(doc document) (r Retention, err error) {
	mapping, ok := doc.body.(ast.MapNode)
	if !ok {
		return r, nil
	}
	var file retentionFile
	for it := mapping.MapRange(); it.Next(); {
		if it.Key().GetToken().Value != "retention" {
			continue
		}
		if _, ok := it.Value().(ast.MapNode); !ok {
			return r, at(doc.path, doc.line("retention"), "retention has chunks:, transcripts:, artifacts:, audit: and "+
				"tenants: under it")
		}
		if err := yaml.NodeToValue(it.Value(), &file, yaml.Strict()); err != nil {
			return r, doc.explain(err)
		}
	}
	if r.All, err = file.Rules.read(doc, "retention."); err != nil {
		return r, err
	}
	r.Tenants = map[parley.TenantID]port.Retention{}
	for _, name := range slices.Sorted(maps.Keys(file.Tenants)) {
		key := "retention.tenants." + name
		if !parley.TenantID(name).Valid() {
			return r, at(doc.path, doc.line(key), "%s is no tenant id; use up to 63 of a-z, 0-9 and -, not beginning "+
				"with -", name)
		}
		if r.Tenants[parley.TenantID(name)], err = file.Tenants[name].read(doc, key+"."); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (f retentionRules) read(doc document, prefix string) (r port.Retention, err error) {
	for _, rule := range []struct {
		key, text string
		shortest  time.Duration
		into      *time.Duration
	}{{"chunks", f.Chunks, shortestRetention, &r.Chunks},
		{"transcripts", f.Transcripts, shortestRetention, &r.Transcripts},
		{"artifacts", f.Artifacts, shortestRetention, &r.Artifacts},
		{"audit", f.Audit, port.ShortestAudit, &r.Audit}} {
		if rule.text == "" {
			continue
		}
		d, bad := daysOrDuration(rule.text)
		if bad != nil || d < rule.shortest {
			return r, at(doc.path, doc.line(prefix+rule.key), "%s%s is a time of at least %s, such as 90d or 1000h, not "+
				"%s; leave it out to keep everything", prefix, rule.key, rule.shortest, rule.text)
		}
		*rule.into = d
	}
	return r, nil
}

// daysOrDuration parses a duration, which may be in days.
func daysOrDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
