package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// spoken returns a batch that opens a session with messages. The user and the agent take turns; the user begins.
func spoken(id parley.SessionID, owner parley.PrincipalID, texts ...string) port.Batch {
	b := batch(id, 0, 1)
	b.Summary.Owner, b.Summary.Title = owner, "About "+string(id[len(id)-2:])
	for i, text := range texts {
		seq := parley.Seq(i + 2)
		var body parley.EventBody = parley.InputReceived{Content: text, Busy: parley.Queue}
		if i%2 == 1 {
			body = parley.OutputFinished{Kind: parley.Text, Text: text}
		}
		b.Events = append(b.Events, parley.Event{Session: id, Seq: seq, Root: id,
			At: t0.Add(time.Duration(seq) * time.Second), By: owner, Body: body})
	}
	b.Summary.Head = parley.Seq(len(b.Events))
	return b
}

func (f *fixture) search(q port.SearchQuery) port.Found {
	f.t.Helper()
	if q.Limit == 0 {
		q.Limit = 50
	}
	found, err := f.Tenant(tenant).Search(context.Background(), q)
	if err != nil {
		f.t.Fatalf("%q: %v", q.Text, err)
	}
	return found
}

// marked returns the text of a passage with its marks in brackets.
func marked(p port.Passage) string {
	text := []rune(p.Text)
	for _, m := range slices.Backward(p.Marks) {
		text = slices.Insert(text, m.End, ']')
		text = slices.Insert(text, m.Start, '[')
	}
	return string(text)
}

func searchFindsWords(t *testing.T, f *fixture) {
	texts := []string{
		"The café's menu: Crème brûlée, naïve ÅNGSTRÖM, İstanbul and Straße.",
		"We deployed the edit_file tool in cache.go yesterday.",
		"機械学習の勉強をする。東京都は大きい",
		"한국어 문장을 검색합니다",
		"ภาษาไทยไม่มีช่องว่าง",
		"Пётр нашёл ёлку. שָׁלוֹם עולם.",
		"one two three two one",
		"ﬁne ＦＵＬＬ width ½ and " + strings.Repeat("x", 300),
	}
	f.mustAppend(spoken(ID(1), "ann", texts...))
	for _, c := range []struct {
		query string
		text  int    // index of the text to be found, from 0; -1: none
		marks string // a part of the passage, with marks
	}{
		{"cafe", 0, "[café]'s"},
		{"CAFÉ", 0, "[café]'s"},
		{"cafe\u0301", 0, "[café]'s"},
		{"creme brulee", 0, "[Crème] [brûlée]"},
		{`"creme brulee"`, 0, "[Crème brûlée]"},
		{`"brulee creme"`, -1, ""},
		{"brulee creme", 0, "[Crème] [brûlée]"},
		{"angstrom istanbul", 0, "[ÅNGSTRÖM], [İstanbul]"},
		{"strasse", 0, "[Straße]"},
		{"deploy", 1, "We [deployed] the"},
		{`"deploy"`, -1, ""},
		{"edit_file", 1, "[edit_file] tool"},
		{"edit_f", 1, "[edit_file] tool"},
		{"cache.go", 1, "[cache.go]"},
		{"file", 1, "edit_[file]"},
		{"tool missing", -1, ""},
		{"学習", 2, "機械[学習]の"},
		{"東京", 2, "[東京]都"},
		{"京東", -1, ""},
		{"は", 2, "東京都[は]大"},
		{"한국", 3, "[한국어] 문장"},
		{"ไทย", 4, "ภาษา[ไทย]ไม่"},
		{"елку", 5, "[ёлку]"},
		{"петр нашел", 5, "[Пётр] [нашёл]"},
		{"שלום", 5, "[שָׁלוֹם]"},
		{`"two one"`, 6, "one two three [two one]"},
		{`"three two`, 6, "[three two]"}, // an unfinished query, as while the user types
		{"“one two”", 6, "[one two] three"},
		{"fine full", 7, "[ﬁne] [ＦＵＬＬ] width"},
		{strings.Repeat("x", 200), 7, "[" + strings.Repeat("x", 300) + "]"},
	} {
		found := f.search(port.SearchQuery{Text: c.query})
		switch {
		case c.text < 0 && len(found.Passages) == 0:
		case c.text < 0 || len(found.Passages) != 1:
			t.Errorf("%q finds %+v", c.query, found.Passages)
		default:
			p, seq := found.Passages[0], parley.Seq(c.text+2)
			from := port.FromPerson
			if c.text%2 == 1 {
				from = port.FromAgent
			}
			if p.Seq != seq || p.Session != ID(1) || p.Title != "About 01" || p.Owner != "ann" || p.From != from ||
				!p.At.Equal(t0.Add(time.Duration(seq)*time.Second)) || !strings.Contains(marked(p), c.marks) {
				t.Errorf("%q finds %+v, marked %s; want %s in text %d", c.query, p, marked(p), c.marks, c.text)
			}
		}
	}
}

