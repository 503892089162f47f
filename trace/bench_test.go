package trace

import (
	"bytes"
	"context"
	"testing"

	"parley"
	"parley/port"
	"parley/store/sqlite"
	"parley/store/storetest"
)

// A publishing store passes appended events to an exporter, as a server does.
type publishing struct {
	port.Store
	published func(parley.TenantID, []parley.Event)
}

func (s publishing) Append(ctx context.Context, b port.Batch) (port.Appended, error) {
	res, err := s.Store.Append(ctx, b)
	s.published(b.Tenant, b.Events)
	return res, err
}

// BenchmarkAppend compares appends of a server without this package, with tracing off, and with tracing on.
func BenchmarkAppend(b *testing.B) {
	var off *Exporter
	on := newExporter(newCollector(), nil, &bytes.Buffer{})
	for _, c := range []struct {
		name      string
		published func(parley.TenantID, []parley.Event)
	}{{"without", func(parley.TenantID, []parley.Event) {}}, {"off", off.Published}, {"on", on.Published}} {
		b.Run(c.name, func(b *testing.B) {
			storetest.Bench(b, func(t testing.TB) port.Store {
				s, err := sqlite.Open(context.Background(), t.TempDir(), "a benchmark")
				if err != nil {
					t.Fatal(err)
				}
				return publishing{s, c.published}
			})
		})
	}
}
