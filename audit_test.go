package parley_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley"
)

// TestAnyTamperingIsFound: whichever row is changed, left out, doubled or moved,
// verifying names the first that cannot be.
func TestAnyTamperingIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []parley.Audit
		for i := range rapid.IntRange(2, 20).Draw(t, "rows") {
			records = append(records, parley.Audit{At: start.Add(time.Duration(i) * time.Second), By: "ann", Action: fmt.Sprint("a", i%3), Source: "http", Metadata: []byte(`{}`)})
		}
		rows := parley.Chain("acme", 0, "", records)
		if bad := parley.VerifyChain(0, "", rows); bad != nil {
			t.Fatalf("row %d of a good chain", bad.No)
		}
		i := rapid.IntRange(0, len(rows)-1).Draw(t, "row")
		r := &rows[i]
		last := i == len(rows)-1
		switch rapid.SampledFrom([]string{"at", "by", "action", "id", "moved", "metadata", "tenant", "hash", "cut", "swap", "double", "rehash"}).Draw(t, "harm") {
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
			r.Hash = r.Sum(before)
		}
		if parley.VerifyChain(0, "", rows) == nil {
			t.Fatal("it was not found")
		}
	})
}
