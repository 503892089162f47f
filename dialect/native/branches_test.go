package native

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// library is a door to sessions that can be forked. A deleted session has the title "-".
type library struct {
	*door
	titles map[parley.SessionID]string
}

func (l library) Submit(_ context.Context, _ port.Principal, c parley.Command) (port.Receipt, error) {
	switch title, there := l.titles[c.Session]; {
	case title == "-":
		return port.Receipt{}, parley.Errorf(parley.CodeClosed, "This session was deleted.")
	case there:
		return port.Receipt{}, parley.Errorf(parley.CodeConflict, "There is a session of this id already.")
	}
	l.titles[c.Session] = c.Do.(parley.ForkSession).Title
	return port.Receipt{Session: c.Session}, nil
}

func (l library) Session(_ context.Context, _ port.Principal, id parley.SessionID) (port.Summary, error) {
	title, there := l.titles[id]
	if !there || title == "-" {
		return port.Summary{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	return port.Summary{ID: id, Title: title, Head: 30}, nil
}

func TestBranches(t *testing.T) {
	l := library{&door{}, map[parley.SessionID]string{parley.SessionID(session): "Fix it (3)"}}
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		h := handler(&door{})
		h.Door = l
		mux := http.NewServeMux()
		for pattern, handle := range h.Routes() {
			mux.HandleFunc(pattern, handle)
		}
		r := httptest.NewRequest(method, "/api/v1/sessions/"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	branch := func() (made port.Summary) {
		t.Helper()
		status, body := ask("POST", session+"/fork", `{"at":17,"branch":true}`)
		if err := json.Unmarshal([]byte(body), &made); err != nil || status != http.StatusCreated {
			t.Fatalf("%d %s %v", status, body, err)
		}
		return made
	}
	find := func(at string) []branchPoint {
		t.Helper()
		var found struct{ Branches []branchPoint }
		if status, body := ask("GET", session+"/branches?at="+at, ""); status != 200 ||
			json.Unmarshal([]byte(body), &found) != nil {
			t.Fatalf("%d %s", status, body)
		}
		return found.Branches
	}

	if found := find("17"); len(found) != 0 {
		t.Errorf("before there is one: %v", found)
	}
	two, three := branch(), branch()
	if two.Title != "Fix it (2)" || three.Title != "Fix it (3)" {
		t.Errorf("the titles are %q and %q", two.Title, three.Title)
	}
	found := find("5,17")
	if len(found) != 1 || found[0].At != 17 ||
		!slices.Equal(found[0].Sessions, []parley.SessionID{parley.SessionID(session), two.ID, three.ID}) {
		t.Errorf("%v", found)
	}
	l.titles[two.ID] = "-"
	four := branch()
	if found := find("17"); !slices.Equal(found[0].Sessions,
		[]parley.SessionID{parley.SessionID(session), three.ID, four.ID}) {
		t.Errorf("after one was deleted: %v", found)
	}
	for range mostBranches - 4 {
		branch()
	}
	if status, body := ask("POST", session+"/fork", `{"at":17,"branch":true}`); status != 400 {
		t.Errorf("too many: %d %s", status, body)
	}
	for path, want := range map[string]int{
		session + "/branches?at=x":                           400,
		session + "/branches?at=0":                           400,
		session + "/branches?at=" + strings.Repeat("1,", 41): 400,
		"00000000-0000-4000-8000-0000000000ff/branches?at=1": 404,
	} {
		if status, body := ask("GET", path, ""); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
