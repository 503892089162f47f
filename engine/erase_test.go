package engine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/store/sqlite"
)

// TestErasedTextIsInNoFile: after an erasure no file of the data folder holds a word of the person, in the database,
// its write-ahead log, or a backup that is made afterwards. Before it they do.
func TestErasedTextIsInNoFile(t *testing.T) {
	artifacts := map[string]bool{}
	r := newRig(t, func(c *Config) {
		c.Artifacts = func(_ parley.TenantID, names map[string]bool) (int, error) {
			artifacts = names
			return len(names), nil
		}
	})
	ctx, carol, bob := context.Background(), member("carol", parley.RoleOrgAdmin),
		member("bob", parley.RoleStandardUser)
	const words, others = "zanzibar", "timbuktu"
	own, foreign := parley.SessionID("44444444-4444-4444-8444-000000000001"),
		parley.SessionID("44444444-4444-4444-8444-000000000002")
	say := func(who parley.Principal, id parley.SessionID, text string, runs int) {
		t.Helper()
		if code := r.as(who, id, parley.SubmitInput{Open: true, Content: text}); code != "" {
			t.Fatal(code)
		}
		r.finished(id, runs)
	}
	// A page of free space holds what was deleted long ago.
	say(carol, own, "call read a | say "+strings.Repeat(words+" ", 2000), 1)
	if _, _, err := r.Store.Trim(ctx, func(parley.TenantID) time.Time { return time.Now().Add(time.Hour) },
		time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	shared := "artifact://" + strings.Repeat("B", 26) + ".txt" // that bob's session needs
	say(bob, foreign, "say "+others+" "+shared, 1)
	say(carol, own, "say artifact://"+strings.Repeat("A", 26)+".txt "+shared, 2)
	say(carol, foreign, "think about it; "+words, 2)
	if err := r.SetContext(ctx, carol, "helper", "I live in "+words, parley.ViaHTTP); err != nil {
		t.Fatal(err)
	}
	if found := filesWith(t, r.dir, words); len(found) == 0 {
		t.Fatal("no file holds the words before")
	}

	if _, err := r.Erase(ctx, bob, "carol"); parley.CodeOf(err) != parley.CodeForbidden {
		t.Errorf("bob may erase: %v", err)
	}
	report, err := r.Erase(ctx, ann, "carol")
	if err != nil {
		t.Fatal(err)
	}
	if report.Sessions != 1 || report.Replaced != 1 || report.Events < 10 || len(report.Digest) != 64 ||
		!report.Rewritten || report.Artifacts != 1 || !artifacts[strings.Repeat("A", 26)+".txt"] {
		t.Errorf("%+v %v", report, artifacts)
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := sqlite.Backup(ctx, r.dir, backup); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{r.dir, filepath.Dir(backup)} {
		if found := filesWith(t, dir, words); len(found) > 0 {
			t.Errorf("%q is still in %v", words, found)
		}
		if found := filesWith(t, dir, others); len(found) == 0 {
			t.Errorf("what bob has said is gone from %s", dir)
		}
	}
	rows, err := r.Audited(ctx, ann, parley.AuditQuery{Action: "user.erased", Limit: 10})
	if err != nil || len(rows) != 1 || rows[0].ID != "carol" || rows[0].By != ann.ID ||
		!strings.Contains(string(rows[0].Metadata), report.Digest) ||
		strings.Contains(string(rows[0].Metadata), words) {
		t.Errorf("%v %+v", err, rows)
	}

	// The others go on, and so may the person.
	say(bob, foreign, "say hello", 3)
	r.check(foreign)
	say(carol, parley.SessionID("44444444-4444-4444-8444-000000000004"), "say anew", 1)
	again, err := r.Erase(ctx, ann, "nobody")
	if err != nil || again.Sessions != 0 || again.Events != 0 {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestAnOpenRunOfAnotherIsNotErased: words in a session whose run is open stay, and nothing else is erased either.
func TestAnOpenRunOfAnotherIsNotErased(t *testing.T) {
	r := newRig(t)
	ctx, carol := context.Background(), member("carol", parley.RoleOrgAdmin)
	own, foreign := parley.SessionID("44444444-4444-4444-8444-000000000003"), r.open()
	if code := r.as(carol, own, parley.SubmitInput{Open: true, Content: "say mine"}); code != "" {
		t.Fatal(code)
	}
	r.finished(own, 1)
	if code := r.as(carol, foreign, parley.SubmitInput{Content: "call write a"}); code != "" {
		t.Fatal(code)
	}
	r.until(foreign, "it asks", seen[parley.ApprovalRequested](1))
	if _, err := r.Erase(ctx, ann, "carol"); parley.CodeOf(err) != parley.CodeConflict ||
		!strings.Contains(parley.MessageOf(err), string(foreign)) {
		t.Errorf("%v", err)
	}
	if log := r.log(own); len(all[parley.SessionDeleted](log)) > 0 {
		t.Error("a session is deleted")
	}
}

// filesWith lists the files below a folder that hold a text.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
