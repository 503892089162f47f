// Package parley is the vocabulary of the system and its pure centre.
//
// A session is an append-only log of events. Three functions interpret it:
//
//	Decide(state, in)     what happened, given what came in: a command or a report
//	Fold(state, event)    the state after an event
//	Next(state, now)      what the outside world should be doing about it
//
// A fourth, Project(view, event), lives in each dialect. None of them reads a
// clock, draws a random number, blocks or starts a goroutine: time and ids are
// arguments. Everything that does I/O is behind the interfaces of package port,
// and is put together in cmd/parley.
//
// Each subject (session, input, run, turn, call, card, plan, timer, …) has one
// file with its events, commands, reports and steps. Their behaviour is in methods
// beside them: an event folds itself, a command has its rules and decides, a report
// decides. What all of them share is in event.go, command.go, report.go, step.go,
// decide.go, state.go, next.go and limits.go.
//
// An entity inside a session (a run, turn, output, call, card, input) is named
// by the Seq of the event that made it. Such a name needs no entropy, is unique
// within the session by construction, and says where in the log to look.
package parley
