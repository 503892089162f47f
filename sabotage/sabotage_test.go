// Package sabotage tests the tests. Each entry plants one bug, by handing the
// compiler a changed copy of one file, and demands that the tests named beside
// it fail, run into their timeout or exhaust the memory. The tree itself is
// never changed, and no code has a hook for it.
//
// PARLEY_SABOTAGE=1 plants every bug, PARLEY_SABOTAGE=sample a selection (see
// sample_test.go). Without it only the entries are checked.
package sabotage

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// onStores run on several stores; one is enough.
var onStores = []string{"TestAnythingMayHappen", "TestPrefixes", "TestKilledAgainAndAgain",
	"TestAnIdlePromptIsTakenOnce", "TestMissionsBehindTheDoor"}

// A bug replaces old by new. The code old must stand exactly once in the file,
// or, if the code has moved, exactly once in one other file of the package. How
// it is broken into lines does not matter: see find.
type bug struct {
	what     string // it breaks
	file     string
	old, new string
	pkg, run string // the tests that must notice: a package and a regular expression
}

var bugs = slices.Concat(sandboxBugs, []bug{
	// I1, I2, I3: the log is the truth, has one writer, and is followed gaplessly.
	{"who guesses a session is shown what a mission has an agent do", "idle.go",
		"case d.s.Owner != c.By:", "case false:", "./engine", "TestNobodyTakesTheSessionOfAMission"},
	{"everybody who sees an agent sees whom it tells", "dialect/native/agents.go",
		"a.Webhook = \"\", \"\", \"\", nil", "_ = \"\", \"\", \"\", \"\"", "./dialect/native", "TestDefinitions"},
	{"every quiet session goes after a week", "session.go",
		"does = s.Transient && s.Root == s.ID", "does = s.Root == s.ID", "./engine", "TestSessionsOfConnectionsGo"},
	{"sessions of connections stay for ever", "decide.go",
		"does && !d.at.Before(at)", "does && d.at.IsZero() && !d.at.Before(at)", "./engine",
		"TestSessionsOfConnectionsGo"},
	{"a page of history repeats what the bus still has to say", "dialect/eventbus/history.go",
		"if e.Position > p.upto {", "if false {", "./dialect/eventbus", "TestHistoryAndTheBusAreOne"},
	{"a page of history begins inside a run", "dialect/eventbus/history.go",
		"alone = alone && e.Run == 0", "alone = true", "./dialect/eventbus", "TestHistoryAndTheBusAreOne"},
	{"a writer that was replaced is not fenced by its epoch", "store/sqlite/writer.go",
		"AND head = ? AND epoch <= ?`", "AND head = ? AND ? >= 0`", "./store/sqlite", "TestStore"},
	{"a writer that builds on another head is not fenced", "store/sqlite/writer.go",
		"AND head = ? AND epoch <= ?`", "AND ? >= 0 AND epoch <= ?`", "./store/sqlite", "TestStore"},
	{"the engine does not notice that it is fenced", "engine/session.go",
		"if err == nil && res.Fenced {", "if false {", "./engine", "TestAnythingMayHappen"},
	{"a batch that cannot be stored takes its neighbours along", "store/sqlite/append.go",
		"if err != nil && len(group) > 1 && !faulty(err) {", "if false {", "./store/sqlite", "TestStore"},
	{"power loss loses what was accepted", "store/sqlite/migrate.go",
		"synchronous(FULL)", "synchronous(NORMAL)", "./store/sqlite", "TestPowerLossIsSurvived"},

	// Health tells the truth.
	{"a lost database is replaced by an empty one", "cmd/parley/store.go",
		"err != nil || fresh {", "err != nil || !fresh {", "./cmd/parley", "TestALostDatabaseIsNotReplaced"},
	{"the key of a server is made before its database", "cmd/parley/serve.go",
		"	opened, key, err := openStore(",
		"	if _, err := serverKey(&c.Store); err != nil {\n\t\treturn nil, nil, err\n\t}\n	opened, key, err := openStore(",
		"./cmd/parley", "TestAFirstStartThatWasCutOff"},
	{"SQLite is handed a write-ahead log without its database", "store/sqlite/existing.go",
		"err == nil && log.Size() > 0 {", "err == nil && log.Size() < 0 {", "./cmd/parley",
		"TestAWriteAheadLogIsNotThrownAway"},
	{"a small commit makes a store ready whose appends fail", "store/sqlite/health.go",
		"w.rehearses = trouble", "s.trouble.Store(nil)", "./store/sqlite", "TestReadyFollowsAppends"},
	{"a truncated database accepts what is lost", "store/sqlite/files.go",
		"size < f.size.Load() && !f.holds(size) {", "size < 0 {", "./store/sqlite", "TestATruncatedFileIsNotReady"},
	{"damage is no trouble", "store/sqlite/health.go",
		"switch bad := err != nil && (faulty(err) || damaged(err)); {", "switch bad := err != nil && faulty(err); {",
		"./store/sqlite", "TestADamagedDatabaseIsNotReady"},
	{"a rehearsal is stored", "store/postgres/commit.go",
		"	if t.rehearsal {", "	if false {", "./store/postgres", "TestReadyFollowsAppends"},
	{"a heartbeat makes a store ready whose appends fail", "store/postgres/health.go",
		"err := s.rehearse(ctx, found.group)", "_, err := s.pulse.Exec(ctx, beat, s.node)", "./store/postgres",
		"TestReadyFollowsAppends"},
	{"a reader waits for rows that are lost", "store/sqlite/read.go",
		"	if len(events) < limit {", "	if false {", "./store/sqlite", "TestALogWithoutItsEnd"},
	{"the write-ahead log has no limit", "store/sqlite/wal.go",
		"if size > maxLog && (later", "if size < 0 && (later", "./store/sqlite",
		"TestTheLogIsLimited|TestTheLogAfterALongReader"},
	{"a full disk stays full of a log that cannot be emptied", "store/sqlite/wal.go",
		"	s.reserve.giveUp()\n	err = emptyLog", "	err = emptyLog", "./e2e", "TestASmallDiskThatIsFull"},
	{"an answer that is too large is asked for again", "turn.go",
		"case r.Turn.Shown && b.Code == CodeTooLarge:", "case false:", "./engine", "TestAnAnswerThatIsTooLong"},
	{"a node takes the leases of a living one", "store/postgres/node.go",
		"LOCK_EX|syscall.LOCK_NB) != nil {", "LOCK_UN) != nil {", "./store/postgres",
		"TestARestartedNodeTakesItsLeasesBack"},
	{"a restarted node waits for its own leases", "store/postgres/node.go",
		"err == nil && before != \"\" {", "err == nil && before == \"\" {", "./store/postgres",
		"TestARestartedNodeTakesItsLeasesBack"},
	{"who deletes the lock file lets a second server in", "store/sqlite/lock.go",
		"	err = lock(l.dir)\n", "", "./store/sqlite", "TestSecondProcessIsRefused"},
	{"a child process keeps the lock of a folder that is closed", "store/sqlite/lock.go",
		"_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)", "", "./store/sqlite", "TestAChildKeepsNoLock"},
	{"comments keep a silent model alive", "provider/upstream/call.go",
		"	if !l.events {", "	if true {", "./provider/upstream", "TestSlowIsNotSilent"},
	{"a start that fails leaves ports and locks", "cmd/parley/build.go",
		"			made.close(lastWords, log)\n", "			_ = made\n", "./cmd/parley",
		"TestAFailedStartLeavesNothing"},
	{"streams are cut before they have shown the last events", "cmd/parley/build.go",
		`"http", "webhooks", "feed", "mcp servers"}`, `"feed", "http", "webhooks", "mcp servers"}`, "./cmd/parley",
		"TestStopOrder"},
	{"secrets in maps are not redacted", "config/secret.go",
		"			w.walk(it.Value(), \"\")\n", "", "./cmd/parley", "TestEverySecretIsRedacted"},
	{"dialects show a model that the tenant has not chosen", "engine/made.go",
		"cmp.Or(agent.Model, s.Model, e.DefaultModel)", "cmp.Or(agent.Model, e.DefaultModel)", "./engine",
		"TestTheDefaultModel"},
	{"a socket at the root belongs to no dialect", "cmd/parley/routes.go",
		"r.dialects[server.Root] = r.dialects[socketRoute]", "_ = server.Root", "./cmd/parley",
		"TestEverySocketHasADialect"},
	{"every refusal is logged", "cmd/parley/loglimit.go",
		"w.lines <= maxLines {", "w.lines > 0 {", "./cmd/parley", "TestRepeatedMessages"},

	{"a window of recent events has a gap", "feed/window.go",
		"if !w.known || before != w.end() {", "if !w.known {", "./feed", "TestNothingIsMissed"},
	{"a follower of a tree skips what it was not shown", "feed/tail.go",
		"if w := t.windows[e.Root]; w != nil {", "if w := t.windows[e.Root]; w != nil && e.Seq%7 != 0 {", "./feed",
		"TestNothingIsMissed"},
	{"what a child does first is not seen by who follows its parent", "feed/below.go",
		"return items[:n+1]", "_ = n", "./feed", "TestBelowInOrder"},
	{"who comes while a child works does not see it", "feed/below.go",
		"return !f.known || f.out > 0", "return f.known && f.out > 0", "./feed", "TestBelow$"},
	{"a follower is not woken when a tail begins", "feed/window.go",
		"w.known, w.from = true, at\n\tw.wake()", "w.known, w.from = true, at", "./feed", "TestALateTailLosesNothing"},
	{"a run that ends leaves cards of its sub-agents open", "dialect/below.go",
		"_, change := b.close(string(how), func(Card) bool { return true })", "_, change := b.close(string(how), func(Card) bool { return false })", "./dialect/threadchat", "TestTranscripts"},
	{"two approvals are asked for at once when a sub-agent wants one", "dialect/agentloop/project.go",
		"if len(p.cards) > 0 && !p.asking {", "if len(p.cards) > 0 {", "./dialect/agentloop", "TestTranscripts"},
	{"a thread takes answers to cards of others", "dialect/conn.go",
		"case err == nil && m.Root == top:", `case err == nil && m.Root != "":`, "./dialect", "TestWithin"},
	{"a session that waits for a person two levels below is said to run", "engine/child.go",
		"err != nil || below != parley.StatusWaiting {", "true || err != nil || below != parley.StatusWaiting {",
		"./engine", "TestWaitingForAChildThatWaits"},
	{"what a failed commit stored is not shown", "engine/actor.go",
		"e.Feed.Reread(a.tenant, a.session)", "", "./engine", "TestWhatWasCommittedIsShown"},
	{"nothing that is stored is shown", "engine/actor.go",
		"a.engine.Feed.Publish(a.tenant, events)",
		"a.engine.Feed.Publish(a.tenant, append(events[:0:0], events[:len(events)*0]...))", "./engine",
		"TestFollowersSeeTheLog"},

	// I4: the functions are pure.
	{"folding changes the state it was given", "call.go",
		"r.Calls = slices.Clone(r.Calls)\n\t\t\tchange(&r.Calls[i])", "change(&r.Calls[i])", ".", "TestFoldIsPure"},
	{"the clock of a log goes back", "decide.go",
		"if at.Before(d.s.LastAt) {", "if false {", ".", "TestClocksGoBackLogsDoNot"},

	// I5: a run ends once, or waits visibly.
	{"an input that was adopted is answered again", "input.go",
		"return s.withoutInput(b.Input).withRun(", "return s.withRun(", "./engine", "TestAnythingMayHappen"},
	{"a run is interrupted one cut too early", "run.go",
		"r.Cuts >= MaxCuts:", "r.Cuts >= MaxCuts-1:", "./engine", "TestPrefixes"},
	{"a run completes with its tools' results unread", "run.go",
		"case r.Turns > 0 && r.Stop != StopTools", "case r.Turns > 0", "./engine", "TestPrefixes"},
	{"a run that a crash cut is not found again", "engine/session.go",
		"if s.due == nil || !sameDue(*s.due, due) {", "if false {", "./engine", "TestACutRunGoesOn"},
	{"a crash leaves the model's half-said text open", "turn.go",
		"d.finishOutput(true)\n\td.endRemoteCalls(CallUnknown, \"The agent was lost",
		"d.endRemoteCalls(CallUnknown, \"The agent was lost", "./engine", "TestPrefixes"},
	{"the queue has no limit", "input.go",
		"len(d.s.Queue) >= MaxQueue", "len(d.s.Queue) > MaxQueue", ".", "TestTheQueueIsBounded"},

	// I6: a call ends once, and nothing is silently done twice.
	{"after a crash a call with an effect is run again", "call.go",
		"if c.Class == Pure || c.Class == Idempotent {", "if true {", "./engine", "TestPrefixes"},
	{"a call is started twice", "call.go",
		"case callReady:\n\t\td.emit(run, ToolCallStarted{Call: c.ID, Attempt: 1})",
		"case callReady:\n\t\td.emit(run, ToolCallStarted{Call: c.ID, Attempt: 1})\n\t\td.emit(run, ToolCallStarted{Call: c.ID, Attempt: 2})", "./engine", "TestPrefixes"},

	{"a peaceful stop leaves a call unperformed", "engine/settle.go",
		"a.workers[step] == nil && !(draining && a.watches(step)) {", "a.workers[step] == nil && !draining {",
		"./engine", "TestAPeacefulStopMakesNothingUnknown"},
	{"what cannot be stored as it is runs all the same", "engine/model.go",
		"case !utf8.ValidString(c.Name + c.Arguments + c.Provider):", "case !utf8.ValidString(\"\"):", "./engine",
		"TestTextIsStoredAsShown"},

	// I7: after a cancel there is silence.
	{"a cancel leaves text open", "run.go",
		"if r.Turn != nil {\n\t\td.finishOutput(true)\n\t}", "", "./engine", "TestPrefixes"},
	{"late evidence gets into the run", "call.go",
		"d.emit(0, LateResultNoted{", "d.emit(rep.Run, LateResultNoted{", "./engine", "TestAnythingMayHappen"},
	{"a model that was told to stop is still heard", "turn.go",
		"return r != nil && r.ID == rep.Run && r.Turn != nil && r.Turn.ID == rep.Turn",
		"return r != nil && r.Turn != nil", "./engine", "TestAnythingMayHappen|TestCancelThenSilence"},
	{"the next run does not wait for the last one's workers", "engine/settle.go",
		"for step := range a.workers {\n\t\tif !wants(steps, step) {\n\t\t\treturn false", "for step := range a.workers {\n\t\tif !wants(steps, step) {\n\t\t\treturn true", "./engine", "TestNextRunWaitsForTheLastOnesWorkers"},

	// I8: a command repeated under its id has one effect.
	{"receipts are not looked for", "engine/command.go",
		"if err != nil || ok {", "if err != nil || ok && false {", "./engine", "TestCommandsHaveOneEffect"},
	{"receipts are not kept", "store/sqlite/writer.go",
		"if r := b.Receipt; r != nil {", "if r := b.Receipt; r != nil && r.Command == \"\" {", "./engine",
		"TestCommandsHaveOneEffect"},

	// I9: an approval covers what was shown, once, in time.
	{"an expired approval can still be given", "card.go",
		"c.Status != status || !d.at.Before(c.Expires) {", "c.Status != status {", ".", "TestApprovals"},
	{"always covers everything", "trust.go",
		"return g.Digest == digest && ", "return ", ".", "TestApprovals"},
	{"a call starts before it was allowed", "verdict.go",
		"d.ask(c.card(call), v.Kind == VerdictAsk, untrusted)", "d.ask(c.card(call), false, untrusted)", "./engine",
		"TestPrefixes"},

	// Trust: content from a source that the agent does not trust has calls ask.
	{"only flagged content has calls ask", "trust.go",
		"if !s.Run.Agent.trusts(source) {", "if source.flagged() {", ".", "TestUntrustedContentAsks"},
	{"the trust list of an agent is ignored", "trust.go",
		"if t == \"\" {\n\t\tt = defaultTrust", "if true {\n\t\tt = defaultTrust", ".", "TestUntrustedContentAsks"},
	{"a list without the workspace trusts it all the same", "trust.go",
		"return !s.flagged() && slices.Contains(", "return s == SourceWorkspace || !s.flagged() && slices.Contains(",
		".", "TestUntrustedContentAsks"},
	{"what was read is forgotten with the run", "run.go",
		"if s.Run = nil; s.evaluates", "if s.Run, s.Sources = nil, nil; s.evaluates", ".", "TestUntrustedContentStays"},
	{"what was read is forgotten by a compaction", "context.go",
		"s.Compacted = compacted{", "s.Sources = nil\n\ts.Compacted = compacted{", ".", "TestUntrustedContentStays"},
	{"what was read is forgotten by a restart", "state.go",
		"Sources []Source `json:\",omitempty\"`\n\n\tTimers", "Sources []Source `json:\"-\"`\n\n\tTimers", "./engine",
		"TestUntrustedContentSurvivesRestarts"},
	{"a parent does not know what its sub-agent has read", "engine/child.go",
		"ended.Sources = state.Sources", "_ = state.Sources", "./engine", "TestUntrustedContentReachesTheParent"},
	{"a sub-agent does not know what its parent has read", "engine/child.go",
		"Sources: spawned.Sources, Untrusted", "Untrusted", "./engine", "TestUntrustedContentReachesSubAgents"},
	{"a sub-agent trusts what its parent does not", "engine/command.go",
		".WithoutTrust(in.Untrusted)", "", "./engine", "TestUntrustedContentReachesSubAgents"},
	{"a grant from before the content was read covers what follows it", "trust.go",
		"return u.flagged() || !slices.Contains(g.Despite, u)", "return u.flagged()", ".",
		"TestGrantsAndUntrustedContent"},
	{"an agent elsewhere is given a task after untrusted content", "engine/model.go",
		"asked.Verdict.Remote = other.Address != \"\"", "asked.Verdict.Remote = other.Address == \"never\"", "./engine",
		"TestATaskForElsewhereAsks"},
	{"a long result of a server, read again, comes from the workspace", "tool/join.go",
		"j.spool(parley.ServerSource(server))", "j.spool(parley.SourceWorkspace + parley.Source(server[:0]))", "./tool",
		"TestJoinedTools"},

	// Tools: files change as a whole, inside the workspace, as they were shown.
	{"a patch that fails leaves what it did", "workspace/edit.go",
		"if stuck := t.undo(); stuck != nil {", "if stuck := error(nil); stuck != nil {", "./tool", "TestAllOrNothing"},
	{"a patch overwrites what somebody wrote meanwhile", "workspace/edit.go",
		"return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())",
		"return os.SameFile(a, b)", "./tool", "TestNoOtherFileIsOverwritten"},
	{"a patch goes through links", "workspace/view.go",
		"if !seen.IsDir() {", "if false {", "./tool", "TestAPatchThatDoesNotFitChangesNothing"},
	{"a patch rewrites lines it was to keep", "tool/patch/update.go",
		"			case ' ':\n\t\t\t\tput(lines[next])",
		"			case ' ':\n\t\t\t\tput(fileLine{l.Text, lines[next].ending})", "./tool/patch", "TestUpdate"},
	{"what a build server runs needs nobody", "tool/box.go",
		"case a.edits && slices.ContainsFunc(append(a.paths, a.path), runsElsewhere):", "case false:", "./tool",
		"TestJudge"},
	{"searching looks into files with keys", "workspace/workspace.go",
		"return part == \".env\" ||", "return part == \".key\" ||", "./tool", "TestSearchFiles"},
	{"a secret in other letters is no secret", "workspace/workspace.go",
		"part = strings.ToLower(part)", "", "./workspace", "TestRules"},
	{"a secret in a folder is no secret", "workspace/workspace.go",
		"strings.Split(filepath.ToSlash(name), \"/\"), func(part string) bool {",
		"strings.Split(filepath.ToSlash(name), \"/\")[:1], func(part string) bool {", "./workspace", "TestRules"},
	{"a file is judged by its name before it is opened", "workspace/view.go",
		"_, info, err := v.judge(f, as)", "info, err := f.Stat()\n\terr = errors.Join(err, v.w.Check(as, v.purpose))",
		"./workspace", "TestReadingWhileNamesAreSwapped"},
	{"a folder is judged by its name before it is opened", "workspace/view.go",
		"d.place, _, err = v.judge(f, as)", "d.place, err = as, v.w.Check(as, v.purpose)",
		"./workspace", "TestReadingWhileNamesAreSwapped"},
	{"a link is followed where none may be", "workspace/view.go",
		"if err == nil && !os.SameFile(seen, entered) {", "if err == nil && entered == nil {", "./workspace",
		"TestLoadingWhileNamesAreSwapped"},
	{"artifacts of all tenants share one limit", "tool/artifact.go",
		"&spool{folder: filepath.Join(b.artifacts, string(b.tenant))}", "&spool{folder: b.artifacts}",
		"./tool", "TestArtifactsOfTenants"},
	{"agents write skills", "workspace/workspace.go",
		"case slices.ContainsFunc(w.protected, func(p Protected) bool { return covers(p.Path, place) }):",
		"case false:",
		"./tool", "TestToolsShowNothingHidden"},
	{"a layout that cannot be protected is accepted", "workspace/workspace.go",
		"if link != \"\" {", "if false {", "./workspace", "TestOpenRefuses"},

	// I10: nothing crosses tenants, and what no rule permits is denied.
	{"what no role permits is permitted", "access/access.go",
		"return parley.Errorf(parley.CodeForbidden, \"You may not do this: it needs %s.\", action)", "return nil",
		"./engine", "TestRefusals"},
	{"a tenant's log shows another's", "store/sqlite/read.go",
		"WHERE e.tenant = ? AND s.tenant = e.tenant AND e.position > ?", "WHERE e.tenant <> ? AND s.tenant = e.tenant AND e.position > ?", "./store/sqlite", "TestStore"},
	{"a statement does not say whose rows it means", "store/sqlite/read.go",
		"AND e.tenant = ?1 AND e.seq > ?3 AND e.piece = 0", "AND e.seq > ?3 AND e.piece = 0", "./store/sqlite",
		"TestEveryStatementNamesItsTenant"},
	{"a statement deletes rows of everybody", "store/postgres/trim.go",
		"` FROM events WHERE tenant = $1 AND session = $2 AND", "` FROM events WHERE $1 <> '' AND session = $2 AND",
		"./store/postgres", "TestEveryStatementNamesItsTenant"},
	{"a connection remembers its tenant", "store/postgres/scope.go",
		"`SELECT set_config($1, $2, true)`", "`SELECT set_config($1, $2, false)`", "./store/postgres",
		"TestAConnectionForgetsItsTenant"},
	{"a read does not say whose rows it is about", "store/postgres/read.go",
		"		in.enter(trip)\n", "", "./store/postgres", "TestAServingRoleCanServe"},
	{"a server may change what is on record", "store/postgres/grant.go",
		"{\"audit\", \"SELECT, INSERT\"}", "{\"audit\", \"SELECT, INSERT, UPDATE\"}", "./store/postgres",
		"TestAServingRoleMayNoMore"},
	{"rights are not asked about when following", "engine/door.go",
		"if err := e.permit(ctx, who, \"\", parley.ActRead, parley.Resource{Kind: parley.OneSession, Tenant: who.Tenant, Session: id, Owner: m.Owner}); err != nil {", "if false {\n\t\tvar err error", "./engine", "TestSessionsBelongToWhoOpenedThem"},
	{"everybody's sessions are mine", "access/access.go",
		"if everybody || on.Owner == who.ID {", "if true {", "./engine", "TestSessionsBelongToWhoOpenedThem"},
	{"an agent for one user is for everybody", "access/access.go",
		"slices.Contains(allow.Users, who.ID)", "len(allow.Users) > 0", "./access", "TestAllowNamesUsers"},
	{"an agent's allow is not asked about", "engine/command.go",
		"err = a.mayTalk(who, c.Via, agent)", "err = nil", "./engine", "TestPermissionIsAskedAgainWhenACardIsDecided"},
	{"a card is decided by who may no longer talk to the agent", "engine/command.go",
		"if rules.Answers {", "if false {", "./engine", "TestPermissionIsAskedAgainWhenACardIsDecided"},

	// Who is let in.
	{"a token's header chooses the algorithm", "access/token.go",
		"if alg != k.method.Alg() {", "if alg == \"\" {", "./access", "TestAnAlgorithmBelongsToItsKey|TestTokens"},
	{"signatures are not looked at", "access/token.go",
		"if err := k.method.Verify(signed, decoded[2], k.material); err != nil {", "if len(signed) == 0 {", "./access",
		"TestTokens"},
	{"an RSA exponent is cut to 64 bits", "access/key.go",
		"case e.BitLen() > 31 || e.Int64() < 3", "case e.Int64() < 3", "./access", "TestKeysThatAreNotUsed"},
	{"a signature has a salt of any length", "access/key.go",
		"\t\tmethod = &strict\n", "\t\t_ = strict\n", "./access", "TestASaltIsAsLongAsTheHash"},
	{"of two claims the last one counts", "access/strict.go",
		"parley.AllLevels); repeated {", "parley.AllLevels); repeated && false {", "./access", "TestTokens"},
	{"any token is an access token", "access/token.go",
		"if !claims.text(\"type\", &typ) || typ != \"access\" {", "if !claims.text(\"type\", &typ) {", "./access",
		"TestTokens|TestCredentials"},
	{"a token does not end", "access/token.go",
		"case !id.Expires.After(now):", "case false:", "./access", "TestTokens"},
	{"keys that are gone stay", "access/jwks.go",
		"j.current.Store(&fetched{set, j.now()})",
		"if j.current.Load() == nil {\n\t\tj.current.Store(&fetched{set, j.now()})\n\t}", "./access",
		"TestKeysAreFetchedCachedAndRotated"},
	{"keys are fetched for everybody who asks", "access/jwks.go",
		"j.attempted.IsZero() || now.Sub(j.attempted) >= fetchEvery", "true", "./access",
		"TestKeysAreFetchedCachedAndRotated"},
	{"a stored ticket can be used again", "store/sqlite/access.go",
		"`DELETE FROM tickets WHERE hash = ? RETURNING claim`", "`SELECT claim FROM tickets WHERE hash = ?`",
		"./store/sqlite", "TestStore"},
	{"tickets that have expired are kept", "store/sqlite/access.go",
		"`DELETE FROM tickets WHERE tenant = ? AND expires_at <= ?`", "`DELETE FROM tickets WHERE tenant = ? AND expires_at <= ? - 1`", "./store/sqlite", "TestStore"},
	{"an older revocation takes back a later one", "store/sqlite/access.go",
		"SET before = max(before, excluded.before)", "SET before = excluded.before", "./store/sqlite", "TestStore"},
	{"a ticket is for any page", "access/ticket.go",
		"case claim.Origin != origin:", "case false:", "./access", "TestTicketsAreBound"},
	{"who was revoked goes on", "access/revocation.go",
		"w.end(deny(TokenRevoked, \"\"))", "_ = w", "./access", "TestRevocationEndsWhatIsOpen"},
	{"who was revoked comes again", "access/authenticator.go",
		"err = a.jwt.Revocations.Check(id)", "err = nil", "./access", "TestRevokedAtTheDoor"},
	{"an identity does not end", "access/revocation.go",
		"time.AfterFunc(left,", "time.AfterFunc(left+time.Second,", "./access", "TestAnIdentityEndsWhenItExpires"},
	{"pages of any site are let in", "access/origin.go",
		"case slices.Contains(allowed, origin):", "case true:", "./access", "TestOrigins"},
	{"a page on another port of this machine is let in", "access/origin.go",
		"at == reached || port == own && (", "at == reached || port != \"\" && own != \"\" && (", "./access",
		"TestLocalModeIsForThisMachine"},
	{"a cookie opens a socket", "access/cookie.go",
		"case len(cookies) == 0 || len(r.Header[\"Upgrade\"]) > 0:", "case len(cookies) == 0:", "./access",
		"TestACookieOpensNoSocket"},
	{"a cookie comes from anywhere", "access/cookie.go",
		"\treturn looks\n}", "\treturn true\n}", "./access", "TestCookiesOfOtherPages"},
	{"a neighbour of the host acts for somebody", "access/cookie.go",
		"return sites[0] == \"same-origin\" ||", "return sites[0] != \"cross-site\" ||", "./access",
		"TestCookiesOfOtherPages"},
	{"a proof of another sign-in is taken", "access/signin.go",
		"case subtle.ConstantTimeCompare([]byte(proof.Nonce), []byte(l.Nonce)) != 1:", "case false:", "./access",
		"TestProofsThatAreNone"},
	{"a link signs people in as somebody else", "access/signin.go",
		"case !ok || subtle.ConstantTimeCompare([]byte(l.State), []byte(r.URL.Query().Get(\"state\"))) != 1:",
		"case !ok:", "./access", "TestAnswersToOtherSignIns"},
	{"who has no role comes in", "access/mapping.go",
		"if len(p.Roles) == 0 {", "if false {", "./access", "TestWhatIsMadeOfClaims"},
	{"anybody may say where they come from", "access/client.go",
		"	if !trusted(at, proxies) {\n\t\treturn at\n\t}\n", "", "./access", "TestClient"},
	{"a body that is not read may take for ever", "server/body.go",
		"b.allow(unreadWithin)", "b.allow(24 * time.Hour)", "./server", "TestHeldBodies"},
	{"a body may drip", "server/body.go",
		"b.allow(time.Until(b.began) + readGrace", "b.allow(readGrace", "./server", "TestHeldBodies"},
	{"a slow upload is not answered", "server/body.go",
		"_ = b.control.SetWriteDeadline(time.Now().Add(answerWithin))", "", "./server", "TestSlowUploads"},
	{"connections without a credential are not counted", "access/unknown.go",
		"c.counts(leave)\n", "leave()\n", "./access", "TestConnectionsWithoutACredential"},
	{"connections without a credential keep others out", "access/entrance.go",
		"if err == nil || e.Auth.credential(r) {", "if err == nil {", "./access", "TestConnectionsWithoutACredential"},
	{"a refusal keeps the connection", "access/denied.go",
		"h.Set(\"Connection\", \"close\")", "", "./access", "TestConnectionsWithoutACredential"},
	{"visitors are never forgotten", "access/gate.go",
		"if len(g.recent) >= maxVisitors/2 {", "if false {", "./access", "TestVisitorsAreForgotten"},

	// What a dialect shows and takes.
	{"thinking is shown as text", "dialect/threadchat/project.go",
		"if v.run != 0 && b.Kind == parley.Text {", "if v.run != 0 {", "./dialect/threadchat", "TestTranscripts"},
	{"of two keys the last one counts", "dialect/object.go",
		"RepeatedKey(data, 1); repeated {", "RepeatedKey(data, 1); repeated && false {",
		"./dialect/threadchat", "TestTranscripts"},
	{"an answer that comes late is cut", "dialect/api.go",
		"_ = http.NewResponseController(w).SetWriteDeadline(", "_ = (", "./dialect/debugconsole", "TestLateAnswers"},
	{"idle connections are kept for hours", "server/server.go",
		"IdleTimeout:       idleWithin,", "IdleTimeout: 3 * time.Hour,", "./server", "TestIdleConnectionsAreClosed"},
	{"a message is read before its sender is known", "dialect/eventbus/chat.go",
		`who, stay, err := h.Guard.Begin(r, "")`, `who, stay, err := h.Guard.Begin(r, "")
	if err != nil {
		_, _ = dialect.ReadObject(w, r, dialect.MaxMessage)
	}`, "./dialect/eventbus", "TestSlowBodies"},
	{"a body is read before its sender is known", "dialect/eventbus/handler.go",
		"who, err := h.Guard.Who(r)", "_, _ = dialect.ReadObject(w, r, most)\n\twho, err := h.Guard.Who(r)",
		"./dialect/eventbus", "TestSlowBodies"},
	{"a call that was resolved stays on the screen", "dialect/card.go",
		"case parley.ToolCallResolved:", "case *parley.ToolCallResolved:", "./dialect/debugconsole", "TestTranscripts"},
	{"what anybody says is broadcast to everybody", "engine/narrowed.go",
		"case mine:\n", "case mine || true:\n", "./engine", "TestFollowingWhatOneMayRead"},
	{"a name leads everybody to the same session", "dialect/dialect.go",
		"string(who.ID), space, name}", "space, name}", "./dialect/agentchat", "TestNamesBelongToTheirPrincipal"},
	{"who connects in the middle is shown half an answer", "dialect/agentchat/serve.go",
		"i.Run != v.run && !starts", "i.Run != v.run && !starts && false", "./dialect/agentchat",
		"TestWhoConnectsAnywhereIsShownWhatOthersAre"},
	{"a card is shown twice to who connects", "dialect/agentchat/serve.go",
		"if v.run != 0 && i.Seq <= v.seq {", "if false {", "./dialect/agentchat",
		"TestWhoConnectsAnywhereIsShownWhatOthersAre"},
	{"sessions of sub-agents are broadcast", "dialect/agentchat/project.go",
		"if e.Root != e.Session {", "if false {", "./dialect/agentchat", "TestTranscripts"},
	{"an answer is ended by each of its texts", "dialect/agentchat/project.go",
		"v = v.saying(b)", "v = v.saying(b)\n\t\t\tshow(agentMessage{\"agent_message\", text, false})",
		"./dialect/agentchat", "TestEveryInputEndsOnce"},
	{"text comes after the tool call that it announces", "dialect/agentchat/project.go",
		"v, frames = v.tells()\n\t\tshow(toolCall", "show(toolCall", "./dialect/agentchat",
		"TestTextIsShownOnceAndInOrder"},
	{"a run waits for a person who has left", "dialect/debugconsole/left.go",
		"h.next(ctx, f, len(w.cards) > 0)", "h.next(ctx, f, false)", "./dialect/debugconsole",
		"TestARunWithoutItsSocketIsCancelled"},
	{"a run whose socket is gone is cancelled while it works", "dialect/debugconsole/left.go",
		"h.next(ctx, f, len(w.cards) > 0)", "h.next(ctx, f, true)", "./dialect/debugconsole",
		"TestARunWithoutItsSocketIsCancelled"},
	{"thinking that was held back comes after the text", "engine/screen.go",
		"if other != kind && !f.Leaked() {", "if false {", "./engine", "TestWhatIsHeldBackKeepsItsPlace"},

	// Stopped agents, contexts and the debug console.
	{"a stopped agent takes messages", "engine/tenant.go",
		"if err == nil && s.Facts.IsStopped(agent) {", "if err == nil && s.Facts.IsStopped(agent) && false {",
		"./engine", "TestAStoppedAgentTakesNoInputs"},
	{"an older state of a tenant replaces a newer one", "engine/tenant.go",
		"if round != t.round || ok && known.Head >= s.Head {", "if round < 0 && known.Head < 0 {", "./engine",
		"TestWhatIsKnownOfTenants"},
	{"somebody is told what another wants an agent to know", "store/sqlite/read.go",
		"AND agent = ? AND principal = ?`, t.id", "AND agent = ? AND principal <= ?`, t.id", "./store/sqlite",
		"TestStore"},
	{"a stopped agent closes its sockets as if nobody may come back", "dialect/debugconsole/follow.go",
		"stop(parley.Errorf(parley.CodeStopped,", "stop(parley.Errorf(parley.CodeForbidden,", "./dialect/debugconsole",
		"TestAStoppedAgentClosesItsSockets"},
	{"a blocked tool ends the message", "dialect/debugconsole/project.go",
		"return v.show(toolStopped{v.head(\"tool_blocked\"), b.Name, b.Reason})",
		"return v.show(toolStopped{v.head(\"tool_blocked\"), b.Name, b.Reason}, failure{head: v.head(\"error\")})",
		"./dialect/debugconsole", "TestEveryMessageEndsOnce"},
	{"a halt ends only the message that caused it", "dialect/debugconsole/project.go",
		"v.halted = append(slices.Clip(v.halted), id)\n\t\treturn v, nil", "return v, nil", "./dialect/debugconsole",
		"TestTranscripts"},
	{"a stream that was cut looks whole", "dialect/debugconsole/http.go",
		"if err == nil {\n\t\t_ = s.Send", "if err == nil || s != nil {\n\t\t_ = s.Send",
		"./dialect/debugconsole", "TestAStreamThatIsCutIsNotDone"},

	// The tables of threats, through a real server.
	{"a client is not told that its token has ended", "dialect/conn.go",
		"c.Socket.Read(wire)", "c.Socket.Read(ctx)", "./e2e", "TestHandshakeEnds"},
	{"the upgrade refuses pages that were let in", "dialect/conn.go",
		"transport.Options{AllowOrigin: judged}", "transport.Options{}", "./e2e", "TestHandshakeTickets"},
	{"what follows a chunked body is answered", "server/body.go",
		"keep: len(r.TransferEncoding) == 0}", "keep: true}", "./e2e", "TestHandshakeBytes"},
	{"headers may take for ever", "server/server.go",
		"ReadHeaderTimeout: 5 * time.Second,", "ReadHeaderTimeout: time.Hour,", "./e2e", "TestHandshakeBytes"},
	{"a client speaks in the server's name", "input.go",
		`case strings.HasPrefix(do.Request, "timer_"):`, `case strings.HasPrefix(do.Request, "timer__"):`, "./e2e",
		"TestMessagesThatAreRefused"},
	{"who sends without end is not closed", "dialect/conn.go",
		"if excess > maxExcess {", "if excess > 1<<30 {", "./e2e", "TestTooMany"},
	{"an answer is not screened", "engine/command.go",
		"if rules.Says != nil {", "if false {", "./engine", "TestWickedAnswersAreBlocked"},
	{"a token makes an administrator of everybody", "access/token.go",
		"role != parley.RoleLocal {", "role != \"\" {", "./access", "TestLocalIsNoRoleOfTokens"},
	{"others may read the database", "store/sqlite/migrate.go",
		"info.Mode().Perm()&0o077 != 0", "info.Mode().Perm()&0 != 0", "./store/sqlite", "TestTheDatabaseIsPrivate"},
	{"a flood of refusals fills the record", "access/recorder.go",
		"first := c == nil", "first := true", "./e2e", "TestAFloodLeavesFewRecords"},
	{"refusals of the last minute are not counted", "access/recorder.go",
		"			ended = true\n", "			return\n", "./e2e", "TestAFloodLeavesFewRecords"},
	{"a changed record is not found", "store/rules/audit.go",
		"case r.No != c.No+1, !keyed && !plain:", "case r.No != c.No+1 || !keyed && false:", "./e2e", "TestTheRecord"},
	{"rows without a key may follow on rows under it", "store/rules/audit.go",
		"case plain && !first:", "case false:", "./cmd/parley", "TestAForgedAuditIsFound"},
	{"the whole audit may be without a key", "cmd/parley/audit.go",
		"if check.No > 0 && check.Unkeyed == check.No {", "if false {", "./cmd/parley", "TestAForgedAuditIsFound"},
	{"the audit is written without a key", "cmd/parley/store.go",
		"opened.KeyAudit(rules.AuditKeyOf(key))", "", "./cmd/parley", "TestAForgedAuditIsFound"},
	{"a renamed session is not on record", "audit.go",
		"record(auditSessionRenamed, ", "func(...any) {}(", ".", "TestRenamesAreOnRecord"},
	{"a token is minted that is not on record", "cmd/parley/token.go",
		"	if err != nil {\n\t\treturn err\n\t}\n\t_, err = fmt.Fprintln", "\t_, err = fmt.Fprintln", "./cmd/parley",
		"TestWhatCannotBePutOnRecordIsNotDone"},
	{"a file is shown that is not on record", "engine/files.go",
		"return \"\", recordErr // what is not on record is not shown", "_ = recordErr", "./engine",
		"TestFilesOnRecord"},
	{"a page whose name resolves here takes profiles", "server/admin.go",
		"if !byAddress(r.Host) {", "if false {", "./server", "TestProfilesAreServedElsewhere"},
	{"any row under the key vouches for rows without one", "store/rules/audit.go",
		"case first && c.No > 0 && r.Action != parley.AuditSealed:", "case false:", "./store/rules",
		"TestOnlyASealVouches"},
	{"a record whose end was cut off is whole", "cmd/parley/audit.go",
		"for missing := range expected {", "for missing := range map[int64]string{} {", "./e2e", "TestTheRecord"},
	{"a revocation is not on record", "access/revocation.go",
		"Revocation: &v, Audit: []parley.Audit{record}}", "Revocation: &v}", "./e2e", "TestTheRecord"},
	{"a revocation takes effect before it is on record", "access/revocation.go",
		"\tif err := r.room(v); err != nil {\n", "\tif err := r.apply(v); err != nil {\n", "./access",
		"TestARevocationThatIsNotOnRecord"},
	{"a department head revokes an administrator", "access/revocation.go",
		"&& !(r.sparesAdmins && Administers(id.Principal))", "", "./access", "TestRevokingARoleAbove"},
	{"a department head changes what holds for the tenant", "settings.go",
		"Rules{Action: ActSettings, Tenant: true}", "Rules{Action: ActAdmin, Tenant: true}", "./cmd/parley",
		"TestEveryRouteForEveryRole"},

	// The model's context.
	{"a compaction that gains nothing is tried for ever", "context.go",
		" && c.Tokens*10 > d.s.Compacted.Tried*11", "", "./engine", "TestACompactionThatGainsNothing"},
	{"a compaction that gains nothing counts", "context.go",
		"b.After >= b.Before || ", "", "./engine", "TestACompactionThatGainsNothing"},
	{"a turn starts in the middle of a compaction", "run.go",
		"case d.s.Compact != nil:\n", "case d.s.Compact != nil && false:\n", "./engine", "TestACompactionSurvives"},
	{"inputs that wait are forgotten by a compaction", "engine/compact.go",
		"ended.From = min(ended.From, e.Seq-1)", "_ = e.Seq", "./engine", "TestWhatWaitsOutlivesACompaction"},

	// Sub-agents.
	{"a run starts while children of the last one live", "decide.go",
		"case d.s.orphans():\n", "case false:\n", "./engine", "TestCancelWalksTheTree"},
	{"anybody may claim to be a child", "session.go",
		"if do.Parent != nil || do.Root != \"\" {", "if false {", "./engine", "TestWhatMayNotBeDelegated"},
	{"children of a turn may each use all that is left", "child.go",
		"(r.Agent.Tokens-used.Input-used.Output)/int64(children)", "(r.Agent.Tokens-used.Input-used.Output)",
		"./engine", "TestBudgets"},
	{"children do not inherit distrust", "child.go",
		"Sources: d.s.reading(untrusted...).Sources", "Sources: nil", "./engine", "TestChildrenInheritDistrust"},

	// Plans: proposed, decided and carried out, each once.
	{"a run that plans changes something", "verdict.go",
		"case d.s.Run.Mode == ModePlan && v.Class != Pure:", "case false:", ".",
		"TestAPlanIsProposedDecidedAndCarriedOut"},
	{"a plan is changed after it was approved", "plan.go",
		"d.s.Plan.Status == PlanApproved {\n\t\t\td.emit(r.ID, ToolCallBlocked",
		"false {\n\t\t\td.emit(r.ID, ToolCallBlocked", ".", "TestAPlanIsNotChangedBehindAPersonsBack"},
	{"what is said to plan steers a run that does more", "run.go",
		"return w.Busy == Steer && w.Mode == r.Mode }", "return w.Busy == Steer }", ".",
		"TestWhatPlansAndWhatDoesAreApart"},
	{"a run that plans is offered every tool", "engine/plan.go",
		"if s.ReadOnly {", "if true {", "./engine", "TestPlans"},

	// Settings of a tenant.
	{"a setting that makes no sense is taken", "settings.go",
		"s.Turns >= 1 && s.Turns <= 1000", "s.Turns >= 0", ".", "TestSettings"},
	{"a tenant's settings are not looked at again", "engine/tenant.go",
		"a.engine.tenants.learn(a.s.state, round)", "_ = round", "./engine", "TestSettings"},
	{"one who may only talk changes the tenant's settings", "settings.go",
		"Rules{Action: ActSettings, Tenant: true}", "Rules{Action: ActMessage, Tenant: true}", "./engine",
		"TestSettings"},

	// Rows of runs and cards are what the logs say.
	{"a run that ended is listed as open", "run.go",
		"return RunClosed{e.Run, b}", "return RunClosed{0, b}", "./store/sqlite", "TestStore"},
	{"what was answered still waits", "card.go",
		"func (b QuestionAnswered) rowOf(Event) Row { return CardClosed{Seq(b.Card)} }",
		"func (b QuestionAnswered) rowOf(Event) Row { return nil }", "./store/sqlite", "TestStore"},
	{"everybody is shown everybody's runs", "engine/lists.go",
		"*owner = who.ID", "_ = owner", "./engine", "TestRunsAndCardsAreSeenByWhoMaySeeThem"},
	{"open runs are looked for among all runs", "store/sqlite/rows.go",
		"r INDEXED BY runs_open`", "r`", "./store/sqlite", "TestListsUseIndexes"},

	// The event bus.
	{"what was withdrawn looks as if the agent had read it", "dialect/eventbus/project.go",
		"p.showQueue(w.AgentID, w.ID)", `p.showQueue(w.AgentID, "")`, "./dialect/eventbus", "TestTranscripts"},
	{"a line of output does not say which call printed it", "dialect/eventbus/calls.go",
		"parley.Ref(p.e.Session, parley.Seq(id))}})", `""}})`, "./dialect/eventbus", "TestTranscripts"},
	{"the demo carries out a plan instead of delegating a part", "provider/demo/plan.go",
		`asking("delegate", args)`, `asking("update_plan", args)`, "./provider/demo", "TestAPlanWithHelp"},
	{"who resumes a bus is shown the last message again", "dialect/eventbus/watch.go",
		"seq > w.after && ", "seq >= w.after && ", "./dialect/eventbus", "TestWhoComesAnywhereSeesWhatOthersSee"},
	{"who resumes a bus inside an event misses the rest of it", "dialect/eventbus/events.go",
		"from: max(position-1, 0)", "from: position", "./dialect/eventbus", "TestStream"},
	{"what waited before a run is not read back", "dialect/eventbus/watch.go",
		"from == 1 || parley.Seq(b.Input) >= from", "true", "./dialect/eventbus",
		"TestWhoComesAnywhereSeesWhatOthersSee"},
	{"who is far behind a bus is sent all of it", "dialect/eventbus/events.go",
		"case head.After-position > maxBehind:", "case head.After-position > 1<<40:", "./dialect/eventbus",
		"TestResync"},
	{"a link in the project shows the server's data", "workspace/view.go",
		"return place, info, v.w.refuse(name, place, v.purpose)",
		"return place, info, v.w.refuse(name, name, v.purpose)",
		"./dialect/eventbus", "TestFilesStayInTheProject"},
	{"another tenant is shown the project", "engine/project.go",
		"at.of(tenant) && (name ==", "(name ==", "./engine", "TestFilesBehindTheDoor"},
	{"a session goes on in another project", "engine/project.go",
		`if named == "" || mine.Is(named) {`, "if true {", "./engine", "TestASessionStaysInItsProject"},
	{"a run goes on though its project is gone", "engine/worker.go",
		"if err := a.in().missing; err != nil {", "if err := a.in().missing; false {", "./engine",
		"TestARunThatGoesOnWithoutItsProject"},
	{"who follows a project sees the others", "engine/narrowed.go",
		`return n.project.Root == "" || n.project.Concerns(e, project)`, "return true", "./engine",
		"TestFollowingAProject"},
	{"commands see the folders of other projects", "cmd/parley/workspace.go",
		"if other.Root != p.Root {", "if false {", "./e2e", "TestProjectsAreApart"},
	{"people are shown agents", "cmd/parley/workspace.go",
		"{Path: p.Agents, Setting: \"--agents\"},", "", "./cmd/parley", "TestPeopleAreNotShownWhatTheServerKeeps"},
	{"people are shown what git keeps", "workspace/workspace.go",
		"inGit(place) && purpose == PersonReads:", "inGit(place) && purpose == ServerLoads:",
		"./dialect/eventbus", "TestFilesStayInTheProject"},
	{"a cancelled run leaves its children running", "dialect/eventbus/runs.go",
		"open = append(open, below...)", "_ = below", "./dialect/eventbus", "TestRuns"},

	// What operators do.
	{"an imported run is never taken up", "cmd/parley/import.go",
		"b.Due = &parley.DueChange{Due: due}", "_ = due", "./cmd/parley", "TestExportDoesNotDisturb"},
	{"what ended elsewhere is owed to somebody here", "cmd/parley/import.go",
		"if owed[e.Run] {", "if false {", "./cmd/parley", "TestImportTakesNobodysPlace"},
	{"what is no log is imported", "cmd/parley/sessionfile.go",
		"len(wrong) > 0 {", "len(wrong) > 1<<30 {", "./cmd/parley", "TestImportBelievesNothing"},
	{"what this release does not know is dropped on import", "cmd/parley/sessionfile.go",
		"if path, ok := same(given, have); !ok {", "if path, ok := same(given, have); !ok && false {", "./cmd/parley",
		"TestImportBelievesNothing"},
	{"any piece may be missing from a log that is imported", "checker/run.go",
		"c.must(c.first == 0 && b.First == c.hole && b.Text != \"\",", "c.must(true,", "./cmd/parley",
		"TestImportAcceptsWhatRetentionLeaves"},
	{"a database of a newer release is used", "store/sqlite/migrate.go",
		"if before > knows {", "if false {", "./cmd/parley", "TestMigrate"},
	{"a restored store keeps its epoch", "store/sqlite/migrate.go",
		"`UPDATE store SET epoch = ?`", "`UPDATE store SET epoch = epoch WHERE ? = ''`", "./cmd/parley",
		"TestRestored"},

	// A killed process, a disk or a database in trouble: what was accepted is
	// there, what was refused is not, and nobody waits for long.
	{"an input is acknowledged before it is stored", "engine/actor.go",
		"receipt, err := a.command(r)\n\tr.reply <- reply{receipt, shown(err)}",
		"if _, input := r.command.Do.(parley.SubmitInput); input {\n\t\tr.reply <- reply{}\n\t\ttime.Sleep(300 * time.Millisecond)\n\t}\n\treceipt, err := a.command(r)\n\tselect {\n\tcase r.reply <- reply{receipt, shown(err)}:\n\tdefault:\n\t}",
		"./e2e", "TestKilledAgainAndAgain"},
	{"a commit whose sync failed comes back after a crash", "store/sqlite/health.go",
		"s.bury()\n\t\t}", "}", "./e2e", "TestWhatWasRefusedDoesNotComeBack"},
	{"what is written into a file without a name is accepted", "store/sqlite/files.go",
		"for _, f := range s.files {", "for _, f := range s.files[:0] {", "./e2e",
		"TestADeletedDatabaseAcceptsNothing"},
	{"everybody waits for a disk that hangs", "store/sqlite/health.go",
		"return until != nil && time.Now().After(*until)", "return until != nil && false", "./e2e", "TestDiskTrouble"},
	{"a disk that hangs is waited for without end", "store/sqlite/health.go",
		"patience = 5 * time.Second", "patience = 5 * time.Hour", "./e2e", "TestDiskTrouble"},
	{"everybody waits for a database that hangs", "store/postgres/health.go",
		"if why := s.refused.Load(); why != nil {", "if why := s.refused.Load(); why != nil && false {", "./e2e",
		"TestDatabaseTrouble"},
	{"connections stay read-only when the database no longer is", "store/postgres/commit.go",
		"		if sqlState(err) == readOnly {", "		if false {", "./e2e", "TestDatabaseTrouble"},
	{"a store in trouble is ready all the same", "server/server.go",
		"if err := s.options.Able(r.Context()); err != nil {", "if err := s.options.Able(r.Context()); err != nil && false {", "./server", "TestHealth"},
	{"a follower is dropped when the store cannot be read for a moment", "feed/feed.go",
		"parley.CodeOf(err) == parley.CodeUnavailable && f.feed.pause(ctx)", "false && f.feed.pause(ctx)", "./feed",
		"TestAStoreThatCannotBeReadIsWaitedFor"},

	// Models: what vendors do wrong is nobody else's trouble.
	{"a model that has spoken is tried again", "provider/patient.go",
		"end.err == nil || end.said || end.left", "end.err == nil || end.left", "./provider", "TestPatience"},
	{"another model answers and nobody is told", "engine/model.go",
		"tell(*s.FellBack)", "", "./engine", "TestFallingBackShows"},
	{"a model without its key is answered for by the demo", "provider/provider.go",
		"yield(parley.Said{}, err)\n\t\t\treturn\n\t\t}\n\t\tabout", "name = Demo\n\t\t}\n\t\tabout", "./provider",
		"TestAModelWithoutItsKey"},
	{"a vendor that falls silent is waited for", "provider/upstream/call.go",
		"k.idle = time.AfterFunc(c.Idle, func() { cancel(errIdle) })", "k.idle = time.AfterFunc(1000*c.Idle, func() { cancel(errIdle) })", "./provider/upstream", "TestCuts"},
	{"signatures are given to another model", "provider/upstream/talk.go",
		"|| m.Memo.Model != model ||", "||", "./provider/openai", "TestReasoningIsGivenBackEncrypted"},
	{"an answer that stopped in the middle counts as whole", "provider/openai/chat.go",
		"if t.finish == \"\" {", "if t.finish == \"\" && stream.Err() != nil {", "./provider/openai", "TestChat"},
	// What may run unasked, and where.
	{"an option nobody knows passes for one that reads", "policy/options.go",
		"case !strings.ContainsRune(r.flags, letter):", "case false:", "./policy", "TestWhatMustNotRunUnasked"},
	{"a script may write to a file unasked", "policy/script.go",
		"writes = target.text != \"/dev/null\"", "writes = false", "./policy", "TestWhatMustNotRunUnasked"},
	{"a comment hides a command from the parser", "policy/script.go",
		"case strings.Contains(text, \"\\\\\\n\"):", "case false:", "./policy", "TestWhatMustNotRunUnasked"},
	{"what is said to read can write", "tool/shell.go",
		"ReadOnly: j.Reads && missing == nil,", "ReadOnly: false,", "./tool", "TestShellOnlyReadsWhatItIsSaidToRead"},
	{"an approval inside a sandbox counts outside", "tool/shell.go",
		"place = \"bare\"", "place = \"sandbox\"", "./tool", "TestAnApprovalIsForOnePlace"},
	{"commands may change what the kernel shows of itself", "sandbox/wrap.go",
		"\"--proc\", \"/proc\", \"--remount-ro\", \"/proc\",", "\"--proc\", \"/proc\",", "./sandbox",
		"TestNothingOutsideIsWritten"},
	{"without a network of its own a command has sockets", "sandbox/seccomp.go",
		"p.onValue(f, allow)\n\t}\n\tp.decide(refuse)", "p.onValue(f, allow)\n\t}\n\tp.decide(allow)", "./sandbox",
		"TestNoNetwork"},
	{"a daemon outlives its command", "sandbox/supervise.go",
		"unix.PR_SET_CHILD_SUBREAPER, 1,", "unix.PR_SET_CHILD_SUBREAPER, 0,", "./sandbox", "TestNobodyIsLeftBehind"},

	// I13: memory is bounded.
	{"the window of recent events grows without end", "feed/window.go",
		"len(w.items)-drop > windowEvents || w.bytes > windowBytes && drop < len(w.items)",
		"drop < len(w.items) && w.bytes < 0", "./feed", "TestASlowFollowerCostsNothing"},

	// Agents that run elsewhere.
	{"an agent elsewhere that was lost is asked again", "run.go",
		"case r.Stop == StopCut && r.Agent.Remote:", "case false:", ".", "TestRemoteEndings"},
	{"what an agent elsewhere was allowed is made here", "next.go",
		"if c.Status == callStarted && !r.Agent.Remote {", "if c.Status == callStarted {", ".", "TestRemoteApproval"},
	{"a canary leaves by what an agent elsewhere reports", "engine/remote.go",
		"if err == nil && r.mouth.check(words(said)) != nil {", "if false {", "./engine", "TestRemotesAreFiltered"},
	{"a no is told as a yes", "remote/frames/request.go",
		"q.c.send(typeDenied,", "q.c.send(typeResume,", "./remote/frames", "TestApprovals"},
	{"an answer that nobody takes fills the memory", "remote/frames/request.go",
		"if len(q.queue) > 0 && q.held+size > o.Unread ||", "if false &&", "./remote/frames",
		"TestASlowReaderHoldsUpNobody"},
	{"a connection that was lost is not replaced", "remote/frames/link.go",
		"l.lost(c)\n", "l.lost(c)\n\t\t\treturn\n", "./remote/frames", "TestADeadConnectionIsReplaced"},
	{"an agent that is silent is taken for alive", "remote/frames/conn.go",
		"time.Now().Add(c.times().Dead)", "time.Now().Add(10 * c.times().Dead)", "./remote/frames", "TestHeartbeats"},

	// Approvals are explained, and answered by who was shown them.
	{"an explanation is not found again after a crash", "next.go",
		"if c.Explaining {", "if c.Explaining && now.After(s.LastAt) {", ".", "TestAnApprovalIsExplained"},
	{"what was decided is explained all the same", "explain.go",
		"c != nil && c.Explaining {", "c != nil {", ".", "TestOnlyAnOpenApprovalIsExplained"},
	{"an explanation leaks the canary", "engine/explain.go",
		"ended, err := a.ask(ctx, request", "ended, err := (&actor{key: a.key, engine: &Engine{slots: a.engine.slots, Config: Config{Model: a.engine.Model, Tools: a.engine.Tools, Now: a.engine.Now}}}).ask(ctx, request", "./engine", "TestAnExplanationDoesNotLeak"},
	{"an answer that crossed its request decides the next one", "dialect/agentloop/conn.go",
		"doubt := a.doubt && !d.Named", "doubt := false && !d.Named", "./dialect/agentloop",
		"TestAnAnswerThatCrossedItsRequest"},
	{"who resumes is asked what was decided long ago", "dialect/agentloop/conn.go",
		"if !c.live && asks(m.Type) {", "if false {", "./dialect/agentloop", "TestWhatWasDecidedIsNotAskedAgain"},
	{"a call is shown before it was allowed", "dialect/agentloop/project.go",
		"!ok || b.Call != id {", "!ok || b.Call != 0 {", "./dialect/agentloop",
		"TestTranscripts|TestEveryCallHasItsOutput"},

	// What a run did to files is found out, told, and runs nothing.
	{"what a repository names in its configuration is run", "changes/repository.go",
		`"GIT_DIR="+d.git`, `"GIT_DIR="+d.Dir`, "./changes", "TestAHostileRepository"},
	{"a file that was changed before the run counts as the run's", "changes/changes.go",
		"seen, err := at.look(ctx, nil)", "seen := sight{large: map[string]string{}}\n\tout, err := at.run(ctx, nil, \"write-tree\", \"--missing-ok\")\n\t" +
			"seen.tree = strings.TrimSpace(string(out))", "./changes", "TestWhatARunChanged"},
	{"a change report shows agents", "changes/repository.go",
		"if strings.HasSuffix(path, \"/\") || d.files.Check(path, workspace.PersonReads) != nil {",
		"if strings.HasSuffix(path, \"/\") || d.files.Check(path, workspace.ServerLoads) != nil {", "./changes",
		"TestWhatARunChanged"},
	{"files are not noted before they are changed", "engine/worker.go",
		"if step.Touches {", "if false {", "./engine", "TestFilesAreNotedBeforeAnythingIsDone"},
	{"a run ends before it has said what it changed", "run.go",
		"if r.Touched && !r.Reported && !d.reported {", "if false {", ".", "TestARunEndsWithWhatItChanged"},
	{"a report of an earlier end of a run ends it", "files.go",
		"r.Turns != b.Turns || ", "", ".", "TestAReportOfAnEarlierEnd"},

	// Skills add words, and never rights.
	{"a skill gives an agent tools", "skill.go",
		"case all:", "case all || true:", ".", "TestASkillOnlyNarrows"},
	{"a client says what a skill is", "engine/skill.go",
		"in.Skill = nil // nobody else says so", "", "./engine", "TestWhatIsNoSkill"},
	{"a skill changes what a run may do that is going on", "engine/skill.go",
		"in.Skill, in.Busy = &use, parley.Queue", "in.Skill = &use", "./engine", "TestASkillSteersNothing"},

	// One log, many protocols.
	{"an answer that was written counts as received", "dialect/threadchat/serve.go",
		"case c.Socket.Reached(ctx):", "case c.Socket.Reached(ctx) || true:", "./dialect/threadchat",
		"TestARunIsDeliveredWhenItArrives"},
	{"a request of HTTP is shown frames about others", "dialect/threadchat/http.go",
		`FieldByName("RequestID").String() == p.request {`, `FieldByName("RequestID").IsValid() {`,
		"./dialect/threadchat", "TestPost"},
	{"an answer by HTTP is shown to the next socket again", "dialect/threadchat/http.go",
		"if err != nil || run == 0 {", "if true {", "./dialect/threadchat", "TestPost"},
	{"who was lost is taken for who has left", "transport/echo.go",
		"!s.cause.Local && s.cause.Code != Lost", "!s.cause.Local", "./transport", "TestReached"},
	{"what came by another protocol cannot be cancelled by its name", "dialect/threadchat/decode.go",
		"do = parley.CancelRun{Input: parley.InputID(seq)}", "_ = seq", "./dialect/threadchat", "TestTranscripts"},
	{"a run does not know what was steered into it", "input.go",
		"r.Steered = append(slices.Clip(r.Steered), w.ID)", "", ".", "TestCancelByInput"},
	{"a call that nobody resolved stays on the screen", "dialect/threadchat/project.go",
		"for _, id := range v.lost {", "for _, id := range v.lost[:0] {", "./dialect/threadchat",
		"TestEveryRequestEndsOnce"},
	{"what people take back in a child is its answer", "engine/child.go",
		"case parley.InputWithdrawn:\n\t\t\t\tif b.Request == parley.ChildRequest {",
		"case parley.InputWithdrawn:\n\t\t\t\tif true {", "./engine", "TestPeopleTalkToChildrenToo"},
	{"a plan is carried out by another agent than made it", "plan.go",
		"plan.Agent = r.Agent.Name", "", "./engine", "TestAPlanIsCarriedOutByWhoMadeIt"},
	{"approving a plan runs an agent that is stopped", "engine/plan.go",
		"err = a.engine.running(a.engine.ctx, a.tenant, agent.Name)", "err = nil", "./engine",
		"TestAPlanIsCarriedOutByWhoMadeIt"},
	{"other tenants are told where the project is", "engine/project.go",
		`if at.of(tenant) && at.Root != "" {`, `if at.Root != "" {`, "./cmd/parley", "TestTwoTenantsAtOnce"},
	{"who comes now is asked what was asked after", "dialect/eventbus/watch.go",
		"if c.Position > upto || w.only", "if w.only", "./dialect/eventbus", "TestWhoComesNowSeesWhatIsOpen"},
	{"a session that was refused counts as opened", "dialect/own.go",
		"if err == nil && c.Session == o.id {", "if c.Session == o.id {",
		"./dialect/agentloop", "TestASessionOpensWithItsFirstInput"},
	{"who comes back to the agent loop misses the start of a run", "dialect/agentloop/resume.go",
		"return e.Seq - 1, nil", "return e.Seq, nil", "./dialect/agentloop", "TestWhoComesBackIsShownWhatItMissed"},

	// Agents come from files, which are watched, or are made, and stay at home.
	{"agents that another tenant makes get at the workspace", "engine/made.go",
		"if !p.away && p.of(tenant) {", "if true {", "./engine", "TestAgentsElsewhereHaveNoWorkspace"},
	{"instructions of agents that are made are not screened", "engine/made.go",
		`text: agent.Description + "\n" + agent.Instructions + "\n" + agent.IdlePrompt`, `text: ""`, "./engine",
		"TestInstructionsAreScreened"},
	{"an agent that was made takes the place of a file's", "engine/made.go",
		"if err := a.ofNoFile(agent.Name); err != nil {", "if err := a.ofNoFile(agent.Name); false && err != nil {",
		"./engine", "TestAgentsAreMade"},
	{"a file that breaks takes its agent away", "config/agents.go",
		"def = last[i]\n", "continue\n", "./cmd/parley", "TestFilesTakeEffectWhenTheyChange"},
	{"links in the workspace are loaded as agents and skills", "workspace/load.go",
		"v.inner = !ok", "v.inner = true || !ok", "./config", "TestLinksAreNotLoaded"},
	{"a folder that is made later is not watched", "config/watch.go",
		"w.arm() // first", "// first", "./config", "TestWatch"},
	// Tools of servers outside.
	{"a pattern that finds .env runs unasked", "policy/options.go",
		`case finds(base, ".env", false) || finds(base, ".env.", true):`, "case false:", "./policy",
		"TestWhatMustNotRunUnasked"},
	{"a command prints protected files of git's history unasked", "policy/policy.go",
		"err = j.history(texts(words[1:]))", "_ = j.history", "./policy", "TestGitPrintsNothingProtected"},
	{"git show prints any object by its hash unasked", "policy/history.go",
		"(m == nil || someHash.MatchString(m[1]))", "m == nil", "./policy", "TestWhatMustNotRunUnasked"},
	{"a command that asks for what it reads may write", "policy/policy.go",
		"Reads: isProtected(err), Commands", "Commands", "./tool", "TestShellOnlyReadsWhatItIsSaidToRead"},
	{"settings of editors and agents are written unasked", "tool/runs_elsewhere.go",
		"return slices.ContainsFunc(runFolders, func(folder string) bool {", "return slices.ContainsFunc(runFolders[:0], func(folder string) bool {",
		"./tool", "TestFilesThatRunElsewhereAsk"},
	{"another tenant's run reports changes of the workspace", "engine/project.go",
		"Tools: c.Tools, away: true}", "Tools: c.Tools, Changes: c.Changes, away: true}", "./engine",
		"TestOnlyTheHomeTenantIsToldOfFiles"},
	{"another tenant is sent the diffs of a run's changes", "engine/project.go",
		"Tools: c.Tools, away: true}", "Tools: c.Tools, Changes: c.Changes, away: true}", "./cmd/parley",
		"TestTwoTenantsAtOnce"},
	{"a cancelled run is not reported", "run.go",
		"ReportFollows: d.s.Run.Touched})", "ReportFollows: false})", "./engine", "TestACancelledRunIsReported"},
	{"the files of a cancelled run are compared while its tool runs", "engine/settle.go",
		"return ok && report.Turns == 0 && !a.onlyWanted(wanted)",
		"return ok && report.Turns < 0 && !a.onlyWanted(wanted)", "./engine",
		"TestACancelledRunIsReported"},
	{"a part of a large folder is taken for all of it", "changes/changes.go",
		`if err == nil && seen.full && r.Dir == "" {`, "if false {", "./changes", "TestAFolderThatIsTooLarge"},
	{"the next run starts before the last one is reported", "decide.go",
		"case d.s.Unreported != 0:", "case false:", ".", "TestACancelledRunIsReportedOnce"},
	{"tools of the workspace work for every tenant", "engine/made.go",
		"if !p.away && p.of(tenant) {", "if true {", "./cmd/parley", "TestTwoTenantsAtOnce"},
	{"a run keeps the tools of a workspace that is no longer its tenant's", "engine/worker.go",
		"return a.in().atHome(a.tenant, agent), err", "return agent, err", "./engine",
		"TestARunLosesTheWorkspaceWithItsTenant"},
	{"the process of a tool server shows the workspace to another tenant", "tool/mcp/stdio.go",
		"NoWorkspace: l.tenant != l.servers.Home", "NoWorkspace: false", "./tool/mcp",
		"TestOtherTenantsHaveNoWorkspace"},
	{"every tenant may use a tool server that names none", "tool/mcp/mcp.go",
		"server.Tenants == nil && tenant == s.Home", "server.Tenants == nil", "./tool/mcp", "TestNobodyElseByDefault"},
	{"a tool server with secrets is started where agents put code", "tool/mcp/stdio.go",
		"if c.NoWorkspace || c.Bare || len(c.Env) > 0 {", "if c.NoWorkspace || c.Bare {", "./tool/mcp",
		"TestSecretsAreNotGivenInTheWorkspace"},
	{"a program in the workspace is given secrets", "config/mcp_place.go",
		"case len(given) > 0:", "case false:", "./config", "TestProgramsThatAgentsCouldReplace"},
	{"a program in the workspace runs without a sandbox", "config/mcp_place.go",
		"case t.Bare:", "case false:", "./config", "TestProgramsThatAgentsCouldReplace"},
	{"a link to a program in the workspace is not followed", "config/mcp_place.go",
		"rest = append(strings.Split(filepath.Clean(to), \"/\"), rest...)", "_ = to", "./config",
		"TestProgramsThatAgentsCouldReplace"},
	{"a tool that has changed since it was accepted is offered", "tool/mcp/offered.go",
		"accepted[t.name] == t.digest", `accepted[t.name] != ""`, "./tool/mcp", "TestARugPull"},
	{"who is not trusted says what a crash means", "tool/mcp/offered.go",
		"case trusted && t.reads:", "case t.reads:", "./tool/mcp", "TestVerdicts"},
	{"a call whose process died counts as failed", "tool/mcp/box.go",
		"if class == parley.Effectful {", "if false {", "./tool/mcp", "TestAProcessThatDies"},
	{"a broken connection counts as an answer", "tool/mcp/result.go",
		"!slices.Contains(ownCodes, e.Code)", "!slices.Contains(ownCodes, 1)", "./tool/mcp", "TestHTTPThatBreaks"},
	{"a fate that nobody knows counts as a failure", "engine/worker.go",
		"outcome, result = parley.CallUnknown, parley.MessageOf(err)", "outcome, result = parley.CallFailed, parley.MessageOf(err)", "./engine", "TestACallWhoseFateNobodyKnows"},
	{"a server of tools with a network reaches Parley itself", "sandbox/landlock.go",
		"if slices.Contains(ports, uint16(port)) {", "if port == 0 {", "./sandbox", "TestANetworkWithoutOurPort"},
	{"everybody who sees an agent sees what it is told", "dialect/native/agents.go",
		`a.Instructions, a.IdlePrompt, a.Address, a.Webhook = "", "", "", nil`, `a.Instructions, a.Address = "", ""`,
		"./dialect/native", "TestDefinitions"},
	{"whoever looks at an agent is on record as refused", "dialect/native/agents.go",
		"if h.Access == nil || h.Access.Permit(r.who,", "if h.Access == nil || h.Door.May(r.Context(), r.who,",
		"./dialect/native", "TestDefinitions"},
	{"agents of files are said to be deletable", "dialect/native/agents.go",
		"return err != nil", "return err == nil", "./dialect/native", "TestMadeAgents"},
	{"runs of other agents are listed as one's", "store/sqlite/rows.go",
		"text+` AND r.agent = ?`, append(args, q.Agent)", "text+` AND r.agent >= ?`, append(args, q.Agent)",
		"./store/sqlite", "TestStore"},
	{"something else is accepted than was shown", "dialect/native/mcp.go",
		"case servers[i].Tools[at].Digest != digest:", "case false:", "./dialect/native", "TestToolServers"},
	// What a model gets wrong is told to it, and ends nothing.
	{"too many calls are dropped without a word", "engine/model.go",
		"case n == parley.MaxCalls: // that there are more is told once", "case n < 0:", "./engine",
		"TestTooManyCallsAreTold"},
	{"a call that could not be is sent back as it was", "provider/upstream/talk.go",
		"toolName(c.Name), object(c.Arguments)", "c.Name, c.Arguments", "./provider/upstream",
		"TestTalkOfCallsThatCouldNotBe"},

	// A command leaves nothing behind, and makes nothing that is hidden.
	{"what covers a hidden file stays", "sandbox/cover.go",
		"uncover(root, c.sorted())", "_ = root", "./sandbox", "TestWhatIsToBeHiddenCannotBeMade"},
	{"a command that ends uncovers what others must not make", "sandbox/cover.go",
		"if c.commands--; c.commands > 0 {", "if c.commands--; c.commands > 99 {", "./sandbox",
		"TestWhatIsHiddenStaysSoForEverybody"},

	// What comes unasked: once, within its limits, and never instead of an answer.
	{"a timer that has fired fires again", "timer.go",
		"s.LastAutonomous, s.Stamp = b.At, b.Stamp\n\treturn s.withoutTimer(b.Timer)", "s.LastAutonomous, s.Stamp = b.At, b.Stamp\n\treturn s", ".", "TestAFollowUp$"},
	{"an agent goes on sending messages that nobody answers", "timer.go",
		"case d.s.Autonomous >= limits.MaxConsecutive:", "case false:", "./engine", "TestLimitsAreLoggedAndSeen"},
	{"a clock that was wrong silences a session", "timer.go",
		"-gap < since && since < gap", "since < gap", "./engine", "TestTheCooldownAndAClockThatJumps"},
	{"an outage ends in a burst", "timer.go",
		"if other.Agent.Name == t.Agent.Name && !d.at.Before(other.At) {", "if other.ID == t.ID {", "./engine",
		"TestAnOutageOfDays"},
	{"what nobody waits for is shown after somebody wrote", "autonomy.go",
		"for _, id := range d.s.Owed {", "for _, id := range d.s.Owed[:0] {", "./engine", "TestAMessageAtAnyTime"},
	{"one effect that nobody can take is in the way of all others", "effect.go",
		"if b.Attempts < freeAttempts {", "if b.Attempts >= 0 {", "./engine", "TestPoison"},

	// A terminal shows what is asked, and nothing else draws on it.
	{"a file draws on the terminal of who reads it", "cmd/parley/visible.go",
		"if strings.IndexFunc(text, hidden) < 0 {", "if true {", "./cmd/parley", "TestVisible|TestChatShowsTheWork"},
	{"a yes is for something else than was shown", "cmd/parley/terminalcards.go",
		"\t\tbody[\"digest\"] = c.digest", "", "./cmd/parley", "TestChatShowsTheWork"},
	{"who types on has allowed something", "cmd/parley/terminalcards.go",
		"decision == \"\" || note != \"\" && decision != parley.Deny", "decision == \"\"", "./cmd/parley",
		"TestChatShowsTheWork"},

	// Missions: an idle prompt is taken once, when it is due, and by who may be asked.
	{"an idle prompt is promised again while one is not settled", "idle.go",
		"if idle.Prompt != 0 || !idle.Last.Equal(b.Last) {", "if false {", "./engine",
		"TestAnIdlePromptIsPromisedOnce"},
	{"an idle prompt is taken again after a crash", "engine/mission.go",
		"parley.CommandID(parley.Ref(a.session, prompt))", `""`, "./engine", "TestAnIdlePromptIsTakenOnce"},
	{"an idle prompt comes after its agent was stopped", "engine/mission.go",
		"err = e.running(e.ctx, a.tenant, do.Agent.Name)", "err = nil", "./engine", "TestMissionsBehindTheDoor"},
	{"an agent that waits for a person is taken for idle", "engine/mission.go",
		"i.held = activity.Open || ", "i.held = ", "./engine", "TestIdleMeansThatNothingGoesOn"},
	{"an agent is prompted for somebody it does not talk to", "engine/mission.go",
		"Agent: agent.Name, Allow: agent.Allow}", "Agent: agent.Name}", "./engine", "TestWhoIsNotPrompted"},
	{"a clock that was set back puts idle prompts off until it is that late again", "engine/idleschedule.go",
		"meant.at.After(latest) {", "false && meant.at.After(latest) {", "./engine",
		"TestIdlePromptsWhenTheClockIsSet"},

	// Webhooks, and what is counted.
	{"a run ends and no webhook is told", "decide.go",
		"d.tell(e, before)", "_ = before", ".", "TestEveryEndIsTold"},
	{"a call of unknown outcome calls nobody", "webhook.go",
		"if b.Outcome != CallUnknown {", "if b.Outcome != \"\" {", ".", "TestEveryEndIsTold"},
	{"a webhook reaches whatever its name turns out to be", "webhook/send.go",
		"return allow.mayDial(to, at.Addr())",
		"return allow.mayDial(&url.URL{Scheme: \"https\", Host: at.String()}, netip.AddrFrom4([4]byte{8, 8, 8, 8}))",
		"./webhook", "TestWhatIsDialledIsLookedAt"},
	{"an address in disguise is public", "webhook/address.go",
		"if block.Contains(ip) {", "if block.Contains(ip) && ip.Is4() {", "./webhook", "TestPublicAddresses"},
	{"a redirect leads a webhook anywhere", "webhook/send.go",
		"return http.ErrUseLastResponse", "return nil", "./webhook", "TestAnswersAreNotTrusted"},
	{"two tell the same webhook at the same time", "store/sqlite/webhooks.go",
		"AND status IN ('pending', 'executing') AND next_attempt_at = ?6`",
		"AND status IN ('pending', 'executing') AND ?6 >= 0`", "./store/sqlite", "TestStore"},
	{"a slow receiver hides the others", "webhook/dispatch.go",
		"busy.Targets = append(busy.Targets, target)", "_ = target", "./webhook", "TestASlowReceiverHoldsUpNobody"},
	{"the slow receivers of a tenant hide another tenant", "webhook/dispatch.go",
		"busy.Tenants = append(busy.Tenants, tenant)", "_ = tenant", "./webhook", "TestATenantHoldsUpNoOther"},
	{"a webhook waits for the clock of its log", "store/sqlite/writer.go",
		"'pending', ?8, ?8, ?9, 0)`", "'pending', ?8, ?8, ?9, ?8)`", "./webhook",
		"TestAClockThatIsSetBackSilencesNobody"},
	{"a store that fails is asked again at once", "webhook/dispatch.go",
		"rests, left = now.Add(retryStore), retryStore", "_ = rests", "./webhook", "TestAStoreThatFailsIsLeftAlone"},
	{"a sealed secret opens in another session", "webhook/sign.go",
		`return []byte(string(tenant) + "\n" + string(session))`, `return []byte(string(tenant))`, "./webhook",
		"TestSealedSecretsStayWhereTheyAre"},
	{"a receiver that is shown a run counts as a webhook that was told", "store/sqlite/writer.go",
		"AND run = ?4 AND type = 'send_message' AND status", "AND run = ?4 AND status", "./store/sqlite", "TestStore"},
	{"names that models make up are counted without end", "metrics/metrics.go",
		"case len(n.seen) >= n.most:", "case len(n.seen) >= 1<<20:", "./metrics", "TestNamesAreBounded"},
	{"a scrape waits for a store that hangs", "metrics/state.go",
		"context.WithTimeout(context.Background(), askWithin)",
		"context.WithTimeout(context.Background(), 60*askWithin)", "./metrics", "TestWhatWaits"},
})

