package rules

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley"
	"parley/port"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestAnyTamperingIsFound checks that a row that is changed, left out, doubled
// or moved does not verify.
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
			records[old].Action = port.AuditSealed
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
			r.ID += "\xff" // bytes that are not UTF-8, too
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
		case "rehash": // with a hash that fits the changed row
			if last {
				t.Skip("who can write the last row can write another")
			}
			r.By = "bob"
			before := ""
			if i > 0 {
				before = rows[i-1].Hash
			}
			r.Hash = Sum(nil, *r, before)
		case "rehash all", "rehash from", "other key": // as an attacker without the key does
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

// TestOnlyASealVouches checks that only an AuditSealed row vouches for rows
// without a key. Any other row under the key that follows on them shows that
// the chain was replaced while its server ran.
func TestOnlyASealVouches(t *testing.T) {
	key := AuditKeyOf([]byte("of the server"))
	records := []parley.Audit{{At: start, Action: "a", Metadata: []byte(`{}`)},
		{At: start, Action: "b", Metadata: []byte(`{}`)}}
	for action, good := range map[string]bool{"b": false, port.AuditSealed: true} {
		records[1].Action = action
		rows := Chain(nil, "acme", 0, "", records[:1])
		rows = append(rows, Chain(key, "acme", 1, rows[0].Hash, records[1:])...)
		check := ChainCheck{Key: key}
		if bad, why := check.Add(rows); (bad == nil) != good {
			t.Errorf("%s: %v %s", action, bad, why)
		}
	}
}

// TestACutIsUnderTheKey checks that the rest of a chain verifies from where it was cut, and from nowhere else. Rows
// that were changed, or are not old enough, are not cut.
func TestACutIsUnderTheKey(t *testing.T) {
	key := AuditKeyOf([]byte("of the server"))
	var records []parley.Audit
	for i := range 6 {
		records = append(records, parley.Audit{At: start.Add(time.Duration(i) * time.Hour), Action: "a",
			Metadata: []byte(`{}`)})
	}
	records[3].At = start // its clock was behind
	rows := Chain(key, "acme", 0, "", records)
	cut, err := CutAudit(key, nil, nil, rows, start.Add(90*time.Minute))
	if err != nil || cut != (port.AuditCut{No: 2, Hash: rows[1].Hash, Rows: 2, From: rows[0].At, To: rows[1].At}) {
		t.Fatalf("%+v, %v", cut, err)
	}
	trimmed := Chain(key, "acme", 6, rows[5].Hash, []parley.Audit{cut.Record(start.Add(time.Hour), "")})
	chain := append(rows[2:6:6], trimmed...)
	verify := func(chain []port.AuditRow) bool {
		var last []port.AuditRow
		for _, r := range chain {
			if r.Action == port.AuditTrimmed {
				last = []port.AuditRow{r}
			}
		}
		check := NewChainCheck(key, LastCut(last))
		bad, _ := check.Add(chain)
		return bad == nil && check.CutProved()
	}
	if !verify(chain) {
		t.Error("the rest does not verify")
	}
	for i := range chain {
		if i+1 < len(chain) && verify(chain[i+1:]) {
			t.Errorf("%d more rows were cut, and nothing was found", i+1)
		}
	}
	forged := cut
	forged.No, forged.Hash = 4, rows[3].Hash
	for _, wrong := range []AuditKey{nil, AuditKeyOf([]byte("of another server"))} {
		last := Chain(wrong, "acme", 6, rows[5].Hash, []parley.Audit{forged.Record(start, "")})
		if verify(append(rows[4:6:6], last...)) || verify(last) {
			t.Error("a cut that is not under the key was believed")
		}
	}
	plain := Chain(nil, "acme", forged.No, forged.Hash, []parley.Audit{forged.Record(start, "")})
	if verify(plain) {
		t.Error("a chain of nothing but a cut without a key was believed")
	}

	last := []port.AuditRow{trimmed[0], rows[5]}
	if cut, err := CutAudit(key, last, nil, chain, start.Add(9*time.Hour)); err != nil || cut.No != 7 || cut.Rows != 5 {
		t.Errorf("the second cut: %+v, %v", cut, err)
	}
	if cut, err := CutAudit(key, trimmed, nil, trimmed, start.Add(9*time.Hour)); err != nil || cut.Rows != 0 {
		t.Errorf("a cut for the sake of a cut: %+v, %v", cut, err)
	}
	chain[1].At = start.Add(-time.Hour) // so that it would be deleted
	if cut, err := CutAudit(key, last, nil, chain, start.Add(150*time.Minute)); parley.CodeOf(err) != parley.CodeCorrupt {
		t.Errorf("a changed row was cut: %+v, %v", cut, err)
	}
}

