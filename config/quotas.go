package config

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"parley"
	"parley/port"
)

// Quotas are the limits for tenants and their users, from the key quotas in the file of --config. If a tenant has an
// entry of its own, only that entry counts.
type Quotas struct {
	All     port.Quotas
	Tenants map[parley.TenantID]port.Quotas
}

// Of returns the quotas of a tenant.
func (q Quotas) Of(tenant parley.TenantID) port.Quotas {
	if own, ok := q.Tenants[tenant]; ok {
		return own
	}
	return q.All
}

// Any reports whether a tenant or a user has a limit.
func (q Quotas) Any() bool {
	return q.All != (port.Quotas{}) || slices.ContainsFunc(slices.Collect(maps.Values(q.Tenants)),
		func(t port.Quotas) bool { return t != (port.Quotas{}) })
}

type (
	quotaFile struct {
		Sessions  *int64   `yaml:"sessions"`
		Tokens    *int64   `yaml:"tokens"`
		CostUSD   *float64 `yaml:"cost_usd"`
		StorageMB *int64   `yaml:"storage_mb"`
	}
	tenantQuotas struct {
		Tenant quotaFile `yaml:"tenant"`
		User   quotaFile `yaml:"user"`
	}
	quotasFile struct {
		Tenant  quotaFile               `yaml:"tenant"`
		User    quotaFile               `yaml:"user"`
		Tenants map[string]tenantQuotas `yaml:"tenants"`
	}
)

// Largest values. They are far beyond any use, and sums of them do not overflow.
const (
	mostCounted   = 1 << 50
	mostCostUSD   = 1e9
	mostStorageMB = 1 << 40
)

// readQuotas reads the key quotas of a file.
func readQuotas(doc document) (q Quotas, err error) {
	mapping, ok := doc.body.(ast.MapNode)
	if !ok {
		return q, nil
	}
	var file quotasFile
	for it := mapping.MapRange(); it.Next(); {
		if it.Key().GetToken().Value != "quotas" {
			continue
		}
		if _, ok := it.Value().(ast.MapNode); !ok {
			return q, at(doc.path, doc.line("quotas"), "quotas has tenant:, user: and tenants: under it")
		}
		if err := yaml.NodeToValue(it.Value(), &file, yaml.Strict()); err != nil {
			return q, doc.explain(err)
		}
	}
	if q.All, err = (tenantQuotas{file.Tenant, file.User}).read(doc, "quotas."); err != nil {
		return q, err
	}
	q.Tenants = map[parley.TenantID]port.Quotas{}
	for _, name := range slices.Sorted(maps.Keys(file.Tenants)) {
		key := "quotas.tenants." + name
		if !parley.TenantID(name).Valid() {
			return q, at(doc.path, doc.line(key), "%s is no tenant id; use up to 63 of a-z, 0-9 and -, not beginning "+
				"with -", name)
		}
		if q.Tenants[parley.TenantID(name)], err = file.Tenants[name].read(doc, key+"."); err != nil {
			return q, err
		}
	}
	return q, nil
}

func (f tenantQuotas) read(doc document, prefix string) (q port.Quotas, err error) {
	if q.Tenant, err = f.Tenant.read(doc, prefix+"tenant."); err == nil {
		q.User, err = f.User.read(doc, prefix+"user.")
	}
	return q, err
}

// read converts one set of quotas. It rejects zero, because zero could mean either nothing or no limit.
func (f quotaFile) read(doc document, prefix string) (q port.Quota, err error) {
	whole := func(key string, value *int64, most, unit int64, into *int64) {
		switch {
		case value == nil || err != nil:
		case strings.Contains(doc.text(prefix+key), "."): // the decoder would cut off the fraction
			err = at(doc.path, doc.line(prefix+key), "a whole number is wanted here")
		case *value < 1 || *value > most:
			err = at(doc.path, doc.line(prefix+key), "%s%s is 1 to %d, not %d; leave it out for no limit", prefix, key,
				most, *value)
		default:
			*into = *value * unit
		}
	}
	whole("sessions", f.Sessions, mostCounted, 1, &q.Sessions)
	whole("tokens", f.Tokens, mostCounted, 1, &q.Tokens)
	whole("storage_mb", f.StorageMB, mostStorageMB, 1<<20, &q.Storage)
	if usd := f.CostUSD; usd != nil && err == nil {
		q.Micros = int64(math.Round(*usd * 1e6))
		if !(*usd > 0 && *usd <= mostCostUSD) || q.Micros < 1 {
			err = at(doc.path, doc.line(prefix+"cost_usd"), "%scost_usd is more than 0 and at most %g, not %g; "+
				"leave it "+
				"out for no limit", prefix, mostCostUSD, *usd)
		}
	}
	return q, err
}