func searchIsNarrowed(t *testing.T, f *fixture) {
	for i, owner := range []parley.PrincipalID{"ann", "bob"} {
		f.mustAppend(spoken(ID(i+1), owner, "a needle", "an answer"))
	}
	rival := spoken(ID(1), "ann", "a needle of theirs", "theirs")
	rival.Tenant = "rival"
	f.mustAppend(rival)

	transient := spoken(ID(3), "ann", "a needle of a connection")
	transient.Summary.Transient = true
	f.mustAppend(transient)
	child := spoken(ID(4), "ann", "a needle for a sub-agent")
	child.Summary.Root = ID(1)
	for i := range child.Events {
		child.Events[i].Root = ID(1)
	}
	f.mustAppend(child)
	other := spoken(ID(5), "ann")
	other.Summary.Project = "/second"
	for i, body := range []parley.EventBody{
		parley.InputReceived{Content: "a needle of a timer", Synthetic: true},
		parley.OutputAppended{Text: "a needle in a chunk", Kind: parley.Text},
		parley.OutputFinished{Text: "a needle in thoughts", Kind: parley.Thinking},
		parley.ToolCallFinished{Result: "a needle of a tool"},
		parley.OutputFinished{Text: "a needle in an answer", Kind: parley.Text},
	} {
		other.Events = append(other.Events, parley.Event{Session: ID(5), Seq: parley.Seq(i + 2), Root: ID(5), At: t0,
			Body: body})
	}
	other.Summary.Head = 6
	f.mustAppend(other)
	fenced := spoken(ID(5), "ann", "a needle that is fenced")
	if !f.append(fenced).Fenced {
		t.Error("not fenced")
	}

	first := port.NewProject("/first", "first")
	first.First = true
	for _, c := range []struct {
		q    port.SearchQuery
		want []string
	}{
		{port.SearchQuery{}, []string{"5 a needle in an answer", "2 a needle", "1 a needle"}},
		{port.SearchQuery{Owner: "ann"}, []string{"5 a needle in an answer", "1 a needle"}},
		{port.SearchQuery{Owner: "bob"}, []string{"2 a needle"}},
		{port.SearchQuery{Owner: "nobody"}, nil},
		{port.SearchQuery{Project: port.NewProject("/second", "")}, []string{"5 a needle in an answer"}},
		{port.SearchQuery{Project: first}, []string{"2 a needle", "1 a needle"}},
	} {
		c.q.Text = "needle"
		var got []string
		for _, p := range f.search(c.q).Passages {
			got = append(got, string(p.Session[len(p.Session)-1:])+" "+p.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.q, got, c.want)
		}
	}
	found, err := f.Tenant("rival").Search(context.Background(), port.SearchQuery{Text: "needle", Limit: 9})
	if err != nil || len(found.Passages) != 1 || found.Passages[0].Text != "a needle of theirs" {
		t.Errorf("%+v, %v", found, err)
	}
}