// TestAForgedCutIsNotBelieved checks that the claims of an attacker without the key about a cut are not believed. Nor
// does the server cut such a chain, because its own record of the cut would hide the attack.
func TestAForgedCutIsNotBelieved(t *testing.T) {
	key := AuditKeyOf([]byte("of the server"))
	records := make([]parley.Audit, 12)
	for i := range records {
		records[i] = parley.Audit{At: start.Add(time.Duration(i) * time.Hour), Action: "a", Metadata: []byte(`{}`)}
	}
	long := start.Add(1000 * time.Hour)
	plain := Chain(nil, "acme", 0, "", records)
	whole := Chain(key, "acme", 0, "", records)
	// cutRow returns a genuine record, after row 12, that rows 1 to 5 were deleted.
	cutRow := func(tenant parley.TenantID) port.AuditRow {
		rows := Chain(key, tenant, 0, "", records)
		cut := port.AuditCut{No: 5, Hash: rows[4].Hash, Rows: 5}
		return Chain(key, tenant, 12, rows[11].Hash, []parley.Audit{cut.Record(long, "")})[0]
	}
	forged := func(no int64, key AuditKey, before string) port.AuditRow { // says that rows 1 to 5 were deleted
		cut := port.AuditCut{No: 5, Hash: whole[4].Hash, Rows: 5}
		return Chain(key, "acme", no-1, before, []parley.Audit{cut.Record(long, "")})[0]
	}
	with := func(rows []port.AuditRow, more ...port.AuditRow) []port.AuditRow {
		return append(slices.Clone(rows), more...)
	}
	check := NewChainCheck(key, forged(0, nil, "").Cut())
	if bad, why := check.Add(whole[5:]); bad != nil || check.CutProved() {
		t.Errorf("a cut that no row of the chain says is believed: %v %s", bad, why)
	}
	rival := cutRow("rival")
	moved := rival
	moved.Tenant = "acme"
	genuine := with(whole[5:], cutRow("acme"))
	second := port.AuditCut{No: 8, Hash: whole[7].Hash, Rows: 3}
	twice := with(genuine[3:], Chain(key, "acme", 13, genuine[7].Hash, []parley.Audit{second.Record(long, "")})...)
	for name, c := range map[string]struct {
		rows []port.AuditRow // by number
		good bool
	}{
		"no cut":                               {whole, true},
		"a cut":                                {genuine, true},
		"a second cut":                         {twice, true},
		"the beginning is gone":                {whole[5:], false},
		"row 0":                                {with([]port.AuditRow{forged(0, nil, "")}, whole[5:]...), false},
		"a negative row":                       {with([]port.AuditRow{forged(-7, nil, "")}, whole[5:]...), false},
		"the lowest number":                    {with([]port.AuditRow{forged(math.MinInt64, nil, "")}, whole[5:]...), false},
		"row 5, which it says was deleted":     {with([]port.AuditRow{forged(5, nil, "")}, whole[5:]...), false},
		"the first row left":                   {with([]port.AuditRow{forged(6, nil, whole[4].Hash)}, whole[6:]...), false},
		"at the end":                           {with(whole[5:], forged(13, nil, whole[11].Hash)), false},
		"at the end, under another key":        {with(whole[5:], forged(13, AuditKey("x"), whole[11].Hash)), false},
		"far behind the end":                   {with(whole[5:], forged(1000, nil, "")), false},
		"of another tenant":                    {with(whole[5:], rival), false},
		"of another tenant, renamed":           {with(whole[5:], moved), false},
		"a genuine cut, and it cut more":       {genuine[1:], false},
		"a genuine cut alone":                  {genuine[7:], false},
		"a genuine cut, and the rows are back": {with(whole, genuine[7]), false},
		"the second cut is gone, and its rows": {twice[:len(twice)-1], false},
		"the first cut after the second":       {with(twice, genuine[7]), false},
		"a plain chain before a keyed row":     {with(plain, Chain(key, "acme", 12, plain[11].Hash, records[:1])...), false},
		"a plain chain with a seal": {with(plain, Chain(key, "acme", 12, plain[11].Hash,
			[]parley.Audit{{At: long, Action: port.AuditSealed, Metadata: []byte(`{}`)}})...), true},
	} {
		latest := func(action string) (list []port.AuditRow) {
			for i, r := range slices.Backward(c.rows) {
				if r.Action == action {
					return append(with(c.rows[i:i+1]), with(c.rows[max(0, i-1):i])...)
				}
			}
			return nil
		}
		check := NewChainCheck(key, LastCut(latest(port.AuditTrimmed)))
		bad, why := check.Add(c.rows)
		if found := bad != nil || !check.CutProved(); found == c.good {
			t.Errorf("%s: row %v %s", name, bad, why)
		}
		cut, err := CutAudit(key, latest(port.AuditTrimmed), latest(port.AuditSealed), c.rows,
			start.Add(10*time.Hour))
		if c.good && (err != nil || cut.No != 10) {
			t.Errorf("%s: cut at %d, %v", name, cut.No, err)
		}
		if !c.good && err == nil && cut.No > 0 {
			t.Errorf("%s: the server cut at %d, and its record vouches for what was there", name, cut.No)
		}
	}
}
