// Package port declares what the packages need of each other: the interfaces between them, and the values that only
// pass through these interfaces.
//
// Package parley at the root says what happens in a session: events, commands, reports, steps, and the functions that
// interpret them. Package port says how the parts of the server reach each other:
//
//	Door       dialects reach sessions (implemented by engine)
//	Store      engine, feed and others keep and read logs (store/sqlite, store/postgres)
//	Model      engine calls models (provider)
//	Toolbox    engine judges and carries out tool calls (tool, tool/mcp)
//	Remotes    engine reaches agents that run elsewhere (remote/frames, remote/acp)
//	Screen     engine looks for prompt injection and secrets (screen)
//	Authorizer engine asks what a principal may do (access)
//	Agents, Skills, Files, Changes, Webhooks, HookStore, Nodes, Bus
//
// Each file has one of these subjects, with the queries and answers that belong to it. A type belongs here if no event,
// command, report or step has it and neither Decide, Fold nor Next uses it. So port imports parley, and parley never
// imports port. Nothing here does I/O.
package port
