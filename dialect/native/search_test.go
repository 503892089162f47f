package native

import (
	"context"
	"strings"
	"testing"

	"parley/dialect/dialecttest"
	"parley/port"
)

func (d *door) Search(_ context.Context, _ port.Principal, q port.SearchQuery) (port.Found, error) {
	d.search = q
	return d.found, d.refusal
}

func TestSearch(t *testing.T) {
	d := &door{found: port.Found{Next: 17, Indexing: true, Passages: []port.Passage{{
		Session: dialecttest.Session, Title: "A title", Owner: "ann", Seq: 7, At: dialecttest.Begin, Position: 18,
		From: port.FromAgent, Text: "a <b>needle</b>", Marks: []port.Mark{{Start: 5, End: 11}}}}}}
	w := ask(d, "GET", "/api/v1/search?q=%22a+needle%22&limit=7&cursor=21", "")
	want := port.SearchQuery{Text: `"a needle"`, Limit: 7, Before: 21}
	answer := `{"passages":[{"session":"` + session + `","title":"A title","owner":"ann","seq":7,` +
		`"at":"2026-01-02T03:04:05Z","from":"agent","text":"a \u003cb\u003eneedle\u003c/b\u003e",` +
		`"marks":[{"start":5,"end":11}]}],"cursor":"17","indexing":true}`
	if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || d.search != want || got != answer {
		t.Errorf("%d %s\n%+v", w.Code, got, d.search)
	}
	d.found = port.Found{}
	w = ask(d, "GET", "/api/v1/search?q=x", "")
	if got := strings.TrimSpace(w.Body.String()); got != `{"passages":[]}` {
		t.Error(got)
	}
	for _, bad := range []string{"limit=0", "limit=x", "cursor=x", "cursor=0", "cursor=-4"} {
		if w := ask(d, "GET", "/api/v1/search?q=x&"+bad, ""); w.Code != 400 {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
}
