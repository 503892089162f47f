package rules

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestAnyTamperingIsFound: whichever row is changed, left out, doubled or moved,
// verifying names the first that cannot be.
func TestAnyTamperingIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []parley.Audit
		for i := range rapid.IntRange(2, 20).Draw(t, "rows") {
			records = append(records, parley.Audit{At: start.Add(time.Duration(i) * time.Second), By: "ann",
				Action: fmt.Sprint("a", i%3), Source: "http", Metadata: []byte(`{}`)})
		}
		key := AuditKeyOf([]byte("of the server"))
		old := rapid.IntRange(0, len(records)-1).Draw(t, "without a key")
		if old > 0 {
			records[old].Action = parley.AuditSealed
		}
		rows := Chain(nil, "acme", 0, "", records[:old])
		before := ""
		if old > 0 {
			before = rows[old-1].Hash
		}
		rows = append(rows, Chain(key, "acme", int64(old), before, records[old:])...)
		check := ChainCheck{Key: key}
		if bad, why := check.Add(rows); bad != nil || check.Unkeyed != int64(old) || check.No != int64(len(rows)) {
			t.Fatalf("row %v of a good chain %s: %+v", bad, why, check)
		}
		i := rapid.IntRange(0, len(rows)-1).Draw(t, "row")
		r := &rows[i]
		last := i == len(rows)-1
		harm := rapid.SampledFrom([]string{"at", "by", "action", "id", "moved", "metadata", "tenant", "hash", "cut",
			"swap", "double", "rehash", "rehash all", "rehash from", "other key"}).Draw(t, "harm")
		switch harm {
		case "at":
			r.At = r.At.Add(time.Microsecond)
		case "by":
			r.By = "bob"
		case "action":
			r.Action += "x"
		case "id":
			r.ID += "\xff" // also what is no text
		case "moved":
			r.Action, r.Resource = r.Action+"x", ""
		case "metadata":
			r.Metadata = []byte(`{"x":1}`)
		case "tenant":
			r.Tenant = "rival"
		case "hash":
			r.Hash = rows[(i+1)%len(rows)].Hash
		case "cut":
			if last {
				t.Skip("the end can only be missed by who knows it")
			}
			rows = append(rows[:i:i], rows[i+1:]...)
		case "swap":
			if last {
				t.Skip("there is nothing to change places with")
			}
			rows[i], rows[i+1] = rows[i+1], rows[i]
		case "double":
			rows = append(rows[:i+1:i+1], rows[i:]...)
		case "rehash": // and made to look right by itself
			if last {
				t.Skip("who can write the last row can write another")
			}
			r.By = "bob"
			before := ""
			if i > 0 {
				before = rows[i-1].Hash
			}
			r.Hash = Sum(nil, *r, before)
		case "rehash all", "rehash from", "other key": // as somebody does who has not the key
			r.By = "bob"
			first, hash := i, ""
			if harm == "rehash all" {
				first = 0
			}
			var wrong AuditKey
			if harm == "other key" {
				wrong = AuditKeyOf([]byte("of another server"))
			}
			if first > 0 {
				hash = rows[first-1].Hash
			}
			for j := first; j < len(rows); j++ {
				rows[j].Hash = Sum(wrong, rows[j], hash)
				hash = rows[j].Hash
			}
		}
		check = ChainCheck{Key: key}
		if bad, _ := check.Add(rows); bad == nil && check.Unkeyed < check.No {
			t.Fatalf("%s was not found", harm)
		}
	})
}

// TestOnlyASealVouches for rows without a key: an ordinary row under the key that
// follows on them shows that a chain was replaced while its server ran.
func TestOnlyASealVouches(t *testing.T) {
	key := AuditKeyOf([]byte("of the server"))
	records := []parley.Audit{{At: start, Action: "a", Metadata: []byte(`{}`)},
		{At: start, Action: "b", Metadata: []byte(`{}`)}}
	for action, good := range map[string]bool{"b": false, parley.AuditSealed: true} {
		records[1].Action = action
		rows := Chain(nil, "acme", 0, "", records[:1])
		rows = append(rows, Chain(key, "acme", 1, rows[0].Hash, records[1:])...)
		check := ChainCheck{Key: key}
		if bad, why := check.Add(rows); (bad == nil) != good {
			t.Errorf("%s: %v %s", action, bad, why)
		}
	}
}
