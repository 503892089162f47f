package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
	"parley/store/sqlite"
)

// TestErasedTextIsInNoFile checks that after an erasure no file of the data folder holds the user's words: not the
// database, its write-ahead log, or a backup that is made afterwards. Before the erasure, files do hold them.
func TestErasedTextIsInNoFile(t *testing.T) {
	artifacts := map[string]bool{}
	var late atomic.Int64
	r := newRig(t, func(c *Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
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
	say := func(who port.Principal, id parley.SessionID, text string, runs int) {
		t.Helper()
		if code := r.as(who, id, parley.SubmitInput{Open: true, Content: text}); code != "" {
			t.Fatal(code)
		}
		r.finished(id, runs)
	}
	// The free pages of the database still hold text that was deleted long ago.
	say(carol, own, "call read a | say "+strings.Repeat(words+" ", 2000), 1)
	if _, _, err := r.Store.Trim(ctx, func(parley.TenantID) time.Time { return time.Now().Add(time.Hour) },
		time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	shared := "artifact://" + strings.Repeat("B", 26) + ".txt" // needed by bob's session
	say(bob, foreign, "say "+others+" "+shared, 1)
	say(carol, own, "say artifact://"+strings.Repeat("A", 26)+".txt "+shared, 2)
	say(carol, foreign, "think about it; "+words, 2)
	if err := r.SetContext(ctx, carol, "", "helper", "I live in "+words, parley.ViaHTTP); err != nil {
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
	rows, err := r.Audited(ctx, ann, port.AuditQuery{Action: "user.erased", Limit: 10})
	if err != nil || len(rows) != 1 || rows[0].ID != "carol" || rows[0].By != ann.ID ||
		!strings.Contains(string(rows[0].Metadata), report.Digest) ||
		strings.Contains(string(rows[0].Metadata), words) {
		t.Errorf("%v %+v", err, rows)
	}

	// Other users go on, and the erased user may write again.
	say(bob, foreign, "say hello", 3)
	r.check(foreign)
	say(carol, parley.SessionID("44444444-4444-4444-8444-000000000004"), "say anew", 1)
	r.erasures.after = r.Now().Add(time.Hour)
	if _, err := r.Erase(ctx, ann, "nobody"); parley.CodeOf(err) != parley.CodeLimited ||
		!strings.Contains(parley.MessageOf(err), "1h0m0s") {
		t.Errorf("the database is rewritten again at once: %v", err)
	}
	late.Store(int64(time.Hour))
	r.erasures.busy.Store(true)
	if _, err := r.Erase(ctx, ann, "nobody"); parley.CodeOf(err) != parley.CodeLimited {
		t.Errorf("two erasures at a time: %v", err)
	}
	r.erasures.busy.Store(false)
	again, err := r.Erase(ctx, ann, "nobody")
	if err != nil || again.Sessions != 0 || again.Events != 0 {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestAnOpenRunOfAnotherIsNotErased checks that nothing is erased if the user has written in another user's session
// whose run is open.
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

// TestAnErasureThatWasCutOff checks that an interrupted erasure is known after a restart. The next erasure of the user
// also deletes the artifacts that the first one left.
func TestAnErasureThatWasCutOff(t *testing.T) {
	var names map[string]bool
	var dies atomic.Bool
	r := newRig(t, func(c *Config) {
		c.Artifacts = func(_ parley.TenantID, of map[string]bool) (int, error) {
			if dies.Load() {
				return 0, errors.New("the server died")
			}
			names = of
			return len(of), nil
		}
	})
	ctx, carol := context.Background(), member("carol", parley.RoleStandardUser)
	artifact := strings.Repeat("A", 26) + ".txt"
	id := parley.SessionID("44444444-4444-4444-8444-000000000009")
	if code := r.as(carol, id, parley.SubmitInput{Open: true, Content: "say artifact://" + artifact}); code != "" {
		t.Fatal(code)
	}
	r.finished(id, 1)
	dies.Store(true)
	if _, err := r.Erase(ctx, ann, "carol"); err == nil {
		t.Fatal("it did not fail")
	}
	r.restart(true)
	dies.Store(false)
	begun, err := r.Store.Tenant(ann.Tenant).BegunErasures(ctx)
	if err != nil || len(begun) != 1 || begun[0].User != "carol" || begun[0].By != ann.ID ||
		!slices.Equal(begun[0].Artifacts, []string{artifact}) {
		t.Errorf("%+v, %v", begun, err)
	}
	if report, err := r.Erase(ctx, ann, "carol"); err != nil || report.Artifacts != 1 || !names[artifact] {
		t.Errorf("%+v %v, %v", report, names, err)
	}
	if begun, err := r.Store.Tenant(ann.Tenant).BegunErasures(ctx); err != nil || len(begun) > 0 {
		t.Errorf("%+v, %v", begun, err)
	}
	rows, err := r.Audited(ctx, ann, port.AuditQuery{Action: "user.erasure_began", Limit: 9})
	if err != nil || len(rows) != 2 || rows[0].ID != "carol" {
		t.Errorf("%+v, %v", rows, err)
	}
}

// keptFiles is a port.KeptChanges.
type keptFiles struct {
	mu    sync.Mutex
	names map[string]bool
	fails atomic.Bool
}

func (k *keptFiles) Names() ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.names)), nil
}

func (k *keptFiles) Forget(name string) error {
	if k.fails.Load() {
		return errors.New("the server died")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.names, name)
	return nil
}

func (k *keptFiles) keep(ids ...parley.SessionID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, id := range ids {
		k.names[fmt.Sprintf("%s.%s.%d", acme, id, i+2)] = true
	}
}

func (k *keptFiles) has(id parley.SessionID) bool {
	names, _ := k.Names()
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, string(id)) })
}