// everySearchIsAnswered checks that no text causes a syntax error of the query language, and that no text widens the
// search.
func everySearchIsAnswered(t *testing.T, f *fixture) {
	f.mustAppend(spoken(ID(1), "ann", "plain words and nothing else", "NOT AND OR NEAR are words, too"))
	rival := spoken(ID(1), "eve", "the secret")
	rival.Tenant = "rival"
	f.mustAppend(rival)
	for _, query := range []string{"", " ", "\x00", "\xff\xfe", `"`, `""`, `"""`, `'`, `''`, `\`, `*`, `a*b*`, `^`, `(`, `)`,
		`(plain`, `plain)`, `-plain`, `+plain`, `plain AND`, `OR`, `NOT`, `NEAR(plain words, 2)`, `words : secret`,
		`whose : secret`, `{whose words} : secret`, `plain' OR 1=1 --`, `'; DROP TABLE said; --`, `plain:*`, `plain & `, `| secret`,
		`! secret`, `<-> secret`, `secret:A`, `secret` + "\x00", `\'secret`, "{}", "[a-z]", "%", "_", "𝕊ecret", "🙂", "…",
		`" OR secret`, `secret" OR "`, `plain OR secret`, `words} : secret`, "\u2028", strings.Repeat(`"a `, 300),
		strings.Repeat("secret ", 40), strings.Repeat("z", 4000), "ﷺ", "½", "⑴", "٣"} {
		for _, p := range f.search(port.SearchQuery{Text: query}).Passages {
			if strings.Contains(p.Text, "secret") {
				t.Errorf("%q finds what another tenant has said", query)
			}
		}
	}
	if got := f.search(port.SearchQuery{Text: "NOT AND OR NEAR"}).Passages; len(got) != 1 || got[0].Seq != 3 {
		t.Errorf("words of a query language are no words: %+v", got)
	}
}

func searchForgetsDeletedSessions(t *testing.T, f *fixture) {
	first := spoken(ID(1), "ann", "a needle", "another needle")
	f.mustAppend(first)
	f.mustAppend(spoken(ID(2), "ann", "a needle that stays"))
	ends := batch(ID(1), first.Summary.Head, 0)
	for i, body := range []parley.EventBody{parley.OutputFinished{Text: "a last needle", Kind: parley.Text},
		parley.SessionDeleted{}} {
		ends.Events = append(ends.Events, parley.Event{Session: ID(1), Seq: first.Summary.Head + parley.Seq(i) + 1,
			Root: ID(1), At: t0, Body: body})
	}
	ends.Summary.Head += 2
	ends.Summary.Deleted = true
	f.mustAppend(ends)
	for range 2 {
		if got := f.search(port.SearchQuery{Text: "needle"}).Passages; len(got) != 1 || got[0].Session != ID(2) {
			t.Errorf("after the deletion: %+v", got)
		}
		f.reopen()
	}
}

