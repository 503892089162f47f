package parley

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// An AuditKey keys the chains of the audit: without it nobody can change a row and
// make the rows after it fit again. Rows of releases that had no key were written
// with the empty one.
type AuditKey []byte

// AuditKeyOf derives the key of the audit from that of the server.
func AuditKeyOf(server []byte) AuditKey {
	h := hmac.New(sha256.New, server)
	h.Write([]byte("parley audit chain 1"))
	return h.Sum(nil)
}

// An AuditRow is a record in the chain of its tenant; the chain of the server
// itself has no tenant. Rows are numbered 1, 2, 3…
type AuditRow struct {
	Tenant TenantID
	No     int64
	Audit
	Hash string // see Sum
}

// Sum is the hash of a row that follows on one with the hash before. It covers
// everything in the row, so that no row can be changed, moved or left out
// without the chain showing where.
func (r AuditRow) Sum(key AuditKey, before string) string {
	h := sha256.New()
	if len(key) > 0 {
		h = hmac.New(sha256.New, key)
	}
	for _, part := range []string{before, string(r.Tenant), strconv.FormatInt(r.No, 10),
		strconv.FormatInt(r.At.UnixMicro(), 10), string(r.By), r.Action, r.Resource, r.ID, r.Source, string(r.Metadata)} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // so that no byte can move from one part to another
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Chain makes rows of records that follow on a row.
func Chain(key AuditKey, tenant TenantID, no int64, hash string, records []Audit) []AuditRow {
	rows := make([]AuditRow, len(records))
	for i, record := range records {
		no++
		record.At = record.At.UTC().Truncate(time.Microsecond)
		rows[i] = AuditRow{Tenant: tenant, No: no, Audit: record}
		hash = rows[i].Sum(key, hash)
		rows[i].Hash = hash
	}
	return rows
}

// A ChainCheck verifies a chain from its first row on, page by page. A chain may
// begin with rows without a key. Then an AuditSealed under the key must follow,
// and from there on every row is under the key.
type ChainCheck struct {
	Key AuditKey

	No      int64  // of the last row
	Hash    string // of that
	Unkeyed int64  // rows at the beginning without a key
	Sealed  time.Time
}

// Add finds the first row that does not follow on those before it, and says what
// is wrong with it; nil if all do.
func (c *ChainCheck) Add(rows []AuditRow) (*AuditRow, string) {
	for i := range rows {
		r := &rows[i]
		keyed := len(c.Key) > 0 && r.Sum(c.Key, c.Hash) == r.Hash
		plain := r.Sum(nil, c.Hash) == r.Hash
		first := c.Unkeyed == c.No // no row under the key was seen
		switch {
		case r.No != c.No+1, !keyed && !plain:
			return r, "was changed, does not follow on the one before it, or was written under another key"
		case plain && !first:
			return r, "is not under the key, though the one before it is"
		case plain:
			c.Unkeyed++
		case first && c.No > 0 && r.Action != AuditSealed:
			return r, "follows on rows that are not under the key, and is no " + AuditSealed
		case first && c.No > 0:
			c.Sealed = r.At
		}
		c.No, c.Hash = r.No, r.Hash
	}
	return nil, ""
}