// TestKeptFilesGoWithTheirSession checks that the contents of files before runs are removed when their session is
// deleted, erased or old, also after an interrupted erasure. Contents of other sessions, and of sessions under a legal
// hold, stay.
func TestKeptFilesGoWithTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &keptFiles{names: map[string]bool{"a file of another program": true}}
		rules := port.Retention{}
		r := newRig(t, func(c *Config) {
			c.KeptChanges = kept
			c.Retention = func(parley.TenantID) port.Retention { return rules }
		})
		ctx, carol := context.Background(), member("carol", parley.RoleStandardUser)
		newSession := func() parley.SessionID {
			return parley.SessionID(fmt.Sprintf("11111111-1111-4111-8111-%012x", sessions.Add(1)))
		}
		open := func(who port.Principal, transient bool) parley.SessionID {
			t.Helper()
			id := newSession()
			if code := r.as(who, id, parley.SubmitInput{Open: true, Transient: transient, Content: "say x"}); code != "" {
				t.Fatal(code)
			}
			r.finished(id, 1)
			return id
		}
		mine, theirs, brief, held, deleted := open(ann, false), open(carol, false), open(ann, true), open(ann, false),
			open(ann, false)
		hold := port.HoldChange{LegalHold: port.LegalHold{Kind: port.HoldSession, ID: string(held), Reason: "x"}}
		if _, err := r.Hold(ctx, ann, hold); err != nil {
			t.Fatal(err)
		}
		erasedBefore := newSession()
		kept.keep(mine, theirs, brief, held, deleted, erasedBefore)
		wants := func(when string, want ...parley.SessionID) {
			t.Helper()
			synctest.Wait()
			for _, id := range []parley.SessionID{mine, theirs, brief, held, deleted, erasedBefore} {
				if got := kept.has(id); got != slices.Contains(want, id) {
					t.Errorf("%s: files of session %s are kept: %t", when, id, got)
				}
			}
		}
		for _, id := range []parley.SessionID{deleted, held} {
			r.do(id, parley.DeleteSession{})
		}
		wants("deleted", mine, theirs, brief, held)

		kept.fails.Store(true)
		if _, err := r.Erase(ctx, ann, "carol"); err == nil {
			t.Error("the erasure did not fail")
		}
		wants("cut off", mine, theirs, brief, held)
		kept.fails.Store(false)
		if _, err := r.Erase(ctx, ann, "carol"); err != nil {
			t.Fatal(err)
		}
		wants("erased", mine, brief, held)

		time.Sleep(8 * 24 * time.Hour)
		wants("a week later", mine, held)
		rules = port.Retention{Transcripts: 24 * time.Hour}
		if _, err := r.Retain(ctx, ann, false); err != nil {
			t.Fatal(err)
		}
		wants("old", held)
		hold.Release = true
		if _, err := r.Hold(ctx, ann, hold); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sweepEvery)
		wants("released")
		if len(kept.names) != 1 {
			t.Errorf("%v", kept.names)
		}
	})
}

