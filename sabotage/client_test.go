package sabotage

// clientBugs are in the Go client, the commands that use it, forks and what a restart finds.
var clientBugs = []bug{
	{"a request that is repeated has another key", "client/client.go",
		`header.Set("Idempotency-Key", q.key)`, `header.Set("Idempotency-Key", cryptorand.Text())`,
		"./client", "TestSubmitRepeats"},
	{"a follower delivers an event twice", "client/follow.go",
		"if n := numberOf(id); n <= f.last {", "if n := numberOf(id); n < 0 {", "./client", "TestFollowResumes"},
	{"a follower does not say that the log starts again", "client/follow.go",
		`case event == "resync":`, `case event == "":`, "./client", "TestFollowReportsResync"},
	{"parley run approves edits after untrusted content", "cmd/parley/run.go",
		`slices.Contains(edits, b.Name) && b.Why == ""`, "slices.Contains(edits, b.Name)",
		"./cmd/parley", "TestSafeApprovals"},
	{"every user chooses the model of an agent", "engine/command.go",
		"return agent, in, a.engine.permit(a.engine.ctx, who, via, parley.ActAdmin,",
		"return agent, in, a.engine.permit(a.engine.ctx, who, via, parley.ActMessage,",
		"./engine", "TestWhoChoosesTheModel"},
	{"a fork forgets which sources its conversation comes from", "engine/fork.go",
		"do.Agent, do.Project, do.Sources = state.Agent, a.engine.projects.key(a.tenant, project), state.Sources",
		"do.Agent, do.Project = state.Agent, a.engine.projects.key(a.tenant, project)",
		"./engine", "TestAForkRemembersSources"},
	{"a session that a user may not read is forked", "engine/fork.go",
		"m, err := a.engine.Session(ctx, who, do.Source)",
		"stored, err := a.engine.Store.Tenant(a.tenant).Session(ctx, do.Source)\n\tm := stored.Summary",
		"./engine", "TestRefusedForks"},
	{"what was allowed in one folder is done in another", "engine/worker.go",
		"now.Digest != step.Approved {", "now.Digest == \"\" {", "./engine", "TestAnApprovalIsForOnePlace"},
}