func searchHasPages(t *testing.T, f *fixture) {
	var texts []string
	for i := range 25 {
		texts = append(texts, fmt.Sprintf("needle %d", i))
	}
	f.mustAppend(spoken(ID(1), "ann", texts[:10]...))
	f.mustAppend(spoken(ID(2), "bob", texts[10:]...))
	// A few long texts fill a page, too.
	f.mustAppend(spoken(ID(3), "ann", strings.Repeat("long ", 200_000)+"needle 25", "needle 26",
		strings.Repeat("long ", 200_000)+"needle 27", "needle 28"))
	var got []string
	q := port.SearchQuery{Text: "needle", Limit: 10}
	for page := 0; page == 0 || q.Before > 0; page++ {
		if page > 10 {
			t.Fatal("pages without end")
		}
		found := f.search(q)
		if len(found.Passages) > 10 {
			t.Errorf("a page of %d", len(found.Passages))
		}
		for _, p := range found.Passages {
			text := marked(p)
			got = append(got, text[strings.Index(text, "["):])
		}
		q.Before = found.Next
	}
	var want []string
	for i := range 29 {
		want = append(want, fmt.Sprintf("[needle] %d", 28-i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, before := range []parley.Position{1, 2, -1, 1 << 62} {
		n := len(f.search(port.SearchQuery{Text: "needle", Before: before}).Passages)
		if n != 0 && before < 3 && before > 0 || n == 0 && (before < 0 || before > 3) {
			t.Errorf("%d before %d", n, before)
		}
	}
}

// DeletedLeaveTheIndex checks that the index has no rows of a deleted session. count counts the rows of the index.
func DeletedLeaveTheIndex(t *testing.T, store port.Store, count func() int) {
	f := &fixture{t: t, Store: store}
	b := spoken(ID(1), "ann", "one", "two", "three")
	f.mustAppend(b)
	f.mustAppend(spoken(ID(2), "ann", "four"))
	if n := count(); n != 4 {
		t.Errorf("%d rows, want 4", n)
	}
	ends := batch(ID(1), b.Summary.Head, 0)
	ends.Events = []parley.Event{{Session: ID(1), Seq: ends.After + 1, Root: ID(1), At: t0, Body: parley.SessionDeleted{}}}
	ends.Summary.Head, ends.Summary.Deleted = ends.After+1, true
	f.mustAppend(ends)
	if n := count(); n != 1 {
		t.Errorf("%d rows are left, want 1", n)
	}
}

// EarlierIsSearched checks that messages of an earlier release are found after the background pass, and that searches
// report an incomplete index until then. forget makes the store look like one of an earlier release.
func EarlierIsSearched(t *testing.T, store port.Store, forget func()) {
	ctx := context.Background()
	f := &fixture{t: t, Store: store}
	for i := range 6 {
		b := spoken(ID(i+1), "ann", fmt.Sprintf("earlier %d", i), fmt.Sprintf("earlier answer %d", i))
		if i%2 == 1 {
			b.Tenant = "rival"
		}
		last := b.Events[len(b.Events)-1]
		for range 300 { // enough chunks for more than one page
			last.Seq++
			last.Body = parley.OutputAppended{Kind: parley.Text, Text: "earlier"}
			b.Events = append(b.Events, last)
		}
		b.Summary.Head = last.Seq
		f.mustAppend(b)
	}
	deleted := spoken(ID(7), "ann", "earlier and deleted")
	deleted.Summary.Deleted = true
	f.mustAppend(deleted)
	forget()
	f.mustAppend(spoken(ID(8), "ann", "later"))
	if found := f.search(port.SearchQuery{Text: "later"}); len(found.Passages) != 1 || !found.Indexing {
		t.Errorf("before the pass: %+v", found)
	}
	total := 0
	for more, parts := true, 0; more; parts++ {
		var n int
		var err error
		if n, more, err = store.IndexEarlier(ctx); err != nil || parts > 100 {
			t.Fatal(n, err, parts)
		}
		total += n
		if parts == 0 && (!more || n >= 12) {
			t.Errorf("one part has indexed %d messages", n)
		}
	}
	for _, tn := range []parley.TenantID{tenant, "rival"} {
		found, err := store.Tenant(tn).Search(ctx, port.SearchQuery{Text: "earlier", Limit: 50})
		if err != nil || found.Indexing || len(found.Passages) != 6 || total != 12 {
			t.Errorf("%s: %d passages, %d messages, %v, %v", tn, len(found.Passages), total, found.Indexing, err)
		}
		for i := 1; i < len(found.Passages); i++ {
			if found.Passages[i].Position >= found.Passages[i-1].Position {
				t.Error("they are not in order")
			}
		}
	}
}

// BenchSearch measures searches in sessions of ten messages each.
func BenchSearch(b *testing.B, open Reopener) {
	const sessions = 1000
	store := open(b)
	defer store.Close()
	vocabulary := strings.Fields(`the server keeps every conversation as a log of events and shows it to any client that may
		read it while an agent works with tools that a person approves before they change files of a project`)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		wg.Go(func() {
			for i := int(next.Add(1)); i <= sessions; i = int(next.Add(1)) {
				var texts []string
				for m := range 10 {
					var words []string
					for w := range 80 {
						words = append(words, vocabulary[(i*7+m*13+w*w*3)%len(vocabulary)])
					}
					texts = append(texts, strings.Join(words, " ")+fmt.Sprintf(" number%d", i))
				}
				if _, err := store.Append(context.Background(), spoken(ID(i), "ann", texts...)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, query := range []string{"number500", "conversation", `"that a person"`, "absent", "t e s w"} {
		b.Run(strings.ReplaceAll(query, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				if _, err := store.Tenant(tenant).Search(context.Background(), port.SearchQuery{Text: query, Limit: 20,
					Owner: "ann"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
