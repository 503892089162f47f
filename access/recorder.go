package access

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"parley"
	"parley/pacing"
	"parley/port"
)

// A Recorder writes refusals to the audit log in a way that a flood of them
// cannot fill the disk. Each minute, it writes the first refusal of a kind
// before any refusal of that kind is answered. It counts the others and writes
// the count when the minute is over. If the process is killed, the counts of
// its last minute are lost.
type Recorder struct {
	store port.Store
	now   func() time.Time
	log   *slog.Logger

	mu     sync.Mutex // guards the fields below
	minute time.Time
	kinds  map[kind]*counted
	owed   map[kind]debt
}

// kind identifies refusals that are counted together: their tenant and a text.
type kind struct {
	tenant parley.TenantID
	what   string
}

// counted is the refusals of one kind in a minute.
type counted struct {
	record parley.Audit
	more   int           // refusals after the first
	done   chan struct{} // closed when the first refusal was written, or failed to be
	err    error         // error of writing the first; read after done
}

// debt is refusals that were answered but are not in the audit log yet.
type debt struct {
	record parley.Audit
	n      int
}

// maxKinds is the maximum number of kinds that are told apart in a minute.
const maxKinds = 1000

func NewRecorder(store port.Store, now func() time.Time, log *slog.Logger) *Recorder {
	return &Recorder{store: store, now: now, log: log, kinds: map[kind]*counted{}, owed: map[kind]debt{}}
}

// Denied records that a request was refused before its tenant was known.
func (r *Recorder) Denied(ctx context.Context, reason Reason, from netip.Addr) error {
	address := "unknown"
	if block := blockOf(from); block.IsValid() {
		address = block.String()
	}
	return r.Refused(ctx, "", string(reason)+" "+address, parley.Audit{At: r.now(), Action: port.AuditAuthDenied,
		Resource: "server", Source: "http",
		Metadata: parley.Metadata(map[string]any{"reason": reason, "from": address, "count": 1})})
}

// Refused records a refusal of a kind. If it fails, the caller must not answer with the refusal.
func (r *Recorder) Refused(ctx context.Context, tenant parley.TenantID, what string, record parley.Audit) error {
	k := kind{tenant, what}
	r.mu.Lock()
	var over map[kind]*counted
	if minute := r.now().Truncate(time.Minute); !minute.Equal(r.minute) {
		over, r.kinds, r.minute = r.kinds, map[kind]*counted{}, minute
	}
	c := r.kinds[k]
	if c == nil && len(r.kinds) >= maxKinds {
		k.what = "others"
		c = r.kinds[k]
	}
	first := c == nil
	if first {
		c = &counted{record: record, done: make(chan struct{})}
		r.kinds[k] = c
	} else {
		c.more++
	}
	r.mu.Unlock()
	r.finish(ctx, over)
	if first {
		c.err = r.append(ctx, tenant, record)
		if c.err != nil {
			r.mu.Lock()
			delete(r.kinds, k) // so that the next refusal is the first
			r.mu.Unlock()
		}
		close(c.done)
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Keep writes the counts of each minute when it is over, until ctx ends; then
// it writes the counts of the last minute.
func (r *Recorder) Keep(ctx context.Context) {
	write := func() {
		r.mu.Lock()
		over := r.kinds
		r.kinds = map[kind]*counted{}
		r.mu.Unlock()
		r.finish(context.WithoutCancel(ctx), over)
	}
	pacing.Every(ctx, time.Minute, write)
	write()
}

// finish writes the counts of a minute that is over, and counts that could not be written before.
func (r *Recorder) finish(ctx context.Context, over map[kind]*counted) {
	r.mu.Lock()
	for k, c := range over {
		r.owe(k, c.record, c.more)
	}
	owed := r.owed
	r.owed = map[kind]debt{}
	r.mu.Unlock()
	for k, d := range owed {
		record := d.record
		record.At = r.now()
		record.Metadata = withCount(record.Metadata, d.n)
		if err := r.append(ctx, k.tenant, record); err != nil {
			r.log.Error("refusals could not be written to the audit log yet",
				"action", record.Action, "count", d.n, "error", err)
			r.mu.Lock()
			r.owe(k, d.record, d.n)
			r.mu.Unlock()
		}
	}
}

// owe adds n refusals to the debt of a kind. The caller must hold r.mu.
func (r *Recorder) owe(k kind, record parley.Audit, n int) {
	if n > 0 {
		r.owed[k] = debt{record, r.owed[k].n + n}
	}
}

func withCount(metadata json.RawMessage, n int) json.RawMessage {
	values := map[string]any{}
	_ = json.Unmarshal(metadata, &values) // metadata was made by parley.Metadata
	values["count"] = n
	return parley.Metadata(values)
}

// Did records an action of an authenticated principal in the audit chain of its tenant. If it fails, the caller must
// not report success.
func (r *Recorder) Did(ctx context.Context, who port.Principal, action, resource, id string,
	more map[string]any) error {
	return r.append(ctx, who.Tenant, didOf(r.now(), who, action, resource, id, more))
}

func didOf(at time.Time, who port.Principal, action, resource, id string, more map[string]any) parley.Audit {
	return parley.Audit{At: at, By: who.ID, Action: action, Resource: resource, ID: id,
		Source: parley.ViaHTTP, Metadata: parley.Metadata(more)}
}

// ReadFile records that a person has read a file of the workspace, or was refused it. The first read of a file by a
// person in a minute is in the audit log when ReadFile returns, so the caller must answer afterwards. Other reads of
// that minute are counted and written later, so a page that shows many files cannot fill the disk.
func (r *Recorder) ReadFile(ctx context.Context, who port.Principal, path string, refused bool) error {
	if len(path) > maxPath {
		path = path[:maxPath]
	}
	record := didOf(r.now(), who, port.AuditFileRead, "file", path, map[string]any{"refused": refused, "count": 1})
	return r.Refused(ctx, who.Tenant, fmt.Sprintf("file %v %q %q", refused, who.ID, path), record)
}

// maxPath is the maximum length of the path in a record, in bytes.
const maxPath = 1024

func (r *Recorder) append(ctx context.Context, tenant parley.TenantID, record parley.Audit) error {
	_, err := r.store.Append(ctx, port.Batch{Tenant: tenant, Audit: []parley.Audit{record}})
	return err
}
