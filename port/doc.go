// Package port declares the interfaces between the packages, and the values that only pass through these interfaces.
//
// Package parley at the root defines what happens in a session: events, commands, reports, steps, and the functions
// that interpret them. Package port defines how the parts of the server reach each other:
//
//	Door       dialects reach sessions (implemented by engine)
//	Store      engine, feed and others keep and read logs (store/sqlite, store/postgres)
//	Model      engine calls models (provider)
//	Toolbox    engine judges and carries out tool calls (tool, tool/mcp)
//	Remotes    engine reaches remote agents (remote/frames, remote/acp)
//	Screen     engine looks for prompt injection and secrets (screen)
//	Authorizer engine checks the permissions of principals (access)
//	Agents, Skills, Files, Changes, Webhooks, HookStore, Nodes, Bus
//
// Each file has one of these subjects, with the queries and answers that belong to it. A type belongs here if no event,
// command, report or step contains it and neither Decide, Fold nor Next uses it. So port imports parley, and parley
// never imports port. Nothing here does I/O.
package port
