// Package rules is what every store keeps to: the audit chain, the order of
// webhooks, the size of pages.
package rules

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"parley"
	"parley/port"
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
func Sum(key AuditKey, r port.AuditRow, before string) string {
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
func Chain(key AuditKey, tenant parley.TenantID, no int64, hash string, records []parley.Audit) []port.AuditRow {
	rows := make([]port.AuditRow, len(records))
	for i, record := range records {
		no++
		record.At = record.At.UTC().Truncate(time.Microsecond)
		rows[i] = port.AuditRow{Tenant: tenant, No: no, Audit: record}
		hash = Sum(key, rows[i], hash)
		rows[i].Hash = hash
	}
	return rows
}

// A ChainCheck verifies a chain from its first row on, page by page. A chain may
// begin with rows without a key. Then a port.AuditSealed under the key must follow,
// and from there on every row is under the key. If retention has cut the chain, its
// first row follows on the one that the latest port.AuditTrimmed names.
type ChainCheck struct {
	Key AuditKey
	Cut port.AuditCut // where the chain begins; zero: at its first row

	No      int64  // of the last row
	Hash    string // of that
	Rows    int64  // how many there were
	Unkeyed int64  // of these, rows at the beginning without a key
	Sealed  time.Time
	Since   time.Time // of the first row under the key
}

// NewChainCheck makes a check of a chain that was cut where its latest AuditTrimmed says, or never.
func NewChainCheck(key AuditKey, cut port.AuditCut) *ChainCheck {
	return &ChainCheck{Key: key, Cut: cut, No: cut.No, Hash: cut.Hash}
}

// Add finds the first row that does not follow on those before it, and says what
// is wrong with it; nil if all do.
func (c *ChainCheck) Add(rows []port.AuditRow) (*port.AuditRow, string) {
	for i := range rows {
		r := &rows[i]
		keyed := len(c.Key) > 0 && Sum(c.Key, *r, c.Hash) == r.Hash
		plain := Sum(nil, *r, c.Hash) == r.Hash
		first := c.Unkeyed == c.Rows // no row under the key was seen
		switch {
		case r.No != c.No+1, !keyed && !plain:
			return r, "was changed, does not follow on the one before it, or was written under another key"
		case plain && !first:
			return r, "is not under the key, though the one before it is"
		case plain && r.Action == port.AuditTrimmed && len(c.Key) > 0:
			return r, "says that rows were deleted, and is not under the key"
		case plain:
			c.Unkeyed++
		case first && c.Rows > 0 && r.Action != port.AuditSealed:
			return r, "follows on rows that are not under the key, and is no " + port.AuditSealed
		case first && c.Rows > 0:
			c.Sealed = r.At
		}
		if keyed && first {
			c.Since = r.At
		}
		c.No, c.Hash = r.No, r.Hash
		c.Rows++
	}
	return nil, ""
}

// CutPage bounds how many rows of an audit are deleted in one transaction.
const CutPage = 5000

// CutAudit finds the rows at the beginning of a chain that are older than a time; without any, the cut is zero. last is
// the latest record of a cut, if any, and page the first rows of the chain. Rows that are not as they were written are
// not deleted: what was done to them could no longer be found.
func CutAudit(key AuditKey, last []port.AuditRow, page []port.AuditRow, before time.Time) (port.AuditCut, error) {
	n, records := 0, 0
	for n < len(page) && page[n].At.Before(before) {
		if page[n].Action != port.AuditTrimmed { // a cut for nothing but earlier cuts would never end
			records++
		}
		n++
	}
	if records == 0 {
		return port.AuditCut{}, nil
	}
	if bad, why := NewChainCheck(key, LastCut(last)).Add(page[:n]); bad != nil {
		return port.AuditCut{}, &parley.Error{Code: parley.CodeCorrupt,
			Message: fmt.Sprintf("Row %d of the audit %s. No row was deleted.", bad.No, why),
			Hint:    "run parley audit verify"}
	}
	end := page[n-1]
	return port.AuditCut{No: end.No, Hash: end.Hash, Rows: int64(n), From: page[0].At, To: end.At}, nil
}

// LastCut is what the first of the latest records of cuts says; zero: there is none.
func LastCut(rows []port.AuditRow) port.AuditCut {
	if len(rows) == 0 {
		return port.AuditCut{}
	}
	return rows[0].Cut()
}

// AuditHeld refuses to delete records of a tenant with a legal hold.
func AuditHeld() error {
	return parley.Errorf(parley.CodeConflict, "There is a legal hold. The audit is kept.")
}
