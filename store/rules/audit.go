// Package rules holds the rules that every store follows: the audit chain,
// migrations, the order of webhooks, search, the encryption of secrets and the
// size of pages.
package rules

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"parley"
	"parley/port"
)

// An AuditKey keys the chains of the audit. An attacker without it cannot
// change a row and make the rows after it fit again. Releases that had no key
// wrote their rows with the empty one.
type AuditKey []byte

// AuditKeyOf derives the key of the audit from that of the server.
func AuditKeyOf(server []byte) AuditKey {
	h := hmac.New(sha256.New, server)
	h.Write([]byte("parley audit chain 1"))
	return h.Sum(nil)
}

// Sum returns the hash of a row that follows on one with the hash before. It
// covers everything in the row, so that no row can be changed, moved or left
// out without the chain showing where.
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

// Chain makes rows of records. They follow on the row with this number and hash.
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
// first row follows on the one that the latest port.AuditTrimmed names. That record is
// a claim until Add has verified it as a row of the chain: see CutProved.
type ChainCheck struct {
	Key AuditKey
	Cut port.AuditCut // where the chain begins; zero: at its first row

	proved bool // a verified row records Cut

	No      int64  // of the last row
	Hash    string // of the last row
	Rows    int64  // how many there were
	Unkeyed int64  // of these, rows at the beginning without a key
	Sealed  time.Time
	Since   time.Time // of the first row under the key
}

// NewChainCheck returns a check of a chain that retention has cut at cut; zero: it was never cut. Add must get every
// row of the table, also rows before the cut: an attacker could have added them.
func NewChainCheck(key AuditKey, cut port.AuditCut) *ChainCheck {
	return &ChainCheck{Key: key, Cut: cut, No: cut.No, Hash: cut.Hash}
}

// Add returns the first row that does not follow on those before it, and what
// is wrong with it; nil if all do.
func (c *ChainCheck) Add(rows []port.AuditRow) (*port.AuditRow, string) {
	for i := range rows {
		r := &rows[i]
		keyed := len(c.Key) > 0 && Sum(c.Key, *r, c.Hash) == r.Hash
		plain := Sum(nil, *r, c.Hash) == r.Hash
		first := c.Unkeyed == c.Rows // no row under the key was seen
		switch {
		case r.No < 1:
			return r, "has a number below 1, which the server never gives"
		case r.No <= c.Cut.No:
			return r, fmt.Sprintf("is in the chain, though a record %s says that rows up to %d were deleted",
				port.AuditTrimmed, c.Cut.No)
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
		if cut := r.Cut(); cut.No > 0 && cut.No == c.Cut.No && cut.Hash == c.Cut.Hash {
			c.Cut, c.proved = cut, true
		}
		c.No, c.Hash = r.No, r.Hash
		c.Rows++
	}
	return nil, ""
}

// CutProved reports whether the chain begins at its first row, or where a verified row says that retention has cut it.
// Call it after the last row.
func (c *ChainCheck) CutProved() bool { return c.proved || c.Cut == (port.AuditCut{}) }

// CutPage bounds how many rows of an audit are deleted in one transaction.
const CutPage = 5000

// CutAudit finds the rows at the beginning of a chain that are older than a time; without any, the cut is zero. page
// has the first rows of the chain. last is the latest port.AuditTrimmed, if any, and sealed the latest
// port.AuditSealed, each followed by the row before it. CutAudit refuses to cut rows that were changed: the change
// could no longer be found. It refuses if only a forged record explains the beginning of the chain, or if no seal
// vouches for rows without a key: the server's own record of the cut would vouch for them.
func CutAudit(key AuditKey, last, sealed, page []port.AuditRow, before time.Time) (port.AuditCut, error) {
	n, records := 0, 0
	for n < len(page) && page[n].At.Before(before) {
		if page[n].Action != port.AuditTrimmed { // cutting only the records of earlier cuts would never end
			records++
		}
		n++
	}
	if records == 0 {
		return port.AuditCut{}, nil
	}
	refused := func(no int64, why string) (port.AuditCut, error) {
		return port.AuditCut{}, &parley.Error{Code: parley.CodeCorrupt,
			Message: fmt.Sprintf("Row %d of the audit %s. No row was deleted.", no, why),
			Hint:    "run parley audit verify"}
	}
	if len(last) > 0 && !written(key, last) {
		return refused(last[0].No, "says that rows were deleted, and is not under the key")
	}
	check := NewChainCheck(key, LastCut(last))
	if bad, why := check.Add(page[:n]); bad != nil {
		return refused(bad.No, why)
	}
	end := page[n-1]
	if len(key) > 0 && check.Unkeyed == check.Rows &&
		(len(sealed) == 0 || sealed[0].No <= end.No || !written(key, sealed)) {
		return refused(end.No, "is not under the key, and no "+port.AuditSealed+" under the key follows on it")
	}
	return port.AuditCut{No: end.No, Hash: end.Hash, Rows: int64(n), From: page[0].At, To: end.At}, nil
}

// written reports whether the first of rows was written under the key after the second, which is the row before it in
// the chain. Without a second one, retention must have deleted the row before it.
func written(key AuditKey, rows []port.AuditRow) bool {
	before := rows[0].Cut().Hash
	if len(rows) > 1 {
		if rows[1].No != rows[0].No-1 {
			return false
		}
		before = rows[1].Hash
	}
	return Sum(key, rows[0], before) == rows[0].Hash
}

// LastCut returns the cut that the first row records; zero: there is no row. It verifies nothing.
func LastCut(rows []port.AuditRow) port.AuditCut {
	if len(rows) == 0 {
		return port.AuditCut{}
	}
	return rows[0].Cut()
}

// AuditHeld returns the refusal to delete records of a tenant with a legal hold.
func AuditHeld() error {
	return parley.Errorf(parley.CodeConflict, "There is a legal hold. The audit is kept.")
}