// TestEveryBugCanBePlanted finds entries whose code or tests were renamed. It builds nothing.
func TestEveryBugCanBePlanted(t *testing.T) {
	tests, code, names := testIndex{}, codeIndex{}, map[string]bool{}
	for _, b := range bugs {
		if names[b.what] {
			t.Errorf("two bugs are called %q", b.what)
		}
		names[b.what] = true
		if file, changed, err := code.find("..", b); err != nil {
			t.Errorf("%s: %v", b.what, err)
		} else if _, err := parser.ParseFile(token.NewFileSet(), file, changed,
			parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: with the bug it is not Go: %v", b.what, err)
		}
		if files, err := tests.files("..", b); err != nil {
			t.Errorf("%s: %v", b.what, err)
		} else if len(files) == 0 {
			t.Errorf("%s: %s has no test that matches %s", b.what, b.pkg, b.run)
		}
	}
}

func TestEveryBugIsNoticed(t *testing.T) {
	if os.Getenv("PARLEY_SABOTAGE") == "" {
		t.Skip("planting bugs takes minutes; make sabotage plants all, make sabotage-sample some")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	picked := bugs
	if os.Getenv("PARLEY_SABOTAGE") == "sample" {
		picked = sample(t, root)
	}
	for _, b := range picked {
		t.Run(strings.ReplaceAll(b.what, " ", "_"), func(t *testing.T) {
			t.Parallel() // many bugs make a test wait until its timeout
			overlay := plant(t, root, b)
			args := []string{"test", "-v", "-vet=off", "-count=1", "-timeout", "90s", "-failfast", "-run",
				"^(" + b.run + ")$", b.pkg}
			if slices.Contains(onStores, b.run) {
				args[len(args)-2] += "/^sqlite$"
			}
			if b.pkg == "./engine" {
				args = append(args, "-rapid.shrinktime=1s") // that it fails is enough
			}
			if strings.HasPrefix(b.pkg, "./dialect/") {
				args = append(args, "-rapid.checks=2000") // cheap, and rare cases are what they are for
			}
			// In the environment, so that tests that build the program use the
			// overlay too. Linking is quicker without debug information. Rapid
			// keeps no file of a case that fails because of a planted bug.
			env := append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -ldflags=-w -overlay="+overlay,
				"RAPID_NOFAILFILE=1")
			var out []byte
			var err error
			for range 4 { // a random test may miss the bug once
				cmd := exec.Command("go", args...)
				cmd.Dir, cmd.Env = root, env
				if out, err = cmd.CombinedOutput(); err != nil {
					break
				}
			}
			switch said := string(out); {
			case err == nil && strings.Contains(said, "--- SKIP"):
				t.Skipf("the test that notices the bug cannot run on this machine:\n%s", out)
			case err == nil:
				t.Errorf("no test noticed the bug:\n%s", out)
			case strings.Contains(said, "go build: "), strings.Contains(said, "[build failed]"):
				t.Errorf("the bug does not compile:\n%s", out)
			case !strings.Contains(said, "=== RUN"):
				t.Errorf("no test ran:\n%s", out)
			}
		})
	}
}

// plant writes the changed file and the overlay that puts it in place.
func plant(t *testing.T, root string, b bug) string {
	t.Helper()
	file, source, err := codeIndex{}.find(root, b)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(root, filepath.FromSlash(file))
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {at: changed}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