// TestTitlesAreErased checks that the title of another user's session is erased if it was made from the erased user's
// words, also by a model. A title that the owner has chosen stays.
func TestTitlesAreErased(t *testing.T) {
	r := newRig(t, titling)
	ctx, carol, bob := context.Background(), member("carol", parley.RoleOrgAdmin),
		member("bob", parley.RoleStandardUser)
	write, model, line, chosen := "#say by a model of zanzibar", parley.SessionID("44444444-4444-4444-8444-00000000000b"),
		parley.SessionID("44444444-4444-4444-8444-00000000000c"), parley.SessionID("44444444-4444-4444-8444-00000000000d")
	for id, text := range map[parley.SessionID]string{model: "say hello " + write, line: "fail", chosen: "fail"} {
		for _, c := range []struct {
			who port.Principal
			do  parley.CommandBody
		}{{bob, parley.OpenSession{}}, {carol, parley.SubmitInput{Content: text}}} {
			if code := r.as(c.who, id, c.do); code != "" {
				t.Fatal(code)
			}
		}
		r.finished(id, 1)
	}
	r.until(model, "it has a title", seen[parley.SessionRenamed](1))
	for _, c := range []struct {
		who   port.Principal
		title string
	}{{carol, "timbuktu"}, {bob, "chosen"}} {
		if code := r.as(c.who, chosen, parley.RenameSession{Title: c.title}); code != "" {
			t.Fatal(code)
		}
	}
	if _, err := r.Erase(ctx, ann, "carol"); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[parley.SessionID]string{model: "[erased]", line: "[erased]", chosen: "chosen"} {
		if m, err := r.Session(ctx, bob, id); err != nil || m.Title != want {
			t.Errorf("%s is called %q, not %q (%v)", id, m.Title, want, err)
		}
		r.check(id)
	}
	if found := filesWith(t, r.dir, "timbuktu"); len(found) > 0 {
		t.Errorf("the words are in %v", found)
	}
}

// TestCopiesOfWordsAreErased checks that the words of a user are erased from the events into which the server has
// copied them: results of denied calls, of questions and of calls of a client, every later state of an edited plan, and
// the end and the row of a run that the user halted with a reason.
func TestCopiesOfWordsAreErased(t *testing.T) {
	r := newRig(t)
	carol, bob := member("carol", parley.RoleOrgAdmin), member("bob", parley.RoleStandardUser)
	const words = "zanzibar"
	calls, client, plans, halted := parley.SessionID("44444444-4444-4444-8444-00000000000e"),
		parley.SessionID("44444444-4444-4444-8444-00000000000f"),
		parley.SessionID("44444444-4444-4444-8444-000000000010"),
		parley.SessionID("44444444-4444-4444-8444-000000000015")
	do := func(who port.Principal, id parley.SessionID, body parley.CommandBody) {
		t.Helper()
		if code := r.as(who, id, body); code != "" {
			t.Fatal(code)
		}
	}
	do(bob, calls, parley.SubmitInput{Open: true, Content: "call write a | call ask tea | say done"})
	log := r.until(calls, "it asks", seen[parley.ApprovalRequested](1))
	do(carol, calls, parley.DecideApproval{Card: parley.CardID(seqOf[parley.ApprovalRequested](log, 1)),
		Decision: parley.Deny, Note: "not in " + words})
	log = r.until(calls, "it asks again", seen[parley.QuestionAsked](1))
	do(carol, calls, parley.AnswerQuestion{Card: parley.CardID(seqOf[parley.QuestionAsked](log, 1)),
		Answers: [][]string{{"tea of " + words}}})
	r.finished(calls, 1)

	do(bob, client, parley.SubmitInput{Open: true, Content: "call read a.txt | say done", ClientCalls: true})
	log = r.until(client, "the client is asked", seen[parley.ContextMeasured](1))
	do(carol, client, parley.ReturnToolResult{Call: parley.CallID(seqOf[parley.ToolCallRequested](log, 1)),
		Result: "a file of " + words})
	r.finished(client, 1)

	do(bob, plans, parley.SubmitInput{Open: true, Content: "call plan sweep dust | say well", Mode: parley.ModePlan})
	r.finished(plans, 1)
	do(carol, plans, parley.DecidePlan{Decision: parley.EditPlan, Text: "sweep all of " + words})
	do(bob, plans, parley.DecidePlan{Decision: parley.EditPlan, Text: "sweep timbuktu"})
	do(carol, plans, parley.DecidePlan{Decision: parley.EditPlan, Text: "sweep " + words})
	do(bob, plans, parley.DecidePlan{Decision: parley.ApprovePlan})
	r.finished(plans, 2)

	do(bob, halted, parley.SubmitInput{Open: true, Content: "call write a"})
	r.until(halted, "it asks", seen[parley.ApprovalRequested](1))
	do(carol, halted, parley.HaltSession{Reason: "not in " + words})
	if found := filesWith(t, r.dir, words); len(found) == 0 {
		t.Fatal("no file holds the words before")
	}
	if _, err := r.Erase(t.Context(), ann, "carol"); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[parley.SessionID]int{calls: 3, client: 1, plans: 5, halted: 1} {
		if n := strings.Count(fmt.Sprintf("%+v", r.log(id)), "[erased]"); n != want {
			t.Errorf("%s: %d texts are erased, not %d:\n%s", id, n, want, story(r.log(id)))
		}
		r.check(id)
	}
	if found := filesWith(t, r.dir, words); len(found) > 0 {
		t.Errorf("the words are in %v", found)
	}
	if found := filesWith(t, r.dir, "timbuktu"); len(found) == 0 {
		t.Error("the edit of another user is gone")
	}
}

