// Package rules is what every store keeps to: the audit chain, the order of
// webhooks, the size of pages.
package rules

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"parley"
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

// Sum is the hash of a row that follows on one with the hash before. It covers
// everything in the row, so that no row can be changed, moved or left out
// without the chain showing where.
func Sum(key AuditKey, r parley.AuditRow, before string) string {
	h := sha256.New()
	if len(key) > 0 {
		h = hmac.New(sha256.New, key)
	}
	for _, part := range []string{before, string(r.Tenant), strconv.FormatInt(r.No, 10),
		strconv.FormatInt(r.At.UnixMicro(), 10), string(r.By), r.Action, r.Resource, r.ID, r.Source,
		string(r.Metadata)} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // so that no byte can move from one part to another
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Chain makes rows of records that follow on a row.
func Chain(key AuditKey, tenant parley.TenantID, no int64, hash string, records []parley.Audit) []parley.AuditRow {
	rows := make([]parley.AuditRow, len(records))
	for i, record := range records {
		no++
		record.At = record.At.UTC().Truncate(time.Microsecond)
		rows[i] = parley.AuditRow{Tenant: tenant, No: no, Audit: record}
		hash = Sum(key, rows[i], hash)
		rows[i].Hash = hash
	}
	return rows
}

// A ChainCheck verifies a chain from its first row on, page by page. A chain may
// begin with rows without a key. Then a parley.AuditSealed under the key must follow,
// and from there on every row is under the key.
type ChainCheck struct {
	Key AuditKey

	No      int64  // of the last row
	Hash    string // of that
	Unkeyed int64  // rows at the beginning without a key
	Sealed  time.Time
	Since   time.Time // of the first row under the key
}

// Add finds the first row that does not follow on those before it, and says what
// is wrong with it; nil if all do.
func (c *ChainCheck) Add(rows []parley.AuditRow) (*parley.AuditRow, string) {
	for i := range rows {
		r := &rows[i]
		keyed := len(c.Key) > 0 && Sum(c.Key, *r, c.Hash) == r.Hash
		plain := Sum(nil, *r, c.Hash) == r.Hash
		first := c.Unkeyed == c.No // no row under the key was seen
		switch {
		case r.No != c.No+1, !keyed && !plain:
			return r, "was changed, does not follow on the one before it, or was written under another key"
		case plain && !first:
			return r, "is not under the key, though the one before it is"
		case plain:
			c.Unkeyed++
		case first && c.No > 0 && r.Action != parley.AuditSealed:
			return r, "follows on rows that are not under the key, and is no " + parley.AuditSealed
		case first && c.No > 0:
			c.Sealed = r.At
		}
		if keyed && first {
			c.Since = r.At
		}
		c.No, c.Hash = r.No, r.Hash
	}
	return nil, ""
}
