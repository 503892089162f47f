// Package parley contains the vocabulary of the system and its pure core.
//
// A session is an append-only log of events. Three functions interpret it:
//
//	Decide(state, in)     the events that follow from in, a command or a report
//	Fold(state, event)    the state after an event
//	Next(state, now)      the steps that should be under way for the session
//
// A fourth, Project(view, event), lives in each dialect. None of them reads a
// clock, draws a random number, blocks or starts a goroutine: time and ids are
// arguments. Everything that does I/O is behind the interfaces of package port;
// cmd/parley connects the parts.
//
// Each subject (session, input, run, turn, call, card, plan, timer, …) has one
// file with its events, commands, reports and steps. Methods of these types hold
// the behaviour: an event folds itself, a command has its rules and decides, a
// report decides. Shared code is in event.go, command.go, report.go, step.go,
// decide.go, state.go, next.go and limits.go.
//
// An entity inside a session (a run, turn, output, call, card, input) is named
// by the Seq of the event that created it. This name needs no entropy, is unique
// within the session by construction, and locates the event in the log.
package parley
