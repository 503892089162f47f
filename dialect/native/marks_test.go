package native

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley/port"
)

func (d *door) Mark(_ context.Context, _ port.Principal, c port.MarkChange) (port.Marks, error) {
	said := func(b *bool) string {
		if b == nil {
			return "-"
		}
		return fmt.Sprint(*b)
	}
	d.marked = fmt.Sprint(c.Session, " ", said(c.Pinned), " ", said(c.Archived), " ", !c.ReadAt.IsZero())
	return port.Marks{Pinned: true, Unread: true}, d.refusal
}

func TestMarks(t *testing.T) {
	const path = "/api/v1/sessions/" + session + "/marks"
	for body, want := range map[string]string{
		`{"pinned":true}`:                  "true - false",
		`{"archived":false,"read":true}`:   "- false true",
		`{"pinned":false,"archived":true}`: "false true false",
		`{}`:                               "",
		`{"read":false}`:                   "",
		`{"pinned":"yes"}`:                 "",
		`[]`:                               "",
	} {
		d := &door{}
		w := ask(d, "PUT", path, body, "Content-Type: application/json")
		switch got := strings.TrimPrefix(d.marked, session+" "); {
		case want == "" && (w.Code != 400 || got != ""):
			t.Errorf("%s: %d, %s", body, w.Code, got)
		case want != "" && (got != want || strings.TrimSpace(w.Body.String()) != `{"pinned":true,"unread":true}`):
			t.Errorf("%s: %s, %s", body, got, w.Body)
		}
	}
	for query, want := range map[string]port.SessionQuery{
		"":                       {},
		"?pinned=1&archived=all": {Pinned: true, Archived: port.AlsoArchived},
		"?archived=1":            {Archived: port.OnlyArchived},
		"?search=x":              {Search: "x", Archived: port.AlsoArchived},
	} {
		d := &door{}
		want.Limit, want.Viewer = 50, "ann"
		if w := ask(d, "GET", "/api/v1/sessions"+query, ""); w.Code != 200 || d.query != want {
			t.Errorf("%s: %d, %+v", query, w.Code, d.query)
		}
	}
	if w := ask(&door{}, "GET", "/api/v1/sessions?archived=x", ""); w.Code != 400 {
		t.Error(w.Code)
	}
}