// TestInstructionsOfRunsAreErased checks that an erasure deletes the definitions of agents that contain words of the
// user: the arguments of a skill, and instructions for one run, also of runs in sessions of others. Definitions that
// other users have used stay.
func TestInstructionsOfRunsAreErased(t *testing.T) { onEveryStore(t, instructionsOfRunsAreErased) }

func instructionsOfRunsAreErased(t *testing.T, open func() port.Store) {
	r := newRig(t, func(c *Config) { c.Skills = newManual() })
	r.stop(true)
	r.reopen = open
	r.start()
	ctx, carol, bob := t.Context(), member("carol", parley.RoleOrgAdmin), member("bob", parley.RoleStandardUser)
	own, foreign := parley.SessionID("44444444-4444-4444-8444-000000000011"),
		parley.SessionID("44444444-4444-4444-8444-000000000012")
	runs := map[parley.SessionID]int{}
	definitions := map[string]bool{} // whether they stay
	for _, c := range []struct {
		who                   port.Principal
		in                    parley.SessionID
		content, instructions string
		stays                 bool
	}{
		{carol, own, "say hello", "", true},
		{carol, own, "/greet zanzibar", "", false},
		{carol, own, "say x", "I live in zanzibar", false},
		{bob, foreign, "/greet timbuktu", "", true},
		{carol, own, "/greet timbuktu", "", true},
		{carol, foreign, "/greet mombasa", "", false},
	} {
		if code := r.as(c.who, c.in, parley.SubmitInput{Open: true, Content: c.content,
			Instructions: c.instructions}); code != "" {
			t.Fatal(code)
		}
		runs[c.in]++
		started := all[parley.RunStarted](r.finished(c.in, runs[c.in]))
		definitions[started[len(started)-1].Agent.Digest] = c.stays
	}
	if len(definitions) != 5 {
		t.Fatalf("there are %v", definitions)
	}
	if _, err := r.Erase(ctx, ann, "carol"); err != nil {
		t.Fatal(err)
	}
	for digest, stays := range definitions {
		agent, err := r.Store.Tenant(acme).Definition(ctx, digest)
		if there := parley.CodeOf(err) != parley.CodeNotFound || err == nil; there != stays {
			t.Errorf("%q is stored: %t, %v", agent.Instructions, there, err)
		}
		if _, err := r.definition(ctx, acme, digest); (err == nil) != stays {
			t.Errorf("a definition is in memory: %t, %v", !stays, err)
		}
	}
	if code := r.as(bob, foreign, parley.SubmitInput{Content: "/greet mombasa"}); code != "" {
		t.Fatal(code)
	}
	r.finished(foreign, 3)
	r.check(foreign)
}

// TestSubAgentsDuringAnErasure checks that an erasure also erases the session of a sub-agent that a run starts while
// another session of the user is being deleted.
func TestSubAgentsDuringAnErasure(t *testing.T) {
	r := newRig(t)
	r.hands.wait = make(chan struct{})
	deleting := make(chan struct{})
	r.puppet.seen = func(q port.ModelRequest) {
		if strings.HasPrefix(q.Messages[0].Text, "call delegate") {
			<-deleting
		}
	}
	carol := member("carol", parley.RoleStandardUser)
	slow, busy := parley.SessionID("44444444-4444-4444-8444-000000000013"),
		parley.SessionID("44444444-4444-4444-8444-000000000014")
	for _, c := range []struct {
		in      parley.SessionID
		content string
	}{{slow, "call wait a | say done"}, {busy, "call delegate puppet: hang | say done"}} {
		if code := r.as(carol, c.in, parley.SubmitInput{Open: true, Content: c.content}); code != "" {
			t.Fatal(code)
		}
	}
	await(t, "the tool runs", func() bool { return r.hands.count("wait") == 1 })
	erased := make(chan error, 1)
	go func() {
		report, err := r.Erase(t.Context(), ann, "carol")
		if err == nil && report.Sessions != 3 {
			err = fmt.Errorf("%d sessions are erased", report.Sessions)
		}
		erased <- err
	}()
	await(t, "a session is deleted", func() bool { return len(all[parley.SessionDeleted](r.log(slow))) == 1 })
	close(deleting)
	var child parley.SessionID
	await(t, "a sub-agent runs", func() bool {
		for _, b := range all[parley.ChildSpawned](r.log(busy)) {
			child = b.Child
		}
		return child != "" && len(all[parley.RunStarted](r.log(child))) == 1
	})
	close(r.hands.wait)
	if err := <-erased; err != nil {
		t.Error(err)
	}
	if log := r.log(child); len(log) > 0 {
		t.Errorf("the session of the sub-agent is left:\n%s", story(log))
	}
}

// artifactFiles are the artifacts of a tenant in a data folder, each with the time at which it was written.
type artifactFiles struct {
	mu      sync.Mutex
	written map[string]time.Time
}

func (f *artifactFiles) write(at time.Time, names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		f.written[name] = at
	}
}

// old is a Config.OldArtifacts.
func (f *artifactFiles) old(_ parley.TenantID, before time.Time, keep map[string]bool, dry bool) (n int, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, at := range f.written {
		if at.Before(before) && !keep[name] {
			if n++; !dry {
				delete(f.written, name)
			}
		}
	}
	return n, nil
}

// TestArtifactsThatNoEventNames checks that after an erasure a node removes the artifacts that no event names: those of
// erased sessions that it wrote and another node erased, and those of calls that a crash has cut off. It leaves them
// alone as long as a call that has not ended could be writing them, and as long as nothing was erased.
func TestArtifactsThatNoEventNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named, cut, fresh := strings.Repeat("A", 26)+".txt", strings.Repeat("B", 26)+".txt",
			strings.Repeat("C", 26)+".txt"
		files := &artifactFiles{written: map[string]time.Time{}}
		r := newRig(t, func(c *Config) { c.OldArtifacts = files.old })
		id := r.open()
		r.say(id, "say artifact://"+named)
		r.finished(id, 1)
		wants := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			files.mu.Lock()
			defer files.mu.Unlock()
			if got := slices.Sorted(maps.Keys(files.written)); !slices.Equal(got, want) {
				t.Errorf("%s there are %v, want %v", when, got, want)
			}
		}
		files.write(r.Now().Add(-time.Minute), cut) // of the process before
		files.write(r.Now(), named)
		time.Sleep(3 * time.Hour)
		wants("before an erasure", named, cut)
		r.restart(true)
		synctest.Wait() // the sweep of the start
		files.write(r.Now().Add(-time.Second), cut)
		files.write(r.Now(), fresh)
		if _, err := r.Erase(t.Context(), ann, "carol"); err != nil {
			t.Fatal(err)
		}
		wants("after an erasure here", named, fresh)
		time.Sleep(30 * time.Minute)
		wants("half an hour later", named, fresh)
		time.Sleep(2 * time.Hour)
		wants("later", named)

		files.write(r.Now(), fresh)
		time.Sleep(3 * time.Hour)
		wants("since the last erasure", named, fresh)
		erased := port.ErasureReport{User: "carol"}.Record(r.Now(), ann.ID) // by another node
		if err := r.Store.Erase(t.Context(), acme, port.Erasure{Audit: []parley.Audit{erased}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sweepEvery)
		wants("after an erasure elsewhere", named)
	})
}

// TestAnErasureNeedsAUser checks that an id is refused if no user can have it, and accepted if a user may.
func TestAnErasureNeedsAUser(t *testing.T) {
	r := newRig(t)
	carol := member("carol", parley.RoleOrgAdmin)
	for _, user := range []parley.PrincipalID{"", "\x00", "a\nb", "\xff", parley.PrincipalID(strings.Repeat("a", 3000))} {
		if _, err := r.Erase(t.Context(), carol, user); parley.CodeOf(err) != parley.CodeInvalid {
			t.Errorf("%.20q: %v", user, err)
		}
	}
	for _, user := range []parley.PrincipalID{"unknown", "ann@example.com"} {
		report, err := r.Erase(t.Context(), carol, user)
		if parley.CodeOf(err) == parley.CodeInvalid || report.Sessions != 0 {
			t.Errorf("%q: %+v, %v", user, report, err)
		}
	}
}
